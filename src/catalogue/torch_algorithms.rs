//! Algorithms of Quark-Torch.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{Source, algorithms::TimeClass, entry, schemes::SchemeFamily},
    vocab::{FamilyId, ReleaseId, SchemeId, TorchAlgorithmId},
};

/// An algorithm, by the name that `--quant_algo` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchAlgorithm {
    /// Name in plans, for example `awq`.
    pub id: TorchAlgorithmId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// What it does to the weights.
    pub kind: TorchAlgorithmKind,
    /// Class of its config.
    pub class: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Vec<TorchParam>,
    /// Model families that each release has a built-in config for; with any other it stops with
    /// `NotImplementedError`, after the model has been loaded.
    pub families: BTreeMap<ReleaseId, Vec<FamilyId>>,
    /// Kinds of schemes that it is meant for; empty when none of them.
    pub suits: Vec<SchemeFamily>,
    /// What was seen with a tiny random model; the library forbids no combination with a scheme.
    #[serde(default)]
    pub measured: Vec<MeasuredRun>,
    /// What happens with other algorithms in the same run; they run in the order of the list.
    #[serde(default)]
    pub with: Vec<Combination>,
    /// Whether it reads calibration data.
    pub needs_data: bool,
    /// Whether it divides weights into the scheme's groups and stops where one is uneven.
    #[serde(default)]
    pub asserts_even_groups: bool,
    /// Schemes with which it runs on a GPU only.
    #[serde(default)]
    pub needs_gpu_with: Vec<SchemeId>,
    /// Whether file-to-file quantization can run it, at least in part.
    #[serde(default)]
    pub in_file_to_file: bool,
    /// How long it takes on a model of ordinary size.
    pub time: TimeClass,
    /// Why nobody should use it although the release has it.
    #[serde(default)]
    pub broken: Option<String>,
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

entry!(TorchAlgorithm);

impl TorchAlgorithm {
    /// Families that it has a built-in config for in `release`; empty for a release that is not known.
    pub fn families_in(&self, release: &ReleaseId) -> &[FamilyId] {
        self.families.get(release).map_or(&[], Vec::as_slice)
    }

    /// Whether it has a built-in config for `family` in `release`.
    pub fn has_config_for(&self, family: &FamilyId, release: &ReleaseId) -> bool {
        self.families_in(release).contains(family)
    }
}

/// What an algorithm does to the weights.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TorchAlgorithmKind {
    /// Scales channels so that they are easier to round.
    Scaling,
    /// Turns weights and activations by orthogonal matrices.
    Rotation,
    /// Chooses how each weight is rounded.
    Rounding,
    /// Brings a format of its own.
    OwnFormat,
}

/// A parameter of an algorithm's config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchParam {
    /// Name in the class.
    pub name: String,
    /// Type, as Python spells it.
    pub r#type: String,
    /// Value when it is not set; `"<required>"` when it must be.
    pub default: Value,
}

/// What was seen with a scheme.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRun {
    /// The scheme.
    pub scheme: SchemeId,
    /// Cosine of the logits with those of the float model; `None` when it failed.
    #[serde(default)]
    pub cosine: Option<f64>,
    /// What it said when it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// What happens with another algorithm in the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Combination {
    /// The algorithm that runs after this one.
    pub then: TorchAlgorithmId,
    /// What it was seen with.
    pub scheme: SchemeId,
    /// Cosine of the logits with those of the float model.
    pub cosine: f64,
    /// The same without any algorithm.
    #[serde(default)]
    pub without: Option<f64>,
    /// Whether the model is ruined.
    pub ruins: bool,
}
