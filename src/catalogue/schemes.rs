//! Quantization schemes of Quark-Torch.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, devices::Device, entry, storage::Storage},
    vocab::{EngineId, ReleaseId, SchemeId},
};

/// A scheme, by the name that `LLMTemplate.get_config(scheme=…)` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Name in plans, for example `mxfp4`.
    pub id: SchemeId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// What kind of scheme it is.
    pub family: SchemeFamily,
    /// The scheme that this is a second name of.
    #[serde(default)]
    pub same_as: Option<SchemeId>,
    /// How weights are quantized.
    pub weight: TensorScheme,
    /// How the inputs of linear layers are quantized; `None` when they are not.
    #[serde(default)]
    pub activation: Option<TensorScheme>,
    /// Whether the values of the calibration data have any influence on the result without an algorithm;
    /// every entry point but file-to-file loads a dataset all the same.
    pub needs_calibration_data: bool,
    /// What happens where the input dimension of a layer is no multiple of the group.
    pub uneven_group: UnevenGroup,
    /// What a checkpoint holds for a weight; `None` when the export fails.
    #[serde(default)]
    pub storage: Option<Storage>,
    /// Bits of a weight in the checkpoint with its share of the scales and zero points of its group, for
    /// a model in `bfloat16`; scales for a tensor or a channel are not counted. In the format itself where
    /// there is no checkpoint.
    pub bits: f64,
    /// What the export of packed weights says instead of writing them; `None` when it writes them.
    #[serde(default)]
    pub export_error: Option<String>,
    /// Whether what file-to-file writes is complete; `None` when nobody has looked.
    #[serde(default)]
    pub file_to_file: Option<FileToFile>,
    /// Tensor type of the GGUF file; `None` when the GGUF writer refuses it.
    #[serde(default)]
    pub gguf: Option<String>,
    /// Layouts of other tools that `--custom_mode` can export it in.
    #[serde(default)]
    pub custom_modes: Vec<CustomMode>,
    /// Formats that a device must compute with to run it as it is; empty when weights are only stored
    /// small and the arithmetic stays in 16 bits.
    #[serde(default)]
    pub needs: Vec<FormatNeed>,
    /// What is known about the programs that serve models; an engine that is missing has not been looked
    /// at.
    #[serde(default)]
    pub engines: BTreeMap<EngineId, EngineSupport>,
    /// Whether the template makes q/k/v and gate/up share a scale, and the experts of a layer their input
    /// range.
    #[serde(default)]
    pub shares_scales: bool,
    /// Why nobody should use it although the release has it.
    #[serde(default)]
    pub broken: Option<String>,
    /// Cosine of the logits with those of the float model, for a tiny random llama: tells what runs from
    /// what is broken, and nothing about quality.
    #[serde(default)]
    pub cosine: Option<f64>,
    /// Groups of older releases, where they differ.
    #[serde(default)]
    pub earlier_groups: Vec<EarlierGroup>,
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

entry!(Scheme);

impl Scheme {
    /// Whether only weights are quantized.
    pub fn is_weight_only(&self) -> bool {
        self.activation.is_none()
    }

    /// Whether inputs have scales that were measured beforehand.
    pub fn has_static_activations(&self) -> bool {
        let is_static = |spec: &TensorScheme| {
            spec.dynamic == Some(false)
                || spec.second.as_ref().is_some_and(|second| !second.dynamic && second.of_scales)
        };
        self.activation.as_ref().is_some_and(is_static)
    }

    /// Elements of a row of a weight that share a scale; `None` when a whole row or tensor does.
    pub fn group_size(&self) -> Option<u64> {
        self.weight.group_size
    }

    /// How a device runs it.
    pub fn on(&self, device: &Device) -> Fit {
        let has = |list: &[String], name: &str| list.iter().any(|format| format == name);
        let fits = self.needs.iter().map(|need| {
            let any = |list: &[String]| need.any_of.iter().any(|name| has(list, name));
            if any(&device.native) {
                Fit::Native
            } else if any(&device.emulated) {
                Fit::Emulated
            } else if any(&device.not_supported) || has(&device.not_supported, &need.width) {
                Fit::NotSupported
            } else {
                Fit::Unknown
            }
        });
        fits.max().unwrap_or(Fit::Native)
    }
}

/// How a device runs a scheme, best first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// With units of its own for each format.
    Native,
    /// With the numbers rounded and the arithmetic in a wider format.
    Emulated,
    /// The sources do not say.
    Unknown,
    /// The sources say that it has no such units, and name no emulation.
    NotSupported,
}

