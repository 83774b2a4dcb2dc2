//! # What it does
//!
//! Asks for the library of operators that ONNX Runtime does not have, and warns of files that ONNX Runtime has
//! already optimized.
//!
//! # Why
//!
//! Calibration runs the model; without the library it cannot be loaded. In an optimized file attention is one
//! fused `com.microsoft` node: quantizers no longer see MatMul, and the NPU rejects it.
//!
//! # Example
//!
//! 2 nodes are of the domain `trt.plugins`, so the plan waits for the folder with their library.
//!
//! # Sources
//!
//! - NVIDIA/Model-Optimizer#503; microsoft/onnxruntime#19803
//! - 0.13, `quark/onnx/quantization/quantize.py:271`: `UserCustomOpLibPath`

use serde_json::json;

use crate::{
    rules::{
        Context, Stage,
        sheet::{Route, Sheet, list, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "custom-domains";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// The domain of operators that ONNX Runtime brings.
const FUSED: &str = "com.microsoft";

/// Looks at the domains of nodes.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let domains = &ctx.onnx().custom_domains;
    let unknown: Vec<&String> = domains
        .iter()
        .filter(|(domain, count)| **count > 0 && *domain != FUSED)
        .map(|(domain, _)| domain)
        .collect();
    if !unknown.is_empty() {
        library(ctx, sheet, &unknown);
    }
    let Some(count) = domains.get(FUSED).copied().filter(|count| *count > 0) else { return };
    let npu = sheet.on_npu();
    let what = format!(
        "{count} nodes are of the domain `{FUSED}`, so ONNX Runtime has optimized the file: attention is fused and quantizers no longer see its MatMul"
    );
    let mut pen = sheet.by(ID);
    pen.risk(
        if npu { Severity::High } else { Severity::Medium },
        if npu { format!("{what}, and the NPU rejects such nodes") } else { what.clone() },
        Some("plan from the export before ONNX Runtime optimized it".to_owned()),
    );
    pen.hand_off(Route {
        skill: "quark-onnx-model-intake",
        reason: what,
        artefact: Some("model_analysis.json"),
        bring_back: "the analysis of the export before it was optimized".to_owned(),
        resume: (
            "propose_plan",
            propose_again(ctx, ("analysis_path", json!("<path of the new model_analysis.json>"))),
        ),
    });
}

fn library(ctx: &Context<'_>, sheet: &mut Sheet, domains: &[&String]) {
    let shown = list(domains, 3);
    if let Some(path) = ctx.answer("custom_op_library") {
        sheet.by(ID).option(
            "UserCustomOpLibPath",
            path,
            format!("it holds the operators of {shown}"),
        );
        return;
    }
    if sheet.option_given(ctx, "UserCustomOpLibPath").is_some() {
        return;
    }
    let mut pen = sheet.by(ID);
    pen.ask(
        "custom_op_library",
        format!("The graph has operators of {shown}, which ONNX Runtime does not have. Which folder holds their library?"),
        Vec::new(),
    );
    pen.risk(
        Severity::High,
        format!("operators of {shown} cannot be calibrated without their library"),
        Some("name the folder, or export the model without them".to_owned()),
    );
}
