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
    facts::{Dim, TensorFacts},
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

/// The batch that the model is fixed to: the leading size of its first input that is no state.
pub fn fixed(ctx: &Context<'_>, sheet: &Sheet) -> Option<u64> {
    let rank = |input: &&TensorFacts| input.shape.as_ref().map_or(0, Vec::len);
    let mut inputs = ctx.onnx().inputs.iter().filter(|input| !is_state(ctx, input));
    // A single number or a list, such as a sampling rate, is no batch where there are larger inputs.
    let first = inputs.clone().find(|input| rank(input) > 1).or_else(|| inputs.next())?;
    leading(sheet, first)
}

fn leading(sheet: &Sheet, input: &TensorFacts) -> Option<u64> {
    let fixed = sheet.fixed_shapes.get(&input.name).and_then(|dims| dims.first().copied());
    fixed.or_else(|| input.shape.as_ref()?.first()?.fixed())
}

/// Whether the symbol that leads another input stands further behind in this one: `2 x batch x 64`.
fn is_state(ctx: &Context<'_>, input: &TensorFacts) -> bool {
    let behind = input.shape.iter().flat_map(|shape| shape.iter().skip(1));
    let symbols = behind.filter(|dim| matches!(dim, Dim::Symbol(name) if name != "?"));
    let leads = |dim: &Dim| {
        let mut inputs = ctx.onnx().inputs.iter().filter(|other| other.name != input.name);
        inputs.any(|other| other.shape.as_ref().is_some_and(|shape| shape.first() == Some(dim)))
    };
    let leading = input.shape.as_ref().and_then(|shape| shape.first());
    leading.is_some_and(|dim| dim.fixed().is_some()) && symbols.into_iter().any(leads)
}

/// Looks at the batch of every image input.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(target) = sheet.target else { return };
    let Some(batch) = target.batch else { return };
    let wrong = ctx.onnx().inputs.iter().find_map(|input| {
        input.shape.as_ref().filter(|shape| shape.len() == 4)?;
        let size = leading(sheet, input).filter(|_| !is_state(ctx, input))?;
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
