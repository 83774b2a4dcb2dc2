//! # What it does
//!
//! Carries over what the intake saw: its risks from medium up that no other rule already tells.
//!
//! # Why
//!
//! Whoever agrees to a plan sees the table, not the analysis.
//!
//! # Example
//!
//! The intake found 3 model-local functions, into which quantizers do not look, so the plan says so too.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-model-intake/SKILL.md`, "Risks"

use crate::{
    rules::{Context, Stage, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "analysis-risks";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Words of topics that rules of their own judge, with the target in mind.
const JUDGED_ELSEWHERE: [&str; 9] = [
    "dynamic dim",
    "NCHW",
    "Opset is",
    "opset",
    "2 GB",
    "FP16",
    "Custom-domain",
    "Control flow",
    "External data",
];

/// Carries the risks over.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let mut pen = sheet.by(ID);
    pen.carry_over(&ctx.analysis.risks, &JUDGED_ELSEWHERE);
    let nested = ctx.onnx().nodes.map_or(0, |nodes| nodes.all.saturating_sub(nodes.top));
    let flow: Vec<String> = ["If", "Loop", "Scan", "SequenceMap"]
        .iter()
        .filter(|op| ctx.count(op) > 0)
        .map(|op| format!("{} {op}", ctx.count(op)))
        .collect();
    if !flow.is_empty() {
        let npu = pen.sheet().on_npu();
        pen.risk(
            if npu { Severity::High } else { Severity::Medium },
            format!(
                "the graph has control flow ({}) with {nested} nodes inside: calibration does not see their tensors{}",
                flow.join(", "),
                if npu { ", and the NPU does not run them" } else { "" }
            ),
            Some("export the model without control flow, for example with one branch fixed; `EnableSubgraph` quantizes inside but needs ranges".to_owned()),
        );
    }
}
