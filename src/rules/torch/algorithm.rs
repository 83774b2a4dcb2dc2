//! # What it does
//!
//! Settles which algorithms run, and in which order: those you name when the family has a config for them and
//! they suit the scheme, else for four-bit integers the best that the family has, else none.
//!
//! # Why
//!
//! Whether an algorithm runs is a look-up in Quark: without a built-in config for the family it stops with
//! NotImplementedError, after the model was loaded. Which schemes it is meant for nobody checks. Some pairs ruin
//! the model: `awq,smoothquant` brings the cosine of the logits from 0.99 to 0.61. A config file or a template of
//! your own is read, and its layers are looked up in the model.
//!
//! # Example
//!
//! `awq` was asked for on a `qwen3`, which has a config for `twobitscalar` only, so no algorithm: the scheme
//! alone, with smaller groups.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/config/algo_configs.py`, `template.py:995` (measured)
//! - 0.13, pairs of algorithms on a tiny llama (measured)
//! - amd/Quark#5, amd/RyzenAI-SW#211: AWQ on small Qwen2.5

use serde_json::{Value, json};

use crate::{
    catalogue::{algorithms::TimeClass, torch_algorithms::TorchAlgorithm},
    plan::Alternative,
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list, lower},
        torch::{
            algorithm_configs::{config_file, has_config, of_template, whose, without_config},
            device_strategy, wishes,
        },
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "algorithm";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "algorithm";
/// In the order of preference for four-bit integers.
const FOUR_BIT: [&str; 4] = ["awq", "gptq", "gptaq", "qronos"];

/// Settles the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    config_file(ctx, sheet);
    let all = ctx.catalogue.torch_algorithms();
    let in_goal = wishes::read(ctx).algorithms;
    let (asked, said) = match ctx.requested(ROW) {
        Some(Value::Null) => {
            sheet.by(ID).decide(ROW, Value::Null, Origin::User, "you asked for none");
            return;
        }
        Some(value) => {
            let names = value.as_str().unwrap_or_default().split(',');
            (names.filter_map(|name| all.get(name)).collect(), "you asked for it")
        }
        None => (in_goal, "the goal names it"),
    };
    let (default, origin, reason) = default(ctx, sheet);
    if asked.is_empty() {
        let value = default.map_or(Value::Null, |algorithm| json!(algorithm.id));
        let others = alternatives(ctx, sheet, default);
        sheet.by(ID).decide(ROW, value, origin, reason).alternatives = others;
        sheet.torch.algorithms.extend(default);
        remarks(sheet);
        return;
    }
    let value = json!(asked.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(","));
    let check = verdict(ctx, sheet, &asked);
    let fallback = Fallback::Value(
        default.map_or(Value::Null, |algorithm| json!(algorithm.id)),
        origin,
        reason,
    );
    let request = Asked { value: &value, origin: Origin::User, said: said.to_owned() };
    let stands = sheet.by(ID).settle(ctx, ROW, &request, check, fallback);
    let stood = stands.as_ref() == Some(&value);
    sheet.torch.algorithms = if stood { asked } else { default.into_iter().collect() };
    if stood
        && sheet.torch.algorithms.len() > 1
        && let Some(decision) = sheet.decision_mut(ROW)
    {
        decision.reason.push_str("; they run in this order");
    }
    remarks(sheet);
}

/// Whether AWQ is known to fail in its search: small models of the Qwen2 kind with two KV heads.
fn awq_fails(ctx: &Context<'_>, sheet: &Sheet) -> bool {
    sheet.torch.family.is_some_and(|family| family.id == *"qwen2")
        && ctx.torch().num_key_value_heads == Some(2)
}

