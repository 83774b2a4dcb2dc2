//! # What it does
//!
//! Names the program that can carry the plan out: quark-cli, unless something needs a flag that only
//! `quantize_quark.py` of the examples has. Lists the arguments that carry the plan out; only `--model_dir` and
//! `--output_dir`, both absolute paths, are left to whoever runs it.
//!
//! # Why
//!
//! The two programs differ: `--min_kv_scale`, the KV cache after RoPE, GGUF, AutoAWQ's layout, file-to-file and
//! several GPUs with an algorithm exist in one of them only, and the other stops at an unknown flag. Some flags
//! say the opposite of a decision (`--no_trust_remote_code`), so nobody should have to translate by hand.
//!
//! # Example
//!
//! The plan exports GGUF, so `quantize_quark.py`.
//!
//! # Sources
//!
//! - 0.13, `quark/cli/torch_llm_ptq.py`; `examples/torch/language_modeling/llm_ptq/quantize_quark.py`

use serde_json::{Value, json};

use crate::{
    catalogue::{entry_points::EntryPoint, torch_algorithms::TorchAlgorithm},
    rules::{
        Context, Stage, rows,
        sheet::{Check, Sheet},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "entry-point";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const CLI: &str = "quark-cli torch-llm-ptq";
const SCRIPT: &str = "quantize_quark.py";
const ROW: &str = "entry_point";

/// Names the program and its arguments.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let needs = sheet.torch.needs_script.join(", ");
    let default = if needs.is_empty() {
        (json!(CLI), Origin::Default, "it is part of the package and can do all of this".to_owned())
    } else {
        (
            json!(SCRIPT),
            Origin::Rule,
            format!("only this script of Quark's examples has what the plan needs: {needs}"),
        )
    };
    let chosen = sheet.by(ID).settle_or(ctx, ROW, default, |asked| {
        if *asked == json!(CLI) && !needs.is_empty() {
            Check::Impossible(format!("it has no flag for {needs}"))
        } else {
            Check::Fine
        }
    });
    let Some(entry) = chosen.as_str().and_then(|id| ctx.catalogue.entry_points().get(id)) else {
        return;
    };
    if entry.id == *SCRIPT {
        sheet.by(ID).risk(
            Severity::Low,
            "`quantize_quark.py` is no part of the package: it needs a checkout of the Quark repository at the same release",
            None,
        );
    }
    without_flag(sheet, entry);
    let arguments = arguments(sheet, entry);
    if let Some(decision) = sheet.decision_mut(ROW) {
        decision.also.insert("arguments".to_owned(), json!(arguments));
    }
}

/// What the program cannot do although the plan says so.
fn without_flag(sheet: &mut Sheet, entry: &EntryPoint) {
    // Not every program has a flag for what is seldom asked.
    for row in rows::AT_NEED {
        if sheet.value(row).is_some() && entry.flag_for(row).is_none() {
            let text = format!("`{}` has no flag for `{row}`", entry.id);
            let hint = "do it in a script of your own, or withdraw what needs this program";
            sheet.by(ID).risk(Severity::High, text, Some(hint.to_owned()));
        }
    }
}

fn arguments(sheet: &Sheet, entry: &EntryPoint) -> Vec<String> {
    // The flag wants to know whose config the file is: that of the algorithm that has none built in.
    let built_in = |one: &&&TorchAlgorithm| {
        let family = sheet.torch.family;
        family.is_some_and(|family| one.has_config_for(&family.id, &sheet.release.id))
    };
    let algorithms = &sheet.torch.algorithms;
    let configured = algorithms.iter().find(|one| !built_in(one)).or(algorithms.first());
    let config = sheet
        .value("algorithm_config")
        .and_then(|path| Some(json!({ configured?.id.as_str(): path })));
    entry.arguments(|row: &str| -> Option<&Value> {
        if row == "algorithm_config" { config.as_ref() } else { sheet.value(row) }
    })
}
