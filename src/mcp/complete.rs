//! Completions of every id that a prompt or a resource takes.

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use crate::{
    mcp::{prompts, resources},
    planner::Planner,
    vocab::near_names,
};

/// What an argument of a prompt can be completed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing: it is free text or a path.
    None,
    /// Sessions, newest first.
    Sessions,
    /// Names of entries of this kind of the catalogue, other spellings too.
    Entries(&'static str),
}

/// The values that begin with, contain or resemble what was typed.
///
/// # Errors
///
/// When there is no such prompt or template.
pub(super) fn complete(
    planner: &Planner,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = request.argument.name.as_str();
    let known: Vec<String> = match &request.r#ref {
        Reference::Prompt(prompt) => match prompts::source(&prompt.name, argument)? {
            Source::None => Vec::new(),
            Source::Sessions => sessions(planner),
            Source::Entries(kind) => owned(resources::names(kind)),
        },
        Reference::Resource(resource) => {
            let before = request.context.as_ref();
            let kind = before.and_then(|context| context.get_argument("kind"));
            match (resource.uri.as_str(), argument) {
                (resources::CATALOGUE_ENTRY, "kind") => owned(resources::kinds()),
                (resources::CATALOGUE_ENTRY, "id") => {
                    owned(resources::entries(kind.map(String::as_str)))
                }
                (resources::RULE, "id") => owned(planner.rule_ids()),
                (resources::SCHEMA, "name") => owned(resources::schemas()),
                (uri, "id") if resources::is_session_template(uri) => sessions(planner),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    let mut values = matching(&request.argument.value, &known);
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let more = total > values.len();
    CompletionInfo::with_pagination(values, u32::try_from(total).ok(), more)
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

fn matching(typed: &str, known: &[String]) -> Vec<String> {
    let typed = typed.to_lowercase();
    let (begin, rest): (Vec<&String>, Vec<&String>) =
        known.iter().partition(|value| value.to_lowercase().starts_with(&typed));
    let contain = rest.into_iter().filter(|value| value.to_lowercase().contains(&typed));
    let found: Vec<String> = begin.into_iter().chain(contain).cloned().collect();
    if found.is_empty() {
        owned(near_names(&typed, known.iter().map(String::as_str)))
    } else {
        found
    }
}

fn sessions(planner: &Planner) -> Vec<String> {
    match planner.session_ids() {
        Ok(ids) => ids.iter().map(ToString::to_string).collect(),
        Err(error) => {
            tracing::warn!("sessions cannot be listed: {}", error.whole());
            Vec::new()
        }
    }
}

fn owned<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
