//! # What it does
//!
//! Asks for an export with batch 1 when an input of a model for the NPU's CNN flow has another one.
//!
//! # Why
//!
//! Such a model quantizes without complaint and fails when it runs on the NPU.
//!
//! # Example
//!
//! `input` is `8x3x224x224` and the target is `npu_cnn`, so the plan waits for an export with batch 1.
//!
//! # Sources
//!
//! - amd/RyzenAI-SW#309

use serde_json::json;

use crate::{
    plan::Choice,
    rules::{
        Context, Stage,
        onnx::shapes,
        sheet::{Route, Sheet, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "npu-batch";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Looks at the batch of every image input.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(target) = sheet.target else { return };
    let Some(batch) = target.batch else { return };
    let first = |name: &str, declared: Option<u64>| {
        sheet.fixed_shapes.get(name).map_or(declared, |dims| dims.first().copied())
    };
    let wrong = ctx.onnx().inputs.iter().find_map(|input| {
        let shape = input.shape.as_ref().filter(|shape| shape.len() == 4)?;
        let size = first(&input.name, shape.first().and_then(|dim| dim.fixed()))?;
        (size != batch).then(|| (input.name.clone(), size, shapes::show(input)))
    });
    let Some((name, size, shape)) = wrong else { return };
    let what = format!(
        "`{name}` is {shape}, a batch of {size}, and `{}` runs batch {batch} only",
        target.id
    );
    let mut pen = sheet.by(ID);
    pen.risk(
        Severity::High,
        format!("{what}: the model quantizes and then fails on the NPU"),
        Some(format!("export the model again with batch {batch}")),
    );
    if ctx.answer("npu_batch") == Some("keep") {
        return;
    }
    pen.hand_off(Route {
        skill: "quark-onnx-model-intake",
        reason: what.clone(),
        artefact: Some("model_analysis.json"),
        bring_back: format!("the analysis of an export with batch {batch}"),
        resume: (
            "propose_plan",
            propose_again(ctx, ("analysis_path", json!("<path of the new model_analysis.json>"))),
        ),
    });
    pen.ask(
        "npu_batch",
        format!("{what}. Export it again with batch {batch} and propose again, or keep it?"),
        vec![Choice {
            value: "keep".to_owned(),
            meaning: "keep it, although it is known to fail on the NPU".to_owned(),
        }],
    );
}
