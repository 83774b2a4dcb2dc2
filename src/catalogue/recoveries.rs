//! Error texts that are known, with what leads to them and what to do.
//!
//! A text is taken in lower case, with every run of white space as one space and `\` as `/`. An entry
//! matches when all strings of one of its groups occur in it, at least one of them outside the frames of
//! a traceback: source lines say what was tried, messages what went wrong. Of several entries the one
//! with the longest match is meant; entries that the library only logs come after those that it raises.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{Backend, DecisionId, RecoveryId, ReleaseId, SkillId},
};

/// A known error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Name.
    pub id: RecoveryId,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What it means, in one line.
    pub summary: String,
    /// The half of Quark that it happens in; `None` when it is both.
    pub backend: Option<Backend>,
    /// Groups of strings in lower case.
    pub patterns: Vec<Vec<String>>,
    /// Whether the library goes on after it, so that it is the cause only when nothing else is found.
    #[serde(default)]
    pub logged: bool,
    /// What in a plan or on a machine leads to it.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
    /// The skill that goes on.
    pub skill: SkillId,
    /// Decisions of the plan to look at; empty when the plan is not to blame.
    #[serde(default)]
    pub decisions: Vec<DecisionId>,
    /// Such a text.
    pub example: String,
    /// First release that says it; `None` when it does not depend on one.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Last release that says it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Recovery);
