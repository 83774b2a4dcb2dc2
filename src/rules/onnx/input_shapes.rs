//! # What it does
//!
//! Looks at inputs whose shape is not fixed. NPU targets need every size, so it asks, and sets `FixShapes` from
//! the answer. Elsewhere it warns when calibration would see varying shapes.
//!
//! # Why
//!
//! The NPU's compiler takes static shapes only. Histogram calibration stacks the tensors of all samples and fails
//! when their sizes vary; the calibrator's own ReduceMax fails on empty tensors.
//!
//! # Example
//!
//! `images` is `batchx3xheightxwidth` and the target is `npu_cnn`: the answer `images=1x3x640x640` becomes
//! `FixShapes = images:[1,3,640,640]`.
//!
//! # Sources
//!
//! - amd/RyzenAI-SW#268: dynamic axes do not compile
//! - microsoft/onnxruntime#18792, #12178, #23600
//! - 0.13, `quark/onnx/preprocess/preproc.py:173`: the form of `FixShapes`

use crate::{
    rules::{
        Context, Stage,
        onnx::shapes,
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "input-shapes";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Fixes shapes, or asks for them.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    // `request::checked` refused an answer that does not parse.
    if let Some(fixed) =
        ctx.answer("input_shapes").and_then(|answer| shapes::parse(ctx, answer).ok())
    {
        let text: Vec<String> = fixed
            .iter()
            .map(|(name, dims)| {
                format!(
                    "{name}:[{}]",
                    dims.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
                )
            })
            .collect();
        let shown: Vec<String> =
            fixed.iter().map(|(name, dims)| format!("{name} {}", shapes::join(dims))).collect();
        sheet.by(ID).option(
            "FixShapes",
            text.join(";"),
            format!("you fixed the inputs to {}", shown.join(", ")),
        );
        sheet.fixed_shapes = fixed;
        return;
    }
    let by_option = ctx
        .requested("onnx_specific.extra_options")
        .is_some_and(|options| options.get("FixShapes").is_some());
    if !shapes::are_dynamic(ctx) || by_option {
        return;
    }
    let inputs = shapes::dynamic(ctx);
    let shown: Vec<String> =
        inputs.iter().map(|input| format!("{} {}", input.name, shapes::show(input))).collect();
    let text = format!(
        "Which shapes shall the inputs have ({})? Answer like `{}`, with a number for each `?`.",
        shown.join(", "),
        shapes::example(ctx)
    );
    let Some(target) = sheet.target else { return };
    if target.static_dims {
        let mut pen = sheet.by(ID);
        pen.ask("input_shapes", text, Vec::new());
        pen.risk(
            Severity::High,
            format!("{} have sizes that are not fixed, and `{}` takes fixed shapes only", list(&shown, 4), target.id),
            Some("answer `input_shapes`, or run quark.onnx.tools.fix_shapes and analyse the model again".to_owned()),
        );
        return;
    }
    let is_static =
        sheet.preset.as_ref().is_some_and(|preset| !preset.dynamic && preset.uses_calibration_data);
    if is_static && shapes::vary_beyond_batch(ctx) {
        let mut pen = sheet.by(ID);
        pen.risk(
            Severity::Medium,
            format!(
                "{} have sizes that are not fixed: calibration fails on tensors that become empty, and ranges depend on the sizes that the samples happen to have",
                list(&shown, 4)
            ),
            Some("let the reader yield one shape, or fix the shapes with the answer `input_shapes`".to_owned()),
        );
        pen.wonder("input_shapes", text, Vec::new());
    }
}
