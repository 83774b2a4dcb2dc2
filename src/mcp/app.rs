//! The decision table as an MCP App: a page that the host shows, whose button is the user's yes.
//!
//! Only a client that declares the extension `io.modelcontextprotocol/ui` sees any of it: the page, and two
//! tools that the host keeps from the model. The question has a name that only the page gets, in the `_meta` of
//! a result, which is not for models; an answer has to bring it back. What a host shows its model, and who
//! moves the pointer, is the host's affair.

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        JsonObject, MetaObject, ReadResourceResult, ResourceContents, ServerCapabilities, Tool,
    },
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    mcp::{
        Server,
        ask::{self, Said},
        failure::Failure,
        schema::{of_arguments, of_reply},
        tools::{CONFIRM, Definition, Effect, Run, SHOW},
    },
    plan::digest::Digest,
    planner::{
        Planner,
        confirm::{self, Inquiry},
        error::{Error, out_of_band},
        show::view_of,
    },
    render::{View, clean},
    session::{event::Reply, refusal::Refusal},
    vocab::{Channel, SessionId},
};

/// The extension.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The kind of page that hosts show.
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Where the page is.
pub(super) const URI: &str = "ui://quantplan/table";

const PAGE: &str = include_str!("app/table.html");

/// Where the page finds the name of its question.
const QUESTION: &str = "quantplan/question";

/// The tools that only the page calls.
pub(super) const TOOLS: [Definition; 2] = [
    Definition {
        name: "ask_in_table",
        title: "Put the question under the table",
        description: "For the decision table on the screen, not for models: gives what the table shows now, and \
            notes that its user is being asked.",
        effect: Effect::Event,
        icon: "M3 4h18v16H3zM3 9h18M12 12v3M12 17.5v.5",
        arguments: of_arguments::<confirm::Arguments>,
        reply: of_reply::<Table>,
        run: Run::Planner(open),
    },
    Definition {
        name: "answer_in_table",
        title: "Take the answer to the table",
        description: "For the decision table on the screen, not for models: takes the press of one of its \
            buttons. It needs the name of the question, which only the table has.",
        effect: Effect::Event,
        icon: "M3 4h18v16H3zM3 9h18M8 14l3 3 5-5",
        arguments: of_arguments::<Press>,
        reply: of_reply::<confirm::Reply>,
        run: Run::Press,
    },
];

/// Whether a client shows apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apps {
    /// It shows text.
    Unknown,
    /// It shows pages, too.
    Shown,
}

/// What the client of a request shows.
pub(super) fn apps_of(context: &RequestContext<RoleServer>) -> Apps {
    apps(context.client_capabilities().as_ref())
}

/// What a client with these capabilities shows.
pub(super) fn apps(capabilities: Option<&ClientCapabilities>) -> Apps {
    let settings = capabilities
        .and_then(|capabilities| capabilities.extensions.as_ref())
        .and_then(|extensions| extensions.get(EXTENSION));
    let kinds = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == MIME_TYPE)) {
        Apps::Shown
    } else {
        Apps::Unknown
    }
}

/// Declares the extension, to a client that has it.
pub(super) fn announce(capabilities: &mut ServerCapabilities) {
    capabilities.extensions.get_or_insert_default().insert(EXTENSION.to_owned(), JsonObject::new());
}

/// Says in the definition of a tool what it has to do with the page.
pub(super) fn mark(mut tool: Tool) -> Tool {
    let more = match tool.name.as_ref() {
        SHOW => {
            " This client should show the table itself, with buttons under it: do not repeat it unless the user \
             does not see it, and wait until they have pressed one."
        }
        CONFIRM => " When the user has confirmed with the button under the table, it only says so.",
        _ => "",
    };
    tool.description = tool.description.map(|text| format!("{text}{more}").into());
    if tool.name == SHOW {
        let ui = json!({ "resourceUri": URI, "visibility": ["model", "app"] });
        // Hosts from before the extension was stable look at the second name.
        tool.meta = Some(meta([("ui", ui), ("ui/resourceUri", URI.into())]));
    } else if TOOLS.iter().any(|own| own.name == tool.name) {
        tool.meta = Some(meta([("ui", json!({ "visibility": ["app"] }))]));
    }
    tool
}

