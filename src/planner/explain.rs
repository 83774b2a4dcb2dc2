//! `explain`: what the catalogue and the rules say about a name, or about two beside each other.

mod cards;
mod comparison;
mod here;
mod related;
mod search;
mod things;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    catalogue::Source,
    plan::Draft,
    planner::{
        Planner,
        error::Error,
        explain::{comparison::comparison, search::Meant, things::Thing},
        propose,
        reading::Reading,
    },
    rules::sheet::list,
    vocab::{Backend, SessionId},
};

/// Arguments of `explain`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// A name: of a preset, calibration method, ONNX algorithm, extra option or deployment target of Quark-ONNX;
    /// of a scheme, Torch algorithm, model family, entry point or serving engine of Quark-Torch; of a device,
    /// release, rule, decision, skill or known error. Or free words. Where a name means several things,
    /// `kind:name` says which, for example `scheme:mxfp4`.
    pub id: String,
    /// Another one of the same kind to compare with.
    #[serde(default)]
    pub compare_with: Option<String>,
    /// A model to say what the names mean for.
    #[serde(default)]
    pub model_path: Option<PathBuf>,
    /// A session to say what the names mean for.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// The answer of `explain`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The name as it is spelled.
    pub id: String,
    /// What it is, for example `preset`.
    pub kind: String,
    /// What there is to say, in Markdown. Show it to the user.
    pub markdown: String,
    /// The facts as data.
    pub facts: Value,
    /// Where they come from.
    pub sources: Vec<Source>,
    /// Other names that belong to it; one with a colon is another thing of the same name.
    pub related: Vec<String>,
}

impl Planner {
    /// Explains a name, or what free words ask for.
    ///
    /// # Errors
    ///
    /// When there is nothing of that name, with names near it; when the model or the session cannot be read.
    pub fn explain(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let mut place = self.place(arguments)?;
        let half = place.as_ref().map(|(reading, _)| here::half(reading));
        let (first, second, also) = meant(arguments, half)?;
        let mut markdown = match second {
            None => cards::card(first),
            Some(second) => comparison(first, second),
        };
        if let Some((reading, draft)) = &mut place {
            let mut lines = here::verdict(first, reading, draft.as_ref())?;
            if let Some(second) = second {
                lines.extend(here::verdict(second, reading, draft.as_ref())?);
            }
            if lines.is_empty() {
                lines.push("Nothing depends on it here".to_owned());
            }
            markdown.push_str(&format!("\n**For this model** ({}):\n\n", here::about(reading)));
            for line in lines {
                markdown.push_str(&format!("- {line}\n"));
            }
        }
        let mut sources = first.sources();
        sources.extend(second.map(Thing::sources).unwrap_or_default());
        let mut known = Vec::new();
        sources.retain(|source| {
            let new = !known.contains(source);
            known.push(source.clone());
            new
        });
        let namesakes = related::namesakes(first, second, &also);
        markdown.push_str(&related::namesakes_line(&namesakes));
        let mut related = related::related(first, second, &also);
        // A topic's table has its names already.
        if !related.is_empty() && !matches!(first, Thing::Topic(_)) {
            markdown.push_str(&format!("\nSee also: {}.\n", list(&related, 12)));
        }
        related.splice(0..0, namesakes.into_iter().map(Thing::address));
        markdown.push_str(&cards::sources_line(&sources));
        let facts = match second {
            None => first.facts(),
            Some(second) if second.id() == first.id() => {
                json!({ first.address(): first.facts(), second.address(): second.facts() })
            }
            Some(second) => json!({ first.id(): first.facts(), second.id(): second.facts() }),
        };
        let id = match second {
            None => first.id().to_owned(),
            Some(second) => format!("{} vs {}", first.id(), second.id()),
        };
        let kind = match second {
            Some(second) if second.kind() != first.kind() => {
                format!("{} and {}", first.kind(), second.kind())
            }
            _ => first.kind().to_owned(),
        };
        Ok(Reply { id, kind, markdown, facts, sources, related })
    }

    /// The model or session that the question is about.
    fn place(&self, arguments: &Arguments) -> Result<Option<(Reading, Option<Draft>)>, Error> {
        match (&arguments.session_id, &arguments.model_path) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Error::Arguments {
                message: "both a session and a model are given".to_owned(),
                hint: "give `session_id` or `model_path`; a session knows its model".to_owned(),
            }),
            (Some(id), None) => {
                let session = self.session(id)?;
                Ok(Some((self.next_reading(&session)?, Some(session.draft().clone()))))
            }
            (None, Some(path)) => {
                let request =
                    propose::Arguments { model_path: Some(path.clone()), ..Default::default() };
                Ok(Some((self.first_reading(&request)?, None)))
            }
        }
    }
}

/// The thing, another one to compare it with, and others that were meant too.
fn meant(
    arguments: &Arguments,
    half: Option<Backend>,
) -> Result<(Thing, Option<Thing>, Vec<Thing>), Error> {
    let unknown = |name: &str, near| Error::UnknownName { name: name.to_owned(), near };
    let (first, second, mut also) = match search::meant(&arguments.id, half) {
        Meant::One(thing, also) => (thing, None, also),
        Meant::Two(first, second, also) => (first, Some(second), also),
        Meant::Nothing(near) => return Err(unknown(&arguments.id, near)),
    };
    let Some(name) = &arguments.compare_with else { return Ok((first, second, also)) };
    let (other, others) = match search::meant(name, half) {
        Meant::One(thing, also) => (thing, also),
        Meant::Two(first, _, also) => (first, also),
        Meant::Nothing(near) => return Err(unknown(name, near)),
    };
    // A name that means several things means the one that can be compared.
    let candidates = |head: Thing, rest: &[Thing]| {
        let names = rest.iter().filter(|thing| !matches!(thing, Thing::Topic(_)));
        std::iter::once(head).chain(names.copied()).collect::<Vec<_>>()
    };
    let lefts = candidates(first, &also);
    let rights = candidates(other, &others);
    let same = lefts.iter().find_map(|left| {
        let right = rights.iter().find(|right| right.kind() == left.kind())?;
        Some((*left, *right))
    });
    also.extend(second);
    // Two names that differ in capitals only are meant as they are spelled.
    let by_spelling = arguments.id.eq_ignore_ascii_case(name) && arguments.id != *name;
    let pair = if by_spelling { None } else { same };
    let (left, right) = pair.unwrap_or((first, other));
    Ok((left, Some(right), also))
}
