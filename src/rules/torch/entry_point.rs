//! # What it does
//!
//! Names the program that can carry the plan out: quark-cli, unless something needs a flag that only
//! `quantize_quark.py` of the examples has.
//!
//! # Why
//!
//! The two programs differ: `--min_kv_scale`, the KV cache after RoPE, GGUF, AutoAWQ's layout, file-to-file and
//! several GPUs with an algorithm exist in one of them only, and the other stops at an unknown flag.
//!
//! # Example
//!
//! The plan exports GGUF, so `quantize_quark.py`.
//!
//! # Sources
//!
//! - 0.13, `quark/cli/torch_llm_ptq.py`; `examples/torch/language_modeling/llm_ptq/quantize_quark.py`

use serde_json::json;

use crate::{
    rules::{
        Context, Stage,
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

/// Names the program.
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
    let chosen = sheet.by(ID).settle_or(ctx, "entry_point", default, |asked| {
        if *asked == json!(CLI) && !needs.is_empty() {
            Check::Impossible(format!("it has no flag for {needs}"))
        } else {
            Check::Fine
        }
    });
    if chosen == json!(SCRIPT) {
        sheet.by(ID).risk(
            Severity::Low,
            "`quantize_quark.py` is no part of the package: it needs a checkout of the Quark repository at the same release",
            None,
        );
    }
}
