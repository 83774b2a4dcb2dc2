//! # What it does
//!
//! Takes your schemes for single layers, reports what each pattern means, and looks for what Quark and engines
//! would do with them.
//!
//! # Why
//!
//! Exclusion wins in Quark: an override of an excluded layer has no effect, and nothing says so. Layers that an
//! engine fuses (q/k/v, gate and up) must have one scheme, or the checkpoint does not load.
//!
//! # Example
//!
//! `{"lm_head": "int8"}` has no effect while `lm_head` is excluded: take it out of `exclude_layers` first.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/model_transformation.py:280-340` (measured: exclusion wins)
//! - vllm 006bce4e, `vllm/model_executor/layers/quantization/quark/quark.py`; sgl-project/sglang#37254

use serde_json::{Value, json};

use crate::{
    catalogue::{engines::Engine, globs::Glob, schemes::Scheme},
    facts::torch::{LinearModule, Modules, Role},
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list},
        torch::{
            fitness::{self, Place},
            groups, lookup,
        },
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "layer-quant-config";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "layer_quant_config";

/// Settles the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let asked = ctx.requested(ROW).and_then(Value::as_object).filter(|map| !map.is_empty());
    let Some(asked) = asked else {
        sheet.by(ID).decide(
            ROW,
            json!({}),
            Origin::Default,
            "nothing was asked for, so one scheme for all",
        );
        return;
    };
    let schemes = ctx.catalogue.schemes();
    let overrides: Vec<(String, _)> = asked
        .iter()
        .filter_map(|(pattern, scheme)| Some((pattern.clone(), schemes.get(scheme.as_str()?)?)))
        .collect();
    let mut refusals: Vec<(bool, String)> = Vec::new();
    for (pattern, scheme) in &overrides {
        let glob = Glob::new(pattern);
        let dims = match ctx.modules {
            Some(_) => groups::dims(ctx, sheet, |_, module| lookup::takes(&glob, module)),
            None => Vec::new(),
        };
        let place = if for_experts(ctx, pattern) { Place::Experts } else { Place::Anywhere };
        match fitness::verdict(ctx, sheet, scheme, &dims, place) {
            Check::Fine => {}
            Check::Risky(severity, why) => {
                let text = format!("`{pattern}` gets `{}`: {why}", scheme.id);
                sheet.by(ID).risk(severity, text, None);
            }
            Check::Unwise(why) => {
                refusals.push((true, format!("of `{}` for `{pattern}`: {why}", scheme.id)))
            }
            Check::Impossible(why) => {
                refusals.push((false, format!("of `{}` for `{pattern}`: {why}", scheme.id)))
            }
        }
    }
    sheet.torch.overrides.clone_from(&overrides);
    if let Some(modules) = ctx.modules {
        report(sheet, modules, &overrides);
    }
    if let (Some(engine), Some(global)) = (sheet.torch.engine, sheet.torch.scheme) {
        let torn = torn(ctx, sheet, engine, global);
        if !torn.is_empty() {
            let fuses =
                format!("`{}` fuses {} and wants one scheme for each", engine.id, list(&torn, 4));
            refusals.push((true, fuses));
        }
    }
    let said = |wanted: bool| {
        let of: Vec<&str> = refusals
            .iter()
            .filter(|(unwise, _)| *unwise == wanted)
            .map(|(_, why)| why.as_str())
            .collect();
        (!of.is_empty()).then(|| of.join("; "))
    };
    let check = match (said(false), said(true)) {
        (Some(why), _) => Check::Impossible(why),
        (None, Some(why)) => Check::Unwise(why),
        (None, None) => Check::Fine,
    };
    let value = json!(asked);
    let fallback = Fallback::Value(json!({}), Origin::Rule, "one scheme for all".to_owned());
    let stands = sheet.by(ID).settle(ctx, ROW, &Asked::by_user(&value), check, fallback);
    if stands.as_ref() != Some(&value) {
        sheet.torch.overrides.clear();
        return;
    }
    without_effect(ctx, sheet);
}

/// Fused layers that would get several schemes.
fn torn(ctx: &Context<'_>, sheet: &Sheet, engine: &Engine, global: &Scheme) -> Vec<String> {
    let Some(modules) = ctx.modules else {
        let globs: Vec<(Glob, &Scheme)> = sheet
            .torch
            .overrides
            .iter()
            .map(|(pattern, scheme)| (Glob::new(pattern), *scheme))
            .collect();
        return lookup::torn_by_name(engine, |name| {
            let own = globs.iter().find(|(glob, _)| glob.matches(name));
            own.map_or(&global.id, |(_, scheme)| &scheme.id)
        });
    };
    let scheme_of = sheet.torch.schemes(global);
    lookup::torn(modules, engine, |at, module| {
        scheme_of(at, module).map(|scheme| scheme.id.clone())
    })
}

/// Whether a pattern is for experts alone.
fn for_experts(ctx: &Context<'_>, pattern: &str) -> bool {
    match ctx.modules {
        Some(modules) => {
            let mut own = lookup::matching(modules, pattern).peekable();
            own.peek().is_some() && own.all(|module| module.role == Role::Expert)
        }
        None => pattern.contains("expert"),
    }
}

fn report(sheet: &mut Sheet, modules: &Modules, overrides: &[(String, &Scheme)]) {
    let mut taken = vec![0_u64; modules.linears.len()];
    for (pattern, _) in overrides {
        let glob = Glob::new(pattern);
        let mut found: Vec<&LinearModule> = Vec::new();
        for (at, module) in modules.linears.iter().enumerate() {
            if lookup::takes(&glob, module) {
                taken[at] += 1;
                found.push(module);
            }
        }
        sheet.expected.matches.push(lookup::matched(ROW, pattern, &found));
    }
    if let Some(at) = taken.iter().position(|count| *count > 1) {
        let text = format!(
            "`{}` is meant by more than one pattern, and which one wins is Quark's order, not the file's",
            modules.linears[at].name
        );
        sheet.by(ID).risk(
            Severity::Medium,
            text,
            Some("write patterns that do not overlap".to_owned()),
        );
    }
}

/// Overrides of layers that are excluded.
fn without_effect(ctx: &Context<'_>, sheet: &mut Sheet) {
    let mut lost: Vec<String> = Vec::new();
    for (pattern, _) in &sheet.torch.overrides {
        let excluded = match ctx.modules {
            Some(modules) => {
                let glob = Glob::new(pattern);
                modules
                    .linears
                    .iter()
                    .enumerate()
                    .filter(|(_, module)| lookup::takes(&glob, module))
                    .all(|(at, _)| sheet.torch.is_excluded(at))
            }
            None => sheet.torch.excludes.iter().any(|known| {
                known == pattern || Glob::new(known).matches(pattern.trim_matches('*'))
            }),
        };
        if excluded {
            lost.push(pattern.clone());
        }
    }
    if lost.is_empty() {
        return;
    }
    let text = format!(
        "{} means excluded layers only, and exclusion wins in Quark, so it has no effect",
        list(&lost, 4)
    );
    if let Some(decision) = sheet.decision_mut(ROW) {
        decision.reason.push_str(&format!("; {text}"));
    }
    sheet.by(ID).risk(
        Severity::Medium,
        text,
        Some("take the pattern out of `exclude_layers`".to_owned()),
    );
}
