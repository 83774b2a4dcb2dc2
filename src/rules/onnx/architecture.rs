//! # What it does
//!
//! Settles what kind of network the model is: your answer, else the guess of the analysis. When nobody knows,
//! it asks, with the most frequent operators.
//!
//! # Why
//!
//! Presets are tuned for one kind: CLE and the `*_CNN_*` presets for convolutions, the `*_TRANSFORMER_*` ones
//! for MatMul and Gemm. A wrong guess costs accuracy silently.
//!
//! # Example
//!
//! The graph has 12 `Mul`, 9 `Gather` and 4 `Einsum` and the analysis calls it unknown, so the question
//! `architecture` is asked with those counts.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Recovery"

use serde_json::Value;

use crate::{
    plan::Choice,
    rules::{Context, Stage, sheet::Sheet},
    vocab::Architecture,
};

/// The reason code.
pub const ID: &str = "architecture";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

/// Settles the architecture, or asks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let guess = ctx.onnx().architecture_guess.unwrap_or(Architecture::Unknown);
    let answer = ctx.answer("architecture").map(|name| Value::String(name.to_owned()));
    let answer = answer.and_then(|name| serde_json::from_value(name).ok());
    sheet.architecture = answer.unwrap_or(guess);
    if sheet.architecture != Architecture::Unknown {
        return;
    }
    let mut counts: Vec<(&String, &u64)> =
        ctx.targets().op_counts.iter().filter(|(op, _)| *op != "Constant").collect();
    counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let shown: Vec<String> =
        counts.iter().take(8).map(|(op, count)| format!("{count} {op}")).collect();
    let text = format!(
        "Which kind of network is it? The graph does not say; its operators are {}.",
        shown.join(", ")
    );
    let choice = |value: &str, meaning: &str| Choice {
        value: value.to_owned(),
        meaning: meaning.to_owned(),
    };
    let options = vec![
        choice("cnn", "convolutions carry the work"),
        choice("transformer", "attention (MatMul, Softmax) carries the work"),
        choice("hybrid", "both do"),
    ];
    // A preset that was asked for does not need the answer; the plan only becomes better by it.
    if ctx.requested("preset").is_some() {
        sheet.by(ID).wonder("architecture", text, options);
    } else {
        sheet.by(ID).ask("architecture", text, options);
    }
}
