//! # What it does
//!
//! Stops when the model keeps weights in other files and some of them are not there, or lie outside its folder.
//!
//! # Why
//!
//! The model cannot be loaded without them, so neither calibration nor quantization can start.
//!
//! # Example
//!
//! `weights.bin` is named by the model and missing beside it, so the request goes back to the intake.
//!
//! # Sources
//!
//! - microsoft/onnxruntime#14213: a model without its data file beside it
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-model-intake/SKILL.md`

use serde_json::json;

use crate::rules::{
    Context, Stage,
    sheet::{Route, Sheet, list},
};

/// The reason code.
pub const ID: &str = "external-data-missing";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// Stops at missing weights.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let missing = &ctx.onnx().external_data_missing;
    if missing.is_empty() {
        return;
    }
    sheet.by(ID).stop(Route {
        skill: "quark-onnx-model-intake",
        reason: format!(
            "the model keeps weights in {}, which cannot be read from its folder, so it cannot be loaded",
            list(missing, 3)
        ),
        artefact: Some("model_analysis.json"),
        bring_back: "an analysis of the model with all its data files beside it".to_owned(),
        resume: ("propose_plan", json!({ "model_path": ctx.analysis.model.model_path })),
    });
}
