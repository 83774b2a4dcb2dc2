//! Who brings the config of an algorithm: Quark's template, a template of the user's own, or a config file.

use serde_json::json;

use crate::{
    catalogue::torch_algorithms::TorchAlgorithm,
    facts::{
        named_files::{AlgorithmFile, Content},
        torch::LinearModule,
    },
    rules::{
        Context,
        sheet::{Sheet, list, show},
        torch::{algorithm, lookup},
    },
    vocab::{Origin, Severity},
};

const CONFIG: &str = "algorithm_config";

/// The config file of an algorithm, when there is one.
pub fn config_file(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(path) = ctx.requested(CONFIG).filter(|path| !path.is_null()) else { return };
    let named = ctx.files.and_then(|files| files.algorithm.as_ref());
    let path = named.map_or_else(|| path.clone(), |named| json!(named.path));
    let mut pen = sheet.by(algorithm::ID);
    match named.map(|named| &named.content) {
        Some(Content::Read(file)) => {
            let reason = format!("you asked for it: a config of `{}`", file.name);
            pen.decide(CONFIG, path, Origin::User, reason);
            layers_of(ctx, sheet, file);
        }
        Some(_) => {
            let text = format!(
                "{} is not on this machine, so nobody has looked whether it fits the model",
                show(&path)
            );
            pen.decide(CONFIG, path, Origin::User, "you asked for it");
            pen.risk(Severity::Medium, text, None);
        }
        None => {
            pen.decide(CONFIG, path, Origin::User, "you asked for it");
        }
    }
    sheet
        .torch
        .needs_script
        .push("the config file of an algorithm (`--quant_algo_config_file`)".to_owned());
}

/// What brings a config of an algorithm: the template, or the config file.
pub fn has_config(ctx: &Context<'_>, sheet: &Sheet, algorithm: &TorchAlgorithm) -> bool {
    of_template(ctx, sheet).contains(&algorithm.id.as_str()) || of_file(ctx, algorithm)
}

/// The algorithms that the template has a config for.
pub fn of_template(ctx: &Context<'_>, sheet: &Sheet) -> Vec<&'static str> {
    if let Some(own) = sheet.torch.own_template() {
        let all = ctx.catalogue.torch_algorithms().ids();
        return all.filter(|id| own.algorithms.iter().any(|name| name == id)).collect();
    }
    let Some(family) = sheet.torch.family else { return Vec::new() };
    ctx.catalogue
        .algorithms_for(&family.id, &sheet.release.id)
        .into_iter()
        .map(|one| one.id.as_str())
        .collect()
}

/// What brings the configs, in a sentence.
pub fn whose(ctx: &Context<'_>, sheet: &Sheet) -> String {
    match (sheet.torch.own_template(), sheet.torch.family) {
        (Some(_), _) => sheet.torch.template_name().unwrap_or_default(),
        (None, Some(family)) => format!("`{}`", family.id),
        (None, None) => format!("`{}`", ctx.analysis.model.model_type),
    }
}

/// What to say of an algorithm that nothing brings a config of.
pub fn without_config(ctx: &Context<'_>, sheet: &Sheet, one: &TorchAlgorithm) -> String {
    let whose = whose(ctx, sheet);
    let has = of_template(ctx, sheet);
    let missing = match sheet.torch.own_template() {
        Some(_) => format!("{whose} brings no config of `{}`", one.id),
        None => format!(
            "`{}` has no built-in config for {whose} in amd-quark {}",
            one.id, sheet.release.id
        ),
    };
    let file = ctx.files.and_then(|files| files.algorithm.as_ref()?.read());
    let instead = match (file, has.is_empty()) {
        (Some(file), _) => format!("the config file is one of `{}`", file.name),
        (None, true) => {
            format!("there is one for no algorithm, and `{CONFIG}` takes a config file")
        }
        (None, false) => {
            format!("there is one for {}, and `{CONFIG}` takes a config file", list(&has, 9))
        }
    };
    format!("{missing}, a NotImplementedError after loading; {instead}")
}

/// Which modules the layers of a config are, and those that are none.
fn layers_of(ctx: &Context<'_>, sheet: &mut Sheet, file: &AlgorithmFile) {
    let Some(modules) = ctx.modules else { return };
    let decoder = file.decoder_layers.as_deref().map(|path| format!("{path}."));
    let inside = |name: &str| decoder.as_ref().is_none_or(|path| name.starts_with(path.as_str()));
    let mut lost: Vec<&str> = Vec::new();
    for layer in &file.layers {
        let own = |module: &&LinearModule| {
            let before = module.name.strip_suffix(layer.as_str());
            inside(&module.name)
                && before.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let found: Vec<&LinearModule> = modules.linears.iter().filter(own).collect();
        if found.is_empty() {
            lost.push(layer);
        }
        sheet.expected.matches.push(lookup::matched(CONFIG, layer, &found));
    }
    if !lost.is_empty() {
        let place = file.decoder_layers.as_deref().unwrap_or("the model");
        let text = format!(
            "the config of `{}` works on layers that {place} does not have as linear modules: {}",
            file.name,
            list(&lost, 6)
        );
        let kinds = list(lookup::kinds(modules), 9);
        sheet.by(algorithm::ID).risk(
            Severity::High,
            text,
            Some(format!("the modules are called {kinds}")),
        );
    }
}

/// Whether the config file is one of an algorithm; one that was not looked at may be.
fn of_file(ctx: &Context<'_>, algorithm: &TorchAlgorithm) -> bool {
    let file = ctx.files.and_then(|files| files.algorithm.as_ref()?.read());
    ctx.requested(CONFIG).is_some_and(|path| !path.is_null())
        && file.is_none_or(|file| algorithm.id == *file.name.as_str())
}
