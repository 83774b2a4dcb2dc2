//! Quark's agent skills: what each does, brings and needs, and with which words people ask for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{Backend, ReleaseId, SkillId},
};

/// A skill that work is handed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Name, as the routers use it.
    pub id: SkillId,
    /// Names that it has elsewhere.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to go to it.
    pub use_when: String,
    /// Its part in the chain.
    pub role: Role,
    /// The half of Quark that it belongs to; `None` when it serves both.
    pub backend: Option<Backend>,
    /// Artefacts that it alone may write, the main one first.
    pub produces: Vec<Artefact>,
    /// Artefacts that it reads.
    pub needs: Vec<String>,
    /// Phrases with which people ask for it, as `rules::phrase` reads them.
    pub goals: Vec<String>,
    /// For a router: words that decide for its half of Quark.
    #[serde(default)]
    pub signals: Vec<String>,
    /// For a router: words that speak for its half where nothing decides.
    #[serde(default)]
    pub hints: Vec<String>,
    /// What it is called in a release, where that is not its id.
    #[serde(default)]
    pub names: Vec<Named>,
    /// First release that bundles it; `None` when no release is known to.
    pub since: Option<ReleaseId>,
    /// Last release that bundles it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Skill);

impl Skill {
    /// What it is called in a release.
    pub fn name_in(&self, release: &ReleaseId) -> &str {
        let named = self.names.iter().find(|named| named.release == release.as_str());
        named.map_or(self.id.as_str(), |named| &named.name)
    }
}

/// An artefact that a skill writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artefact {
    /// File name.
    pub name: String,
    /// File name of its schema; `None` when no release ships one.
    pub schema: Option<String>,
}

/// A name in a release, or in a commit of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The release, or name and commit of the repository.
    pub release: String,
    /// The name there.
    pub name: String,
}

/// The part of a skill in the chain.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Takes goals to skills.
    Router,
    /// Facts of the machine.
    Preflight,
    /// Paths and folders.
    Workspace,
    /// Facts of the model.
    Intake,
    /// ONNX Runtime or PyTorch.
    Install,
    /// The package of Quark.
    QuarkInstall,
    /// Decisions.
    Plan,
    /// From the model to the quantized model.
    Workflow,
    /// Causes of failures.
    Debug,
    /// Checks of results.
    Validate,
}
