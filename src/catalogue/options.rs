//! Keys of Quark-ONNX's `extra_options`.

use std::collections::BTreeMap;

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
    /// Whether it stands at the top level too, although it has parents.
    #[serde(default)]
    pub also_top_level: bool,
    /// What values it takes.
    pub r#type: OptionType,
    /// The field of the legacy `QuantizationConfig` that it stands for. The legacy interface reads such a
    /// key from that field only and ignores it in `extra_options` (`quark/onnx/quantization/api.py`, 0.13).
    #[serde(default)]
    pub legacy_field: Option<String>,
    /// Value when it is not set; `null` when that is not known, depends on something else (the summary says
    /// on what) or there is none.
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
    /// What is otherwise inside one of the parents.
    #[serde(default)]
    pub within: BTreeMap<OptionId, Within>,
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

impl ExtraOption {
    /// Whether it may stand in `extra_options` itself.
    pub fn is_top_level(&self) -> bool {
        self.parents.is_empty() || self.also_top_level
    }

    /// Value when it is not set in that block; `None` for the top level.
    pub fn default_in(&self, block: Option<&OptionId>) -> &Value {
        block
            .and_then(|block| self.within.get(block))
            .and_then(|within| within.default.as_ref())
            .unwrap_or(&self.default)
    }

    /// Values that are allowed in that block, empty when any of the type are; `None` for the top level.
    pub fn choices_in(&self, block: Option<&OptionId>) -> &[Value] {
        block
            .and_then(|block| self.within.get(block))
            .and_then(|within| within.choices.as_deref())
            .unwrap_or(&self.choices)
    }
}

/// How an option differs inside one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// Value when it is not set there; absent when as elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Values that are allowed there; absent when as elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<Value>>,
}

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
