//! What can be read by URI: facts of the catalogue, rules, schemas, and sessions.

use rmcp::{
    ErrorData,
    model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    catalogue::{Catalogue, Entry, Kind},
    mcp::{
        LIST_TTL_MS, app,
        failure::Failure,
        icons::{PLAN, icon},
    },
    planner::{Planner, show::view_of},
    render::{clean, markdown},
    schema::{self, Published},
    vocab::{SessionId, near_names},
};

/// The list of sessions.
const SESSIONS: &str = "quantplan://sessions";

/// The template of an entry of the catalogue.
pub(super) const CATALOGUE_ENTRY: &str = "quantplan://catalogue/{kind}/{id}";

/// The template of a rule.
pub(super) const RULE: &str = "quantplan://rules/{id}";

/// The template of a published JSON Schema.
pub(super) const SCHEMA: &str = "quantplan://schemas/{name}";

/// The most sessions that the list of resources shows.
const SHOWN: usize = 20;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// The views of a session: what follows its id in a URI.
const VIEWS: [View; 4] = [
    View {
        suffix: "",
        name: "session",
        title: "A planning session",
        description: "State, digest and draft of a session: all that another agent needs to go on.",
        mime_type: JSON,
    },
    View {
        suffix: "/table",
        name: "session-table",
        title: "A decision table",
        description: "The decision table of a session in Markdown. Reading it does not count as showing it.",
        mime_type: MARKDOWN,
    },
    View {
        suffix: "/plan",
        name: "session-plan",
        title: "A confirmed plan",
        description: "The plan that the user confirmed, as `emit_plan` writes it; nothing before that.",
        mime_type: JSON,
    },
    View {
        suffix: "/log",
        name: "session-log",
        title: "What happened in a session",
        description: "Every event of a session, oldest first.",
        mime_type: JSON,
    },
];

struct View {
    suffix: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    mime_type: &'static str,
}

/// The resources that there are now: the list of sessions, and the tables of the newest ones.
pub(super) fn list(planner: &Planner) -> Vec<Resource> {
    let mut list = vec![
        Resource::new(SESSIONS, "sessions")
            .with_title("Planning sessions")
            .with_description("Every planning session that has not expired, newest first.")
            .with_mime_type(JSON)
            .with_icons(vec![icon(PLAN)]),
    ];
    match planner.session_ids() {
        Ok(ids) => {
            list.extend(ids.iter().take(SHOWN).filter_map(|id| table_of(planner, id)));
        }
        // The other resources need no sessions.
        Err(error) => tracing::warn!("sessions cannot be listed: {}", error.whole()),
    }
    list
}

/// The table of a session; `None` when its log does not hold together.
fn table_of(planner: &Planner, id: &SessionId) -> Option<Resource> {
    let session = planner.session(id).ok()?;
    let path = &session.draft().model.path;
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let title = format!("Revision {} for {file}, {}", session.revision(), session.state());
    let resource = Resource::new(format!("{SESSIONS}/{id}/table"), id.as_str())
        .with_title(clean(&title))
        .with_description("The decision table of a planning session.")
        .with_mime_type(MARKDOWN)
        .with_icons(vec![icon(PLAN)]);
    Some(resource)
}

/// What can be read with an id filled in.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let sessions = VIEWS.iter().map(|view| {
        ResourceTemplate::new(format!("{SESSIONS}/{{id}}{}", view.suffix), view.name)
            .with_title(view.title)
            .with_description(view.description)
            .with_mime_type(view.mime_type)
    });
    [
        ResourceTemplate::new(CATALOGUE_ENTRY, "catalogue-entry")
            .with_title("A fact about AMD Quark")
            .with_description(format!(
                "An entry of the catalogue, with its source. Kinds: {}.",
                kinds().join(", ")
            ))
            .with_mime_type(JSON),
        ResourceTemplate::new(RULE, "rule")
            .with_title("A planning rule")
            .with_description("What a rule does, why, with an example and sources.")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(SCHEMA, "schema")
            .with_title("A JSON Schema")
            .with_description("The schema of an artefact that quantplan reads or writes.")
            .with_mime_type(JSON),
    ]
    .into_iter()
    .chain(sessions)
    .map(|template| template.with_icons(vec![icon(PLAN)]))
    .collect()
}

/// Reads a resource.
///
/// # Errors
///
/// When there is nothing at this URI.
pub(super) fn read(planner: &Planner, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri == app::URI {
        return Ok(app::page().with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public));
    }
    let path = uri.strip_prefix("quantplan://").unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["catalogue", kind, id] => {
            // `quark-cli torch-llm-ptq` has a space, which stands as `%20` in a URI.
            let id = &id.replace("%20", " ");
            let text = entry(kind, id).ok_or_else(|| missing(uri, &near_entries(kind, id)))?;
            Ok(contents(uri, text, JSON, LIST_TTL_MS, CacheScope::Public))
        }
        ["rules", id] => {
            let text = planner
                .rule_documentation(id)
                .ok_or_else(|| missing(uri, &near_names(id, planner.rule_ids())))?;
            Ok(contents(uri, text, MARKDOWN, LIST_TTL_MS, CacheScope::Public))
        }
        ["schemas", name] => {
            let text = schema::find(name)
                .map(Published::text)
                .ok_or_else(|| missing(uri, &near_names(name, schemas())))?;
            Ok(contents(uri, text, JSON, LIST_TTL_MS, CacheScope::Public))
        }
        ["sessions", rest @ ..] if rest.len() <= 2 => {
            let (text, mime_type) =
                session(planner, rest, uri).map_err(|failure| failure.into_protocol_error())?;
            Ok(contents(uri, text, mime_type, 0, CacheScope::Private))
        }
        _ => Err(missing(uri, &[])),
    }
}

