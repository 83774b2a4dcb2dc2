//! What the user wants: the arguments of a proposal and of every revision, merged.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vocab::{DecisionId, EvaluationIntent, QuestionId};

/// What the user wants. Every field is optional; what is missing is decided by rules or asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The goal in the user's own words, for example "INT8 for the Ryzen AI NPU" or "smallest model".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Where the quantized model will run: `cpu`, `cuda`, `rocm`, `npu_cnn` or `npu_transformer`. Leave it out when the user has not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_target: Option<String>,
    /// Devices that the user named, for example `STX`, `Phoenix`, `MI300X`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<String>,
    /// Engine that will serve the model, for example `vllm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving_engine: Option<String>,
    /// Tensor-parallel size of that engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_parallel: Option<u64>,
    /// How much accuracy matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Release of amd-quark that will run the plan, for example `0.13`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quark_version: Option<String>,
    /// Version of the Ryzen AI software on the target, for example `1.6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ryzen_ai_version: Option<String>,
    /// The data that calibration can use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_data: Option<CalibrationData>,
    /// How the result will be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_intent: Option<EvaluationIntent>,
    /// Values that the user asked for, by decision, for example `{"preset": "A8W8"}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<DecisionId, Value>,
    /// Answers to questions, by question id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<QuestionId, String>,
    /// Decisions whose requested value the user keeps although a rule advises against it; each becomes a recorded risk.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub insist: BTreeSet<DecisionId>,
}

/// How much accuracy matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accuracy {
    /// As good as plain quantization gives.
    Standard,
    /// Worth a fine-tuning step of minutes to hours.
    Tight,
    /// More important than anything else.
    Critical,
}

/// The data that calibration can use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationData {
    /// Whether there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<bool>,
    /// How many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Folder or file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Name of a public data set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Whether it looks like what the model will see in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_domain: Option<bool>,
}

/// Changes to a draft.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Values to set, by decision.
    pub values: BTreeMap<DecisionId, Value>,
    /// Answers to questions of the draft, by question id.
    pub answers: BTreeMap<QuestionId, String>,
    /// Decisions whose requested value is kept against advice.
    pub insist: BTreeSet<DecisionId>,
    /// Decisions whose requested value is taken back.
    pub withdraw: BTreeSet<DecisionId>,
    /// What else was said: fields that are given replace the ones before.
    pub said: Intent,
}

impl Intent {
    /// Replaces what `later` says again; values, answers and insistence are added.
    pub fn take_over(&mut self, later: &Self) {
        fn replace<T: Clone>(known: &mut Option<T>, said: &Option<T>) {
            if said.is_some() {
                known.clone_from(said);
            }
        }
        replace(&mut self.goal, &later.goal);
        replace(&mut self.deployment_target, &later.deployment_target);
        replace(&mut self.serving_engine, &later.serving_engine);
        replace(&mut self.tensor_parallel, &later.tensor_parallel);
        replace(&mut self.accuracy, &later.accuracy);
        replace(&mut self.quark_version, &later.quark_version);
        replace(&mut self.ryzen_ai_version, &later.ryzen_ai_version);
        replace(&mut self.calibration_data, &later.calibration_data);
        replace(&mut self.evaluation_intent, &later.evaluation_intent);
        if !later.hardware.is_empty() {
            self.hardware.clone_from(&later.hardware);
        }
        self.values.extend(later.values.clone());
        self.answers.extend(later.answers.clone());
        self.insist.extend(later.insist.clone());
    }

    /// The intent after `changes`: what is withdrawn goes first, then values, answers and insistence are added.
    pub fn after(&self, changes: &Changes) -> Self {
        let mut next = self.clone();
        for id in &changes.withdraw {
            next.values.remove(id);
            next.insist.remove(id);
            next.answers.remove(&QuestionId::new(id.as_str()));
            match id.as_str() {
                "deployment_target" => next.deployment_target = None,
                "evaluation_intent" => next.evaluation_intent = None,
                _ => {}
            }
        }
        next.take_over(&changes.said);
        next.values.extend(changes.values.clone());
        next.answers.extend(changes.answers.clone());
        next.insist.extend(changes.insist.clone());
        next
    }
}
