//! Which ONNX ops the Ryzen AI NPU runs at which precision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::ReleaseId,
};

/// An ONNX op type in the Ryzen AI op table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NpuOp {
    /// Op type.
    pub id: String,
    /// Other names in the table.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    #[serde(default)]
    pub summary: String,
    /// Columns in which the table has it, for example `XINT8`.
    pub precisions: Vec<String>,
    /// Always `None`: the table is Ryzen AI's, not Quark's.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(NpuOp);
