//! `quant_plan.json`: what a confirmed draft becomes.
//!
//! Names and shapes are the seed skills'. So that a plan also validates against the schema shipped in the
//! Quark wheel it carries `global_scheme`, `exclude_layers` and `layer_quant_config`, and an
//! `evaluation_intent` of `none`, `smoke` or `full` only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    plan::{Draft, Expected, Input, Risk, digest::Digest, torch_plan::TorchPlan},
    vocab::{
        AlgorithmId, Architecture, Backend, Channel, DecisionId, EvaluationIntent, MethodId,
        Origin, PresetId, ReleaseId, RuleId, SessionId, TargetId,
    },
};

/// A confirmed plan, of either half of Quark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum QuantPlan {
    /// For `.onnx` files.
    Onnx(Box<OnnxPlan>),
    /// For Hugging Face models.
    Torch(Box<TorchPlan>),
}

impl QuantPlan {
    /// Where it came from and who agreed to it.
    pub fn provenance(&self) -> &Provenance {
        match self {
            Self::Onnx(plan) => &plan.provenance,
            Self::Torch(plan) => &plan.provenance,
        }
    }

    /// What may go wrong.
    pub fn risks_mut(&mut self) -> &mut Vec<Risk> {
        match self {
            Self::Onnx(plan) => &mut plan.risks,
            Self::Torch(plan) => &mut plan.risks,
        }
    }

    /// The preset or scheme.
    pub fn global_scheme(&self) -> &str {
        match self {
            Self::Onnx(plan) => &plan.global_scheme,
            Self::Torch(plan) => plan.global_scheme.as_str(),
        }
    }
}

/// A confirmed plan for the ONNX-to-ONNX flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "quant_plan (ONNX)")]
pub struct OnnxPlan {
    /// The model; its facts are in the analysis and not repeated here.
    pub model: PlanModel,
    /// Always `onnx`.
    pub backend: Backend,
    /// Where the quantized model will run.
    pub deployment_target: TargetId,
    /// Name in `DefaultConfigMapping`, or `custom`.
    pub preset: PresetId,
    /// How ranges are found.
    pub calibration: Calibration,
    /// Algorithms in the order in which they run.
    pub algorithms: Vec<AlgorithmId>,
    /// Everything that only ONNX has.
    pub onnx_specific: OnnxSpecific,
    /// `none`, `smoke` or `full`.
    pub evaluation_intent: EvaluationIntent,
    /// The procedure behind `full`: `mlperf` or `mAP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_metric: Option<EvaluationIntent>,
    /// Always `false` in a file: somebody confirmed it.
    pub requires_confirmation: bool,
    /// The preset again, under the name of the shipped schema.
    pub global_scheme: String,
    /// The excluded nodes again, under the name of the shipped schema.
    pub exclude_layers: Vec<String>,
    /// Always empty: ONNX plans have no overrides by layer.
    pub layer_quant_config: Map<String, Value>,
    /// Release of amd-quark that the plan is for.
    pub quark_version: ReleaseId,
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

/// Why a decision has its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Because {
    /// From fact to value.
    pub reason: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The rule that took the decision.
    pub rule: RuleId,
}

/// The model of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanModel {
    /// Always `onnx`.
    pub model_type: String,
    /// What kind of network it looks like.
    pub architecture_guess: Architecture,
    /// Path of `model_analysis.json`, or of the model when it was analysed on the way.
    pub analysis_ref: String,
}

/// How ranges are found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Name of the method; `null` for a dynamic preset, which has none.
    pub method: Option<MethodId>,
    /// What the library calls it, for example `PowerOfTwoMethod.MinMSE`.
    pub identifier: Option<String>,
    /// Number of samples; 0 when none are used.
    pub data_size: u64,
    /// Samples in a batch.
    pub batch_size: u64,
    /// Whether the model is written with external data.
    pub use_external_data_format: bool,
    /// Whether calibration trades time for memory.
    pub optimize_mem: bool,
    /// Worker processes of the calibrator.
    pub worker_num: u64,
}