/// What runs when nothing is asked for.
fn default(ctx: &Context<'_>, sheet: &Sheet) -> (Option<&'static TorchAlgorithm>, Origin, String) {
    let Some(scheme) = sheet.torch.scheme else {
        return (None, Origin::Rule, "no scheme is chosen yet, so none".to_owned());
    };
    let all = ctx.catalogue.torch_algorithms();
    let fitting = |algorithm: &&'static TorchAlgorithm| {
        algorithm.suits.contains(&scheme.family)
            && sheet.has(ctx, *algorithm)
            && has_config(ctx, sheet, algorithm)
    };
    let unwanted = wishes::read(ctx).unwanted_algorithms;
    let (refused, mut found): (Vec<&TorchAlgorithm>, Vec<&TorchAlgorithm>) = FOUR_BIT
        .iter()
        .filter_map(|id| all.get(id))
        .filter(fitting)
        .partition(|one| unwanted.iter().any(|other| other.id == one.id));
    let four_bit = all.get("awq").is_some_and(|awq| awq.suits.contains(&scheme.family));
    let whose = whose(ctx, sheet);
    if !four_bit {
        let reason = if scheme.bits >= 8.0 {
            format!("`{}` loses little without one", scheme.id)
        } else {
            format!("nothing was asked for, and `{}` is usually taken without one", scheme.id)
        };
        return (None, Origin::Default, reason);
    }
    let refused = (!refused.is_empty()).then(|| {
        let names = list(refused.iter().map(|one| one.id.as_str()), 4);
        format!("the goal does not want {names}")
    });
    if let Some(refused) = refused.as_ref().filter(|_| found.is_empty()) {
        return (None, Origin::Rule, format!("{refused}, and nothing else suits `{}`", scheme.id));
    }
    if found.is_empty() {
        let has = of_template(ctx, sheet);
        let reason = match (has.is_empty(), sheet.torch.own_template()) {
            (true, Some(_)) => format!("{whose} brings no config of any algorithm"),
            (true, None) => {
                format!("amd-quark {} has no config of any algorithm for {whose}", sheet.release.id)
            }
            (false, _) => format!(
                "of the algorithms for four-bit weights none has a config for {whose} (it has {})",
                list(&has, 5)
            ),
        };
        return (None, Origin::Rule, reason);
    }
    if let Some(why) =
        found.first().and_then(|one| device_strategy::forbids(&sheet.torch.strategy, one))
    {
        return (None, Origin::Rule, format!("{why}, so none; smaller groups make up for a part"));
    }
    let avoid_awq = awq_fails(ctx, sheet);
    if avoid_awq {
        found.sort_by_key(|one| one.id == *"awq");
    }
    let best = found.first().copied();
    let reason = match best {
        Some(best) if avoid_awq => format!(
            "four-bit weights gain from an algorithm, and AWQ is known to fail for small models of this kind with two KV heads (amd/Quark#5), so `{}`",
            best.id
        ),
        Some(best) if !of_template(ctx, sheet).contains(&best.id.as_str()) => format!(
            "four-bit weights gain from an algorithm, and the config file is one of `{}`",
            best.id
        ),
        Some(best) => format!(
            "four-bit weights gain from an algorithm, and {whose} has a config for `{}`",
            best.id
        ),
        None => String::new(),
    };
    let reason = match refused {
        Some(refused) => format!("{refused}; {reason}"),
        None => reason,
    };
    (best, Origin::Rule, reason)
}

/// What else the family has for this scheme.
fn alternatives(
    ctx: &Context<'_>,
    sheet: &Sheet,
    chosen: Option<&TorchAlgorithm>,
) -> Vec<Alternative> {
    let Some(scheme) = sheet.torch.scheme else { return Vec::new() };
    let unwanted = wishes::read(ctx).unwanted_algorithms;
    ctx.catalogue
        .torch_algorithms()
        .all()
        .iter()
        .filter(|one| chosen.is_none_or(|chosen| chosen.id != one.id))
        .filter(|one| one.suits.contains(&scheme.family) && one.broken.is_none())
        .filter(|one| !unwanted.iter().any(|other| other.id == one.id))
        .filter(|one| sheet.has(ctx, *one) && has_config(ctx, sheet, one))
        .filter(|one| device_strategy::forbids(&sheet.torch.strategy, one).is_none())
        .take(2)
        .map(|one| Alternative {
            value: json!(one.id),
            why_not: format!("for: {}", lower(&one.use_when)),
        })
        .collect()
}

