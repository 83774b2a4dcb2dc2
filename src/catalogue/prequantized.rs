//! Checkpoints that are quantized already, by the `quant_method` of their config.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{FamilyId, ReleaseId},
};

/// A kind of checkpoint that is quantized already, and what Quark-Torch makes of it. A method that is
/// not here is one that Quark's code does not name: no flow recovers its weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prequantized {
    /// `quant_method` of the `quantization_config`.
    pub id: String,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// What the ordinary flow does, which loads the model.
    pub in_memory: Recovery,
    /// First release whose ordinary flow recovers it; `None` when none does.
    #[serde(default)]
    pub in_memory_since: Option<ReleaseId>,
    /// What file-to-file quantization does.
    pub file_to_file: Recovery,
    /// Whether file-to-file quantization needs one GPU for it: neither a CPU nor several.
    #[serde(default)]
    pub file_to_file_needs_one_gpu: bool,
    /// Families for which alone the ordinary flow recovers it; empty when any.
    #[serde(default)]
    pub families: Vec<FamilyId>,
    /// Python packages that it asks for, with their versions.
    #[serde(default)]
    pub packages: Vec<String>,
    /// First release that names it.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None` so far.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Prequantized);

/// What becomes of weights that are quantized already.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// They are brought back to floats and quantized anew, with the loss of both.
    Recovers,
    /// They are taken as they are, as if they were floats; nothing says so.
    TakesAsTheyAre,
    /// Its code does not know them; what comes out has not been looked at.
    NotRecovered,
}
