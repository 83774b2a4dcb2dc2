//! Prompts: texts under `prompts/` with holes, and the arguments that fill them.

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role},
};
use serde_json::{Value, json};

use crate::{
    mcp::{
        complete::Source,
        icons::{PLAN, icon},
    },
    render::clean,
    vocab::near_names,
};

/// A prompt.
struct Definition {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
    /// The text; `{{name}}` is the hole for an argument.
    text: &'static str,
}

/// An argument of a prompt.
struct Argument {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// What fills the hole when it is left out; `None` when it must be given.
    otherwise: Option<&'static str>,
    source: Source,
}

const SESSION: Argument = Argument {
    name: "session_id",
    title: "Session",
    description: "The planning session, for example from `quantplan sessions`",
    otherwise: None,
    source: Source::Sessions,
};

const GOAL: Argument = Argument {
    name: "goal",
    title: "Goal",
    description: "What matters, in your own words: size, speed, accuracy",
    otherwise: Some("not said"),
    source: Source::None,
};

const OUTPUT: Argument = Argument {
    name: "output",
    title: "Output",
    description: "Where to write the plan",
    otherwise: Some("quant_plan.json beside the model"),
    source: Source::None,
};

const PROMPTS: [Definition; 4] = [
    Definition {
        name: "plan-onnx-ptq",
        title: "Plan the quantization of an ONNX model",
        description: "From an .onnx file to a confirmed quant_plan.json, with the user asked where it matters.",
        arguments: &[
            Argument {
                name: "model",
                title: "Model",
                description: "Path of the .onnx file, or of a folder that holds one",
                otherwise: None,
                source: Source::None,
            },
            Argument {
                name: "target",
                title: "Deployment target",
                description: "Where the quantized model will run",
                otherwise: Some("not said yet; ask me, do not assume one"),
                source: Source::Entries("targets"),
            },
            GOAL,
            OUTPUT,
        ],
        text: include_str!("../../prompts/plan-onnx-ptq.md"),
    },
    Definition {
        name: "plan-torch-ptq",
        title: "Plan the quantization of a Hugging Face model",
        description: "From a model folder to a confirmed quant_plan.json, with the user asked where it matters.",
        arguments: &[
            Argument {
                name: "model",
                title: "Model",
                description: "Path of the folder with config.json and the safetensors files",
                otherwise: None,
                source: Source::None,
            },
            Argument {
                name: "hardware",
                title: "Devices",
                description: "What it will run on, for example MI300X",
                otherwise: Some("not said"),
                source: Source::Entries("devices"),
            },
            Argument {
                name: "engine",
                title: "Serving engine",
                description: "What will serve it, for example vllm",
                otherwise: Some("not said"),
                source: Source::Entries("engines"),
            },
            GOAL,
            OUTPUT,
        ],
        text: include_str!("../../prompts/plan-torch-ptq.md"),
    },
    Definition {
        name: "review-plan",
        title: "Review a plan before confirming it",
        description: "Goes through the decision table of a session with a critical eye; confirms nothing.",
        arguments: &[SESSION],
        text: include_str!("../../prompts/review-plan.md"),
    },
    Definition {
        name: "recover",
        title: "Recover from an error",
        description: "Finds the skill that repairs an error or a missing artefact, and the way back to the plan.",
        arguments: &[
            Argument {
                name: "error",
                title: "Error",
                description: "The error text or traceback, or what is missing",
                otherwise: None,
                source: Source::None,
            },
            Argument { otherwise: Some("none"), ..SESSION },
        ],
        text: include_str!("../../prompts/recover.md"),
    },
];

/// The prompts as a client sees them.
pub(super) fn list() -> Vec<Prompt> {
    PROMPTS
        .iter()
        .map(|prompt| {
            let arguments = prompt.arguments.iter().map(|argument| {
                PromptArgument::new(argument.name)
                    .with_title(argument.title)
                    .with_description(argument.description)
                    .with_required(argument.otherwise.is_none())
            });
            Prompt::new(prompt.name, Some(prompt.description), Some(arguments.collect()))
                .with_title(prompt.title)
                .with_icons(vec![icon(PLAN)])
        })
        .collect()
}

/// A prompt with its holes filled.
///
/// # Errors
///
/// When there is no such prompt, or an argument is missing or no text.
pub(super) fn get(name: &str, given: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let prompt = find(name)?;
    let mut text = String::with_capacity(prompt.text.len());
    let mut rest = prompt.text;
    // What fills a hole is never searched for holes itself.
    while let Some((before, hole, after)) = next_hole(rest) {
        text.push_str(before);
        text.push_str(&filling(prompt, hole, given)?);
        rest = after;
    }
    text.push_str(rest);
    let message = PromptMessage::new_text(Role::User, text.trim_end());
    Ok(GetPromptResult::new(vec![message]).with_description(prompt.description))
}

/// What an argument of a prompt can be completed with.
///
/// # Errors
///
/// When there is no such prompt.
pub(super) fn source(prompt: &str, argument: &str) -> Result<Source, ErrorData> {
    let arguments = find(prompt)?.arguments;
    Ok(arguments.iter().find(|known| known.name == argument).map_or(Source::None, |a| a.source))
}

fn find(name: &str) -> Result<&'static Definition, ErrorData> {
    PROMPTS.iter().find(|prompt| prompt.name == name).ok_or_else(|| {
        let near = near_names(name, PROMPTS.iter().map(|prompt| prompt.name));
        let message = format!("unknown prompt `{}`", clean(name));
        ErrorData::invalid_params(message, Some(json!({ "near": near })))
    })
}

/// The text before the next hole, the name in it, and the text after it.
fn next_hole(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    Some((before, name, after))
}

fn filling(prompt: &Definition, hole: &str, given: &JsonObject) -> Result<String, ErrorData> {
    let otherwise =
        prompt.arguments.iter().find(|known| known.name == hole).and_then(|known| known.otherwise);
    match given.get(hole) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(clean(text.trim())),
        Some(Value::String(_) | Value::Null) | None => {
            otherwise.map(str::to_owned).ok_or_else(|| {
                ErrorData::invalid_params(format!("the prompt needs the argument `{hole}`"), None)
            })
        }
        Some(_) => {
            Err(ErrorData::invalid_params(format!("the argument `{hole}` is not text"), None))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn holes_are_arguments_and_arguments_are_holes() {
        for prompt in &PROMPTS {
            let mut holes = BTreeSet::new();
            let mut rest = prompt.text;
            while let Some((_, hole, after)) = next_hole(rest) {
                holes.insert(hole);
                rest = after;
            }
            let arguments: BTreeSet<&str> = prompt.arguments.iter().map(|a| a.name).collect();
            assert_eq!(holes, arguments, "prompt `{}`", prompt.name);
        }
    }

    #[test]
    fn every_prompt_file_is_a_prompt() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/prompts");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let prompts: BTreeSet<String> = PROMPTS.iter().map(|p| format!("{}.md", p.name)).collect();
        assert_eq!(files, prompts);
    }

    #[test]
    fn what_fills_a_hole_is_not_searched_for_holes() {
        let mut given = JsonObject::new();
        given.insert("error".to_owned(), json!("{{session_id}} {{nothing}}\u{1b}"));
        let text = serde_json::to_string(&get("recover", &given).unwrap()).unwrap();
        assert!(text.contains("{{session_id}} {{nothing}}\u{fffd}"), "{text}");
    }
}
