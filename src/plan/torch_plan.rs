//! `quant_plan.json` of a Torch plan: the fields of `quark-torch-quant-plan`, and what its execution needs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    plan::{
        Expected, Risk,
        quant_plan::{Because, Provenance},
    },
    vocab::{DecisionId, EntryPointId, EvaluationIntent, ReleaseId, SchemeId},
};

/// A confirmed plan for a Hugging Face model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "quant_plan (Torch)")]
pub struct TorchPlan {
    /// The model; its facts are in the analysis and not repeated here.
    pub model: TorchPlanModel,
    /// Scheme of every layer that is not excluded.
    pub global_scheme: SchemeId,
    /// `fp8`, or `null` to leave the KV cache alone.
    pub kv_cache_scheme: Option<String>,
    /// Patterns of modules left in float, all of them: also where the template's own list is kept. Hand the
    /// list over as it is; an empty one excludes nothing.
    pub exclude_layers: Vec<String>,
    /// Schemes of single layers, by pattern.
    pub layer_quant_config: BTreeMap<String, SchemeId>,
    /// `null`, a name, or several with commas between them, in the order in which they run.
    pub algorithm: Option<String>,
    /// The data.
    pub calibration: TorchCalibration,
    /// `none`, `smoke` or `full`.
    pub evaluation_intent: EvaluationIntent,
    /// The procedure behind `full`: `mlperf` or `mAP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_metric: Option<EvaluationIntent>,
    /// Always `false` in a file: somebody confirmed it.
    pub requires_confirmation: bool,
    /// Release of amd-quark that the plan is for.
    pub quark_version: ReleaseId,
    /// Program that carries it out; flags that only one of them has are the reason for it.
    pub entry_point: EntryPointId,
    /// What the program is given, argument by argument, to carry this plan out. `--model_dir` and
    /// `--output_dir`, both absolute paths, come before them.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// How the model is held: `single`, `multi_device`, `multi_gpu`, `cpu` or `file_to_file`.
    pub device_strategy: String,
    /// Whether code of the model's repository may run; `false` means `--no_trust_remote_code`.
    pub trust_remote_code: bool,
    /// `hf_format`, `gguf` or `none`.
    pub export_format: String,
    /// Layout of the folder: `quark`, `awq` or `fp8`; missing means `quark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_mode: Option<String>,
    /// Least scale of the KV cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_kv_scale: Option<f64>,
    /// Whether the KV cache is quantized after the rotary embedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache_post_rope: Option<bool>,
    /// `fp8` for queries and the softmax; missing means that attention is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_scheme: Option<String>,
    /// Config file of an algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm_config: Option<String>,
    /// Template of a family that Quark has none for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_file: Option<String>,
    /// Why each decision has its value, by its path in the plan.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<DecisionId, Because>,
    /// What may go wrong, gravest first.
    pub risks: Vec<Risk>,
    /// What the validator that comes later can expect.
    pub expected: Expected,
    /// Where the plan came from and who agreed to it.
    pub provenance: Provenance,
}

/// The model of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchPlanModel {
    /// `model_type` of the config.
    pub model_type: String,
    /// Path of `model_analysis.json`, or of the model when it was analysed on the way.
    pub analysis_ref: String,
}

/// What calibration reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchCalibration {
    /// Name of the data set, as Quark-Torch spells it.
    pub dataset: String,
    /// Number of samples.
    pub num_calib_data: u64,
    /// Tokens of a sample.
    pub seq_len: u64,
    /// Samples that go through the model at once.
    pub batch_size: u64,
}
