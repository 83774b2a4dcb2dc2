//! Programs that carry a Torch plan out, and their flags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{Source, entry},
    vocab::{EntryPointId, ReleaseId},
};

/// A program that quantizes a Hugging Face model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryPoint {
    /// How it is called, for example `quark-cli torch-llm-ptq`.
    pub id: EntryPointId,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// When to pick it.
    pub use_when: String,
    /// Its flags, as far as a plan can ask for them.
    pub flags: Vec<Flag>,
    /// What it does that its flags do not say.
    pub behaviour: Vec<String>,
    /// First release that has it.
    pub since: Option<ReleaseId>,
    /// Last release that has it.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(EntryPoint);

impl EntryPoint {
    /// The flag with this name, in any of its spellings, dashes included.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags
            .iter()
            .find(|flag| flag.name == name || flag.also.iter().any(|also| also == name))
    }

    /// The flag that carries this decision of a plan out.
    pub fn flag_for(&self, decision: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.decision.as_deref() == Some(decision))
    }
}

/// A flag of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// Name, dashes included.
    pub name: String,
    /// Other spellings that the program takes.
    #[serde(default)]
    pub also: Vec<String>,
    /// The decision of a plan that it carries out.
    #[serde(default)]
    pub decision: Option<String>,
    /// What values it takes.
    pub takes: FlagValue,
    /// Values that the program accepts; empty when any are.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Those of them that it accepts and stops on later, and with what.
    #[serde(default)]
    pub failing: Vec<FailingChoice>,
    /// Value when it is not given; `null` when there is none.
    #[serde(default)]
    pub default: Value,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// First release that has it; `None` when that is not known.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// What else there is to know.
    #[serde(default)]
    pub note: Option<String>,
}

impl Flag {
    /// The choices that do not fail later; empty when any value is taken.
    pub fn usable_choices(&self) -> impl Iterator<Item = &str> {
        let fails = |choice: &String| self.failing.iter().any(|failing| failing.value == *choice);
        self.choices.iter().filter(move |choice| !fails(choice)).map(String::as_str)
    }
}

/// What values a flag takes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FlagValue {
    /// None: it is a switch.
    Switch,
    /// One text.
    Text,
    /// One text, or none for a default of its own.
    OptionalText,
    /// One whole number.
    Int,
    /// One number.
    Float,
    /// Any number of texts, none included, each an argument.
    TextList,
    /// Texts with commas between them, in one argument.
    CommaList,
    /// Two texts; the flag can be repeated.
    Pair,
    /// One text; the flag can be repeated.
    Repeated,
}

/// A value that is accepted and fails later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailingChoice {
    /// The value.
    pub value: String,
    /// What it fails with.
    pub error: String,
}
