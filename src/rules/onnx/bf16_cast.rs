//! # What it does
//!
//! Sets `BF16QDQToCast` for bfloat16 presets, so that the result needs no custom ops.
//!
//! # Why
//!
//! Without it the model holds Quark's ExtendedQuantizeLinear, which plain ONNX Runtime does not load and the
//! NPU's compiler refuses. The maintainers' recipe for Ryzen AI has it.
//!
//! # Example
//!
//! `BF16` is the preset, so `BF16QDQToCast` is true and plain ONNX Runtime loads the result.
//!
//! # Sources
//!
//! - amd/RyzenAI-SW#172
//! - 0.13, `quark/onnx/postprocess/postproc.py:230` (measured: plain ONNX Runtime loads it)

use serde_json::json;

use crate::rules::{Context, Stage, onnx::custom_ops, sheet::Sheet};

/// The reason code.
pub const ID: &str = "bf16-cast";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Sets the option.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(preset) = sheet.preset.clone().filter(|preset| custom_ops::escapes(preset)) else {
        return;
    };
    let given = |key: &str| sheet.option_given(ctx, key);
    if given("BF16QDQToCast").is_some() || given("EnableVaimlBF16") == Some(&json!(true)) {
        return;
    }
    let npu = if sheet.on_npu() { " and the NPU's compiler take" } else { " loads" };
    let reason =
        format!("`{}` then rounds with Cast nodes, so that plain ONNX Runtime{npu} it", preset.id);
    sheet.by(ID).option("BF16QDQToCast", true, reason);
}
