//! # What it does
//!
//! Chooses the preset: the one you ask for when nothing forbids it, else the best of the guide for wish,
//! accuracy, architecture and target. The next two are shown with the reason against them.
//!
//! # Why
//!
//! Quark has 65 named configs and checks hardly anything: a preset that the target cannot run still gives a
//! file. On the NPU's CNN flow other scales than powers of two are dropped to ordinary floats without a word.
//! What the goal does not want is not taken unless you ask for it, and what it wants and cannot have is a risk.
//!
//! # Example
//!
//! The target is `npu_cnn`, the model is a CNN and accuracy is tight, so `XINT8_ADAROUND`; `A8W8` was asked for,
//! but its scales are no powers of two, and Ryzen AI 1.6 on STX or KRK is not stated.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Decision Guide",
//!   "Deployment-Target Gating"
//! - 0.13, `quark/onnx/quantization/config/custom_config.py`; `quark/onnx/quantizers/interface.py:273-404`
//! - amd/ryzen-ai-documentation b2b2b0e2, `docs/model_quantization.rst`

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    catalogue::presets::{Preset, PresetFamily},
    estimate,
    intent::Accuracy,
    plan::Alternative,
    rules::{
        Context, Stage,
        common::{
            goal::{self, Goal, Wish},
            machine,
        },
        onnx::{
            candidates::{closest, not_wanted, others, ranked, refused, wish, wished},
            custom_config, custom_ops, guide, opset_floor,
        },
        sheet::{Asked, Check, Fallback, Sheet, list},
    },
    vocab::{Architecture, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "preset";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "preset";
const CONFIG: &str = "onnx_specific.custom_config";

/// Chooses the preset.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let goal = goal::read(ctx);
    let Some(target) = sheet.target else {
        let by_target: Vec<Alternative> = ctx
            .catalogue
            .targets()
            .all()
            .iter()
            .filter_map(|target| {
                let (id, why) = *guide::presets(
                    wish(ctx, &goal),
                    goal.is_tight(),
                    sheet.architecture,
                    target.id.as_str(),
                )
                .first()?;
                Some(Alternative {
                    value: json!(id),
                    why_not: format!("when the target is `{}`: {why}", target.id),
                })
            })
            .collect();
        let mut pen = sheet.by(ID);
        pen.leave_open(ROW, "it follows from the deployment target, which is open").alternatives =
            by_target;
        return;
    };
    let ranked = ranked(ctx, sheet, &goal);
    let Some((asked, said)) = asked(ctx, sheet, &goal) else {
        let Some((best, why)) = ranked.first().copied() else {
            let reason = match refused(ctx, sheet, &goal) {
                Some(refused) => format!("{refused}, and nothing else fits `{}`", target.id),
                None => format!(
                    "nothing is known of the architecture, so no preset for `{}` follows",
                    target.id
                ),
            };
            let others = not_wanted(ctx, sheet, &goal);
            sheet.by(ID).leave_open(ROW, reason).alternatives = others;
            return;
        };
        by_default(ctx, sheet, &goal, &ranked, (best, why));
        return;
    };
    let check = verdict(ctx, sheet, &asked);
    let closest = closest(&asked, &ranked);
    let fallback = match closest {
        Some((preset, why)) => {
            let reason =
                format!("{}, and {why}, so `{}`", facts(ctx, sheet, &goal, true), preset.id);
            Fallback::Value(json!(preset.id), Origin::Rule, reason)
        }
        None => Fallback::Open("no preset is known that fits instead".to_owned()),
    };
    let value = json!(asked.id);
    let against = match &check {
        Check::Unwise(why) | Check::Impossible(why) => Some(why.clone()),
        Check::Fine | Check::Risky(..) => None,
    };
    let from_goal = ctx.requested(ROW).is_none();
    let asked_for = Asked { value: &value, origin: Origin::User, said };
    let Some(stands) = sheet.by(ID).settle(ctx, ROW, &asked_for, check, fallback) else { return };
    if let Some(why) = against.filter(|_| from_goal && stands != value) {
        not_met(sheet, &format!("`{}`", asked.id), &format!("it is not taken, since {why}"));
    }
    if stands == value {
        let config = ctx.requested(CONFIG).filter(|_| asked.id == *custom_config::NAME);
        if let Some(config) = config {
            sheet.by(ID).decide(CONFIG, config.clone(), Origin::User, "you spelled it out");
        }
        sheet.preset = Some(asked);
    } else {
        sheet.preset = closest.map(|(preset, _)| Cow::Borrowed(preset));
    }
    admission(sheet);
}

