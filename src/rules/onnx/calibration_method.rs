//! # What it does
//!
//! Chooses the calibration method: what the target's profile takes, else the preset's own, else Percentile for a
//! transformer with tight accuracy and LayerWisePercentile when accuracy is critical. A dynamic preset has none.
//!
//! # Why
//!
//! On the NPU's CNN flow the method decides whether scales are powers of two: with MinMax or Percentile,
//! `enable_npu_cnn` is dropped without a word and an ordinary float-scale model comes out. Histogram methods
//! fail when shapes vary.
//!
//! # Example
//!
//! The target is `npu_cnn` and its runtime takes power-of-two scales only, so `PowerOfTwo_MinMSE`.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantizers/interface.py:273-320` (measured); `quark/onnx/calibration/interface.py:155-228`
//! - microsoft/onnxruntime#18792
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`

use serde_json::{Value, json};

use crate::{
    catalogue::{methods::Method, presets::Preset},
    intent::Accuracy,
    plan::Alternative,
    rules::{
        Context, Stage,
        common::goal,
        onnx::shapes,
        sheet::{Check, Sheet, lower},
    },
    vocab::{Architecture, Origin, ScaleKind, Severity},
};

/// The reason code.
pub const ID: &str = "calibration-method";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "calibration.method";

/// Chooses the method.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(preset) = sheet.preset.clone() else {
        sheet.by(ID).leave_open(ROW, "it follows from the preset, which is open");
        return;
    };
    if preset.dynamic {
        let reason = format!(
            "`{}` quantizes activations while the model runs, so there is nothing to calibrate",
            preset.id
        );
        let why = reason.clone();
        sheet
            .by(ID)
            .settle_or(ctx, ROW, (Value::Null, Origin::Rule, reason), |_| Check::Impossible(why));
        if let Some(decision) = sheet.decision_mut(ROW) {
            decision.also.insert("calibration.identifier".to_owned(), Value::Null);
        }
        return;
    }
    let (method, origin, reason) = default(ctx, sheet, &preset);
    let Some(method) = method else {
        sheet.by(ID).leave_open(ROW, "no method of the preset is known");
        return;
    };
    let value = settled(ctx, sheet, &preset, method, origin, reason);
    let chosen = value.as_str().and_then(|id| ctx.catalogue.methods().get(id)).unwrap_or(method);
    sheet.method = Some(chosen);
    let crash = crash_fallback(chosen);
    if let Some(other) = crash.filter(|_| preset.uses_calibration_data) {
        sheet.by(ID).risk(
            Severity::Low,
            format!("if {} fails while it runs, Quark goes on with {other} and only logs `Will automatically set`", chosen.id),
            Some("look for these words in the log after the run".to_owned()),
        );
    }
}

fn settled(
    ctx: &Context<'_>,
    sheet: &mut Sheet,
    preset: &Preset,
    method: &'static Method,
    origin: Origin,
    reason: String,
) -> Value {
    let verdict =
        |asked: &Value| match asked.as_str().and_then(|id| ctx.catalogue.methods().get(id)) {
            Some(asked) => verdict(ctx, sheet, preset, asked),
            None => Check::Impossible(format!("`{}` is static and needs a method", preset.id)),
        };
    let check = ctx.requested(ROW).map(verdict);
    let value = sheet
        .by(ID)
        .settle_or(ctx, ROW, (json!(method.id), origin, reason), |_| check.unwrap_or(Check::Fine));
    let identifier = value
        .as_str()
        .and_then(|id| ctx.catalogue.methods().get(id))
        .map(|method| method.identifier.clone());
    let other = alternative(ctx, sheet, preset, &value);
    if let Some(decision) = sheet.decision_mut(ROW) {
        decision.also.insert("calibration.identifier".to_owned(), json!(identifier));
        decision.alternatives.extend(other);
    }
    value
}

fn default(
    ctx: &Context<'_>,
    sheet: &Sheet,
    preset: &Preset,
) -> (Option<&'static Method>, Origin, String) {
    let find = |id: &str| ctx.catalogue.methods().get(id);
    let own = find(preset.calibration.as_str());
    if !preset.uses_calibration_data {
        let reason = format!(
            "it is the method of `{}`, whose result does not depend on the data",
            preset.id
        );
        return (own, Origin::Rule, reason);
    }
    if let Some(profile) = sheet.profile.filter(|profile| !profile.methods.is_empty())
        && let Some(target) = sheet.target
    {
        let own_fits = own.is_some_and(|own| profile.methods.contains(&own.id));
        let method =
            if own_fits { own } else { profile.methods.first().and_then(|id| find(id.as_str())) };
        let name = method.map_or("", |method| method.id.as_str());
        let reason = format!(
            "the target is {} and its runtime takes power-of-two scales only, so `{name}`",
            target.id
        );
        return (method, Origin::Rule, reason);
    }
    let varies = shapes::vary_beyond_batch(ctx) && sheet.fixed_shapes.is_empty();
    let transformer = sheet.architecture == Architecture::Transformer;
    let accuracy = goal::read(ctx).accuracy;
    let floats = own.is_some_and(|own| own.scale == ScaleKind::Float);
    let wanted = match accuracy {
        Some(Accuracy::Critical) if floats => Some((
            "LayerWisePercentile",
            "accuracy is critical, and one percentile does not suit every layer",
        )),
        Some(Accuracy::Tight) if floats && transformer => Some((
            "Percentile",
            "the model is a transformer with tight accuracy, and its outliers are to be clipped",
        )),
        _ => None,
    };
    if let Some((id, why)) = wanted
        && !varies
    {
        return (find(id), Origin::Rule, format!("{why}, so `{id}`"));
    }
    if own.is_some_and(|own| own.histogram) && varies {
        let reason = format!(
            "the shapes of the inputs vary and {} fails on that, so `MinMax`",
            own.map_or("the preset's method", |own| own.id.as_str())
        );
        return (find("MinMax"), Origin::Analysis, reason);
    }
    (
        own,
        Origin::Default,
        format!("it is the method of `{}`, and nothing speaks for another", preset.id),
    )
}

fn verdict(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset, asked: &Method) -> Check {
    if let (Some(profile), Some(target)) = (sheet.profile, sheet.target)
        && !profile.methods.is_empty()
        && !profile.methods.contains(&asked.id)
    {
        return Check::Impossible(format!(
            "its scales are no powers of two, which are all that `{}` runs: Quark would drop `enable_npu_cnn` silently and write an ordinary float-scale model",
            target.id
        ));
    }
    if !preset.uses_calibration_data {
        return Check::Risky(
            Severity::Low,
            format!("the result of `{}` does not depend on the method", preset.id),
        );
    }
    if preset.npu_cnn && asked.scale == ScaleKind::Float {
        return Check::Risky(
            Severity::High,
            format!(
                "`{}` without a power-of-two method silently becomes an ordinary float-scale model, because `enable_npu_cnn` is dropped",
                preset.id
            ),
        );
    }
    if asked.histogram && shapes::vary_beyond_batch(ctx) && sheet.fixed_shapes.is_empty() {
        return Check::Unwise(format!(
            "the shapes of the inputs vary, and {} stacks the tensors of all samples, which fails; fix the shapes with the answer `input_shapes`, or let the reader yield one shape",
            asked.id
        ));
    }
    let own = ctx.catalogue.methods().get(preset.calibration.as_str());
    if asked.scale == ScaleKind::PowerOfTwo && own.is_some_and(|own| own.scale != asked.scale) {
        return Check::Risky(
            Severity::Medium,
            format!(
                "it makes every scale of `{}` a power of two, which costs accuracy and brings something on the NPU's CNN flow only",
                preset.id
            ),
        );
    }
    Check::Fine
}

fn alternative(
    ctx: &Context<'_>,
    sheet: &Sheet,
    preset: &Preset,
    taken: &Value,
) -> Option<Alternative> {
    if !preset.uses_calibration_data {
        return None;
    }
    let in_profile = sheet.profile.map(|profile| profile.methods.as_slice()).unwrap_or_default();
    let next = in_profile.iter().find(|id| Some(id.as_str()) != taken.as_str());
    let next = next
        .map(|id| id.as_str())
        .or_else(|| (taken == "MinMax" && in_profile.is_empty()).then_some("Percentile"))?;
    let method = ctx.catalogue.methods().get(next)?;
    let fine = verdict(ctx, sheet, preset, method) == Check::Fine;
    let why_not = format!("it is for: {}", lower(&method.use_when));
    fine.then(|| Alternative { value: json!(method.id), why_not })
}

fn crash_fallback(method: &Method) -> Option<&'static str> {
    match method.scale {
        _ if method.histogram => Some("MinMax"),
        ScaleKind::PowerOfTwo if method.id == *"PowerOfTwo_MinMSE" => {
            Some("PowerOfTwo_NonOverflow")
        }
        _ => None,
    }
}
