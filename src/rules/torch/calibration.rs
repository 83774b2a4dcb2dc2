//! # What it does
//!
//! Settles the data set, the number and length of samples and the batch: what you ask for, else `pileval`, 128
//! samples of 512 tokens, one at a time. AWQ gets the set that Quark's examples calibrate it with.
//!
//! # Why
//!
//! The defaults are the skill's; the release's own are 512 samples. A weight-only scheme uses no data, but both
//! programs load it all the same. In a mixture of experts each expert sees only its share of the tokens.
//!
//! # Example
//!
//! 128 samples of 512 tokens over 384 experts of which 8 take a token: about 1365 tokens an expert.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/torch/quark-torch-quant-plan/SKILL.md`, "Recovery"
//! - 0.13, `quark/torch/utils/llm/data_preparation.py:259-269`; `quark-cli torch-llm-ptq --help`

use serde_json::json;

use crate::{
    plan::Alternative,
    rules::{
        Context, Stage,
        request::layers,
        sheet::{Check, Sheet, list},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "calibration";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const SAMPLES: u64 = 128;
/// Tokens of a sample.
const LENGTH: u64 = 512;
/// Fewer tokens than this say little about the range of an expert's inputs.
const ENOUGH: u64 = 2048;

/// Settles the four rows.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let uses = uses_data(sheet);
    dataset(ctx, sheet, uses);
    let given = ctx.intent.calibration_data.as_ref().and_then(|data| data.samples);
    let default = match given {
        Some(samples) => (json!(samples), Origin::User, format!("you have {samples} samples")),
        None => (
            json!(SAMPLES),
            Origin::Default,
            format!(
                "{SAMPLES} samples are enough for most models; the release's own default is 512"
            ),
        ),
    };
    let samples =
        sheet.by(ID).settle_or(ctx, "calibration.num_calib_data", default, |_| Check::Fine);
    let length = sheet.by(ID).settle_or(
        ctx,
        "calibration.seq_len",
        match ctx.torch().max_position_embeddings {
            Some(most) if most < LENGTH => {
                (json!(most), Origin::Analysis, format!("the model reads {most} tokens at most"))
            }
            _ => (json!(LENGTH), Origin::Default, "the default of skill and release".to_owned()),
        },
        |asked| match (asked.as_u64(), ctx.torch().max_position_embeddings) {
            (Some(asked), Some(most)) if asked > most => {
                Check::Unwise(format!("the model reads {most} tokens at most"))
            }
            _ => Check::Fine,
        },
    );
    sheet.by(ID).settle_or(
        ctx,
        "calibration.batch_size",
        (json!(1), Origin::Default, "the default of the release: the least memory".to_owned()),
        |_| Check::Fine,
    );
    experts(
        ctx,
        sheet,
        uses,
        samples.as_u64().unwrap_or(SAMPLES),
        length.as_u64().unwrap_or(LENGTH),
    );
    if sheet.torch.kv_cache && samples.as_u64().is_some_and(|samples| samples < 32) {
        sheet.by(ID).risk(
            Severity::Medium,
            "few samples make poor scales for the KV cache",
            Some("take 128".to_owned()),
        );
    }
}

/// Whether the data have any influence on the result.
fn uses_data(sheet: &Sheet) -> bool {
    let torch = &sheet.torch;
    let schemes = torch.scheme.into_iter().chain(torch.overrides.iter().map(|(_, scheme)| *scheme));
    torch.kv_cache
        || torch.algorithms.iter().any(|one| one.needs_data)
        || schemes.into_iter().any(|scheme| scheme.needs_calibration_data)
}

fn dataset(ctx: &Context<'_>, sheet: &mut Sheet, uses: bool) {
    const ROW: &str = "calibration.dataset";
    let known = layers::datasets(ctx.catalogue);
    let data = ctx.intent.calibration_data.as_ref();
    let named = data.and_then(|data| data.dataset.as_deref().or(data.path.as_deref()));
    let found = named.and_then(|name| known.iter().find(|id| id.eq_ignore_ascii_case(name)));
    let default = if let Some(found) = found {
        (json!(found), Origin::User, "you named it".to_owned())
    } else if sheet.torch.runs("awq") && known.contains(&"pileval_for_awq_benchmark") {
        (
            json!("pileval_for_awq_benchmark"),
            Origin::Rule,
            "it is the set that Quark's examples calibrate AWQ with".to_owned(),
        )
    } else if uses {
        (
            json!("pileval"),
            Origin::Default,
            "it is the fastest to load and works for most models".to_owned(),
        )
    } else {
        (json!("pileval"), Origin::Default, "the scheme uses no data; the programs load a set all the same, and this is the fastest".to_owned())
    };
    let awq = default.0 == "pileval_for_awq_benchmark";
    sheet.by(ID).settle_or(ctx, ROW, default, |_| Check::Fine);
    if awq
        && let Some(decision) = sheet.decision_mut(ROW)
        && decision.origin == Origin::Rule
    {
        decision.alternatives.push(Alternative {
            value: json!("pileval"),
            why_not: "the usual set, text by text instead of in blocks".to_owned(),
        });
    }
    if let Some(name) = named.filter(|_| found.is_none()) {
        sheet.by(ID).risk(
            Severity::Medium,
            format!(
                "Quark-Torch's programs cannot load `{name}`: they take a few public sets only"
            ),
            Some(format!(
                "choose one of {}, or calibrate in a script of your own",
                list(&known, 9)
            )),
        );
    }
    if sheet.torch.strategy == "file_to_file"
        && let Some(decision) = sheet.decision_mut(ROW)
    {
        decision.reason.push_str("; file-to-file quantization reads none");
    }
}

/// Tokens that each expert sees.
fn experts(ctx: &Context<'_>, sheet: &mut Sheet, uses: bool, samples: u64, length: u64) {
    let Some(facts) = ctx.torch().experts.as_ref().filter(|_| uses) else { return };
    let (Some(routed), Some(chosen)) = (facts.routed.filter(|n| *n > 1), facts.per_token) else {
        return;
    };
    let tokens = samples.saturating_mul(length);
    let each = tokens.saturating_mul(chosen) / routed;
    if each >= ENOUGH {
        return;
    }
    let better = ENOUGH.saturating_mul(routed).div_ceil(chosen.max(1)).div_ceil(length.max(1));
    let mut pen = sheet.by(ID);
    pen.risk(
        Severity::Medium,
        format!("of {tokens} calibration tokens each of {routed} experts sees about {each}, some far fewer"),
        Some(format!("set `calibration.num_calib_data` to {better} or more")),
    );
    if let Some(decision) = sheet.decision_mut("calibration.num_calib_data") {
        decision.alternatives.push(Alternative {
            value: json!(better),
            why_not: format!("{ENOUGH} tokens an expert, and more time"),
        });
    }
}
