//! # What it does
//!
//! Stops when the analysis says nothing about the operators of the graph; records what a partial analysis
//! leaves out.
//!
//! # Why
//!
//! Without architecture, op counts and opsets nothing can be decided.
//!
//! # Example
//!
//! The analysis has no `op_counts`, so the request goes back to `quark-onnx-model-intake`.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Rules":
//!   "Require a model analysis first"

use serde_json::json;

use crate::{
    facts::AnalysisStatus,
    rules::{
        Context, Stage,
        sheet::{Route, Sheet, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "analysis-usable";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// Looks at what the analysis holds.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    if ctx.targets().op_counts.is_empty() {
        sheet.by(ID).stop(Route {
            skill: "quark-onnx-model-intake",
            reason: "the analysis has no operator counts, so nothing is known of what there is to quantize".to_owned(),
            artefact: Some("model_analysis.json"),
            bring_back: "an analysis with `quantization_targets.onnx_specific.op_counts`".to_owned(),
            resume: ("propose_plan", propose_again(ctx, ("analysis_path", json!("<path of model_analysis.json>")))),
        });
        return;
    }
    let facts = ctx.onnx();
    let missing: Vec<&str> = [
        ("opsets", ctx.opset().is_none()),
        ("has_qdq_already", facts.has_qdq_already.is_none()),
        ("inputs", facts.inputs.is_empty()),
        ("weights", facts.weights.is_none()),
    ]
    .iter()
    .filter_map(|(name, missing)| missing.then_some(*name))
    .collect();
    if ctx.analysis.analysis_status == AnalysisStatus::Partial || !missing.is_empty() {
        let what = if missing.is_empty() {
            "its own risks say what".to_owned()
        } else {
            format!("it lacks {}", crate::rules::sheet::list(&missing, 8))
        };
        sheet.by(ID).risk(
            Severity::Medium,
            format!(
                "the analysis is not complete: {what}; what follows from those facts is not checked"
            ),
            Some("analyse the model file itself with `analyze_model`".to_owned()),
        );
    }
}
