//! Who must do something before there can be a draft.

use serde_json::json;

use crate::{
    intent::Intent,
    plan::{Handoff, Resume},
    planner::{Planner, context, error::Error, propose::Arguments, reading::Bundle},
    vocab::{Backend, RuleId, SkillId},
};

impl Planner {
    /// Without any analysis there is nothing to reason about.
    pub(super) fn missing_analysis(&self, arguments: &Arguments) -> Result<Option<Handoff>, Error> {
        let given = [
            arguments.model_path.is_some(),
            arguments.analysis_path.is_some(),
            arguments.analysis.is_some(),
        ];
        match given.iter().filter(|given| **given).count() {
            1 => return Ok(None),
            0 => {}
            _ => {
                return Err(Error::Arguments {
                    message: "the model is given more than once".to_owned(),
                    hint: "give one of `model_path`, `analysis_path` and `analysis`".to_owned(),
                });
            }
        }
        let context = self.session_context(arguments)?;
        if context.as_ref().is_some_and(|context| context.value.model_analysis_ref.is_some()) {
            return Ok(None);
        }
        let settled = context.and_then(|context| context::backend(&context.value));
        let skill = match arguments.backend.or(settled) {
            Some(Backend::Torch) => "quark-torch-model-intake",
            Some(Backend::Onnx) | None => "quark-onnx-model-intake",
        };
        let mut resume = json!({ "analysis_path": "<path of model_analysis.json>" });
        if arguments.intent != Intent::default() {
            resume["intent"] = json!(arguments.intent);
        }
        Ok(Some(Handoff {
            skill: SkillId::new(skill),
            reason: "there is no model analysis, and without the architecture, the op histogram and the \
                     quantization state no decision can be reasoned"
                .to_owned(),
            artefact: Some("model_analysis.json".to_owned()),
            bring_back: "`model_analysis.json`, or the path of the model: `analyze_model` reads it here in \
                         milliseconds"
                .to_owned(),
            resume: Resume { tool: "propose_plan".to_owned(), arguments: resume },
            rule: RuleId::new("analysis-first"),
        }))
    }
}

/// A model that is not here: nothing is fetched over the network.
pub(super) fn on_the_hub(id: &str) -> Handoff {
    Handoff {
        skill: SkillId::new("quark-torch-model-intake"),
        reason: format!(
            "`{id}` looks like a model on the Hugging Face Hub; it is not here, and nothing is fetched"
        ),
        artefact: Some("model_analysis.json".to_owned()),
        bring_back:
            "the analysis of that model, or its folder with `config.json` and the safetensors files"
                .to_owned(),
        resume: Resume {
            tool: "propose_plan".to_owned(),
            arguments: json!({ "analysis_path": "<path of model_analysis.json>" }),
        },
        rule: RuleId::new("analysis-first"),
    }
}

/// A request for the one half of Quark with a model of the other.
pub(super) fn other_half(asked: Option<Backend>, bundle: &Bundle) -> Option<Handoff> {
    let is_onnx = bundle.analysis.model.model_type == "onnx";
    let own = if is_onnx { Backend::Onnx } else { Backend::Torch };
    if asked.is_none_or(|asked| asked == own) {
        return None;
    }
    let (skill, what, bring) = if is_onnx {
        (
            "quark-torch-model-intake",
            "an ONNX file, and the Torch flow takes Hugging Face models",
            "an analysis of the Hugging Face model that the file was exported from",
        )
    } else {
        (
            "quark-onnx-model-intake",
            "a Hugging Face model, and the ONNX flow takes `.onnx` files",
            "an analysis of the exported `.onnx` file; or propose again without `backend`",
        )
    };
    Some(Handoff {
        skill: SkillId::new(skill),
        reason: format!("the model is {what}"),
        artefact: Some("model_analysis.json".to_owned()),
        bring_back: bring.to_owned(),
        resume: Resume {
            tool: "propose_plan".to_owned(),
            arguments: json!({ "analysis_path": "<path of model_analysis.json>" }),
        },
        rule: RuleId::new("analysis-first"),
    })
}
