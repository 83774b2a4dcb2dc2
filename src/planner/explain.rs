//! `explain`: what the catalogue and the rules say about a name, or about two beside each other.

mod cards;
mod here;
mod search;
mod things;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    catalogue::{Catalogue, Source},
    plan::Draft,
    planner::{
        Planner,
        error::Error,
        explain::{cards::prose, search::Meant, things::Thing},
        propose::{self, Reading},
    },
    rules::sheet::list,
    vocab::SessionId,
};

/// Arguments of `explain`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// A preset, calibration method, algorithm, extra option, target, device, release, rule, decision or skill; or free words.
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
    /// Other names that belong to it.
    pub related: Vec<String>,
}

impl Planner {
    /// Explains a name, or what free words ask for.
    ///
    /// # Errors
    ///
    /// When there is nothing of that name, with names near it; when the model or the session cannot be read.
    pub fn explain(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let (first, second, also) = self.meant(arguments)?;
        let mut place = self.place(arguments)?;
        let mut markdown = match second {
            None => cards::card(first),
            Some(second) => comparison(first, second),
        };
        if let Some((reading, draft)) = &mut place {
            for thing in [Some(first), second].into_iter().flatten() {
                markdown.push_str(&here::verdict(thing, reading, draft.as_ref())?);
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
        let related = related(first, second, &also);
        // A topic's table has its names already.
        if !related.is_empty() && !matches!(first, Thing::Topic(_)) {
            markdown.push_str(&format!("\nSee also: {}.\n", list(&related, 12)));
        }
        markdown.push_str(&cards::sources_line(&sources));
        let facts = match second {
            None => first.facts(),
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

    /// The thing, another one to compare it with, and others that were meant too.
    fn meant(&self, arguments: &Arguments) -> Result<(Thing, Option<Thing>, Vec<Thing>), Error> {
        let unknown = |name: &str, near| Error::UnknownName { name: name.to_owned(), near };
        let (first, second, mut also) = match search::meant(&arguments.id) {
            Meant::One(thing, also) => (thing, None, also),
            Meant::Two(first, second, also) => (first, Some(second), also),
            Meant::Nothing(near) => return Err(unknown(&arguments.id, near)),
        };
        let Some(name) = &arguments.compare_with else { return Ok((first, second, also)) };
        let (other, others) = match search::meant(name) {
            Meant::One(thing, also) => (thing, also),
            Meant::Two(first, _, also) => (first, also),
            Meant::Nothing(near) => return Err(unknown(name, near)),
        };
        // A name that means several things means the one that can be compared.
        let candidates = |head: Thing, rest: &[Thing]| {
            std::iter::once(head).chain(rest.iter().copied()).collect::<Vec<_>>()
        };
        let lefts = candidates(first, &also);
        let rights = candidates(other, &others);
        let same = lefts.iter().find_map(|left| {
            let right = rights.iter().find(|right| right.kind() == left.kind())?;
            Some((*left, *right))
        });
        also.extend(second);
        let (left, right) = same.unwrap_or((first, other));
        Ok((left, Some(right), also))
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

/// Two things beside each other: what differs, then when to pick which.
fn comparison(first: Thing, second: Thing) -> String {
    let (a, b) = (first.id(), second.id());
    let mut out = format!(
        "**`{a}`**: {}.\n**`{b}`**: {}.\n",
        prose(&first.summary()),
        prose(&second.summary())
    );
    if first.is(second) {
        return format!("`{a}` and `{b}` are the same.\n\n{}", cards::card(first));
    }
    out = out.replacen(".\n**", ".  \n**", 1);
    if first.kind() == second.kind() {
        let (left, right) = (cards::facts(first), cards::facts(second));
        let value = |facts: &[(String, String)], what: &str| {
            facts
                .iter()
                .find(|fact| fact.0 == what)
                .map_or_else(|| "–".to_owned(), |fact| prose(&fact.1))
        };
        let mut rows: Vec<&str> = left.iter().map(|fact| fact.0.as_str()).collect();
        rows.extend(right.iter().map(|f| f.0.as_str()).filter(|w| !left.iter().any(|f| f.0 == *w)));
        let rows: Vec<[String; 3]> = rows
            .into_iter()
            .map(|what| [prose(what), value(&left, what), value(&right, what)])
            .filter(|[_, a, b]| a != b)
            .collect();
        if rows.is_empty() {
            out.push_str("\nNone of their facts differ.\n");
        } else {
            out.push_str(&format!("\nWhat differs:\n\n| | `{a}` | `{b}` |\n|---|---|---|\n"));
            for [what, a, b] in rows {
                out.push_str(&format!("| {what} | {a} | {b} |\n"));
            }
        }
    } else {
        out.push_str(&format!(
            "\nThey are different things: a {} and a {}.\n",
            first.kind(),
            second.kind()
        ));
    }
    for thing in [first, second] {
        if let Some(when) = thing.use_when() {
            out.push_str(&format!(
                "\n**`{}`:** {}.\n",
                thing.id(),
                prose(when.trim_end_matches('.'))
            ));
        }
    }
    let mine: Vec<(Thing, &String)> = [(first, second), (second, first)]
        .into_iter()
        .flat_map(|(thing, other)| {
            let own = thing.notes().iter().filter(move |note| !other.notes().contains(note));
            own.map(move |note| (thing, note))
        })
        .collect();
    if !mine.is_empty() {
        out.push_str("\nTo know:\n\n");
        for (thing, note) in mine {
            out.push_str(&format!("- `{}`: {}\n", thing.id(), prose(note)));
        }
    }
    out
}

/// Other names that belong to it.
fn related(first: Thing, second: Option<Thing>, also: &[Thing]) -> Vec<String> {
    let mut names: Vec<String> = also.iter().map(|thing| thing.id().to_owned()).collect();
    for thing in [Some(first), second].into_iter().flatten() {
        match thing {
            Thing::Preset(preset) => {
                names.push(preset.calibration.to_string());
                names.extend(preset.algorithms.iter().map(ToString::to_string));
                let stem = format!("{}_", preset.id);
                let family = Catalogue.presets().ids().filter(|id| id.starts_with(&stem));
                names.extend(family.map(str::to_owned));
            }
            Thing::Method(method) => {
                names.extend(method.params.iter().map(|param| param.option.to_string()));
            }
            Thing::Option(option) => {
                names.extend(option.parents.iter().map(ToString::to_string));
                let key = option.id.as_str();
                let algorithms = Catalogue.algorithms().all().iter();
                let readers = algorithms
                    .filter(|a| a.params.iter().any(|p| p.legacy.as_deref() == Some(key)))
                    .map(|algorithm| algorithm.id.to_string());
                let methods = Catalogue.methods().all().iter();
                let methods = methods
                    .filter(|m| m.params.iter().any(|p| p.option == option.id))
                    .map(|method| method.id.to_string());
                names.extend(readers.chain(methods));
            }
            Thing::Decision(row) => {
                let topics = Catalogue.topics().all().iter();
                let about = topics.filter(|topic| topic.decisions.iter().any(|d| *d == *row.id));
                names.extend(about.map(|topic| topic.id.clone()));
            }
            Thing::Target(target) => names.extend(target.devices.iter().map(ToString::to_string)),
            Thing::Recovery(recovery) => {
                names.push(recovery.skill.to_string());
                names.extend(recovery.decisions.iter().map(ToString::to_string));
            }
            Thing::Topic(topic) => {
                names.extend(topic.cases.iter().flat_map(|case| case.take.clone()));
            }
            _ => {}
        }
    }
    let own = |name: &str| name == first.id() || second.is_some_and(|second| name == second.id());
    let mut seen = Vec::new();
    // The same name of another kind is worth saying: `BF16` is a preset and a column.
    let twins: Vec<String> = also
        .iter()
        .filter(|thing| own(thing.id()))
        .map(|thing| format!("{} ({})", thing.id(), thing.kind()))
        .collect();
    for name in names {
        if !own(&name) && !seen.contains(&name) {
            seen.push(name);
        }
    }
    twins.into_iter().chain(seen).collect()
}
