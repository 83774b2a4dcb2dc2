//! What an exported checkpoint holds for a quantized linear layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tensors that a real-quantized export in Quark's own layout writes for one linear layer. Its bias,
/// and every layer that is excluded, stay in the type of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Elements of a row that share a scale; `None` when there are no groups.
    #[serde(default)]
    pub group: Option<u64>,
    /// The tensors.
    pub tensors: Vec<StoredTensor>,
}

/// One tensor of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredTensor {
    /// Last part of its name, for example `weight_scale`.
    pub name: String,
    /// Type in the safetensors header.
    pub dtype: StoredType,
    /// What has a value in it.
    pub holds: Holds,
    /// How values are packed into words of the type; `None` when each value is one.
    #[serde(default)]
    pub packed: Option<Packed>,
}

/// Type in the safetensors header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum StoredType {
    /// The type of the float model.
    #[serde(rename = "model")]
    Model,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
    /// Signed four-byte integer.
    I32,
    /// Four-byte float.
    F32,
    /// FP8, e4m3.
    #[serde(rename = "F8_E4M3")]
    F8E4M3,
}

/// What has a value in a tensor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Each element of the weight.
    Element,
    /// Each group of a row.
    Group,
    /// Each row: an output of the layer.
    Row,
    /// The whole layer.
    Layer,
}

/// How values are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// So many values …
    pub values: u64,
    /// … take so many words.
    pub words: u64,
    /// Along which dimension of the weight; its length is rounded up to whole words.
    pub along: Along,
}

/// A dimension of a weight.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Along {
    /// Outputs of the layer: rows.
    Output,
    /// Inputs of the layer: columns.
    Input,
}

impl Storage {
    /// Bytes of a layer with a weight of `outputs` by `inputs`, its bias not counted, in a model whose
    /// own type has `model_bytes` an element; saturates.
    pub fn bytes(&self, outputs: u64, inputs: u64, model_bytes: u64) -> u64 {
        self.tensors
            .iter()
            .map(|tensor| tensor.bytes(outputs, inputs, self.group, model_bytes))
            .fold(0, u64::saturating_add)
    }
}

impl StoredTensor {
    /// Its bytes for a weight of `outputs` by `inputs` with scales for `group` elements.
    pub fn bytes(&self, outputs: u64, inputs: u64, group: Option<u64>, model_bytes: u64) -> u64 {
        let (rows, columns) = match self.holds {
            Holds::Element => (outputs, inputs),
            Holds::Group => (outputs, group.map_or(1, |group| inputs.div_ceil(group.max(1)))),
            Holds::Row => (outputs, 1),
            Holds::Layer => (1, 1),
        };
        let words = |values: u64| {
            self.packed.map_or(values, |packed| {
                values.saturating_mul(packed.words).div_ceil(packed.values.max(1))
            })
        };
        let (rows, columns) = match self.packed.map(|packed| packed.along) {
            Some(Along::Output) => (words(rows), columns),
            Some(Along::Input) => (rows, words(columns)),
            None => (rows, columns),
        };
        rows.saturating_mul(columns).saturating_mul(self.dtype.bytes(model_bytes))
    }
}

impl StoredType {
    /// Bytes of a value, in a model whose own type has `model_bytes`.
    pub fn bytes(self, model_bytes: u64) -> u64 {
        match self {
            Self::Model => model_bytes,
            Self::I8 | Self::U8 | Self::F8E4M3 => 1,
            Self::I32 | Self::F32 => 4,
        }
    }
}
