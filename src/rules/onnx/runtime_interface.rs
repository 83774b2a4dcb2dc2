//! # What it does
//!
//! Tells which engines read the result, and asks what matters to them: the execution provider when the goal names
//! XNNPACK, float or integer inputs and outputs when it names an integer pipeline.
//!
//! # Why
//!
//! `A8W8`, `A16W8` and the INT16 presets write Q/DQ of com.microsoft, which only ONNX Runtime reads. XNNPACK takes
//! certain signs and granularities only. Graph outputs have no Q/DQ pair, so an integer pipeline finds no scale.
//!
//! # Example
//!
//! The preset is `A8W8`, so the result holds com.microsoft Q/DQ and is for ONNX Runtime.
//!
//! # Sources
//!
//! - 0.13, run on a small CNN: domains of Q/DQ by preset (measured)
//! - microsoft/onnxruntime#12860, #13328

use crate::{
    catalogue::presets::Preset,
    plan::Choice,
    rules::{Context, Stage, common::goal, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "runtime-interface";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Tells and asks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let preset = sheet.preset.clone();
    let npu = sheet.on_npu();
    let mut pen = sheet.by(ID);
    // `opset-floor` tells it of sixteen bits.
    let sixteen =
        |preset: &Preset| preset.activation.r#type.is_int16() || preset.weight.r#type.is_int16();
    let contrib =
        |preset: &Preset| preset.qdq_domains.iter().any(|domain| domain == "com.microsoft");
    if let Some(preset) = preset.filter(|preset| contrib(preset) && !sixteen(preset) && !npu) {
        pen.risk(
            Severity::Low,
            format!("`{}` writes Q/DQ of com.microsoft, which ONNX Runtime reads and other engines may not", preset.id),
            None,
        );
    }
    let goal = goal::read(ctx);
    if goal.says(&["xnnpack", "xnnpackexecutionprovider"])
        && ctx.answer("execution_provider").is_none()
    {
        pen.risk(
            Severity::Medium,
            "XNNPACK takes Q/DQ models of certain signs and granularities only, and nothing here checks them",
            Some("answer `execution_provider`, and try the result there early".to_owned()),
        );
        pen.wonder("execution_provider", "Which execution provider will run the result, for example CPUExecutionProvider or XnnpackExecutionProvider?", Vec::new());
    }
    let integer = goal.says(&[
        "integer io",
        "integer i o",
        "int8 io",
        "int8 i o",
        "int8 input",
        "int8 inputs",
        "int8 output",
        "int8 outputs",
        "uint8 input",
        "uint8 inputs",
        "uint8 output",
        "uint8 outputs",
        "integer input",
        "integer inputs",
        "integer output",
        "integer outputs",
        "integer only",
        "integer pipeline",
    ]);
    match ctx.answer("integer_io") {
        Some("no") => {}
        answer if integer || answer == Some("yes") => {
            pen.risk(
                Severity::Medium,
                "inputs and outputs stay float: graph outputs have no Q/DQ pair, so an integer pipeline finds no scale there",
                Some("remove the outer Q/DQ after quantization, and take the scales from its neighbours".to_owned()),
            );
            if answer.is_none() {
                let choice = |value: &str, meaning: &str| Choice {
                    value: value.to_owned(),
                    meaning: meaning.to_owned(),
                };
                pen.wonder(
                    "integer_io",
                    "Must inputs and outputs be integers?",
                    vec![
                        choice("no", "float inputs and outputs are fine"),
                        choice("yes", "they must be integers; the risk stays"),
                    ],
                );
            }
        }
        _ => {}
    }
}
