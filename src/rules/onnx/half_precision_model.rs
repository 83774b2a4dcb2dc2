//! # What it does
//!
//! Converts a model whose weights are half precision to FP32 before it is quantized, except for four-bit weights,
//! which keep FP16.
//!
//! # Why
//!
//! Left alone, Quark quantizes FP16 as it is and switches model optimization off, so BatchNormalization is not
//! folded; some calibrators expect FP32.
//!
//! # Example
//!
//! All weights are float16, so `ConvertFP16ToFP32` is true and the calibration reader yields float32.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantization/quantize.py:339-351`
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-model-intake/SKILL.md`

use crate::{
    catalogue::presets::PresetFamily,
    rules::{Context, Stage, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "half-precision-model";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Sets the option.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(weights) = &ctx.onnx().weights else { return };
    let of = |dtype: &str| weights.bytes.get(dtype).copied().unwrap_or(0);
    // A few FP32 scalars do not make it another model.
    let half = of("float16") > 0 && of("float16") >= of("float32").saturating_mul(10);
    let Some(preset) = sheet.preset.clone().filter(|_| half) else { return };
    let given = |key: &str| sheet.option_given(ctx, key).is_some();
    if given("ConvertFP16ToFP32") || given("QuantizeFP16") {
        return;
    }
    if preset.family == PresetFamily::WeightOnly {
        sheet.by(ID).option(
            "UseFP32Scale",
            false,
            "the model is FP16, and four-bit weights need scales of the same type",
        );
        return;
    }
    let mut pen = sheet.by(ID);
    pen.option("ConvertFP16ToFP32", true, "the weights are FP16, and Quark would quantize them as they are, without optimizing the model");
    pen.risk(
        Severity::Low,
        "the model is FP16 and is converted to FP32 first: inputs become float32, and onnxslim must be installed",
        Some("set `QuantizeFP16` to true to keep FP16, without BatchNormalization folding".to_owned()),
    );
}
