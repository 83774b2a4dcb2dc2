//! # What it does
//!
//! Ties `enable_npu_cnn` and `enable_npu_transformer` to the target, and says `false` where Quark would drop the
//! flag anyway.
//!
//! # Why
//!
//! `enable_npu_cnn` acts only with a power-of-two or Int16 method and `QuantFormat.QDQ`. With `A8W8`, whose format
//! is the extended one, it is silently ignored; a plan that says `true` there would promise what does not happen.
//!
//! # Example
//!
//! The target is `npu_cnn` and `XINT8` has power-of-two scales in `QuantFormat.QDQ`, so `enable_npu_cnn` is true.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantizers/interface.py:268-406` (measured)
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Decision Table"

use serde_json::{Value, json};

use crate::{
    catalogue::presets::QuantFormat,
    rules::{
        Context, Stage,
        sheet::{Check, Sheet},
    },
    vocab::{Origin, ScaleKind, Severity},
};

/// The reason code.
pub const ID: &str = "npu-flags";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const CNN: &str = "onnx_specific.enable_npu_cnn";
const TRANSFORMER: &str = "onnx_specific.enable_npu_transformer";

/// Settles both flags.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let (Some(target), Some(preset)) = (sheet.target, sheet.preset.clone()) else {
        let mut pen = sheet.by(ID);
        pen.leave_open(CNN, "it follows from target and preset");
        pen.leave_open(TRANSFORMER, "it follows from target and preset");
        return;
    };
    let acts = preset.format == QuantFormat::Qdq
        && (sheet.scales_are(ScaleKind::PowerOfTwo) || sheet.scales_are(ScaleKind::Int16));
    let on_cnn = target.id == *"npu_cnn";
    let cnn = on_cnn && acts;
    let reason = match (on_cnn, acts) {
        (true, true) => format!(
            "the target is npu_cnn, and `{}` gives power-of-two scales in `QuantFormat.QDQ`, with which the flag acts",
            preset.id
        ),
        (true, false) => format!(
            "`{}` has float scales or the extended format, with which Quark silently drops the flag",
            preset.id
        ),
        (false, _) => format!("the target is {}, not npu_cnn", target.id),
    };
    flag(ctx, sheet, CNN, cnn, reason, acts);
    let on_transformer = target.id == *"npu_transformer";
    let transformer = on_transformer && preset.npu_transformer;
    let reason = match (on_transformer, preset.npu_transformer) {
        (true, true) => format!("the target is npu_transformer and `{}` is made for it", preset.id),
        (true, false) => format!(
            "`{}` quantizes without the flag, which would only narrow it to MatMul and Gemm",
            preset.id
        ),
        (false, true) => format!(
            "the target is {}, not npu_transformer; `op_types_to_quantize` says what the flag of `{}` would",
            target.id, preset.id
        ),
        (false, false) => format!("the target is {}, not npu_transformer", target.id),
    };
    flag(ctx, sheet, TRANSFORMER, transformer, reason, true);
    if on_transformer && transformer {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("Ryzen AI documents only bfloat16 for transformers on this NPU, so how much of `{}` the compiler takes is not known", preset.id),
            Some("look at the compiler's report, or choose `BF16`".to_owned()),
        );
    }
}

fn flag(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    row: &'static str,
    value: bool,
    reason: String,
    acts: bool,
) {
    let check = |asked: &Value| {
        if *asked == json!(true) && !acts {
            Check::Impossible(
                "Quark drops the flag silently with this method and format".to_owned(),
            )
        } else {
            Check::Unwise("the flag follows from the target".to_owned())
        }
    };
    sheet.by(ID).settle_or(ctx, row, (json!(value), Origin::Rule, reason), check);
}
