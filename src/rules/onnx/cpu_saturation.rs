//! # What it does
//!
//! Warns when unsigned activations meet signed weights on a CPU without VNNI, where sums of products saturate.
//!
//! # Why
//!
//! Such CPUs (AVX2, AVX-512 without VNNI) add two u8×s8 products in sixteen bits, so results are silently wrong.
//! Signed activations, unsigned weights or seven bits (`reduce_range`) avoid it.
//!
//! # Example
//!
//! The CPU flags have no `avx512_vnni`, so `S8S8_AAWS` is chosen instead of `INT8_CNN_DEFAULT`.
//!
//! # Sources
//!
//! - microsoft/onnxruntime#6004, #5849, #14642, #12088; pytorch/pytorch#103646

use crate::{
    rules::{Context, Stage, common::machine, onnx::candidates, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "cpu-saturation";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Warns.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let on_cpu = sheet.target.is_some_and(|target| target.id == *"cpu");
    let Some(chosen) =
        sheet.preset.clone().filter(|chosen| on_cpu && candidates::saturates(chosen))
    else {
        return;
    };
    let hint =
        "choose `S8S8_AAWS` or `U8U8_AAWA`, or a custom config with `reduce_range`".to_owned();
    match machine::has_vnni(ctx) {
        Some(true) => {}
        Some(false) => sheet.by(ID).risk(
            Severity::Medium,
            format!("the CPU has no VNNI, and unsigned activations with signed weights, as `{}` has them, saturate there: results can be wrong", chosen.id),
            Some(hint),
        ),
        None => sheet.by(ID).risk(
            Severity::Low,
            format!("on CPUs without VNNI the unsigned activations and signed weights of `{}` can saturate; the flags of the CPU are not known", chosen.id),
            Some(hint),
        ),
    }
}
