//! Algorithms of Quark-ONNX.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{
        Source, entry,
        presets::{ElementType, QuantFormat},
    },
    vocab::{AlgorithmId, Architecture, ReleaseId},
};

/// An algorithm that changes the model before or after quantization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// Name in plans, for example `AdaRound`.
    pub id: AlgorithmId,
    /// Other names that people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// When it runs.
    pub kind: AlgorithmKind,
    /// Class of the newer interface, for example `AdaRoundConfig`; `None` when there is none.
    #[serde(default)]
    pub class: Option<String>,
    /// How the legacy config asks for it.
    pub legacy: String,
    /// Its parameters.
    pub params: Vec<AlgorithmParam>,
    /// Graph formats with which it works; empty when any.
    #[serde(default)]
    pub formats: Vec<QuantFormat>,
    /// Weight element types with which it does nothing or fails.
    #[serde(default)]
    pub not_with_weights: Vec<ElementType>,
    /// What happens with those: the words of the library or what was seen.
    #[serde(default)]
    pub otherwise: Option<String>,
    /// Architectures it is meant for; empty when any.
    #[serde(default)]
    pub architectures: Vec<Architecture>,
    /// Op types it acts on.
    #[serde(default)]
    pub op_types: Vec<String>,
    /// Whether it reads calibration data.
    pub needs_data: bool,
    /// Whether it is a fast-finetune algorithm; of those only one can run.
    pub fast_finetune: bool,
    /// How long it takes.
    pub time: TimeClass,
    /// What else limits it.
    #[serde(default)]
    pub constraints: Vec<String>,
    /// First release that has it.
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Algorithm);

/// When an algorithm runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AlgorithmKind {
    /// Before quantization.
    Pre,
    /// After it.
    Post,
    /// Instead of ordinary quantization.
    Instead,
}

/// How long an algorithm takes on a model of ordinary size.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TimeClass {
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Up to hours, above all on a CPU.
    Hours,
}

/// A parameter of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmParam {
    /// Name in the class.
    pub name: String,
    /// Key in the legacy config, where there is one.
    #[serde(default)]
    pub legacy: Option<String>,
    /// Type, as Python spells it.
    pub r#type: String,
    /// Value when it is not set; `"<required>"` when it must be.
    pub default: Value,
    /// Whether the library hands it on; a few are accepted and dropped.
    #[serde(default = "yes")]
    pub effective: bool,
    /// First release that has it.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
}

fn yes() -> bool {
    true
}
