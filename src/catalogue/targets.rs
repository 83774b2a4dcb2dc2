//! Deployment targets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{DeviceId, Layout, MethodId, PresetId, ReleaseId, ScaleKind, TargetId},
};

/// Where a quantized model runs, and what that asks of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name in plans, for example `npu_cnn`.
    pub id: TargetId,
    /// Other names that people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// Execution provider that calibration uses, and that runs the result unless `runtime_provider` does.
    pub execution_provider: String,
    /// Execution provider that runs the result there, when it is not the one that calibrates.
    #[serde(default)]
    pub runtime_provider: Option<String>,
    /// Packages of ONNX Runtime that bring that provider; empty when every one does.
    #[serde(default)]
    pub runtime_packages: Vec<String>,
    /// `hardware.accelerator` values of `env_context.json` on which it makes sense; empty when any.
    #[serde(default)]
    pub accelerators: Vec<String>,
    /// Device generations to choose from; empty when the target does not depend on one.
    #[serde(default)]
    pub devices: Vec<DeviceId>,
    /// Layout that an image input must have.
    #[serde(default)]
    pub layout: Option<Layout>,
    /// Batch size that inputs must have.
    #[serde(default)]
    pub batch: Option<u64>,
    /// Whether every input dimension must be fixed.
    #[serde(default)]
    pub static_dims: bool,
    /// Least number of `Conv` nodes below which nothing is offloaded.
    #[serde(default)]
    pub min_conv_nodes: Option<u64>,
    /// Opset that its compiler wants.
    #[serde(default)]
    pub recommended_opset: Option<i64>,
    /// Whether nodes are compiled for the NPU by the op table.
    #[serde(default)]
    pub npu: bool,
    /// What may be planned there, the strict contract first.
    pub profiles: Vec<Profile>,
    /// Always `None`: targets are not part of a release.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Target);

/// A set of conditions under which presets are allowed on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `strict`, `ryzen_ai_1_6`, `llm_oga`, or `open` where anything may be planned.
    pub id: String,
    /// One line about it.
    pub summary: String,
    /// Least Ryzen AI version that must be stated; `None` when none needs to be.
    #[serde(default)]
    pub ryzen_ai: Option<String>,
    /// Device generations, one of which must be stated; empty when none needs to be.
    #[serde(default)]
    pub devices: Vec<DeviceId>,
    /// Presets that it allows, in the order in which they are recommended; empty when any.
    #[serde(default)]
    pub presets: Vec<PresetId>,
    /// Scales that the runtime takes; empty when any.
    #[serde(default)]
    pub scales: Vec<ScaleKind>,
    /// Calibration methods that it allows, preferred first; empty when any.
    #[serde(default)]
    pub methods: Vec<MethodId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}