/// What kind of scheme it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeFamily {
    /// Signed four-bit weights.
    Int4,
    /// Unsigned four-bit weights with zero points.
    Uint4,
    /// Eight-bit integers.
    Int8,
    /// Eight-bit floats.
    Fp8,
    /// OCP microscaling formats and their mixes.
    OcpMx,
    /// Four-bit floats with scales of other kinds (`amdfp4*`, `nvfp4`).
    BlockFp4,
    /// Block formats of research (`mx6`, `mx9`, `bfp16`).
    Block,
    /// Four-bit integer weights with quantized activations.
    Int4Activation,
}

impl SchemeFamily {
    /// What its schemes are, in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Int4 => "INT4 weights",
            Self::Uint4 => "UINT4 weights",
            Self::Int8 => "INT8",
            Self::Fp8 => "FP8",
            Self::OcpMx => "OCP MX formats",
            Self::BlockFp4 => "other FP4 formats",
            Self::Block => "block formats",
            Self::Int4Activation => "INT4 activations",
        }
    }
}

/// How a tensor is quantized.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorScheme {
    /// Element type, as Quark spells it: `int4`, `fp8_e4m3`, `fp4`, …
    pub dtype: String,
    /// What shares a scale.
    pub granularity: Granularity,
    /// Elements that share a scale, for groups and blocks.
    #[serde(default)]
    pub group_size: Option<u64>,
    /// Whether zero stays zero without a zero point; `None` for floats, which have none.
    #[serde(default)]
    pub symmetric: Option<bool>,
    /// Whether scales are computed while the model runs; `None` for block formats, which store none.
    #[serde(default)]
    pub dynamic: Option<bool>,
    /// Format of the scales, where Quark names one: `e8m0`, `e5m3`, `float32`.
    #[serde(default)]
    pub scale_format: Option<String>,
    /// A second round of quantization.
    #[serde(default)]
    pub second: Option<SecondLevel>,
}

/// A second round of quantization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecondLevel {
    /// Element type.
    pub dtype: String,
    /// What shares a scale.
    pub granularity: Granularity,
    /// Whether its scale is computed while the model runs.
    pub dynamic: bool,
    /// Whether it rounds the scales of the first; otherwise the elements were rounded to it beforehand.
    pub of_scales: bool,
}

/// What shares a scale.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// The whole tensor.
    PerTensor,
    /// A row of the weight; a token of the activations.
    PerChannel,
    /// Neighbours along the input dimension.
    PerGroup,
    /// Neighbours along the input dimension, with an exponent inside the format and no scale beside it.
    Block,
}

/// What happens where an input dimension is no multiple of the group.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UnevenGroup {
    /// There are no groups.
    NoGroups,
    /// Quark stops with a `ValueError`, after the model has been loaded.
    Error,
    /// The last group is padded while quantizing.
    Pads,
}

/// Whether the file that file-to-file quantization writes is complete.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FileToFile {
    /// It is.
    Complete,
    /// It has no scales for the inputs, and nothing says so.
    NoInputScales,
}

/// A layout of another tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CustomMode {
    /// AutoAWQ's; needs the algorithm `awq`.
    Awq,
    /// The native FP8 layout of vLLM.
    Fp8,
}

/// A format that a device must compute with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatNeed {
    /// Any of these will do, in the words of the device.
    pub any_of: Vec<String>,
    /// What they are together, in the words in which a device says that it has none: `fp8`, `fp6`, `fp4`.
    pub width: String,
}

/// What an engine does with a scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineSupport {
    /// Whether it loads a checkpoint.
    pub loads: Loads,
    /// Whether it rounds and computes in a wider format on every device.
    #[serde(default)]
    pub always_emulated: bool,
    /// What it does on a device that has not the format.
    #[serde(default)]
    pub without_native: Option<WithoutNative>,
    /// Least NVIDIA compute capability, times ten, where the loader asks for one.
    #[serde(default)]
    pub min_capability: Option<u32>,
    /// What brought it, where older versions of the engine refuse.
    #[serde(default)]
    pub since: Option<String>,
    /// What it says or asks for.
    #[serde(default)]
    pub note: Option<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

/// Whether an engine loads a checkpoint.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Loads {
    /// It does.
    Yes,
    /// Only the experts of a mixture; every other layer must have another scheme or be excluded.
    ExpertsOnly,
    /// It does not.
    No,
}

/// What an engine does on a device without the format.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutNative {
    /// Rounds and computes in a wider format.
    Emulates,
    /// Refuses to load.
    Refuses,
}

/// The group of older releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierGroup {
    /// Last release that had it.
    pub until: ReleaseId,
    /// Elements that shared a scale.
    pub group_size: u64,
}
