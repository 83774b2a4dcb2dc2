//! # What it does
//!
//! Carries the risks of the analysis over that are worth a row, unless a rule of its own judges them.
//!
//! # Why
//!
//! What the intake saw (a missing shard, a fallback) decides whether the plan can be carried out at all.
//!
//! # Example
//!
//! The index names a shard that is not there: the risk stands in the table with its hint.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/torch/quark-torch-model-intake/SKILL.md`

use crate::rules::{Context, Stage, sheet::Sheet};

/// The reason code.
pub const ID: &str = "intake-risks";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Words of topics that rules of their own judge.
const JUDGED_ELSEWHERE: [&str; 13] = [
    "no decoder",
    "quantized already",
    "already quantized",
    "Python code",
    "auto_map",
    "multi-token",
    "template",
    "xperts",
    "tied",
    "very large",
    "not counted",
    "multimodal",
    "transformers",
];

/// Carries them over.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    sheet.by(ID).carry_over(&ctx.analysis.risks, &JUDGED_ELSEWHERE);
}