/// Takes the best of the guide, and says what of the goal it does not meet.
fn by_default(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    goal: &Goal,
    ranked: &[(&'static Preset, &'static str)],
    (best, why): (&'static Preset, &'static str),
) {
    let mut alternatives = others(ranked, best);
    let asks = goal.asks_for().filter(|_| !goal.is_met_by(best));
    let reason = match asks {
        None => format!("{}, and {why}, so `{}`", facts(ctx, sheet, goal, true), best.id),
        Some(asks) => {
            let (wished, against) = wished(ctx, sheet, goal);
            if let Some(wished) = wished {
                let why_not = format!("it is what the goal asks for, but {against}");
                alternatives.insert(0, Alternative { value: json!(wished.id), why_not });
            }
            let against = match wished {
                Some(wished) => format!("`{}` is not taken: {against}", wished.id),
                None => against,
            };
            not_met(sheet, &asks, &against);
            format!(
                "the goal asks for {asks}, but {against}; {}, and {why}, so `{}`",
                facts(ctx, sheet, goal, false),
                best.id
            )
        }
    };
    let origin = match (goal.wish, sheet.architecture, refused(ctx, sheet, goal)) {
        (None, architecture, None) if architecture != Architecture::Unknown => Origin::Analysis,
        _ => Origin::Rule,
    };
    sheet.by(ID).decide(ROW, json!(best.id), origin, reason).alternatives = alternatives;
    sheet.preset = Some(Cow::Borrowed(best));
    admission(sheet);
}

fn not_met(sheet: &mut Sheet, asks: &str, against: &str) {
    sheet.by(ID).risk(
        Severity::Medium,
        format!("the goal asks for {asks}, and the plan does not meet it: {against}"),
        Some(format!("look at what was not taken for `{ROW}`, or change target or goal")),
    );
}

/// Says what admits a preset that the strict profile of the target does not.
fn admission(sheet: &mut Sheet) {
    let (Some(target), Some(profile), Some(preset)) =
        (sheet.target, sheet.profile, sheet.preset.as_ref())
    else {
        return;
    };
    let strict = target.profiles.first().is_some_and(|strict| strict.presets.contains(&preset.id));
    if strict || !profile.presets.contains(&preset.id) {
        return;
    }
    let device = sheet.device.map_or("the device", |device| device.id.as_str());
    let version = profile
        .ryzen_ai
        .as_deref()
        .map_or(String::new(), |version| format!(" with Ryzen AI {version} or newer"));
    let source = profile
        .source
        .first()
        .map_or(String::new(), |source| format!(" ({}, {})", source.release, source.path));
    let text = format!("; the profile `{}` admits it on {device}{version}{source}", profile.id);
    if let Some(decision) = sheet.decision_mut(ROW) {
        decision.reason.push_str(&text);
    }
}

/// The preset that was asked for, and in which words.
fn asked(ctx: &Context<'_>, sheet: &Sheet, goal: &Goal) -> Option<(Cow<'static, Preset>, String)> {
    let name = ctx.requested(ROW).and_then(Value::as_str);
    if name == Some(custom_config::NAME) {
        let config = ctx.requested(CONFIG)?.as_object()?;
        // `request::checked` refused what does not read.
        let preset = custom_config::read(ctx, &sheet.release.id, config).ok()?;
        return Some((Cow::Owned(preset), "you asked for it and spelled it out".to_owned()));
    }
    if let Some(preset) = name.and_then(|name| ctx.catalogue.presets().get(name)) {
        return Some((Cow::Borrowed(preset), "you asked for it".to_owned()));
    }
    let preset = goal.preset.filter(|preset| sheet.has(ctx, *preset))?;
    Some((Cow::Borrowed(preset), "the goal names it and no other preset".to_owned()))
}