/// The names of all published schemas.
pub(super) fn schemas() -> impl Iterator<Item = &'static str> {
    schema::ALL.iter().map(|published| published.name)
}

/// Every resource that a session is seen in.
pub(super) fn of_session(id: &SessionId) -> Vec<String> {
    let views = VIEWS.iter().map(|view| format!("{SESSIONS}/{id}{}", view.suffix));
    std::iter::once(SESSIONS.to_owned()).chain(views).collect()
}

/// Whether what is at this URI can change while the server runs.
pub(super) fn changes(uri: &str) -> bool {
    uri.strip_prefix(SESSIONS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The template of each view of a session.
pub(super) fn is_session_template(uri: &str) -> bool {
    VIEWS.iter().any(|view| {
        uri.strip_prefix(SESSIONS).and_then(|rest| rest.strip_prefix("/{id}")) == Some(view.suffix)
    })
}

fn session(planner: &Planner, rest: &[&str], uri: &str) -> Result<(String, &'static str), Failure> {
    let (id, suffix) = match rest {
        [] => return Ok((pretty(&planner.sessions()?), JSON)),
        [id] => (SessionId::new(*id), ""),
        [id, view, ..] => (SessionId::new(*id), *view),
    };
    match suffix {
        "" => {
            let session = planner.session(&id)?;
            let view = view_of(&session);
            let draft = session.draft();
            let value = json!({
                "session_id": id,
                "state": session.state(),
                "revision": session.revision(),
                "digest": session.digest(),
                "confirmable": draft.is_confirmable(),
                "missing": draft.missing(),
                "summary": view.nutshell.join("\n"),
                "draft": draft,
            });
            Ok((pretty(&value), JSON))
        }
        "table" => Ok((markdown::render(&view_of(&planner.session(&id)?)), MARKDOWN)),
        "plan" => Ok((planner.confirmed_plan(&id)?, JSON)),
        "log" => Ok((pretty(&planner.history(&id)?), JSON)),
        _ => Err(Failure {
            code: "UNKNOWN_NAME",
            message: format!("there is nothing at `{uri}`"),
            hint: "list the templates with `resources/templates/list`".to_owned(),
        }),
    }
}

/// A kind of the catalogue, whatever its entries are.
trait Shelf {
    fn ids(&self) -> Vec<&str>;
    fn aliases(&self) -> Vec<&str>;
    fn text(&self, id: &str) -> Option<String>;
}

impl<T: Entry + Serialize> Shelf for Kind<T> {
    fn ids(&self) -> Vec<&str> {
        Kind::ids(self).collect()
    }

    fn aliases(&self) -> Vec<&str> {
        self.all().iter().flat_map(Entry::aliases).map(String::as_str).collect()
    }

    fn text(&self, id: &str) -> Option<String> {
        self.find(id).map(pretty)
    }
}

/// Every kind, by its name in URIs.
fn shelves() -> [(&'static str, &'static dyn Shelf); 17] {
    let catalogue = Catalogue;
    [
        ("presets", catalogue.presets()),
        ("calibration_methods", catalogue.methods()),
        ("algorithms", catalogue.algorithms()),
        ("extra_options", catalogue.options()),
        ("targets", catalogue.targets()),
        ("schemes", catalogue.schemes()),
        ("torch_algorithms", catalogue.torch_algorithms()),
        ("families", catalogue.families()),
        ("entry_points", catalogue.entry_points()),
        ("engines", catalogue.engines()),
        ("quantized_sources", catalogue.prequantized()),
        ("devices", catalogue.devices()),
        ("npu_ops", catalogue.npu_ops()),
        ("releases", catalogue.releases()),
        ("topics", catalogue.topics()),
        ("skills", catalogue.skills()),
        ("recoveries", catalogue.recoveries()),
    ]
}

/// The names of all kinds.
pub(super) fn kinds() -> Vec<&'static str> {
    shelves().iter().map(|(kind, _)| *kind).collect()
}

/// The ids of one kind; of all kinds when there is no such kind.
pub(super) fn entries(kind: Option<&str>) -> Vec<&'static str> {
    let chosen = shelves().into_iter().filter(|(name, _)| kind.is_none_or(|kind| kind == *name));
    chosen.flat_map(|(_, shelf)| shelf.ids()).collect()
}

/// The ids of one kind, then their other spellings.
pub(super) fn names(kind: &str) -> Vec<&'static str> {
    let chosen = shelves().into_iter().filter(|(name, _)| *name == kind);
    chosen.flat_map(|(_, shelf)| [shelf.ids(), shelf.aliases()].concat()).collect()
}

fn entry(kind: &str, id: &str) -> Option<String> {
    let (_, shelf) = shelves().into_iter().find(|(name, _)| *name == kind)?;
    shelf.text(id)
}

fn near_entries<'a>(kind: &str, id: &str) -> Vec<&'a str> {
    if kinds().contains(&kind) {
        near_names(id, entries(Some(kind)))
    } else {
        near_names(kind, kinds())
    }
}

fn missing(uri: &str, near: &[&str]) -> ErrorData {
    let message = format!("there is nothing at `{}`", clean(uri));
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri, "near": near })))
}

fn contents(
    uri: &str,
    text: String,
    mime_type: &str,
    ttl_ms: u64,
    scope: CacheScope,
) -> ReadResourceResult {
    ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime_type)])
        .with_ttl_ms(ttl_ms)
        .with_cache_scope(scope)
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .and_then(|value: Value| serde_json::to_string_pretty(&value))
        .unwrap_or_default()
}
