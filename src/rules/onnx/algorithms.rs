//! # What it does
//!
//! Settles which algorithms run, in their order: those of the preset, or yours. `include_cle` and
//! `include_fast_ft` follow.
//!
//! # Why
//!
//! The library accepts combinations that fail or do nothing: BiasCorrection raises KeyError with the extended
//! Q/DQ format, AdaRound does nothing to block formats, of AdaRound and AdaQuant only the first runs, and CLE is
//! on in every named config, bfloat16 and transformers included, so the plan says it explicitly.
//!
//! # Example
//!
//! BiasCorrection was asked for with `A8W8`, which writes `ExtendedQuantFormat.QDQ`, and fails there with
//! KeyError, so `[CLE]` is what is left.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantization/config/algorithm.py`, `legacy.py` (measured matrix of algorithms and formats)
//! - 0.13, `quark/onnx/algorithm/finetuning/train_torch/train_model.py:334`
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`

use serde_json::{Value, json};

use crate::{
    catalogue::{
        algorithms::{Algorithm, AlgorithmKind, TimeClass},
        presets::{ElementType, Preset},
    },
    estimate,
    plan::Alternative,
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list},
    },
    vocab::{Architecture, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "algorithms";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "algorithms";
const CLE_ROW: &str = "onnx_specific.include_cle";

/// Settles the algorithms.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(preset) = sheet.preset.clone() else {
        let mut pen = sheet.by(ID);
        pen.leave_open(ROW, "they follow from the preset, which is open");
        pen.leave_open(CLE_ROW, "it follows from the algorithms, which are open");
        return;
    };
    let (default, reason) = default(ctx, sheet, &preset);
    let wanted = wanted(ctx, &default);
    let taken = match &wanted {
        None => {
            sheet.by(ID).decide(ROW, names(&default), Origin::Rule, reason);
            default
        }
        Some(wanted) => {
            let judged = judge(ctx, sheet, &preset, wanted);
            let value = names(wanted);
            let mut asked = Asked::by_user(&value);
            if ctx.requested(ROW).is_none() {
                asked.said =
                    "you set `include_cle`, and the rest is what the preset brings".to_owned();
            }
            let left = Fallback::Value(
                names(&judged.left),
                Origin::User,
                "it is what can be kept of what you asked for".to_owned(),
            );
            let stands = sheet.by(ID).settle(ctx, ROW, &asked, judged.check, left);
            if stands == Some(value) { wanted.clone() } else { judged.left }
        }
    };
    let fast = taken.iter().any(|algorithm| algorithm.fast_finetune);
    let times: Vec<String> = taken
        .iter()
        .filter(|algorithm| algorithm.time != TimeClass::Seconds)
        .map(|algorithm| format!("{} takes {}", algorithm.id, time(algorithm.time)))
        .collect();
    if let Some(decision) = sheet.decision_mut(ROW) {
        if !times.is_empty() {
            decision.reason.push_str(&format!("; {}", times.join(", ")));
        }
        decision.also.insert("onnx_specific.include_fast_ft".to_owned(), json!(fast));
        decision.alternatives.extend(next(&preset, &taken));
    }
    let cle = taken.iter().any(|algorithm| algorithm.id == *"CLE");
    sheet.algorithms = taken;
    include_cle(ctx, sheet, cle);
    advise(ctx, sheet, &preset);
}

fn include_cle(ctx: &Context<'_>, sheet: &mut Sheet, cle: bool) {
    let reason = if cle {
        "`CLE` is among the algorithms"
    } else {
        "`CLE` is not among the algorithms, and Quark runs it unless it is told not to"
    };
    let origin = if ctx.requested(CLE_ROW).is_some() { Origin::User } else { Origin::Rule };
    sheet.by(ID).decide(CLE_ROW, cle, origin, reason);
}

fn names(algorithms: &[&Algorithm]) -> Value {
    json!(algorithms.iter().map(|algorithm| &algorithm.id).collect::<Vec<_>>())
}

/// A time class in the words of a reason.
fn time(class: TimeClass) -> &'static str {
    match class {
        TimeClass::Seconds => "seconds",
        TimeClass::Minutes => "minutes",
        TimeClass::Hours => "up to hours",
    }
}

/// The preset's own algorithms; CLE only where it has something to do.
fn default(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset) -> (Vec<&'static Algorithm>, String) {
    let own = preset.algorithms.iter().filter_map(|id| ctx.catalogue.algorithms().get(id.as_str()));
    let cle = cle_helps(ctx, sheet, preset);
    let taken = ordered(own.filter(|algorithm| algorithm.id != *"CLE" || cle).collect());
    let brings = preset.algorithms.iter().any(|id| *id == "CLE");
    let reason = match (taken.is_empty(), brings && !cle) {
        (false, false) => format!("they are what `{}` brings", preset.id),
        (false, true) => {
            format!("`{}` brings them; CLE is left out, since {}", preset.id, no_cle(sheet, preset))
        }
        (true, true) => format!(
            "`{}` brings only CLE, which is left out, since {}",
            preset.id,
            no_cle(sheet, preset)
        ),
        (true, false) => format!("`{}` brings none", preset.id),
    };
    (taken, reason)
}

fn is_integer(element: ElementType) -> bool {
    use ElementType::{QInt8, QInt16, QUInt8, QUInt16};
    matches!(element, QInt8 | QUInt8 | QInt16 | QUInt16)
}

fn cle_helps(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset) -> bool {
    let convolutional = matches!(sheet.architecture, Architecture::Cnn | Architecture::Hybrid)
        || (sheet.architecture == Architecture::Unknown && ctx.count("Conv") > 1);
    convolutional && ctx.count("Conv") > 1 && is_integer(preset.weight.r#type) && !preset.dynamic
}

fn no_cle(sheet: &Sheet, preset: &Preset) -> String {
    if is_integer(preset.weight.r#type) && !preset.dynamic {
        format!(
            "it balances consecutive convolutions and the model is {}",
            sheet.architecture.with_article()
        )
    } else {
        "it helps integer weights with static ranges only".to_owned()
    }
}

/// What the user asked for: the list, changed by a requested `include_cle`; `None` when neither was.
fn wanted(ctx: &Context<'_>, default: &[&'static Algorithm]) -> Option<Vec<&'static Algorithm>> {
    let asked = ctx.requested(ROW).and_then(Value::as_array);
    let cle = ctx.requested(CLE_ROW).and_then(Value::as_bool);
    if asked.is_none() && cle.is_none() {
        return None;
    }
    let find = |name: &Value| ctx.catalogue.algorithms().get(name.as_str()?);
    let mut wanted: Vec<&Algorithm> = match asked {
        Some(names) => names.iter().filter_map(find).collect(),
        None => default.to_vec(),
    };
    if let Some(on) = cle {
        wanted.retain(|algorithm| algorithm.id != *"CLE");
        wanted.extend(ctx.catalogue.algorithms().get("CLE").filter(|_| on));
    }
    Some(ordered(wanted))
}

/// Pre before post, AdaRound before AdaQuant; the order of the catalogue otherwise does not matter to Quark.
fn ordered(mut algorithms: Vec<&'static Algorithm>) -> Vec<&'static Algorithm> {
    algorithms.sort_by_key(|algorithm| {
        (algorithm.kind != AlgorithmKind::Pre, algorithm.fast_finetune, algorithm.id == *"AdaQuant")
    });
    algorithms
}

struct Judged {
    check: Check,
    left: Vec<&'static Algorithm>,
}

/// What speaks against a list, and what of it can be kept.
fn judge(
    ctx: &Context<'_>,
    sheet: &Sheet,
    preset: &Preset,
    wanted: &[&'static Algorithm],
) -> Judged {
    let insists = ctx.insists(ROW);
    let mut impossible = Vec::new();
    let mut unwise = Vec::new();
    let mut risky: Vec<(Severity, String)> = Vec::new();
    let mut left: Vec<&Algorithm> = Vec::new();
    let mut tuned = false;
    for algorithm in wanted.iter().copied() {
        let mut check = one(ctx, sheet, preset, algorithm);
        if algorithm.fast_finetune && std::mem::replace(&mut tuned, true) {
            check = Check::Unwise(format!(
                "of AdaRound and AdaQuant Quark runs only the first, so {} would be dropped",
                algorithm.id
            ));
        }
        match check {
            Check::Fine => left.push(algorithm),
            Check::Risky(severity, why) => {
                risky.push((severity, why));
                left.push(algorithm);
            }
            Check::Unwise(why) => {
                unwise.push(why);
                if insists {
                    left.push(algorithm);
                } else if algorithm.fast_finetune
                    && !algorithm.not_with_weights.is_empty()
                    && wanted.iter().filter(|a| a.fast_finetune).count() == 1
                {
                    // What AdaRound cannot do for these weights, AdaQuant can.
                    left.extend(ctx.catalogue.algorithms().get("AdaQuant"));
                }
            }
            Check::Impossible(why) => impossible.push(why),
        }
    }
    if wanted.len() > 2 {
        risky.push((Severity::Medium, format!("{} algorithms are more than the two that are usual, and each can undo what another gained", wanted.len())));
    }
    let dropped: Vec<&str> = preset
        .algorithms
        .iter()
        .map(|id| id.as_str())
        .filter(|id| *id != "CLE" && !wanted.iter().any(|algorithm| algorithm.id == **id))
        .collect();
    if !dropped.is_empty() {
        risky.push((
            Severity::Low,
            format!("`{}` brings {}, which your list switches off", preset.id, list(dropped, 3)),
        ));
    }
    let check = if !impossible.is_empty() {
        impossible.extend(unwise.into_iter().filter(|_| !insists));
        Check::Impossible(impossible.join("; "))
    } else if !unwise.is_empty() {
        Check::Unwise(unwise.join("; "))
    } else if let Some(worst) = risky.iter().map(|(severity, _)| *severity).max() {
        Check::Risky(worst, risky.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; "))
    } else {
        Check::Fine
    };
    Judged { check, left }
}

/// What speaks against one algorithm.
fn one(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset, algorithm: &Algorithm) -> Check {
    let name = &algorithm.id;
    if preset.dynamic && algorithm.needs_data {
        return Check::Impossible(format!(
            "{name} reads calibration data, and `{}` uses none",
            preset.id
        ));
    }
    if !algorithm.formats.is_empty() && !algorithm.formats.contains(&preset.format) {
        let how = algorithm.otherwise.as_deref().unwrap_or("it fails");
        return Check::Impossible(format!(
            "`{}` writes the extended Q/DQ format, with which {name} fails ({how})",
            preset.id
        ));
    }
    if algorithm.formats.len() == 1 && preset.npu_transformer && ctx.count("Conv") > 0 {
        return Check::Impossible(format!(
            "{name} fails with `{}` on models with convolutions (KeyError)",
            preset.id
        ));
    }
    if algorithm.not_with_weights.contains(&preset.weight.r#type) {
        return Check::Unwise(format!(
            "{name} does nothing to the weights of `{}`: every layer is skipped and the run still ends well; AdaQuant works there",
            preset.id
        ));
    }
    let options = ctx.requested("onnx_specific.extra_options");
    let option = |key: &str| options.and_then(|options| options.get(key));
    match name.as_str() {
        "AutoMixprecision" if !preset.algorithms.contains(name) => {
            let key = if sheet.release.id == *"0.13" {
                "TargetLayerConfig"
            } else {
                "ActTargetQuantType"
            };
            let given = option("AutoMixprecision")
                .is_some_and(|block| block.get("TargetLayerConfig").is_some());
            if !given {
                return Check::Unwise(format!(
                    "AutoMixprecision needs {key}, which `{}` does not bring; presets with MIXED in their name do",
                    preset.id
                ));
            }
        }
        "Quarot" if option("RConfigPath").is_none() && ctx.answer("rotation_config").is_none() => {
            return Check::Risky(
                Severity::High,
                "Quarot fails without a rotation config (`RConfigPath`)".to_owned(),
            );
        }
        "GPTQ" => {
            let none = ctx.graph.is_some_and(|graph| estimate::constant_matmul_bytes(graph) == 0)
                || ctx.count("MatMul") == 0;
            return if none {
                Check::Unwise(
                    "GPTQ works on MatMul with constant weights, and the graph has none".to_owned(),
                )
            } else {
                Check::Risky(Severity::Medium, "Quark's GPTQ ignores bits and group size (always eight bits, no groups) and sees the first calibration batch only; four-bit weights are `MATMUL_NBITS`".to_owned())
            };
        }
        _ => {}
    }
    let fits = algorithm.architectures.is_empty()
        || sheet.architecture == Architecture::Unknown
        || algorithm.architectures.contains(&sheet.architecture);
    if !fits {
        return Check::Risky(
            Severity::Medium,
            format!(
                "{name} is not made for {} and does little there; the usual recipe is without it",
                sheet.architecture.with_article()
            ),
        );
    }
    let acts =
        algorithm.op_types.is_empty() || algorithm.op_types.iter().any(|op| ctx.count(op) > 0);
    if !acts {
        return Check::Risky(
            Severity::Low,
            format!("{name} acts on {}, and the graph has none", list(&algorithm.op_types, 4)),
        );
    }
    Check::Fine
}

/// The next step when accuracy falls short.
fn next(preset: &Preset, taken: &[&Algorithm]) -> Option<Alternative> {
    let runs = |id: &str| taken.iter().any(|algorithm| algorithm.id == *id);
    let next = match () {
        () if preset.dynamic
            || preset.family == crate::catalogue::presets::PresetFamily::WeightOnly =>
        {
            return None;
        }
        () if runs("AdaRound") => "AdaQuant",
        () if runs("AdaQuant") => return None,
        () if is_integer(preset.weight.r#type) => "AdaRound",
        () => "AdaQuant",
    };
    let mut value: Vec<&str> =
        taken.iter().filter(|a| !a.fast_finetune).map(|a| a.id.as_str()).collect();
    value.push(next);
    Some(Alternative {
        value: json!(value),
        why_not: format!("{next} is the next step when accuracy falls short; it takes up to hours"),
    })
}

/// Questions, options and risks that follow from what runs.
fn advise(ctx: &Context<'_>, sheet: &mut Sheet, preset: &Preset) {
    if sheet.runs("SmoothQuant") {
        let why = "it is the middle, to start from: higher moves more of the difficulty from activations into weights";
        sheet.by(ID).option("SmoothAlpha", 0.5, why);
    }
    if sheet.runs("BiasCorrection") {
        sheet.by(ID).option("BiasCorrection", true, "BiasCorrection is among the algorithms");
    }
    if sheet.runs("GPTQ") {
        sheet.by(ID).option("UseGPTQ", true, "GPTQ is among the algorithms");
    }
    if sheet.runs("Quarot") {
        match ctx.answer("rotation_config") {
            Some(path) => sheet.by(ID).option("RConfigPath", path, "you named the rotation config"),
            None if sheet.option_given(ctx, "RConfigPath").is_none() => {
                sheet.by(ID).ask(
                    "rotation_config",
                    "Quarot needs a rotation config. Which file is it?",
                    Vec::new(),
                );
            }
            None => {}
        }
    }
    let tunes = |id: &str| sheet.algorithms.iter().any(|algorithm| algorithm.id == *id);
    if preset.weight.r#type.is_block()
        && preset.activation.r#type.is_block()
        && !tunes("AutoMixprecision")
        && preset.weight.bits < 9.0
    {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("`{}` puts every layer into one block format, and nothing has shown which layers bear it", preset.id),
            Some("measure the layers with AutoMixprecision, or compare accuracy before it is used".to_owned()),
        );
    }
    let variant =
        format!("{}_{}", preset.id, if sheet.runs("AdaRound") { "ADAROUND" } else { "ADAQUANT" });
    let fast = sheet.algorithms.iter().any(|algorithm| algorithm.fast_finetune);
    let own = preset.algorithms.iter().any(|id| *id == "AdaRound" || *id == "AdaQuant");
    if fast
        && !own
        && ctx.catalogue.presets().get(&variant).is_some()
        && let Some(decision) = sheet.decision_mut("preset")
        && !decision.alternatives.iter().any(|other| other.value == json!(variant))
    {
        decision.alternatives.push(Alternative {
                value: json!(variant),
                why_not: format!("the same as `{}` with the fine-tuning that you add; the plan spells its parameters out", preset.id),
            });
    }
}
