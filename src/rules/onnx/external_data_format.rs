//! # What it does
//!
//! Writes the result with external data when the model is larger than 2 GB.
//!
//! # Why
//!
//! A protobuf file cannot be larger. Only initializers are moved out: weights in Constant nodes stay in the file
//! and keep it too large.
//!
//! # Example
//!
//! The model is 3.1 GB, so `use_external_data_format` is true.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantization/quantize.py:295`
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Rules"
//! - microsoft/onnxruntime#17944: Constant nodes are not moved

use serde_json::json;

use crate::{
    rules::{
        Context, Stage,
        sheet::{Check, Route, Sheet, propose_again},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "external-data-format";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "onnx_specific.use_external_data_format";
const LIMIT: u64 = 2_000_000_000;

/// Settles the flag.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let facts = ctx.onnx();
    let external = facts.weights.as_ref().map_or(0, |weights| weights.external_bytes);
    let measured = facts.file_size_bytes.map(|bytes| bytes.saturating_add(external));
    let stated = ctx.analysis.model.estimated_size_gb.map(|gb| (gb * 1e9) as u64);
    let bytes = measured.max(stated);
    let large = bytes.is_some_and(|bytes| bytes > LIMIT);
    let reason = match bytes {
        Some(bytes) if large => format!(
            "the model is {:.2} GB, and a protobuf file holds at most 2 GB, so true",
            bytes as f64 / 1e9
        ),
        Some(bytes) if bytes < 100_000_000 => {
            format!("the model is {:.1} MB, far below 2 GB, so false", bytes as f64 / 1e6)
        }
        Some(bytes) => format!("the model is {:.2} GB, below 2 GB, so false", bytes as f64 / 1e9),
        None => "its size is not known; Quark switches it on by itself above 2 GB".to_owned(),
    };
    let origin = if bytes.is_some() { Origin::Analysis } else { Origin::Default };
    sheet.by(ID).settle_or(ctx, ROW, (json!(large), origin, reason), |_| {
        if large {
            Check::Unwise("a file above 2 GB cannot be written".to_owned())
        } else {
            Check::Fine
        }
    });
    let constant = facts.weights.as_ref().map_or(0, |weights| weights.constant_bytes);
    if large && constant.saturating_mul(2) > bytes.unwrap_or(0) {
        let what = format!(
            "{:.2} GB of the weights are in Constant nodes, which external data does not move",
            constant as f64 / 1e9
        );
        let mut pen = sheet.by(ID);
        pen.risk(
            Severity::High,
            format!("{what}: the file stays too large"),
            Some("turn Constant nodes into initializers, for example with onnxsim".to_owned()),
        );
        pen.hand_off(Route {
            skill: "quark-onnx-model-intake",
            reason: what,
            artefact: Some("model_analysis.json"),
            bring_back: "the analysis of a model whose weights are initializers".to_owned(),
            resume: (
                "propose_plan",
                propose_again(
                    ctx,
                    ("analysis_path", json!("<path of the new model_analysis.json>")),
                ),
            ),
        });
    }
}
