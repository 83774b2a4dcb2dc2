//! # What it does
//!
//! Sets `ConvertNCHWToNHWC` for NCHW image inputs in the strict profile of the NPU's CNN flow.
//!
//! # Why
//!
//! NHWC is part of that flow's contract. Quark itself does not ask for it, and with it the model's input has
//! another shape, so the calibration reader and the application have to deliver NHWC.
//!
//! # Example
//!
//! `image` is `1x3x224x224`, so the model is converted and the reader must yield `1x224x224x3`.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Rules"
//! - 0.13, `quark/onnx/quantization/config/legacy.py`: `convert_nchw_to_nhwc` is off; XINT8 works on NCHW (measured)

use crate::{
    rules::{Context, Stage, sheet::Sheet},
    vocab::{Layout, Severity},
};

/// The reason code.
pub const ID: &str = "npu-layout";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Converts the layout.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let wanted = sheet.target.and_then(|target| target.layout);
    let strict = sheet.profile.is_some_and(|profile| !profile.scales.is_empty());
    if wanted != Some(Layout::Nhwc)
        || ctx.onnx().input_layout_guess != Some(Layout::Nchw)
        || !strict
    {
        return;
    }
    let options = ctx.requested("onnx_specific.extra_options");
    let refused =
        options.and_then(|options| options.get("ConvertNCHWToNHWC")) == Some(&false.into());
    if refused {
        return;
    }
    let mut pen = sheet.by(ID);
    pen.option("ConvertNCHWToNHWC", true, "the inputs are NCHW and the NPU's CNN flow takes NHWC");
    pen.risk(
        Severity::Low,
        "the inputs become NHWC: the calibration reader and the application must deliver them so; Quark itself also quantizes NCHW",
        Some("set the extra option `ConvertNCHWToNHWC` to false to keep NCHW".to_owned()),
    );
}
