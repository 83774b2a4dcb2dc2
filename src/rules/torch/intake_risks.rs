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

use crate::{
    rules::{Context, Stage, sheet::Sheet},
    vocab::Severity,
};

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
/// More of a message is not worth a row.
const LONGEST: usize = 300;

/// Carries them over.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let mut pen = sheet.by(ID);
    for risk in ctx.analysis.risks.iter().filter(|risk| risk.severity >= Severity::Medium) {
        if JUDGED_ELSEWHERE.iter().any(|topic| risk.message.contains(topic)) {
            continue;
        }
        let short =
            |text: &str| text.trim_end_matches('.').chars().take(LONGEST).collect::<String>();
        pen.risk(risk.severity, short(&risk.message), risk.recovery_hint.as_deref().map(short));
    }
}
