//! Programs that carry a Torch plan out, and their flags.

use std::collections::BTreeMap;

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

    /// The arguments that carry the decisions of a plan out, without those for paths of model and output.
    pub fn arguments<'v>(&self, value_of: impl Fn(&str) -> Option<&'v Value>) -> Vec<String> {
        let mut arguments = Vec::new();
        for flag in &self.flags {
            if let Some(value) = flag.decision.as_deref().and_then(&value_of) {
                flag.add(value, &mut arguments);
            }
        }
        arguments
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
    /// What it is given for a value of the decision: `null` for the flag alone, and no flag for a value that
    /// is not listed. Without it the flag is given the value itself.
    #[serde(default)]
    pub given: Option<BTreeMap<String, Option<String>>>,
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

    /// Adds what the flag is given for a value of its decision; nothing for `null`.
    fn add(&self, value: &Value, arguments: &mut Vec<String>) {
        let mut say = |words: &mut dyn Iterator<Item = String>| {
            arguments.push(self.name.clone());
            arguments.extend(words);
        };
        if let Some(given) = &self.given {
            if let Some(word) = given.get(&text(value)) {
                say(&mut word.clone().into_iter());
            }
            return;
        }
        match (self.takes, value) {
            (_, Value::Null) => {}
            (FlagValue::Switch, value) => {
                if *value == Value::Bool(true) {
                    say(&mut std::iter::empty());
                }
            }
            (FlagValue::TextList, Value::Array(list)) => say(&mut list.iter().map(text)),
            (FlagValue::Pair, Value::Object(pairs)) => {
                for (name, value) in pairs {
                    say(&mut [name.clone(), text(value)].into_iter());
                }
            }
            (_, value) => say(&mut std::iter::once(text(value))),
        }
    }
}

/// A value as one argument.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn arguments_say_what_the_decisions_say() {
        let check = |program: &str, decision: &str, value: Value, expected: &[&str]| {
            let entry = Catalogue.entry_points().get(program).unwrap();
            let found = entry.arguments(|asked| (asked == decision).then_some(&value));
            assert_eq!(found, expected, "{program}: `{decision}` is {value}");
        };
        let (cli, script) = ("quark-cli torch-llm-ptq", "quantize_quark.py");
        for program in [cli, script] {
            check(program, "global_scheme", json!("fp8"), &["--quant_scheme", "fp8"]);
            check(program, "kv_cache_scheme", Value::Null, &[]);
            check(program, "algorithm", json!("awq,gptq"), &["--quant_algo", "awq,gptq"]);
            check(program, "exclude_layers", json!([]), &["--exclude_layers"]);
            check(program, "exclude_layers", json!(["a", "*b"]), &["--exclude_layers", "a", "*b"]);
            check(
                program,
                "layer_quant_config",
                json!({"*k": "fp8", "*v": "int8"}),
                &["--layer_quant_scheme", "*k", "fp8", "--layer_quant_scheme", "*v", "int8"],
            );
            check(program, "calibration.seq_len", json!(64), &["--seq_len", "64"]);
            check(program, "device_strategy", json!("single"), &[]);
            check(program, "device_strategy", json!("cpu"), &["--device", "cpu"]);
            check(program, "device_strategy", json!("multi_device"), &["--multi_device"]);
            check(program, "evaluation_intent", json!("none"), &["--skip_evaluation"]);
            check(program, "evaluation_intent", json!("full"), &[]);
            check(program, "trust_remote_code", json!(false), &["--no_trust_remote_code"]);
            check(program, "trust_remote_code", json!(true), &[]);
        }
        check(cli, "template_file", json!("t.json"), &["--template_file", "t.json"]);
        check(cli, "export_format", json!("hf_format"), &[]);
        check(script, "export_format", json!("hf_format"), &["--model_export", "hf_format"]);
        check(script, "export_format", json!("none"), &[]);
        check(script, "device_strategy", json!("multi_gpu"), &["--multi_gpu"]);
        check(script, "device_strategy", json!("file_to_file"), &["--file2file_quantization"]);
        check(script, "min_kv_scale", json!(0.5), &["--min_kv_scale", "0.5"]);
        check(script, "kv_cache_post_rope", json!(true), &["--kv_cache_post_rope"]);
        check(script, "kv_cache_post_rope", json!(false), &[]);
        check(
            script,
            "algorithm_config",
            json!({"awq": "a.json"}),
            &["--quant_algo_config_file", "awq", "a.json"],
        );
    }
}
