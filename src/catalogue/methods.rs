//! Calibration methods of Quark-ONNX.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{Source, entry},
    vocab::{MethodId, OptionId, ReleaseId, ScaleKind},
};

/// A calibration method, by the name that plans use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Name in plans, for example `PowerOfTwo_MinMSE`.
    pub id: MethodId,
    /// Other names that people use, for example `MinMSE`.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// The identifier in the library, for example `PowerOfTwoMethod.MinMSE`.
    pub identifier: String,
    /// The same for the newer `QConfig` interface.
    pub qconfig: String,
    /// What scales it yields.
    pub scale: ScaleKind,
    /// Whether it keeps a histogram of every tensor: more memory, and fixed shapes needed.
    pub histogram: bool,
    /// Whether it is for weights only and not a method for activations.
    #[serde(default)]
    pub weights_only: bool,
    /// Extra options that it reads.
    pub params: Vec<MethodParam>,
    /// First release that has it.
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Method);

/// An extra option that a method reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodParam {
    /// Key in `extra_options`.
    pub option: OptionId,
    /// Value when it is not set.
    pub default: Value,
    /// Values that are allowed; empty when any are.
    #[serde(default)]
    pub choices: Vec<Value>,
    /// First release in which this method reads it.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Last release in which this method reads it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Anything else.
    #[serde(default)]
    pub note: Option<String>,
}
