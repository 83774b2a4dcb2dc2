//! The words of the domain: closed enums that rules branch on, and one newtype for each kind of id.
//!
//! Nothing here does any I/O or knows any fact about a release; ids are only names until
//! [`crate::catalogue`] resolves them.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod versions;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a newtype over `String` for one kind of id, so that ids of two kinds cannot be mixed up.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name; whether it exists is the catalogue's to say.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as upstream spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}

id!(
    /// A named Quark-ONNX config, for example `XINT8`, or `custom`.
    PresetId
);
id!(
    /// A calibration method as the plans spell it, for example `PowerOfTwo_MinMSE`.
    MethodId
);
id!(
    /// A Quark algorithm, for example `CLE` or `AdaRound`.
    AlgorithmId
);
id!(
    /// A key of Quark-ONNX's `extra_options`, for example `SimplifyModel`.
    OptionId
);
id!(
    /// Where the quantized model will run, for example `npu_cnn`.
    TargetId
);
id!(
    /// A device generation, for example `STX` or `gfx942`.
    DeviceId
);
id!(
    /// A release of amd-quark, for example `0.13`.
    ReleaseId
);
id!(
    /// A Quark-Torch recipe, for example `mxfp4`.
    SchemeId
);
id!(
    /// An algorithm of Quark-Torch, for example `awq`.
    TorchAlgorithmId
);
id!(
    /// A model family: the `model_type` of a Hugging Face config that Quark has a template for.
    FamilyId
);
id!(
    /// A program that carries a Torch plan out, for example `quark-cli torch-llm-ptq`.
    EntryPointId
);
id!(
    /// A program that runs an exported model, for example `vllm`.
    EngineId
);
id!(
    /// A skill that hands work to the planner or takes it over, for example `quark-onnx-install`.
    SkillId
);
id!(
    /// A known error, for example `reader-required`.
    RecoveryId
);
id!(
    /// A rule of the planner, for example `npu-cnn-power-of-two`; the reason code in a plan.
    RuleId
);
id!(
    /// A row of the decision table, for example `calibration.method`.
    DecisionId
);
id!(
    /// Something only the user can answer, for example `deployment_target`.
    QuestionId
);
id!(
    /// One planning conversation; high-entropy, so it cannot be guessed.
    SessionId
);

/// The half of Quark that a plan is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Quark-ONNX: an `.onnx` file in, an `.onnx` file out.
    Onnx,
    /// Quark-Torch: a Hugging Face model in, safetensors out.
    Torch,
}

impl Backend {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Onnx => "onnx",
            Self::Torch => "torch",
        }
    }
}

/// How grave a risk is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// May cost accuracy, speed or a second run.
    Medium,
    /// Likely to fail, or to give another model than the one asked for.
    High,
}

impl Severity {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Where the value of a decision came from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The user asked for it.
    User,
    /// A fact of the model decided it.
    Analysis,
    /// A fact of the machine, the installation or the session context decided it.
    Environment,
    /// Nothing spoke for anything else.
    Default,
    /// A rule inferred it from other decisions.
    Rule,
}

impl Origin {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Analysis => "analysis",
            Self::Environment => "environment",
            Self::Default => "default",
            Self::Rule => "rule",
        }
    }
}

/// What kind of network a graph looks like.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Convolutions carry the work.
    Cnn,
    /// Attention carries the work.
    Transformer,
    /// LSTM, GRU or RNN cells carry the work.
    Recurrent,
    /// Convolutions and attention, or convolutions and recurrence, share the work.
    Hybrid,
    /// Dense layers without attention.
    Mlp,
    /// The graph does not say.
    #[serde(other)]
    Unknown,
}

impl Architecture {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cnn => "cnn",
            Self::Transformer => "transformer",
            Self::Recurrent => "recurrent",
            Self::Hybrid => "hybrid",
            Self::Mlp => "mlp",
            Self::Unknown => "unknown",
        }
    }

    /// The same with its article, for sentences.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Cnn => "a CNN",
            Self::Transformer => "a transformer",
            Self::Recurrent => "a recurrent network",
            Self::Hybrid => "a hybrid of convolutions and attention or recurrence",
            Self::Mlp => "an MLP",
            Self::Unknown => "a network of unknown kind",
        }
    }
}

/// The order of the dimensions of an image input.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Layout {
    /// Batch, channels, height, width.
    #[serde(rename = "NCHW")]
    Nchw,
    /// Batch, height, width, channels.
    #[serde(rename = "NHWC")]
    Nhwc,
    /// No image input, or not to be told.
    #[serde(rename = "unknown", other)]
    Unknown,
}

/// What the scales of a quantized tensor may be.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleKind {
    /// Any float.
    Float,
    /// Powers of two only.
    PowerOfTwo,
    /// `M * 2^-N` with a 16-bit `M`.
    Int16,
}

/// How the result is to be evaluated after quantization.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum EvaluationIntent {
    /// Not at all.
    #[serde(rename = "none")]
    None,
    /// It loads and runs.
    #[serde(rename = "smoke")]
    Smoke,
    /// A whole evaluation set.
    #[serde(rename = "full")]
    Full,
    /// The MLPerf procedure.
    #[serde(rename = "mlperf")]
    Mlperf,
    /// Mean average precision of a detector.
    #[serde(rename = "mAP")]
    Map,
}

/// How a yes reached the planner, strongest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The button of an MCP App, which only the app may press.
    App,
    /// A form that the host showed to the user.
    Elicited,
    /// `quantplan confirm`, on a real terminal.
    Terminal,
    /// The agent repeated the user's words; only with `--accept-relayed`.
    Relayed,
    /// `quantplan plan --yes`: nobody was asked.
    Flag,
}

impl Channel {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Elicited => "elicited",
            Self::Terminal => "terminal",
            Self::Relayed => "relayed",
            Self::Flag => "flag",
        }
    }
}

/// The names nearest to `name`, best first, at most three; empty when nothing is near.
///
/// Case and punctuation do not count, and a name that contains the other is near.
pub fn near_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let folded = fold(name);
    if folded.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| {
            let other = fold(candidate);
            let mut score = strsim::jaro_winkler(&folded, &other);
            if !other.is_empty() && (other.contains(&folded) || folded.contains(&other)) {
                score = score.max(0.86);
            }
            (score, candidate)
        })
        .filter(|(score, _)| *score >= 0.84)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Letters and digits of a name, in lower case: what counts when names are compared loosely.
pub fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_ignore_case_and_punctuation_and_keep_the_best_three() {
        let known = ["XINT8", "XINT8_ADAROUND", "A8W8", "MXINT8", "BF16"];
        let check = |name: &str, expected: &[&str]| {
            assert_eq!(near_names(name, known), expected, "near `{name}`");
        };
        check("xint-8", &["XINT8", "MXINT8", "XINT8_ADAROUND"]);
        check("a8w8", &["A8W8"]);
        check("zzzz", &[]);
        check("", &[]);
    }
}