fn meta<const N: usize>(entries: [(&str, Value); N]) -> MetaObject {
    MetaObject(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The page. It needs nothing from elsewhere, so it asks for no permission.
pub(super) fn page() -> ReadResourceResult {
    let page = ResourceContents::text(PAGE, URI)
        .with_mime_type(MIME_TYPE)
        .with_meta(meta([("ui", json!({ "prefersBorder": true }))]));
    ReadResourceResult::new(vec![page])
}

/// What `confirm_plan` says to an agent whose user has the buttons and has not pressed one.
pub(super) fn not_pressed(session: &SessionId) -> Failure {
    Failure {
        code: "WAITING_FOR_USER",
        message: "the user answers with the buttons under the table, and has not pressed one yet"
            .to_owned(),
        hint: format!(
            "wait until they have pressed one; when there are no buttons, {}",
            out_of_band(session)
        ),
    }
}

/// What the page shows.
#[derive(Debug, Serialize, JsonSchema)]
struct Table {
    /// The session.
    session_id: SessionId,
    /// The digest of the table.
    digest: Digest,
    /// The table.
    view: View,
    /// Whether the user has said yes to it already.
    confirmed: bool,
    /// Whether a yes may be asked for.
    confirmable: bool,
}

/// Puts the question about the table that the page shows.
fn open(
    planner: &Planner,
    given: JsonObject,
    definition: &Definition,
) -> Result<CallToolResult, Failure> {
    let about: confirm::Arguments = definition.read(given)?;
    let (view, question, confirmed) = match planner.ask(&about, Channel::App) {
        Ok(Inquiry::Ask(asked)) => (asked.view, Some(asked.nonce), false),
        Ok(Inquiry::Confirmed(_)) => (view_of(&planner.session(&about.session_id)?), None, true),
        Err(Error::Refusal { refusal: Refusal::NotConfirmable { .. }, session }) => {
            (view_of(&planner.session(&session)?), None, false)
        }
        Err(error) => return Err(error.into()),
    };
    let confirm::Arguments { session_id, digest } = about;
    let table = Table { session_id, digest, view, confirmed, confirmable: question.is_some() };
    let table =
        serde_json::to_value(table).map_err(|error| Failure::internal(&error.to_string()))?;
    let mut result = CallToolResult::structured(cleaned(table));
    // The page reads the structured part; a model that gets to see this has the table already.
    result.content = vec![ContentBlock::text("the table is on the screen of the user")];
    Ok(result.with_meta(question.map(|question| meta([(QUESTION, question.into())]))))
}

/// The same without anything that acts on a screen.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(items) => items.into_iter().map(cleaned).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, cleaned(field))).collect()
        }
        other => other,
    }
}

/// The press of a button.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Press {
    /// The session.
    session_id: SessionId,
    /// The digest of the table on the screen.
    digest: Digest,
    /// The name of the question under it.
    question: String,
    /// Which button.
    decision: Button,
    /// What the user wrote.
    #[serde(default)]
    notes: Option<String>,
}

/// A button.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Button {
    /// "Ask for changes".
    Revise,
    /// "Confirm this plan".
    Confirm,
}

/// Takes the press of a button.
///
/// # Errors
///
/// Whenever it is not a person's yes.
pub(super) async fn press(
    server: &Server,
    definition: &Definition,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let Press { session_id, digest, question, decision, notes } =
        definition.read(request.arguments.unwrap_or_default())?;
    let reply = match decision {
        Button::Revise => Reply::Changes,
        Button::Confirm => Reply::Yes,
    };
    let said = Said::new(reply, notes.as_deref());
    let about = confirm::Arguments { session_id, digest };
    ask::take(server, about, Channel::App, Some(question), said, context).await
}
