//! # What it does
//!
//! Puts together `extra_options`: what rules set and what you asked for, each key with its reason. Yours win,
//! unless the library or the target refuses them.
//!
//! # Why
//!
//! Quark ignores most contradictions, and some raise only after the model was loaded: on the NPU's CNN flow
//! asymmetric types are a ValueError; overrides of single tensors force another format and lose the flag.
//!
//! # Example
//!
//! `ActivationSymmetric` false was asked for on `npu_cnn`, where it is a ValueError, so it is left out.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantizers/npu_cnn_quantizer.py:84-107`, `quark/onnx/quantization/quantize.py:453` (measured)
//! - 0.13, `quark/onnx/quantization/config/maps.py` (keys that warn)

use serde_json::{Map, Value, json};

use crate::{
    catalogue::presets::QuantFormat,
    plan::Alternative,
    rules::{
        Context, Stage,
        common::{goal, machine},
        sheet::{Check, Sheet, list, show},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "extra-options";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "onnx_specific.extra_options";

/// Puts the options together.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let insists = ctx.insists(ROW);
    let mut options: Map<String, Value> = Map::new();
    let mut reasons: Vec<String> = Vec::new();
    for (key, (value, reason)) in &sheet.extra_options {
        options.insert(key.clone(), value.clone());
        reasons.push(format!("`{key}`: {reason}"));
    }
    let asked = ctx.requested(ROW).and_then(Value::as_object);
    let mut refused: Vec<(String, Value, String)> = Vec::new();
    let mut risks: Vec<(Severity, String)> = Vec::new();
    let mut kept = false;
    for (key, value) in asked.into_iter().flatten() {
        let said = match verdict(ctx, sheet, key, value) {
            Check::Fine => "you asked for it".to_owned(),
            Check::Risky(severity, why) => {
                risks.push((severity, format!("`{key}` is {}: {why}", show(value))));
                format!("you asked for it; note that {why}")
            }
            Check::Unwise(why) if insists => {
                risks.push((
                    Severity::High,
                    format!("`{key}` is {} at your insistence: {why}", show(value)),
                ));
                format!("you insist on it although {why}")
            }
            Check::Unwise(why) => {
                refused.push((
                    key.clone(),
                    value.clone(),
                    format!("{why}; insist on `{ROW}` to keep it all the same"),
                ));
                continue;
            }
            Check::Impossible(why) => {
                refused.push((key.clone(), value.clone(), why));
                continue;
            }
        };
        kept = true;
        reasons.retain(|reason| !reason.starts_with(&format!("`{key}`: ")));
        reasons.push(format!("`{key}`: {said}"));
        // A block that a rule completed keeps what the user did not name.
        match (options.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            (Some(block), Some(inside)) => block.extend(inside.clone()),
            _ => {
                options.insert(key.clone(), value.clone());
            }
        }
    }
    let warned: Vec<&String> = options
        .keys()
        .filter(|key| {
            ctx.catalogue.options().get(key).is_some_and(|option| option.warns_in_qconfig)
        })
        .collect();
    if !warned.is_empty() {
        reasons.push(format!("QConfig warns about {} although it works", list(&warned, 4)));
    }
    reasons.extend(
        refused
            .iter()
            .map(|(key, _, why)| format!("`{key}` was asked for and is left out, since {why}")),
    );
    let reason = if reasons.is_empty() {
        "the preset's own options are enough".to_owned()
    } else {
        reasons.join("; ")
    };
    let origin = match (kept, options.is_empty()) {
        (true, _) => Origin::User,
        (false, true) => Origin::Default,
        (false, false) => Origin::Rule,
    };
    // The legacy interface reads these keys from fields of its config only.
    let fields: Map<String, Value> = options
        .iter()
        .filter_map(|(key, value)| {
            let field = ctx.catalogue.options().get(key)?.legacy_field.clone()?;
            Some((field, value.clone()))
        })
        .collect();
    let mut pen = sheet.by(ID);
    let decision = pen.decide(ROW, Value::Object(options), origin, reason);
    decision.also.insert("onnx_specific.config_fields".to_owned(), Value::Object(fields));
    decision.alternatives = refused
        .into_iter()
        .map(|(key, value, why_not)| Alternative { value: json!({ key: value }), why_not })
        .collect();
    for (severity, message) in risks {
        pen.risk(severity, message, None);
    }
    advise(ctx, sheet);
}

/// Keys that rows of the table decide.
const ROWS: [(&str, &str); 6] = [
    ("OpTypesToQuantize", "onnx_specific.op_types_to_quantize"),
    ("NodesToQuantize", "onnx_specific.nodes_to_quantize"),
    ("ExecutionProviders", "onnx_specific.execution_providers"),
    ("CalibDataSize", "calibration.data_size"),
    ("CalibOptimizeMem", "calibration.optimize_mem"),
    ("CalibWorkerNum", "calibration.worker_num"),
];

fn verdict(ctx: &Context<'_>, sheet: &Sheet, key: &str, value: &Value) -> Check {
    if let Some((_, row)) = ROWS.iter().find(|(known, _)| *known == key) {
        return if sheet.value(row) == Some(value) {
            Check::Fine
        } else {
            Check::Unwise(format!("the row `{row}` decides it; set it there"))
        };
    }
    let off = *value == json!(false);
    let on = *value == json!(true);
    let npu = sheet.value("onnx_specific.enable_npu_cnn") == Some(&json!(true));
    let given = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    let preset = sheet.preset.as_deref();
    match key {
        "ActivationSymmetric" | "WeightSymmetric" if npu && off => {
            Check::Impossible("the NPU's CNN flow takes symmetric types only, else Quark raises ValueError".to_owned())
        }
        "QDQOpTypePerChannelSupportToAxis" if npu && given(value) => {
            Check::Impossible("the NPU's CNN flow takes no per-channel weights, else Quark raises ValueError".to_owned())
        }
        "UsePowerOf2Scale" if npu && off => {
            Check::Impossible("the NPU's CNN flow takes power-of-two scales only".to_owned())
        }
        "EnableNPUCnn" if on && !npu => Check::Unwise("the flag follows from the target, and Quark drops it silently here".to_owned()),
        "TensorQuantOverrides" | "MixedPrecisionTensor" if npu && given(value) => {
            Check::Unwise("it forces the extended Q/DQ format, with which `enable_npu_cnn` is lost".to_owned())
        }
        "QuantizeBias" if npu && off => Check::Unwise("the NPU needs quantized biases".to_owned()),
        "BiasCorrection" if on && preset.is_some_and(|preset| preset.format == QuantFormat::ExtendedQdq) => {
            Check::Impossible("it fails with KeyError in the extended Q/DQ format".to_owned())
        }
        "ConvertNCHWToNHWC" if off && sheet.target.is_some_and(|target| target.layout.is_some()) => {
            Check::Risky(Severity::Low, "the contract of the NPU's CNN flow is NHWC".to_owned())
        }
        "BF16QDQToCast" | "EnableVaimlBF16" if on && !preset.is_some_and(crate::rules::onnx::custom_ops::escapes) => {
            Check::Risky(Severity::Low, "it acts on bfloat16 only".to_owned())
        }
        "UseFP32Scale" if on && sheet.option_is_on(ctx, "UseMatMulNBits") => {
            Check::Impossible("four-bit MatMul weights need it off".to_owned())
        }
        "UseMatMulNBits" if on && preset.is_some_and(|preset| !preset.extra_options.contains_key("UseMatMulNBits")) => {
            Check::Risky(Severity::Medium, "with it Quark quantizes the weights of MatMul only and ignores the rest of the preset; `MATMUL_NBITS` says so openly".to_owned())
        }
        "FastFinetune" if !sheet.algorithms.iter().any(|algorithm| algorithm.fast_finetune) => {
            Check::Risky(Severity::Medium, "neither AdaRound nor AdaQuant runs, so it has no effect; add one to `algorithms`".to_owned())
        }
        "FastFinetune" => finetune(ctx, sheet, value),
        "AutoMixprecision" if !sheet.runs("AutoMixprecision") => {
            Check::Risky(Severity::Medium, "AutoMixprecision does not run, so it has no effect; add it to `algorithms`".to_owned())
        }
        "ConvertOpsetVersion" if value.as_i64().is_some_and(|version| version < 10) => {
            Check::Unwise("below opset 10 ONNX Runtime does not load the result".to_owned())
        }
        "ReplaceClip6Relu" if on && !sheet.runs("CLE") => Check::Risky(Severity::Low, "without CLE it has no effect".to_owned()),
        "Int16Bias" if on && ctx.opset().is_some_and(|opset| opset < 21) => {
            Check::Risky(Severity::Medium, "ONNX Runtime needs opset 21 for it".to_owned())
        }
        "FuseGelu" if on && ctx.opset().is_some_and(|opset| opset < 20) => Check::Risky(Severity::Low, "it needs opset 20".to_owned()),
        "FixShapes" if !sheet.fixed_shapes.is_empty() => Check::Unwise("the answer to `input_shapes` decides it".to_owned()),
        "SaveAndRestore" | "TensorsRangeFile" if value.is_string() => {
            Check::Risky(Severity::Low, "ranges from a file are taken as they are, whatever data and method the plan names".to_owned())
        }
        _ => Check::Fine,
    }
}

/// A requested block for fine-tuning, against what the plan and the machine have.
fn finetune(ctx: &Context<'_>, sheet: &Sheet, value: &Value) -> Check {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(algorithm) = text("OptimAlgorithm")
        && !sheet
            .algorithms
            .iter()
            .any(|known| known.fast_finetune && known.id.as_str().eq_ignore_ascii_case(algorithm))
    {
        return Check::Unwise(format!(
            "`algorithms` does not name what `OptimAlgorithm` says, {algorithm}"
        ));
    }
    let gpu = ["OptimDevice", "InferDevice"]
        .iter()
        .any(|key| text(key).is_some_and(|device| device.starts_with("cuda")));
    match machine::accelerator(ctx) {
        Some("cpu") if gpu => Check::Unwise("the machine has no GPU, so `cuda:0` fails".to_owned()),
        None if gpu => Check::Risky(
            Severity::Low,
            "no GPU is known, and without one `cuda:0` fails".to_owned(),
        ),
        _ => Check::Fine,
    }
}

/// What a goal asks that an option would do.
fn advise(ctx: &Context<'_>, sheet: &mut Sheet) {
    let goal = goal::read(ctx);
    if goal.says(&["encrypt", "encrypted", "confidential", "crypto"]) {
        sheet.by(ID).risk(
            Severity::Low,
            "the goal asks for secrecy, and the plan sets nothing for it",
            Some("set the extra option `CryptoMode`, for models below 2 GB that are handed over as ModelProto".to_owned()),
        );
    }
}