/// Whether what was asked for may be planned.
fn verdict(ctx: &Context<'_>, sheet: &Sheet, asked: &[&'static TorchAlgorithm]) -> Check {
    for one in asked {
        if let Some(broken) = &one.broken {
            return Check::Impossible(lower(broken));
        }
        if let Some(why) = device_strategy::forbids(&sheet.torch.strategy, one) {
            return Check::Impossible(format!(
                "{why}; set `device_strategy` to `single` or `multi_gpu` for it"
            ));
        }
        if !has_config(ctx, sheet, one) {
            return Check::Impossible(without_config(ctx, sheet, one));
        }
        let on_cpu = sheet.torch.strategy == "cpu";
        if on_cpu
            && sheet.torch.scheme.is_some_and(|scheme| one.needs_gpu_with.contains(&scheme.id))
        {
            return Check::Impossible("with this scheme it runs on a GPU only".to_owned());
        }
    }
    if let Some(check) = combination(asked) {
        return check;
    }
    let Some(scheme) = sheet.torch.scheme else { return Check::Fine };
    let unsuited: Vec<&&TorchAlgorithm> =
        asked.iter().filter(|one| !one.suits.contains(&scheme.family)).collect();
    if let Some(one) = unsuited.first() {
        if one.suits.is_empty() {
            return Check::Risky(Severity::High, format!("{}: {}", one.id, lower(&one.summary)));
        }
        let better: Vec<&str> = ctx
            .catalogue
            .torch_algorithms()
            .all()
            .iter()
            .filter(|other| other.suits.contains(&scheme.family) && has_config(ctx, sheet, other))
            .map(|other| other.id.as_str())
            .collect();
        let instead = if better.is_empty() {
            "nothing that has a config here is made for that".to_owned()
        } else {
            format!("for that there is {}", list(&better, 4))
        };
        return Check::Unwise(format!(
            "`{}` is made for {} and not for `{}`; {instead}",
            one.id,
            one.suits.iter().map(|family| family.words()).collect::<Vec<_>>().join(", "),
            scheme.id
        ));
    }
    if asked.iter().any(|one| one.id == *"awq") && awq_fails(ctx, sheet) {
        return Check::Risky(
            Severity::Medium,
            "AWQ is known to fail in its search for small models of this kind with two KV heads (amd/Quark#5); `gptq` works".to_owned(),
        );
    }
    Check::Fine
}

/// What is known of several algorithms in one run.
fn combination(asked: &[&'static TorchAlgorithm]) -> Option<Check> {
    for pair in asked.windows(2) {
        let known = pair[0].with.iter().find(|other| other.then == pair[1].id);
        match known {
            Some(known) if known.ruins => {
                let without = known
                    .without
                    .map_or(String::new(), |cosine| format!(" against {cosine} without any"));
                return Some(Check::Unwise(format!(
                    "`{}` and then `{}` ruin the model: the cosine of the logits was {}{without} with `{}` (measured)",
                    pair[0].id, pair[1].id, known.cosine, known.scheme
                )));
            }
            Some(_) => {}
            None => {
                return Some(Check::Risky(
                    Severity::Medium,
                    format!(
                        "nobody has measured `{}` and then `{}` in one run",
                        pair[0].id, pair[1].id
                    ),
                ));
            }
        }
    }
    (asked.len() > 1).then_some(Check::Fine)
}

/// What to know of the algorithms that run.
fn remarks(sheet: &mut Sheet) {
    let slow: Vec<&str> = sheet
        .torch
        .algorithms
        .iter()
        .filter(|one| one.time == TimeClass::Hours)
        .map(|one| one.id.as_str())
        .collect();
    if !slow.is_empty() {
        let text = format!("{} can take hours on a model of ordinary size", list(&slow, 4));
        sheet.by(ID).risk(Severity::Low, text, None);
    }
}
