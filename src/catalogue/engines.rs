//! Programs that run an exported Torch model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{EngineId, ReleaseId},
};

/// A program that runs exported models. Which schemes it loads is the schemes' to say
/// ([`crate::catalogue::schemes::Scheme::engines`]); this is what it asks of all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Name in plans, for example `vllm`.
    pub id: EngineId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// What it reads.
    pub reads: Vec<ExportFormat>,
    /// Layers that it fuses: each group needs one scheme, and is excluded as a whole or not at all.
    #[serde(default)]
    pub fused: Vec<FusedLayers>,
    /// Schemes of the KV cache that it loads from a checkpoint.
    #[serde(default)]
    pub kv_cache: Vec<String>,
    /// What it makes of quantized outputs of the query projections; `None` when that is not known.
    #[serde(default)]
    pub query_outputs: Option<QueryOutputs>,
    /// Whether the group must also divide the share of the input dimension of each tensor-parallel rank;
    /// `None` when that is not known.
    #[serde(default)]
    pub group_per_rank: Option<bool>,
    /// Whether each tensor-parallel rank must have whole heads and an equal share of every width; `None`
    /// when that is not known.
    #[serde(default)]
    pub heads_per_rank: Option<bool>,
    /// Names of model types that it can read at all; empty when it does not depend on them.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// What else it asks for.
    pub constraints: Vec<String>,
    /// Always `None`: engines are not part of a release.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Engine);

/// A format of an exported model.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Hugging Face folder with safetensors in Quark's own layout.
    Quark,
    /// Hugging Face folder in AutoAWQ's layout.
    Awq,
    /// Hugging Face folder in the native FP8 layout of vLLM.
    Fp8,
    /// A GGUF file.
    Gguf,
}

/// Layers that an engine fuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FusedLayers {
    /// The layer they become.
    pub into: String,
    /// Last parts of their names.
    pub layers: Vec<String>,
}

/// What an engine makes of quantized outputs of the query projections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryOutputs {
    /// The pattern under which it lets them pass, word for word; `*` for any.
    pub pattern: String,
    /// Whether it does so only where the KV cache is quantized too.
    pub needs_kv_cache: bool,
}
