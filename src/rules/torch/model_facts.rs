//! # What it does
//!
//! Stops when nothing says what the model is; records what a partial analysis leaves out.
//!
//! # Why
//!
//! Without a `model_type` there is no template, without sizes no check of groups and memory. A GGUF file holds
//! quantized weights in a layout that Quark does not read.
//!
//! # Example
//!
//! The folder holds a GGUF file and no `config.json`, so the intake is asked for the Hugging Face model.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/torch/quark-torch-quant-plan/SKILL.md`, "Rules":
//!   "Require a model analysis first"; "Recovery": a draft with the missing facts

use serde_json::json;

use crate::{
    facts::AnalysisStatus,
    rules::{
        Context, Stage,
        sheet::{Route, Sheet, list, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "model-facts";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// Looks at what the analysis holds.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let model = &ctx.analysis.model;
    let facts = ctx.torch();
    let gguf = facts.weights.as_ref().is_some_and(|weights| weights.format == "gguf");
    let unknown = ["unknown", "gguf", ""].contains(&model.model_type.as_str());
    if gguf || unknown {
        let reason = if gguf {
            "the weights are a GGUF file, which is quantized already and which Quark does not read"
        } else {
            "nothing says what kind of model it is (`model_type`), so there is no template and no recommendation"
        };
        sheet.by(ID).stop(Route {
            skill: "quark-torch-model-intake",
            reason: reason.to_owned(),
            artefact: Some("model_analysis.json"),
            bring_back:
                "an analysis of the Hugging Face model: its `config.json` and safetensors files"
                    .to_owned(),
            resume: (
                "propose_plan",
                propose_again(ctx, ("analysis_path", json!("<path of model_analysis.json>"))),
            ),
        });
        return;
    }
    let missing: Vec<&str> = [
        ("num_hidden_layers", model.num_hidden_layers.is_none()),
        ("hidden_size", model.hidden_size.is_none()),
        ("the names and shapes of its modules", ctx.modules.is_none()),
    ]
    .iter()
    .filter_map(|(name, missing)| missing.then_some(*name))
    .collect();
    if !missing.is_empty() {
        sheet.by(ID).risk(
            Severity::Medium,
            format!(
                "the analysis lacks {}; patterns, groups and sizes that follow from them are not checked",
                list(&missing, 4)
            ),
            Some("analyse the folder with its safetensors files: their headers are enough".to_owned()),
        );
    } else if ctx.analysis.analysis_status == AnalysisStatus::Partial {
        sheet.by(ID).risk(
            Severity::Medium,
            "the analysis is not complete: its own risks say what is missing",
            Some("analyse the whole folder with `analyze_model`".to_owned()),
        );
    }
}
