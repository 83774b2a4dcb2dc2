//! Keys of Quark-ONNX's `extra_options`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{Source, entry},
    vocab::{OptionId, ReleaseId},
};

/// A key of `extra_options`, or of a block inside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtraOption {
    /// The key.
    pub id: OptionId,
    /// Other names that people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// Blocks that it stands in (`FastFinetune`, `MatMulNBitsParams`, …); empty for the top level.
    #[serde(default)]
    pub parents: Vec<OptionId>,
    /// What values it takes.
    pub r#type: OptionType,
    /// Value when it is not set; `null` when that is not known or there is none.
    #[serde(default)]
    pub default: Value,
    /// Values that are allowed; empty when any of the type are.
    #[serde(default)]
    pub choices: Vec<Value>,
    /// Least number.
    #[serde(default)]
    pub min: Option<f64>,
    /// Greatest number.
    #[serde(default)]
    pub max: Option<f64>,
    /// Heading in Quark's own table.
    #[serde(default)]
    pub category: Option<String>,
    /// Whether `QConfig` warns about it although it works.
    #[serde(default)]
    pub warns_in_qconfig: bool,
    /// First release that has it.
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(ExtraOption);

/// What values an option takes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum OptionType {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Text.
    Text,
    /// A list of texts.
    TextList,
    /// A list of numbers.
    NumberList,
    /// A list of anything.
    List,
    /// An object.
    Object,
    /// Something that only Python can express (a callable, an enum, a data reader).
    Python,
    /// Not known.
    Any,
}
