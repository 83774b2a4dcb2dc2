//! # What it does
//!
//! Lists the ONNX Runtime providers that calibration uses: the target's where it is there, else the CPU.
//!
//! # Why
//!
//! A provider that is not there is no error; ONNX Runtime silently uses the CPU. NPU models are calibrated on the
//! CPU anyway.
//!
//! # Example
//!
//! The target is `npu_cnn`, whose models are calibrated on the CPU, so `["CPUExecutionProvider"]`.
//!
//! # Sources
//!
//! - 0.13: CUDAExecutionProvider and an invented name both run on the CPU without an error (measured)
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-install/SKILL.md`

use serde_json::{Value, json};

use crate::{
    rules::{
        Context, Stage,
        common::machine,
        sheet::{Check, Sheet},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "execution-providers";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "onnx_specific.execution_providers";
const CPU: &str = "CPUExecutionProvider";

/// Lists the providers.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(target) = sheet.target else {
        sheet.by(ID).leave_open(ROW, "they follow from the deployment target, which is open");
        return;
    };
    let provider = target.execution_provider.as_str();
    let missing = provider != CPU && machine::has_provider(ctx, provider) == Some(false);
    let default = if provider == CPU {
        let reason = if target.npu {
            "NPU models are calibrated on the CPU"
        } else {
            "the target is the CPU"
        };
        (json!([CPU]), Origin::Rule, reason.to_owned())
    } else if missing {
        (
            json!([CPU]),
            Origin::Environment,
            format!("ONNX Runtime here has no {provider}, so calibration runs on the CPU"),
        )
    } else {
        (
            json!([provider, CPU]),
            Origin::Rule,
            format!("the target is {}; the CPU is for what {provider} does not run", target.id),
        )
    };
    let lacks = |asked: &Value| {
        let names = asked.as_array().into_iter().flatten().filter_map(Value::as_str);
        names
            .filter(|name| machine::has_provider(ctx, name) == Some(false))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    sheet.by(ID).settle_or(ctx, ROW, default, |asked| match lacks(asked).as_slice() {
        [] => Check::Fine,
        lacking => Check::Risky(
            Severity::Medium,
            format!(
                "ONNX Runtime here has no {}, and would silently use the CPU",
                lacking.join(", ")
            ),
        ),
    });
    if provider != CPU && !missing && machine::has_provider(ctx, provider).is_none() {
        sheet.by(ID).risk(
            Severity::Low,
            format!("nobody has checked that ONNX Runtime has {provider}; without it calibration silently runs on the CPU"),
            Some("run quark-onnx-install and propose with its onnx_install_result.json".to_owned()),
        );
    }
}
