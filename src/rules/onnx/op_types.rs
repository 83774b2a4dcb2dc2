//! # What it does
//!
//! Restricts static INT8 of a transformer to MatMul and Gemm; otherwise leaves the choice to the preset.
//!
//! # Why
//!
//! LayerNorm, GELU and residual additions lose accuracy in INT8 and carry no weights worth it. An op type that the
//! graph does not have is refused: Quark then says "No quantizable ops" and writes the float model.
//!
//! # Example
//!
//! The model is a transformer with 24 MatMul and 2 Gemm, so `["MatMul", "Gemm"]`.
//!
//! # Sources
//!
//! - huggingface/optimum#151; microsoft/onnxruntime#8770, #11286
//! - 0.13, `quark/onnx/quantization/quantize.py:443` (measured)

use serde_json::{Value, json};

use crate::{
    catalogue::presets::PresetFamily,
    rules::{
        Context, Stage,
        sheet::{Check, Sheet, list},
    },
    vocab::{Architecture, Origin},
};

/// The reason code.
pub const ID: &str = "op-types";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Settles the op types.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let integer = sheet.preset.as_ref().is_some_and(|preset| {
        matches!(preset.family, PresetFamily::Integer | PresetFamily::IntegerTransformer)
            && preset.activation.bits <= 8.0
    });
    let present: Vec<&str> =
        ["MatMul", "Gemm"].into_iter().filter(|op| ctx.count(op) > 0).collect();
    let (value, origin, reason) = if integer
        && sheet.architecture == Architecture::Transformer
        && !present.is_empty()
    {
        let reason = format!(
            "the model is a transformer, and static INT8 loses accuracy in everything but {}, so only these",
            list(&present, 2)
        );
        (json!(present), Origin::Analysis, reason)
    } else {
        (
            Value::Null,
            Origin::Default,
            "nothing speaks against what the preset quantizes".to_owned(),
        )
    };
    sheet.by(ID).settle_or(
        ctx,
        "onnx_specific.op_types_to_quantize",
        (value, origin, reason),
        |_| Check::Fine,
    );
}
