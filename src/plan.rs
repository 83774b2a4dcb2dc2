//! The artefact: decisions with reasons, risks, questions and handoffs, and the plan they become.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod digest;
pub mod quant_plan;
pub mod torch_plan;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vocab::{
    Architecture, Backend, DecisionId, Origin, QuestionId, ReleaseId, RuleId, Severity, SkillId,
};

/// A plan before anybody agreed to it: every decision of the table, and what is still open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// Which half of Quark.
    pub backend: Backend,
    /// Release of amd-quark that it is for.
    pub quark_version: ReleaseId,
    /// Version of the facts it was reasoned with.
    pub catalogue_version: String,
    /// The model in short.
    pub model: ModelLine,
    /// The rows of the decision table, in its order.
    pub decisions: Vec<Decision>,
    /// What may go wrong, gravest first.
    pub risks: Vec<Risk>,
    /// What only the user can answer.
    pub questions: Vec<Question>,
    /// Skills that must do something before, or next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Handoff>,
    /// What the validator that comes later can expect.
    pub expected: Expected,
    /// Always `true`: only a confirmed plan says `false`.
    pub requires_confirmation: bool,
}

impl Draft {
    /// The row with this id.
    pub fn decision(&self, id: &str) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.id == *id)
    }

    /// What stands between this draft and a confirmation; empty when nothing does.
    pub fn missing(&self) -> Vec<String> {
        let unset = self
            .decisions
            .iter()
            .filter(|decision| !decision.set)
            .map(|decision| format!("`{}` has no value", decision.id));
        let open = self
            .questions
            .iter()
            .filter(|question| question.blocking)
            .map(|question| format!("question `{}`: {}", question.id, question.text));
        unset.chain(open).collect()
    }

    /// Whether a yes may be asked for.
    pub fn is_confirmable(&self) -> bool {
        self.missing().is_empty()
    }
}

/// The model in a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelLine {
    /// Path as it was given.
    pub path: String,
    /// `onnx`, or the Hugging Face `model_type`.
    pub model_type: String,
    /// What kind of network.
    pub architecture: Architecture,
    /// Bytes of the model with its external data, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Number of nodes or layers, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
}

/// One row of the decision table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Name of the row: the path of the value in `quant_plan.json`.
    pub id: DecisionId,
    /// The value; `null` is a value where `set` is true.
    pub value: Value,
    /// Whether there is a value; a row without one keeps the draft from being confirmed.
    pub set: bool,
    /// Why this value, from fact to value.
    pub reason: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The rule that took the decision.
    pub rule: RuleId,
    /// What else there was, and why it was not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// The same value in the library's own words, by path in the plan, for example
    /// `calibration.identifier`; so that the step that executes the plan guesses nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, Value>,
}

/// A value that was not taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// The value.
    pub value: Value,
    /// Why it was not taken, or when it would be.
    pub why_not: String,
}

/// Something that may go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    /// How grave.
    pub severity: Severity,
    /// What.
    pub message: String,
    /// The one thing to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_hint: Option<String>,
    /// The rule that saw it.
    pub rule: RuleId,
}

/// Something that only the user can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Id to answer by.
    pub id: QuestionId,
    /// The question.
    pub text: String,
    /// Whether the draft cannot be confirmed before it is answered.
    pub blocking: bool,
    /// Answers to choose from; empty when any text will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The rule that asks.
    pub rule: RuleId,
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What to answer.
    pub value: String,
    /// What it means.
    pub meaning: String,
}

/// A route to another skill, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// The skill to go to.
    pub skill: SkillId,
    /// Why.
    pub reason: String,
    /// The artefact that it must bring, for example `model_analysis.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefact: Option<String>,
    /// What exactly is wanted.
    pub bring_back: String,
    /// The call that resumes here.
    pub resume: Resume,
    /// The rule or case that decided it.
    pub rule: RuleId,
}

/// The call that takes the work up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resume {
    /// Tool to call.
    pub tool: String,
    /// Its arguments; a value in `<…>` is to be filled in.
    pub arguments: Value,
}

/// What to expect of the result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Bytes of the weights before quantization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bytes_before: Option<u64>,
    /// Bytes of the weights after it: stored integers with their scales, where the format stores integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bytes_after: Option<u64>,
    /// Nodes that get quantized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantized_nodes: Option<u64>,
    /// Nodes that compute something, constants left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_nodes: Option<u64>,
    /// Of the compute nodes, those whose op type the NPU runs at this precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npu_nodes: Option<u64>,
    /// Op types that fall to the CPU, with their number of nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_ops: BTreeMap<String, u64>,
    /// Input tensors that the calibration reader must yield.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration_inputs: Vec<CalibrationInput>,
    /// For each excluded or selected name, the nodes it means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Match>,
    /// How long calibration and algorithms take: `seconds`, `minutes` or `hours`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_class: Option<String>,
    /// The weights after quantization, part by part; of a Torch plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Linear modules that get quantized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantized_modules: Option<u64>,
    /// Linear modules of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear_modules: Option<u64>,
    /// Bits of a parameter after quantization, everything counted, times a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centibits_per_weight: Option<u64>,
    /// Bytes of the KV cache for one token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache_bytes_per_token: Option<u64>,
    /// Whether weights and KV cache fit the devices that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<Fits>,
}

/// A part of the weights after quantization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// `weights`, `scales`, `zero points`, `excluded`, `embeddings`, `norms`, …
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Whether a result fits a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fits {
    /// The device.
    pub device: String,
    /// Its memory in bytes, of all that share the model.
    pub memory_bytes: u64,
    /// Weights, and the KV cache for `context` tokens.
    pub needed_bytes: u64,
    /// Tokens that the KV cache is counted for; 0 when its size is not known.
    pub context: u64,
    /// Whether that leaves a tenth of the memory free.
    pub fits: bool,
}

/// What the calibration reader yields for one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationInput {
    /// Name of the input.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Shape as text, for example `1x3x224x224`; symbols stay symbols.
    pub shape: String,
}

/// What an entry of an include or exclude list means in this graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// The row it stands in.
    pub decision: DecisionId,
    /// The entry.
    pub pattern: String,
    /// How many nodes it means.
    pub nodes: u64,
    /// A few of them.
    pub examples: Vec<String>,
    /// Bytes of their weights before quantization, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// An artefact or model that a draft was derived from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// `model`, `analysis`, `environment`, `onnx_install_result` or `session_context`.
    pub role: String,
    /// Where it was read; `None` when it was handed over inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `sha256:<hex>`: of the bytes for artefacts, structural for models.
    pub digest: String,
}
