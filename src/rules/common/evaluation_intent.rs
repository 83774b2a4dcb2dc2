//! # What it does
//!
//! Says how the result is to be evaluated: as you ask, else `smoke`.
//!
//! # Why
//!
//! That a model loads and runs is the least that shows whether a plan worked; anything more needs a data set.
//! The programs for Torch plans measure the perplexity after the export unless they are told not to.
//!
//! # Example
//!
//! Nothing was said, so `smoke`: the quantized model is loaded and run once.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Decision Table"
//! - 0.13, `quant_plan.schema.json` of the wheel: `none`, `smoke`, `full`

use serde_json::json;

use crate::{
    rules::{
        Context, Stage,
        common::goal,
        sheet::{Check, Sheet},
    },
    vocab::{Backend, EvaluationIntent, Origin},
};

/// The reason code.
pub const ID: &str = "evaluation-intent";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Writes the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    const ROW: &str = "evaluation_intent";
    let goal = goal::read(ctx);
    let default = if let Some(wanted) = ctx.intent.evaluation_intent {
        (json!(wanted), Origin::User, "you asked for it".to_owned())
    } else if goal.says(&["mlperf"]) {
        (
            json!(EvaluationIntent::Mlperf),
            Origin::User,
            "the goal names MLPerf, so `mlperf`".to_owned(),
        )
    } else if goal.says(&["map"]) {
        (json!(EvaluationIntent::Map), Origin::User, "the goal names mAP, so `mAP`".to_owned())
    } else {
        let what = match ctx.backend() {
            Backend::Onnx => "the result is loaded and run once",
            Backend::Torch if sheet.torch.strategy == "file_to_file" => {
                "file-to-file quantization evaluates nothing, so the result is loaded and run once"
            }
            Backend::Torch => "the perplexity on wikitext, which the program measures at its end",
        };
        let reason = format!("nothing else was asked for, so `smoke`: {what}");
        (json!(EvaluationIntent::Smoke), Origin::Default, reason)
    };
    sheet.by(ID).settle_or(ctx, ROW, default, |_| Check::Fine);
}
