//! Checks the files that a request names against what Quark takes.

use crate::{
    facts::named_files::{Content, NamedFile},
    rules::{Context, request::Defect, sheet::list},
    vocab::near_names,
};

/// What is wrong with a template file and with the config file of an algorithm, when they were looked at; a
/// file that is not on this machine may be on another.
pub fn defects(ctx: &Context<'_>) -> Vec<Defect> {
    let Some(files) = ctx.files else { return Vec::new() };
    let template = files.template.as_ref().and_then(|file| match broken(file, "template") {
        Some(defect) => Some(defect),
        None => wrong_model(ctx, &file.path, &file.read()?.model_type),
    });
    let algorithm =
        files.algorithm.as_ref().and_then(|file| match broken(file, "config of an algorithm") {
            Some(defect) => Some(defect),
            None => unknown(ctx, &file.path, &file.read()?.name),
        });
    template.into_iter().chain(algorithm).collect()
}

fn broken<T>(file: &NamedFile<T>, what: &str) -> Option<Defect> {
    let Content::Broken(why) = &file.content else { return None };
    let message = format!("`{}` is no {what} that Quark reads: {why}", file.path);
    Some(Defect::new(message).hint("mend the file, then revise"))
}

/// A template for another `model_type` is a ValueError in Quark.
fn wrong_model(ctx: &Context<'_>, path: &str, model_type: &str) -> Option<Defect> {
    let own = &ctx.analysis.model.model_type;
    (own != model_type).then(|| {
        Defect::new(format!(
            "`{path}` is a template for `{model_type}`, and the model is `{own}`: a ValueError in Quark"
        ))
        .hint(format!("set its `model_type` to `{own}`"))
    })
}

fn unknown(ctx: &Context<'_>, path: &str, name: &str) -> Option<Defect> {
    let known = ctx.catalogue.torch_algorithms();
    if known.get(name).is_some() {
        return None;
    }
    let near = near_names(name, known.ids());
    let hint = if near.is_empty() {
        format!("known are {}", list(known.ids(), 12))
    } else {
        format!("did you mean {}?", list(near, 3))
    };
    Some(
        Defect::new(format!(
            "`{path}` is a config of `{name}`, which is no algorithm of Quark-Torch"
        ))
        .hint(hint),
    )
}
