//! Checks patterns of modules against the modules that the model has.

use crate::{
    catalogue::{Catalogue, entry_points::Flag},
    rules::{Context, request::Defect, sheet::list, torch::lookup},
    vocab::near_names,
};

/// What is wrong with patterns: those that match no module, with names near them.
///
/// A pattern of the family's own template is not questioned: it may be for names that only the loaded model
/// has. Without modules nothing can be said.
pub fn patterns(ctx: &Context<'_>, row: &str, patterns: &[&str]) -> Vec<Defect> {
    let mut defects: Vec<Defect> = patterns
        .iter()
        .filter(|pattern| pattern.trim().is_empty())
        .map(|_| Defect::new(format!("`{row}` holds an empty pattern")))
        .collect();
    let Some(modules) = ctx.modules else { return defects };
    let family = ctx.catalogue.families().get(&ctx.analysis.model.model_type);
    let file = ctx.files.and_then(|files| files.template.as_ref()?.read());
    let own = |pattern: &str| {
        file.is_some_and(|file| file.exclude_layers.iter().any(|known| known == pattern))
            || family.is_some_and(|family| {
                ctx.catalogue
                    .releases()
                    .ids()
                    .any(|id| family.excludes_in(&id.into()).iter().any(|known| known == pattern))
            })
    };
    // What a plan adds for draft layers that only the config tells of can be handed back.
    let layers = ctx.analysis.model.num_hidden_layers.unwrap_or(u64::MAX);
    let drafts = ctx.torch().mtp_layers.is_some_and(|layers| layers > 0);
    let draft = |pattern: &str| {
        let number = |part: &str| part.parse::<u64>().is_ok_and(|at| at >= layers);
        drafts && (pattern.contains("mtp") || pattern.split('.').any(number))
    };
    let judged = |pattern: &&&str| !pattern.trim().is_empty() && !own(pattern) && !draft(pattern);
    for pattern in patterns.iter().filter(judged) {
        if lookup::matching(modules, pattern).next().is_some() {
            continue;
        }
        let kinds = lookup::kinds(modules);
        let bare = pattern.trim_matches(['*', '.']);
        let last = bare.rsplit('.').next().unwrap_or(bare);
        let mut near = near_names(bare, kinds.iter().map(String::as_str));
        near.extend(near_names(last, kinds.iter().map(String::as_str)));
        near.dedup();
        let hint = if near.is_empty() {
            format!("the modules are called {}", list(&kinds, 8))
        } else {
            format!("did you mean {}?", list(near.iter().map(|name| format!("*{name}")), 3))
        };
        defects.push(
            Defect::new(format!(
                "`{pattern}` in `{row}` matches no module of the model, and Quark would ignore it silently"
            ))
            .hint(hint),
        );
    }
    defects
}

/// The flag that names the calibration data set; every entry point has the same choices.
pub fn dataset_flag(catalogue: Catalogue) -> Option<&'static Flag> {
    catalogue.entry_points().all().iter().find_map(|entry| entry.flag_for("calibration.dataset"))
}

/// The data sets that load.
pub fn datasets(catalogue: Catalogue) -> Vec<&'static str> {
    dataset_flag(catalogue).map(|flag| flag.usable_choices().collect()).unwrap_or_default()
}
