//! # What it does
//!
//! Stops when the model is quantized already: Q/DQ nodes, integer ops, dynamic quantization, quantized
//! weights, or custom ops of Quark. No insistence changes that.
//!
//! # Why
//!
//! Quantizing twice gives a wrong model. The library only logs an error and goes on, until something fails
//! much later.
//!
//! # Example
//!
//! The graph has 2 `DynamicQuantizeLinear` and 4 `MatMulInteger`, so no plan; the intake is asked for the float
//! model, or for what `quark.onnx.tools.remove_qdq` leaves.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Recovery"
//! - 0.13, `quark/onnx/quantization/input_check.py:128` (measured: an error in the log, then IndexError)
//! - amd/RyzenAI-SW#169: a quantized ResNet50 quantized again breaks at GlobalAveragePool

use serde_json::json;

use crate::rules::{
    Context, Stage,
    sheet::{Route, Sheet, propose_again},
};

/// The reason code.
pub const ID: &str = "already-quantized";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// Op types whose presence alone shows a quantized model, when the analysis does not say.
fn shows_quantization(op_type: &str) -> bool {
    op_type.ends_with("QuantizeLinear")
        || op_type.ends_with("DequantizeLinear")
        || op_type.ends_with("Integer")
        || op_type.starts_with("QLinear")
        || op_type.starts_with("DynamicQuantize")
        || op_type.starts_with("MatMulNBits")
}

/// Stops at a quantized model.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let facts = ctx.onnx();
    let mut evidence: Vec<String> =
        facts.quantization_evidence.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if evidence.is_empty() {
        let counts = &ctx.targets().op_counts;
        let found = counts.iter().filter(|(op, count)| **count > 0 && shows_quantization(op));
        evidence.extend(found.map(|(op, count)| format!("{count} {op}")));
    }
    let said = facts.has_qdq_already == Some(true) || facts.has_quark_custom_ops == Some(true);
    if !said && evidence.is_empty() {
        return;
    }
    let what = if evidence.is_empty() {
        "the analysis says so".to_owned()
    } else {
        evidence.truncate(4);
        format!("it has {}", evidence.join(", "))
    };
    sheet.by(ID).stop(Route {
        skill: "quark-onnx-model-intake",
        reason: format!(
            "the model is quantized already ({what}), and quantizing it again gives a wrong model; \
             insisting cannot change that"
        ),
        artefact: Some("model_analysis.json"),
        bring_back: "an analysis of the float model that this one came from, or of what \
                     `quark.onnx.tools.remove_qdq` makes of it"
            .to_owned(),
        resume: (
            "propose_plan",
            propose_again(ctx, ("analysis_path", json!("<path of the new model_analysis.json>"))),
        ),
    });
}