/// What the choice follows from, `with_wish` or without.
fn facts(ctx: &Context<'_>, sheet: &Sheet, goal: &Goal, with_wish: bool) -> String {
    let target =
        sheet.target.map_or_else(String::new, |target| format!("the target is `{}`", target.id));
    let mut facts = vec![target];
    if sheet.architecture != Architecture::Unknown {
        facts.push(format!("the model looks like {}", sheet.architecture.with_article()));
    }
    if let Some(asks) = goal.asks_for().filter(|_| with_wish) {
        facts.push(format!("the goal asks for {asks}"));
    }
    facts.extend(refused(ctx, sheet, goal));
    match goal.accuracy {
        Some(Accuracy::Critical) if goal.wish != Some(Wish::BestAccuracy) => {
            facts.push("accuracy is critical".to_owned())
        }
        Some(Accuracy::Tight) => facts.push("accuracy is tight".to_owned()),
        _ => {}
    }
    if machine::has_vnni(ctx) == Some(false)
        && sheet.target.is_some_and(|target| target.id == *"cpu")
    {
        facts.push("the CPU has no VNNI".to_owned());
    }
    if let Some(profile) = sheet.profile.filter(|profile| profile.ryzen_ai.is_some()) {
        facts.push(format!("the profile `{}` holds", profile.id));
    }
    facts.join(", ")
}

/// Whether a preset may be planned on the target.
pub fn verdict(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset) -> Check {
    let (Some(target), Some(profile)) = (sheet.target, sheet.profile) else { return Check::Fine };
    let allowed = profile.presets.is_empty()
        || profile.presets.contains(&preset.id)
        || (preset.id == *custom_config::NAME && preset.npu_cnn);
    let scale = ctx.catalogue.methods().get(preset.calibration.as_str()).map(|method| method.scale);
    let scales_fit = profile.scales.is_empty()
        || (scale.is_some_and(|scale| profile.scales.contains(&scale))
            && preset.format == crate::catalogue::presets::QuantFormat::Qdq);
    if !scales_fit {
        let mut why = format!(
            "its scales are no powers of two, and those are all that `{}` runs in the profile `{}`",
            target.id, profile.id
        );
        if let Some(wider) = target.profiles.iter().find(|wider| wider.presets.contains(&preset.id))
        {
            let devices = list(wider.devices.iter().map(|id| id.as_str()), 4);
            why.push_str(&format!(
                "; Ryzen AI {} or newer on {devices} admits it: state `ryzen_ai_version` and the device",
                wider.ryzen_ai.as_deref().unwrap_or("1.6")
            ));
        }
        return Check::Impossible(why);
    }
    if !allowed {
        // Power-of-two scales alone do not make it the NPU's flow.
        if target.layout.is_some() && !preset.npu_cnn && !profile.scales.is_empty() {
            return Check::Unwise(format!(
                "it does not switch the NPU's CNN flow on, and `{}` is known to run {}",
                target.id,
                list(profile.presets.iter().map(|id| id.as_str()), 4)
            ));
        }
        let devices = sheet.device.map_or(String::new(), |device| format!(" on {}", device.id));
        return Check::Unwise(format!(
            "it is not among what `{}`{devices} is known to run ({})",
            target.id,
            list(profile.presets.iter().map(|id| id.as_str()), 12)
        ));
    }
    if preset.per_channel
        && opset_floor::effective(ctx).is_some_and(|opset| opset < opset_floor::PER_CHANNEL)
    {
        return Check::Impossible(format!(
            "per-channel weights need opset {} (ValueError below), and the model has {}; take per-tensor weights, or convert the model first (`ConvertOpsetVersion`, or onnx.version_converter)",
            opset_floor::PER_CHANNEL,
            opset_floor::effective(ctx).unwrap_or_default()
        ));
    }
    if let Some(why) = custom_ops::refusal(ctx, sheet, preset) {
        return Check::Unwise(why);
    }
    if preset.family == PresetFamily::WeightOnly {
        let none = match ctx.graph {
            Some(graph) => estimate::constant_matmul_bytes(graph) == 0,
            None => ctx.count("MatMul") == 0,
        };
        if none {
            return Check::Unwise(format!(
                "the graph has no MatMul with constant weights, so `{}` would quantize nothing",
                preset.id
            ));
        }
    }
    let only = preset.npu_transformer.then(|| ctx.count("MatMul") + ctx.count("Gemm"));
    if only == Some(0) {
        return Check::Unwise(format!(
            "`{}` quantizes MatMul and Gemm only, and the graph has none",
            preset.id
        ));
    }
    if preset.npu_cnn && !target.npu && preset.id != *custom_config::NAME {
        return Check::Risky(
            Severity::Low,
            format!(
                "it is made for the NPU; on `{}` its power-of-two scales cost accuracy and bring nothing",
                target.id
            ),
        );
    }
    Check::Fine
}
