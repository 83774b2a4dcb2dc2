//! `explain`: what the catalogue and the rules say about a name, or about two beside each other.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::Source,
    planner::{Planner, error::Error},
    vocab::SessionId,
};

/// Arguments of `explain`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// A preset, calibration method, algorithm, extra option, target, device, release, rule, decision or skill; or free words.
    pub id: String,
    /// Another one of the same kind to compare with.
    #[serde(default)]
    pub compare_with: Option<String>,
    /// A model to say what the names mean for.
    #[serde(default)]
    pub model_path: Option<PathBuf>,
    /// A session to say what the names mean for.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// The answer of `explain`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The name as it is spelled.
    pub id: String,
    /// What it is, for example `preset`.
    pub kind: String,
    /// What there is to say, in Markdown. Show it to the user.
    pub markdown: String,
    /// The facts as data.
    pub facts: Value,
    /// Where they come from.
    pub sources: Vec<Source>,
    /// Other names that belong to it.
    pub related: Vec<String>,
}

impl Planner {
    /// Explains a name.
    ///
    /// # Errors
    ///
    /// When there is nothing of that name, with names near it.
    pub fn explain(&self, arguments: &Arguments) -> Result<Reply, Error> {
        Err(Error::UnknownName { name: arguments.id.clone(), near: Vec::new() })
    }
}
