//! The presets that fit a goal, and what a goal does not want or cannot have.

use serde_json::json;

use crate::{
    catalogue::presets::{Preset, PresetFamily},
    estimate,
    plan::Alternative,
    rules::{
        Context,
        common::{
            goal::{Goal, Wish},
            machine,
        },
        onnx::{guide, preset::verdict},
        sheet::{Check, Sheet, list, lower},
    },
};

/// The wish, with "smallest" and "weights only" resolved by where the bytes are.
pub fn wish(ctx: &Context<'_>, goal: &Goal) -> Option<Wish> {
    if goal.wish != Some(Wish::Smallest) {
        return goal.wish;
    }
    Some(if matmul_carries_the_bytes(ctx) { Wish::WeightsOnly } else { Wish::Int8 })
}

fn matmul_carries_the_bytes(ctx: &Context<'_>) -> bool {
    let total = ctx
        .onnx()
        .weights
        .as_ref()
        .map_or(0, |weights| weights.initializer_bytes + weights.constant_bytes);
    match ctx.graph {
        Some(graph) => total > 0 && estimate::constant_matmul_bytes(graph) * 2 > total,
        None => ctx.count("MatMul") > 0 && ctx.count("Conv") == 0,
    }
}

/// The presets of the guide that nothing speaks against, best first.
pub fn ranked(
    ctx: &Context<'_>,
    sheet: &Sheet,
    goal: &Goal,
) -> Vec<(&'static Preset, &'static str)> {
    let mut found = candidates(ctx, sheet, goal);
    found.retain(|(preset, _)| {
        sheet.has(ctx, *preset)
            && !goal.refuses(preset)
            && verdict(ctx, sheet, preset) == Check::Fine
    });
    found
}

/// What the guide has, best first.
fn candidates(
    ctx: &Context<'_>,
    sheet: &Sheet,
    goal: &Goal,
) -> Vec<(&'static Preset, &'static str)> {
    let Some(target) = sheet.target else { return Vec::new() };
    let tight = goal.is_tight();
    let presets = ctx.catalogue.presets();
    let mut found: Vec<(&Preset, &str)> =
        guide::presets(wish(ctx, goal), tight, sheet.architecture, target.id.as_str())
            .into_iter()
            .filter_map(|(id, why)| Some((presets.get(id)?, why)))
            .collect();
    if goal.wish == Some(Wish::Block) && goal.asks_for().as_deref() != Some(Wish::Block.words()) {
        let named = presets.all().iter().filter(|preset| goal.is_met_by(preset));
        let named = named.filter(|preset| preset.family == PresetFamily::Block);
        found.retain(|(preset, _)| !goal.is_met_by(preset));
        found.splice(0..0, named.map(|preset| (preset, "it is the block format that is named")));
    }
    if target.id == *"cpu" && machine::has_vnni(ctx) == Some(false) {
        // u8 activations with s8 weights saturate there; signed ones do not.
        let signed = presets.get(if tight { "S8S8_AAWS_ADAROUND" } else { "S8S8_AAWS" });
        let at = found.iter().position(|(preset, _)| saturates(preset));
        if let (Some(signed), Some(at)) = (signed, at) {
            found.insert(at, (signed, "signed INT8 does not saturate on a CPU without VNNI"));
        }
        found.sort_by_key(|(preset, _)| saturates(preset));
    }
    found
}

/// Whether products of its unsigned activations and signed weights can saturate on a CPU without VNNI.
pub fn saturates(preset: &Preset) -> bool {
    use crate::catalogue::presets::ElementType::{QInt8, QUInt8};
    preset.activation.r#type == QUInt8
        && preset.weight.r#type == QInt8
        && !preset.dynamic
        && !preset.reduce_range
}

/// The two next best, with when they would be taken.
pub fn others(ranked: &[(&'static Preset, &'static str)], best: &Preset) -> Vec<Alternative> {
    ranked
        .iter()
        .filter(|(preset, _)| preset.id != best.id)
        .take(2)
        .map(|(preset, _)| Alternative {
            value: json!(preset.id),
            why_not: format!(
                "`{}` comes first; this one is for: {}",
                best.id,
                lower(&preset.use_when)
            ),
        })
        .collect()
}

/// What to take instead of one that is refused: of the allowed ones that with the same algorithms, else the best.
pub fn closest(
    asked: &Preset,
    ranked: &[(&'static Preset, &'static str)],
) -> Option<(&'static Preset, &'static str)> {
    let tuned = |preset: &Preset| {
        preset.algorithms.iter().filter(|a| *a != "CLE").cloned().collect::<Vec<_>>()
    };
    ranked
        .iter()
        .filter(|(preset, _)| preset.id != asked.id)
        .find(|(preset, _)| !tuned(asked).is_empty() && tuned(preset) == tuned(asked))
        .or_else(|| ranked.iter().find(|(preset, _)| preset.id != asked.id))
        .copied()
}

/// The first preset that the goal asks for, and what speaks against it.
pub fn wished(ctx: &Context<'_>, sheet: &Sheet, goal: &Goal) -> (Option<&'static Preset>, String) {
    let found = candidates(ctx, sheet, goal).into_iter().map(|(preset, _)| preset);
    let Some(preset) =
        found.filter(|preset| goal.is_met_by(preset)).find(|preset| sheet.has(ctx, *preset))
    else {
        return (None, format!("amd-quark {} has no such preset", sheet.release.id));
    };
    let against = match verdict(ctx, sheet, preset) {
        Check::Unwise(why) | Check::Impossible(why) | Check::Risky(_, why) => why,
        Check::Fine if goal.refuses(preset) => "it rules that out too".to_owned(),
        Check::Fine => "something else comes first".to_owned(),
    };
    (Some(preset), against)
}

/// What would be planned but for a goal that does not want it.
pub fn refused(ctx: &Context<'_>, sheet: &Sheet, goal: &Goal) -> Option<String> {
    let found = candidates(ctx, sheet, goal);
    let refused = found.iter().map(|(preset, _)| *preset).filter(|preset| {
        goal.refuses(preset)
            && sheet.has(ctx, *preset)
            && verdict(ctx, sheet, preset) == Check::Fine
    });
    let mut names: Vec<&str> = refused.map(|preset| preset.id.as_str()).collect();
    if names.is_empty() {
        // What would not be planned anyway is named too, so that it shows that the goal was understood.
        let all = ctx.catalogue.presets().all().iter();
        names = all.map(|preset| preset.id.as_str()).filter(|id| goal.refuses_name(id)).collect();
    }
    (!names.is_empty()).then(|| format!("the goal does not want {}", list(&names, 4)))
}

/// The presets that a goal keeps from being planned, and those that something else does.
pub fn not_wanted(ctx: &Context<'_>, sheet: &Sheet, goal: &Goal) -> Vec<Alternative> {
    if refused(ctx, sheet, goal).is_none() {
        return Vec::new();
    }
    let found = candidates(ctx, sheet, goal).into_iter().map(|(preset, _)| preset);
    let why_not = |preset: &Preset| match verdict(ctx, sheet, preset) {
        Check::Unwise(why) | Check::Impossible(why) | Check::Risky(_, why) => why,
        Check::Fine => "the goal does not want it; ask for it to have it all the same".to_owned(),
    };
    found
        .filter(|preset| sheet.has(ctx, *preset))
        .take(4)
        .map(|preset| Alternative { value: json!(preset.id), why_not: why_not(preset) })
        .collect()
}
