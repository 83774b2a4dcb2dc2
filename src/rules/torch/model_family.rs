//! # What it does
//!
//! Finds Quark's template for the model. Without one it asks for a template file, and reads it: its lists take the
//! place of Quark's. It never borrows the template of another family.
//!
//! # Why
//!
//! The template says which layers are left alone, which make the KV cache and which algorithms have a config.
//! A `model_type` without one is a ValueError after everything was installed, and so is a template with another
//! `model_type` or an unknown key.
//!
//! # Example
//!
//! `model_type` is `olmo2`, which amd-quark 0.13 has no template for: write one, after that of `olmo`, and
//! answer `custom_template` with its path.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/config/template.py:798`; `quark/cli/torch_llm_ptq.py`, `--template_file`; `register_template.py`

use serde_json::json;

use crate::{
    facts::named_files::Content,
    rules::{
        Context, Stage,
        sheet::{Sheet, list},
    },
    vocab::{Origin, Severity, near_names},
};

/// The reason code.
pub const ID: &str = "model-family";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "template_file";

/// Finds the template, or asks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let model_type = &ctx.analysis.model.model_type;
    let families = ctx.catalogue.families();
    let family = families.get(model_type);
    let file = ctx.answer("custom_template").or_else(|| ctx.requested(ROW)?.as_str());
    sheet.torch.family = family.filter(|family| sheet.has(ctx, *family));
    if let Some(file) = file {
        let said = if sheet.torch.family.is_some() {
            "you give a template of your own"
        } else {
            "Quark has no template for this family, and you give one"
        };
        let named = ctx.files.and_then(|files| files.template.as_ref());
        // The programs change their working directory, so a path that is known is written whole.
        let path = named.map_or(file, |named| named.path.as_str());
        sheet.by(ID).decide(ROW, json!(path), Origin::User, said);
        if named.is_some_and(|named| named.content == Content::Missing) {
            sheet.by(ID).risk(
                Severity::Medium,
                format!("`{path}` is not on this machine, so nobody has looked whether it fits the model"),
                Some("give a path that can be read here, or look at `model_type`, `kv_layers_name` and `exclude_layers_name` in it".to_owned()),
            );
        }
        sheet.torch.template = named.cloned();
        takes_files(ctx, sheet);
        return;
    }
    if sheet.torch.family.is_some() {
        return;
    }
    let release = sheet.release.id.clone();
    let with: Vec<&str> = family
        .map(|family| ctx.catalogue.releases_with(family).iter().map(|id| id.as_str()).collect())
        .unwrap_or_default();
    // Nobody mistypes a `model_type`: another family is only near when it is of the same make.
    let make =
        |name: &str| name.split(|c: char| !c.is_ascii_alphabetic()).next().map(str::to_owned);
    let kin = families.ids().filter(|id| make(id) == make(model_type));
    let near = near_names(model_type, kin);
    let mut text = format!("amd-quark {release} has no template for `{model_type}`");
    if !with.is_empty() {
        text.push_str(&format!("; {} has: set `quark_version`, or", list(&with, 3)));
    } else if !near.is_empty() {
        text.push_str(&format!("; the nearest names are {}.", list(near, 3)));
    } else {
        text.push('.');
    }
    text.push_str(" Give the path of a template file (JSON with model_type, kv_layers_name, q_layer_name and exclude_layers_name).");
    let mut pen = sheet.by(ID);
    pen.leave_open(ROW, "Quark has no template for this family");
    pen.ask("custom_template", text, Vec::new());
    if ctx.torch().is_causal() == Some(false) {
        let class = ctx.torch().architectures.first().unwrap_or(model_type);
        pen.risk(
            Severity::High,
            format!(
                "`{class}` is no causal language model, and both programs of Quark-Torch calibrate and evaluate such models only"
            ),
            Some("export it to ONNX and plan that".to_owned()),
        );
    }
}

/// `--template_file` came late.
fn takes_files(ctx: &Context<'_>, sheet: &mut Sheet) {
    let entry = ctx.catalogue.entry_points().all().iter().find_map(|entry| entry.flag_for(ROW));
    let since = entry.and_then(|flag| flag.since.as_ref());
    let late = since.is_some_and(|since| !ctx.catalogue.not_before(since, &sheet.release.id));
    if late {
        let release = sheet.release.id.clone();
        sheet.by(ID).risk(
            Severity::High,
            format!("amd-quark {release} has no --template_file: register the template in a script (LLMTemplate.register_template)"),
            Some("or set `quark_version` to 0.13".to_owned()),
        );
    }
}
