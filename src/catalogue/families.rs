//! Model families: the built-in templates of Quark-Torch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{FamilyId, ReleaseId, SchemeId},
};

/// A model family with an `LLMTemplate`. Which algorithms have a built-in config for it is the
/// algorithms' to say: [`crate::catalogue::Catalogue::algorithms_for`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// `model_type` of the config, for example `qwen3_moe`.
    pub id: FamilyId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// Layers that the template leaves alone in the newest release that has it.
    pub exclude_layers: Vec<String>,
    /// Their list in older releases, where it differs.
    #[serde(default)]
    pub earlier_excludes: Vec<EarlierExcludes>,
    /// Layers whose outputs are the KV cache.
    pub kv_layers: Vec<String>,
    /// Layers whose outputs are the queries.
    pub q_layers: Vec<String>,
    /// Names of the projections that share a scale in `nvfp4`, and that engines fuse.
    pub gate_up_layers: Vec<String>,
    /// Least transformers version that its loading code asks for; `None` when it asks for none of its own.
    #[serde(default)]
    pub transformers: Option<String>,
    /// Class that loads it; `None` for `AutoModelForCausalLM`.
    #[serde(default)]
    pub loading_class: Option<String>,
    /// Modules of transformers 5.16.1 that are replaced before quantization, so that experts and routers
    /// are linear layers.
    #[serde(default)]
    pub replaced_modules: Vec<String>,
    /// Whether transformers 5.16.1 does not have it, so that loading it runs code of its repository.
    #[serde(default)]
    pub remote_code: bool,
    /// Whether file-to-file quantization takes fused expert tensors of the checkpoint apart.
    #[serde(default)]
    pub splits_fused_experts: bool,
    /// What layers that are excluded come out as, because the loader takes any source for quantized; `None`
    /// where they stay as they are.
    #[serde(default)]
    pub excluded_become: Option<ExcludedBecome>,
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

entry!(Family);

/// The excluded layers of older releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierExcludes {
    /// The release.
    pub release: ReleaseId,
    /// Its list.
    pub exclude_layers: Vec<String>,
}

/// What becomes of excluded layers of a source whose config names no modules that are not quantized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExcludedBecome {
    /// The scheme that they are quantized with.
    pub scheme: SchemeId,
    /// Since when.
    pub since: ReleaseId,
    /// The flag that keeps them as they are.
    pub unless: String,
}

impl Family {
    /// The layers that the template leaves alone in `release`.
    pub fn excludes_in(&self, release: &ReleaseId) -> &[String] {
        self.earlier_excludes
            .iter()
            .find(|earlier| earlier.release == *release)
            .map_or(&self.exclude_layers, |earlier| &earlier.exclude_layers)
    }
}
