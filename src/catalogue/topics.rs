//! Questions that people ask before they know a name, with the entries that answer them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{Backend, DecisionId, ReleaseId},
};

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Name.
    pub id: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The answer in one line.
    pub summary: String,
    /// The half of Quark that it is about; `None` when it is both.
    #[serde(default)]
    pub backend: Option<Backend>,
    /// Phrases with which people ask it, as `rules::phrase` reads them.
    pub asked: Vec<String>,
    /// The answer by case.
    pub cases: Vec<Case>,
    /// Decisions of a plan that it is about.
    pub decisions: Vec<DecisionId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Always `None`.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Topic);

/// What to take in one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The case.
    pub when: String,
    /// Names of the catalogue, the first choice first.
    pub take: Vec<String>,
    /// Why, or what to know; empty when there is nothing to say.
    #[serde(default)]
    pub because: String,
}