/// What only ONNX plans have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnnxSpecific {
    /// Quantize for the NPU's CNN flow.
    pub enable_npu_cnn: bool,
    /// Quantize for the NPU's transformer flow.
    pub enable_npu_transformer: bool,
    /// Cross-layer equalization.
    pub include_cle: bool,
    /// Fast finetuning (AdaRound or AdaQuant).
    pub include_fast_ft: bool,
    /// Op types to restrict quantization to; `null` for the preset's own.
    pub op_types_to_quantize: Option<Vec<String>>,
    /// Nodes to restrict quantization to; `null` for all.
    pub nodes_to_quantize: Option<Vec<String>>,
    /// Nodes left in float; `null` for none.
    pub nodes_to_exclude: Option<Vec<String>>,
    /// Subgraphs left in float, each from start nodes to end nodes. Make each a tuple before handing it to Quark.
    pub subgraphs_to_exclude: Vec<(Vec<String>, Vec<String>)>,
    /// `extra_options` on top of the preset's own.
    pub extra_options: Map<String, Value>,
    /// Fields of the legacy `QuantizationConfig` to set: those keys of `extra_options` that the legacy
    /// interface reads from a field and ignores in `extra_options`, under the names of the fields.
    pub config_fields: Map<String, Value>,
    /// Whether the model is written with external data.
    pub use_external_data_format: bool,
    /// Providers for calibration, preferred first.
    pub execution_providers: Vec<String>,
    /// The spec of a `custom` preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_config: Option<Map<String, Value>>,
}

/// Where a plan came from and who agreed to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Version of quantplan.
    pub quantplan_version: String,
    /// Version of its facts.
    pub catalogue_version: String,
    /// The planning session.
    pub session_id: SessionId,
    /// The revision that was confirmed.
    pub revision: u64,
    /// The digest of the table that was confirmed.
    pub digest: Digest,
    /// What the plan was derived from.
    pub inputs: Vec<Input>,
    /// Who agreed, how and when.
    pub confirmation: Confirmation,
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// How it arrived.
    pub channel: Channel,
    /// Whether a person was asked; `flag` asks nobody, `relayed` asks an agent.
    pub attended: bool,
    /// When, in RFC 3339.
    pub at: String,
    /// The client that carried it, as it names itself; text from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The digest that was agreed to.
    pub digest: Digest,
}

/// Why a draft does not make a plan.
#[derive(Debug, thiserror::Error)]
#[error("the draft does not make a plan")]
pub struct AssembleError(#[from] serde_json::Error);

/// Puts the decisions of a draft where the plan has them.
///
/// The id of a decision is the path of its value in the plan, so a decision that the plan has no place
/// for is an error and not lost.
///
/// # Errors
///
/// When a decision is missing, of another type, or has no place.
pub fn assemble(
    draft: &Draft,
    analysis_ref: &str,
    provenance: Provenance,
) -> Result<QuantPlan, AssembleError> {
    let mut plan = values(draft, analysis_ref);
    plan["provenance"] = json!(provenance);
    Ok(match draft.backend {
        Backend::Onnx => QuantPlan::Onnx(serde_json::from_value(plan)?),
        Backend::Torch => QuantPlan::Torch(serde_json::from_value(plan)?),
    })
}

/// What a plan says, but for who agreed to it.
pub fn values(draft: &Draft, analysis_ref: &str) -> Value {
    let mut plan = json!({
        "model": {
            "model_type": draft.model.model_type,
            "analysis_ref": analysis_ref,
        },
        "layer_quant_config": {},
        "requires_confirmation": false,
        "quark_version": draft.quark_version,
        "risks": draft.risks,
        "expected": draft.expected,
    });
    for decision in &draft.decisions {
        plan["reasons"][decision.id.as_str()] = json!(Because {
            reason: decision.reason.clone(),
            origin: decision.origin,
            rule: decision.rule.clone(),
        });
        place(&mut plan, decision.id.as_str(), decision.value.clone());
        for (path, value) in &decision.also {
            place(&mut plan, path, value.clone());
        }
    }
    let metric = plan["evaluation_intent"].clone();
    if metric == json!(EvaluationIntent::Mlperf) || metric == json!(EvaluationIntent::Map) {
        plan["evaluation_intent"] = json!(EvaluationIntent::Full);
        plan["evaluation_metric"] = metric;
    }
    if draft.backend == Backend::Onnx {
        plan["model"]["architecture_guess"] = json!(draft.model.architecture);
        plan["global_scheme"] = plan["preset"].clone();
        plan["exclude_layers"] = match &plan["onnx_specific"]["nodes_to_exclude"] {
            Value::Array(nodes) => Value::Array(nodes.clone()),
            _ => json!([]),
        };
        plan["calibration"]["use_external_data_format"] =
            plan["onnx_specific"]["use_external_data_format"].clone();
    }
    plan
}

fn place(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    for part in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}
