//! Named configs of Quark-ONNX (`DefaultConfigMapping`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    catalogue::{Source, entry},
    vocab::{AlgorithmId, MethodId, PresetId, ReleaseId},
};

/// A named config: the legacy `QuantizationConfig` that `get_default_config(name)` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Name in `DefaultConfigMapping`.
    pub id: PresetId,
    /// Other names that people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// What kind of recipe it is.
    pub family: PresetFamily,
    /// How activations are quantized.
    pub activation: TensorSpec,
    /// How weights are quantized.
    pub weight: TensorSpec,
    /// Whether the file keeps its weights in float and its nodes round them when it runs, so that it is no
    /// smaller than the model it came from.
    pub weights_in_float: bool,
    /// Whether weights have a scale for each channel.
    pub per_channel: bool,
    /// Whether only seven bits are used.
    pub reduce_range: bool,
    /// Its own calibration method.
    pub calibration: MethodId,
    /// How quantization is written into the graph.
    pub format: QuantFormat,
    /// Whether it sets `enable_npu_cnn`.
    pub npu_cnn: bool,
    /// Whether it sets `enable_npu_transformer`.
    pub npu_transformer: bool,
    /// Whether activations are quantized at run time, so that no calibration data is needed.
    pub dynamic: bool,
    /// Whether the values of the calibration data have any influence on the result.
    pub uses_calibration_data: bool,
    /// Algorithms that it switches on.
    pub algorithms: Vec<AlgorithmId>,
    /// Its own `extra_options` in the newest release.
    pub extra_options: Map<String, Value>,
    /// Custom ops, `domain::name`, that the consumer must load to run the result.
    pub custom_ops: Vec<String>,
    /// Domains of the Q/DQ nodes it writes.
    pub qdq_domains: Vec<String>,
    /// Column of the Ryzen AI op table that says which of its ops the NPU runs; `None` when there is none.
    #[serde(default)]
    pub npu_precision: Option<String>,
    /// First release that has it.
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// What differs between releases, and other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Preset);

/// What kind of recipe a preset is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PresetFamily {
    /// Power-of-two INT8 for the NPU's CNN flow (`XINT8*`).
    NpuCnn,
    /// Power-of-two INT8 for VAIML (`VINT8`).
    Vaiml,
    /// Integer activations and weights, for any architecture (`A8W8`, `S8S8_AAWS`, …).
    Integer,
    /// Integer, tuned for CNNs (`INT8_CNN_*`, `INT16_CNN_*`).
    IntegerCnn,
    /// Integer, tuned for transformers (`INT8_TRANSFORMER_*`, `INT16_TRANSFORMER_*`).
    IntegerTransformer,
    /// Sixteen-bit floats (`FP16*`, `BF16*`).
    Float,
    /// Block formats (`BFP16*`, `MX*`).
    Block,
    /// Two formats in one model (`*_MIXED_*`, `BF16_BFP16`, …).
    Mixed,
    /// Activations quantized at run time.
    Dynamic,
    /// Four-bit weights only (`MATMUL_NBITS`).
    WeightOnly,
}

/// How a tensor is quantized.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Element type.
    pub r#type: ElementType,
    /// Whether zero stays zero without a zero point.
    pub symmetric: bool,
    /// Bits of one element in the format itself, with its share of the scale of its block or group; a scale
    /// for a tensor or a channel is not counted.
    pub bits: f64,
}

/// Element types of Quark-ONNX (`QuantType` and `ExtendedQuantType`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ElementType {
    /// Signed 4-bit integer (weights of `MATMUL_NBITS`).
    QInt4,
    /// Signed 8-bit integer.
    QInt8,
    /// Unsigned 8-bit integer.
    QUInt8,
    /// Signed 16-bit integer.
    QInt16,
    /// Unsigned 16-bit integer.
    QUInt16,
    /// Signed 32-bit integer (custom configs only).
    QInt32,
    /// Unsigned 32-bit integer (custom configs only).
    QUInt32,
    /// IEEE half.
    QFloat16,
    /// Bfloat16.
    QBFloat16,
    /// Block floating point (`BFP16`, `MX4`, `MX6`, `MX9`).
    QBFP,
    /// OCP microscaling (`MXFP*`, `MXINT8`).
    QMX,
    /// Left in float.
    Float,
}

impl ElementType {
    /// Whether elements of a block share a scale.
    pub fn is_block(self) -> bool {
        matches!(self, Self::QBFP | Self::QMX)
    }

    /// Whether it is an integer with 16 bits.
    pub fn is_int16(self) -> bool {
        matches!(self, Self::QInt16 | Self::QUInt16)
    }
}

/// How quantization is written into the graph.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum QuantFormat {
    /// `QuantizeLinear` and `DequantizeLinear` of ONNX.
    #[serde(rename = "QuantFormat.QDQ")]
    Qdq,
    /// Q/DQ of `com.microsoft` or `com.amd.quark`.
    #[serde(rename = "ExtendedQuantFormat.QDQ")]
    ExtendedQdq,
}
