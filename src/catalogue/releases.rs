//! Releases of amd-quark.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::ReleaseId,
};

/// A release of amd-quark and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Version.
    pub id: ReleaseId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// Python versions, as a range such as `>=3.11,<3.14`.
    pub python: String,
    /// `onnx` versions; `None` when the release does not say.
    #[serde(default)]
    pub onnx: Option<String>,
    /// ONNX Runtime versions; `None` when the release does not say.
    #[serde(default)]
    pub onnxruntime: Option<String>,
    /// transformers versions; `None` when the release does not say.
    #[serde(default)]
    pub transformers: Option<String>,
    /// The release itself.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Release);
