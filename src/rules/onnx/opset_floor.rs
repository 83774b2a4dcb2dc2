//! # What it does
//!
//! Compares the opset with what the plan needs: 10 at least, 13 for per-channel weights, 21 for 16-bit Q/DQ of
//! ONNX itself, 17 for the NPU's compiler.
//!
//! # Why
//!
//! Below 10 the library only warns, and ONNX Runtime does not load the result; lifting the number by itself breaks
//! Upsample, Slice and Resize. Per-channel below 13 is a ValueError.
//!
//! # Example
//!
//! The model has opset 9 with `Upsample`, so the intake is asked to convert it with the version converter first.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantization/input_check.py:120-127` (measured at opsets 9, 11, 12, 17 and 21)
//! - microsoft/onnxruntime#9197, #1950; openvinotoolkit/nncf#1537
//! - amd/RyzenAI-SW#172; amd/ryzen-ai-documentation b2b2b0e2

use serde_json::json;

use crate::{
    plan::Choice,
    rules::{
        Context, Stage,
        sheet::{Route, Sheet, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "opset-floor";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

const LOADS: i64 = 10;
/// What Quark's skills ask for, and what per-channel weights need.
pub const PER_CHANNEL: i64 = 13;
const SIXTEEN_BITS: i64 = 21;

/// The opset that the model has when it is quantized.
pub fn effective(ctx: &Context<'_>) -> Option<i64> {
    let options = ctx.requested("onnx_specific.extra_options");
    let converted = options
        .and_then(|options| options.get("ConvertOpsetVersion"))
        .and_then(|value| value.as_i64());
    converted.or_else(|| ctx.opset())
}

/// Compares.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(opset) = effective(ctx) else { return };
    let upsample = ctx.count("Upsample");
    if opset < LOADS || upsample > 0 {
        let what = if upsample > 0 {
            format!(
                "the graph has {upsample} Upsample, which opset 10 removed, so the quantizer's bump of opset {opset} makes it invalid"
            )
        } else {
            format!(
                "the model has opset {opset}, and below {LOADS} ONNX Runtime does not load what comes out; lifting the number alone breaks Slice and Resize"
            )
        };
        let mut pen = sheet.by(ID);
        pen.risk(
            Severity::High,
            what.clone(),
            Some("convert it with onnx.version_converter (to 17), or export it again".to_owned()),
        );
        if ctx.answer("opset") != Some("keep") {
            let keep = "plan for the model as it is, although the result is not expected to load";
            pen.ask(
                "opset",
                format!("{what}. Convert the model and propose again, or keep it?"),
                vec![Choice { value: "keep".to_owned(), meaning: keep.to_owned() }],
            );
        }
        pen.hand_off(Route {
            skill: "quark-onnx-model-intake",
            reason: what,
            artefact: Some("model_analysis.json"),
            bring_back: "the analysis of the model at opset 13 or newer, 17 for the NPU".to_owned(),
            resume: (
                "propose_plan",
                propose_again(
                    ctx,
                    ("analysis_path", json!("<path of the new model_analysis.json>")),
                ),
            ),
        });
    } else if opset < PER_CHANNEL {
        sheet.by(ID).risk(
            Severity::Low,
            format!("the model has opset {opset}, and Quark's skills ask for {PER_CHANNEL}; the library itself quantizes it per tensor"),
            Some("export it with opset 17, or set `ConvertOpsetVersion`".to_owned()),
        );
    }
    let Some(preset) = sheet.preset.clone() else { return };
    let sixteen = preset.activation.r#type.is_int16() || preset.weight.r#type.is_int16();
    if sixteen && opset < SIXTEEN_BITS {
        sheet.by(ID).risk(
            Severity::Low,
            format!("opset {opset} has no 16-bit Q/DQ, so `{}` writes those of com.microsoft, which ONNX Runtime reads and other engines may not", preset.id),
            Some(format!("export it with opset {SIXTEEN_BITS} if another engine reads it")),
        );
    }
    let recommended = sheet.target.and_then(|target| target.recommended_opset);
    if let Some(recommended) =
        recommended.filter(|recommended| opset < *recommended && opset >= LOADS)
    {
        let float = preset.npu_precision.as_deref() == Some("BF16");
        sheet.by(ID).risk(
            if float { Severity::Medium } else { Severity::Low },
            format!(
                "the model has opset {opset}, and Ryzen AI recommends {recommended}{}",
                if float { "; its recipe for bfloat16 asks for it" } else { "" }
            ),
            Some(format!("export it again with opset {recommended}")),
        );
    }
}
