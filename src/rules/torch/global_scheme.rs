//! # What it does
//!
//! Chooses the scheme: the one you ask for when nothing forbids it, else the best of the guide for wish, devices,
//! engine, shapes and memory. Native, emulated and impossible are three different answers.
//!
//! # Why
//!
//! Every scheme of a release quantizes, but some cannot be exported, some come out broken, and most run natively
//! on few devices. Quark's own advice is dubious in places: MI300X has no FP4 units for `amdfp4`, Hopper none for
//! `nvfp4`. What the goal does not want is not taken unless you ask for it, and what it wants and cannot have is a
//! risk.
//!
//! # Example
//!
//! The goal is "AMD MI300X", which has FP8 and no FP4, so `fp8`; `amdfp4` is shown beside it with the reason
//! against it.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/torch/quark-torch-quant-plan/SKILL.md`, "Decision Guide"
//! - 0.13, `quark/torch/quantization/config/template.py`; all 28 schemes run on a tiny llama (measured)
//! - vllm 026b62f4, `docs/features/quantization/quark.md`; prbasyal-amd/ROCm 245d7cee
//! - vllm-project/vllm#4327, #22422, #46676, #51645; sgl-project/sglang#17190; noonghunna/club-3090#670

use serde_json::{Value, json};

use crate::{
    catalogue::schemes::Loads,
    plan::{Alternative, Choice},
    rules::{
        Context, Stage,
        common::goal,
        sheet::{Asked, Check, Fallback, Sheet, list, lower},
        torch::{
            candidates::{nearest, nothing_fits, others, ranked, unmet},
            fitness::{Place, verdict},
            groups::{self, Dim},
            wishes::{self, Wish, Wishes},
        },
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "global-scheme";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "global_scheme";
const NEAR: &str = "of the same kind its groups are the largest that divide";

/// Chooses the scheme.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let wishes = wishes::read(ctx);
    let dims = groups::dims(ctx, sheet, |_, _| true);
    let ranked = ranked(ctx, sheet, &wishes, &dims);
    let schemes = ctx.catalogue.schemes();
    let requested = ctx
        .requested(ROW)
        .and_then(Value::as_str)
        .or_else(|| ctx.answer("scheme"))
        .and_then(|name| schemes.find(name));
    let in_goal = match wishes.schemes[..] {
        [one] if sheet.has(ctx, one) => Some(one),
        _ => None,
    };
    let asked = requested
        .map(|scheme| (scheme, "you asked for it"))
        .or_else(|| in_goal.map(|scheme| (scheme, "the goal names it and no other scheme")));
    let best = ranked.first().copied();
    match asked {
        Some((scheme, said)) => {
            let check = verdict(ctx, sheet, scheme, &dims, Place::Anywhere);
            let near = nearest(ctx, sheet, &wishes, scheme, &dims).map(|other| (other, NEAR));
            let first = ranked.iter().copied().find(|(other, _)| other.id != scheme.id);
            let fallback = match near.or(first) {
                Some((other, why)) => Fallback::Value(
                    json!(other.id),
                    Origin::Rule,
                    format!("{}, so `{}`", because(sheet, &wishes, why), other.id),
                ),
                None => Fallback::Open("no scheme is known that fits instead".to_owned()),
            };
            let nothing_else = matches!(fallback, Fallback::Open(_));
            let value = json!(scheme.id);
            let against = match &check {
                Check::Unwise(why) | Check::Impossible(why) => Some(why.clone()),
                Check::Fine | Check::Risky(..) => None,
            };
            let asked = Asked { value: &value, origin: Origin::User, said: said.to_owned() };
            let stands = sheet.by(ID).settle(ctx, ROW, &asked, check, fallback);
            sheet.torch.scheme =
                stands.as_ref().and_then(Value::as_str).and_then(|id| schemes.get(id));
            let from_goal = requested.is_none() && stands != Some(value);
            if let Some(why) = against.filter(|_| from_goal) {
                let asks = format!("`{}`", scheme.id);
                not_met(sheet, &asks, &format!("it is not taken, since {why}"));
            }
            if nothing_else && sheet.torch.scheme.is_none() {
                ask(ctx, sheet, &dims);
            }
        }
        None => match best {
            Some((scheme, why)) => {
                let nothing_known = sheet.torch.devices.is_empty() && !sheet.torch.on_cpu;
                let refuses = wishes.refused().is_some();
                let nothing_said = wishes.wish.is_none() && wishes.unknown.is_empty() && !refuses;
                let origin =
                    if nothing_said && nothing_known { Origin::Default } else { Origin::Rule };
                let mut alternatives = others(&ranked, scheme);
                let mut reason = format!("{}, so `{}`", because(sheet, &wishes, why), scheme.id);
                if let Some((asks, against, wished)) = unmet(ctx, sheet, &wishes, scheme, &dims) {
                    let mut plain = wishes.clone();
                    plain.wish = None;
                    reason = format!(
                        "the goal asks for {asks}, but {against}; {}, so `{}`",
                        because(sheet, &plain, why),
                        scheme.id
                    );
                    let wished = wished.filter(|wished| {
                        !alternatives.iter().any(|other| other.value == json!(wished.id))
                    });
                    alternatives.splice(
                        0..0,
                        wished.map(|wished| Alternative {
                            value: json!(wished.id),
                            why_not: format!("it is what the goal asks for, but {against}"),
                        }),
                    );
                    not_met(sheet, &asks, &against);
                }
                sheet.by(ID).decide(ROW, json!(scheme.id), origin, reason).alternatives =
                    alternatives;
                sheet.torch.scheme = Some(scheme);
                // What was said against it is kept, now that it is what stands.
                if let Check::Risky(severity, why) =
                    verdict(ctx, sheet, scheme, &dims, Place::Anywhere)
                {
                    sheet.by(ID).risk(severity, format!("`{ROW}` is `{}`: {why}", scheme.id), None);
                }
            }
            None => {
                sheet.by(ID).leave_open(ROW, nothing_fits(&wishes));
                ask(ctx, sheet, &dims);
            }
        },
    }
    if asked.is_none() && wishes.wish.is_none() {
        dubious(ctx, sheet);
    }
    remarks(ctx, sheet);
}

fn not_met(sheet: &mut Sheet, asks: &str, against: &str) {
    sheet.by(ID).risk(
        Severity::Medium,
        format!("the goal asks for {asks}, and the plan does not meet it: {against}"),
        Some(format!("look at what was not taken for `{ROW}`, or change the goal")),
    );
}

/// What the choice follows from.
fn because(sheet: &Sheet, wishes: &Wishes, why: &str) -> String {
    let mut facts: Vec<String> = Vec::new();
    if let Some(wish) = wishes.wish {
        facts.push(format!("the goal asks for {}", wish.words()));
    }
    if sheet.torch.on_cpu && wishes.wish != Some(Wish::Cpu) {
        facts.push("a CPU runs it".to_owned());
    }
    if !sheet.torch.devices.is_empty() {
        let names = list(sheet.torch.devices.iter().map(|target| target.name.as_str()), 3);
        facts.push(format!("{names} runs it"));
    }
    if let Some(engine) = sheet.torch.engine {
        facts.push(format!("`{}` serves it", engine.id));
    }
    facts.extend(wishes.refused().map(|refused| format!("the goal does not want {refused}")));
    if facts.is_empty() {
        facts.push("neither goal nor device is known".to_owned());
    }
    format!("{}, and {why}", facts.join(", "))
}

fn ask(ctx: &Context<'_>, sheet: &mut Sheet, dims: &[Dim]) {
    let release = sheet.release.id.clone();
    let choices: Vec<Choice> = ctx
        .catalogue
        .schemes()
        .all()
        .iter()
        .filter(|scheme| ctx.catalogue.in_release(*scheme, &release))
        .filter(|scheme| {
            matches!(
                verdict(ctx, sheet, scheme, dims, Place::Anywhere),
                Check::Fine | Check::Risky(..)
            )
        })
        .map(|scheme| Choice { value: scheme.id.to_string(), meaning: scheme.summary.clone() })
        .collect();
    sheet.by(ID).ask(
        "scheme",
        "No scheme that is recommended fits devices, engine and shapes. Which one shall it be? Or change them",
        choices,
    );
}

/// Advice of Quark's own skill that its hardware does not bear out.
fn dubious(ctx: &Context<'_>, sheet: &mut Sheet) {
    for (id, device) in [("amdfp4", "gfx942"), ("nvfp4", "sm_90")] {
        let here = sheet.torch.devices.iter().any(|target| target.device.id == *device);
        let chosen = sheet.torch.scheme.is_some_and(|scheme| scheme.id == *id);
        let Some(scheme) = ctx.catalogue.schemes().get(id).filter(|_| here && !chosen) else {
            continue;
        };
        if !sheet.has(ctx, scheme) {
            continue;
        }
        if let Some(decision) = sheet.decision_mut(ROW)
            && !decision.alternatives.iter().any(|other| other.value == json!(id))
        {
            let note = scheme.notes.first().map(String::as_str).unwrap_or_default();
            decision.alternatives.push(Alternative {
                value: json!(id),
                why_not: format!("{note}; it runs emulated there"),
            });
        }
    }
}

/// What to know of the scheme that stands.
fn remarks(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(scheme) = sheet.torch.scheme else { return };
    let facts = ctx.torch();
    let moe = ctx.analysis.model.is_moe == Some(true);
    let vllm = sheet.torch.engine.is_some_and(|engine| engine.id == *"vllm");
    let small = facts.parameters.is_some_and(|parameters| parameters < 15_000_000_000);
    let known = !sheet.torch.devices.is_empty() || sheet.torch.on_cpu;
    let four_bit_activations =
        scheme.activation.as_ref().is_some_and(|a| ["int4", "fp4"].contains(&a.dtype.as_str()));
    let multi = goal::tensor_parallel(ctx).is_some_and(|ranks| ranks > 1);
    let text_only = facts.architectures.first().is_some_and(|name| name == "Llama4ForCausalLM");
    let said = sheet.torch.engine.and_then(|engine| {
        let support = scheme.engines.get(&engine.id)?;
        // What is loaded since some version, or always emulated, is said with the verdict.
        let note = support.note.as_deref().filter(|_| support.loads == Loads::Yes)?;
        let plain = support.since.is_none() && !support.always_emulated;
        plain.then(|| format!("`{}` and `{}`: {}", engine.id, scheme.id, lower(note)))
    });
    let mut pen = sheet.by(ID);
    if let Some(said) = said {
        pen.risk(Severity::Low, said, None);
    }
    if four_bit_activations {
        let severity = if small { Severity::Medium } else { Severity::Low };
        pen.risk(
            severity,
            format!(
                "`{}` has four-bit activations, which cost accuracy, small models most",
                scheme.id
            ),
            Some("evaluate with `full` and compare with `fp8` or `mxfp4_fp8`".to_owned()),
        );
    }
    if moe && vllm && scheme.id == *"int8" {
        pen.risk(
            Severity::Medium,
            "mixtures of experts in INT8 were an unsupported scheme in vLLM before vllm-project/vllm#36320 (March 2026)",
            Some("use a newer vLLM, or `fp8` or `ptpc_fp8`".to_owned()),
        );
    }
    if vllm && text_only {
        pen.risk(
            Severity::Medium,
            "vLLM had no class for `Llama4ForCausalLM`, the text model alone (vllm-project/vllm#16798)",
            Some("quantize the whole model (`Llama4ForConditionalGeneration`)".to_owned()),
        );
    }
    if multi && scheme.group_size().is_some() && vllm {
        pen.risk(
            Severity::Low,
            "the scales of groups are split over tensor-parallel ranks, which vLLM got wrong once (vllm-project/vllm#41511)",
            Some("try the result on all ranks before it is used".to_owned()),
        );
    }
    if !known && !scheme.needs.is_empty() {
        let units: Vec<String> =
            scheme.needs.iter().map(|need| format!("`{}`", need.any_of.join("` or `"))).collect();
        pen.risk(
            Severity::Low,
            format!(
                "`{}` needs units for {}, and nothing says which devices will run it",
                scheme.id,
                units.join(" and ")
            ),
            Some("name the devices in `hardware`".to_owned()),
        );
    }
}
