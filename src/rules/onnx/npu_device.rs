//! # What it does
//!
//! Settles the NPU generation and with it the profile: `strict` (power-of-two scales) unless Ryzen AI 1.6 or
//! newer is stated and the device is STX or KRK. Asks for the generation where it is not known.
//!
//! # Why
//!
//! PHX and HPT run XINT8 CNNs only. STX and KRK with Ryzen AI 1.6 also take A8W8, A16W8 and bfloat16. "An NPU
//! is present" decides nothing; the generation does.
//!
//! # Example
//!
//! You named STX and Ryzen AI 1.7, so the profile `ryzen_ai_1_6` holds and A16W8 may be planned.
//!
//! # Sources
//!
//! - amd/ryzen-ai-documentation b2b2b0e2, `docs/model_quantization.rst`, `docs/ops_support.rst`
//! - amd/ryzen-ai-documentation 00742a2d, `docs/relnotes.rst`
//! - amd/RyzenAI-SW#350, #172

use crate::{
    catalogue::{
        devices::DeviceKind,
        targets::{Profile, Target},
    },
    plan::Choice,
    rules::{
        Context, Stage,
        common::{
            goal::{self, Wish},
            machine, versions,
        },
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "npu-device";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

/// Settles device and profile.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let unknown: Vec<&String> = ctx
        .intent
        .hardware
        .iter()
        .filter(|name| ctx.catalogue.devices().find(name).is_none())
        .collect();
    if !unknown.is_empty() {
        sheet.by(ID).risk(
            Severity::Low,
            format!(
                "the hardware {} is not known here, so nothing is concluded from it",
                list(unknown, 3)
            ),
            Some(
                "name the generation, for example `STX`, or the architecture, for example `gfx942`"
                    .to_owned(),
            ),
        );
    }
    let Some(target) = sheet.target.filter(|target| target.npu) else { return };
    let device = machine::npu_device(ctx);
    sheet.device = device.as_ref().map(|(device, ..)| *device);
    sheet.profile = profile(ctx, sheet, target);
    if let Some(profile) = sheet.profile.filter(|profile| profile.id == "llm_oga") {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("{}: Ryzen AI supports a list of models there, and its GenAI flow builds them itself", profile.summary),
            Some("check the list of supported LLMs before an NPU build is promised".to_owned()),
        );
    }
    if let Some((device, _, said)) = device {
        if target.devices.contains(&device.id) && device.native == ["XINT8"] {
            sheet.by(ID).risk(
                Severity::Low,
                format!("{said}, which is {}: it runs XINT8 CNNs only and needs the target X1 and 4x4.xclbin", device.id),
                None,
            );
        }
        return;
    }
    let choices = target
        .devices
        .iter()
        .filter_map(|id| ctx.catalogue.devices().get(id.as_str()))
        .map(|device| Choice { value: device.id.to_string(), meaning: device.summary.clone() })
        .collect();
    // Where every generation is admitted, the strict plan stands without the answer.
    let mut npus =
        ctx.catalogue.devices().all().iter().filter(|device| device.kind == DeviceKind::Npu);
    if npus.all(|device| target.devices.contains(&device.id)) {
        sheet.by(ID).wonder("npu_device", "Which Ryzen AI generation will run it? With STX or KRK and Ryzen AI 1.6 or newer, float scales are possible too.", choices);
    } else {
        let mut choices: Vec<Choice> = choices;
        choices.push(Choice {
            value: "PHX".to_owned(),
            meaning: "Phoenix or Hawk Point: runs INT8 CNNs only".to_owned(),
        });
        sheet.by(ID).ask("npu_device", "Which Ryzen AI generation will run it? The first one (PHX, HPT) does not run transformers.", choices);
    }
}

/// The profile that holds: the last one whose conditions are all stated, the strict one otherwise.
fn profile(ctx: &Context<'_>, sheet: &Sheet, target: &'static Target) -> Option<&'static Profile> {
    let ryzen_ai = machine::ryzen_ai(ctx);
    let holds = |profile: &&Profile| {
        let version = profile.ryzen_ai.as_deref().is_none_or(|least| {
            ryzen_ai.is_some_and(|version| versions::at_least(version, least) == Some(true))
        });
        let device = profile.devices.is_empty()
            || sheet.device.is_some_and(|device| profile.devices.contains(&device.id));
        version && device
    };
    let conditional = |profile: &&Profile| profile.ryzen_ai.is_some();
    let admitted = target.profiles.iter().filter(conditional).find(holds);
    // A profile for one kind of model (LLMs through GenAI) holds when such a preset is what is asked for.
    let special = || {
        let asked = ctx.requested("preset").and_then(|value| value.as_str());
        let named = goal::read(ctx);
        target.profiles.iter().skip(1).filter(|profile| !conditional(profile)).filter(holds).find(
            |profile| {
                profile.presets.iter().any(|preset| {
                    asked.map_or(named.preset.is_some_and(|named| named.id == *preset), |asked| {
                        *preset == *asked
                    })
                }) || (asked.is_none() && named.wish == Some(Wish::WeightsOnly))
            },
        )
    };
    admitted.or_else(special).or(target.profiles.first())
}
