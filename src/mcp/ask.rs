//! `confirm_plan`: the question to the user, in both protocol eras, and what their answer means.
//!
//! Today's hosts answer forms by themselves in more than one way, so: the form has one required choice, its
//! first option is the safe one, only the exact value `confirm` is a yes, and the session log measures how
//! long the answer took. From 2026-07-28 on the question travels through the client; what it must bring
//! back is sealed, bound to session and table, and good for one answer within ten minutes.

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientResult,
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
        EnumSchema, ErrorCode, InputRequest, InputRequests, InputRequiredResult,
        PrimitiveSchemaDefinition, RequestStateCodec, RequestStateError, SealOptions,
        ServerRequest,
    },
    service::{PeerRequestOptions, RequestContext, ServiceError},
};
use serde_json::Value;

use crate::{
    mcp::{
        Relayed, Server,
        app::{self, Apps},
        failure::Failure,
        pace::watched,
        tools::{Definition, RELAYED_ANSWER},
    },
    planner::{
        confirm::{Arguments, Asked, Inquiry, QUESTION_LIFETIME},
        error::Error,
        show::FORM_WIDTH,
    },
    render::{clean, terminal},
    session::{
        event::{Answer, Reply},
        refusal::Refusal,
    },
    vocab::{Channel, SessionId},
};

/// The name of the question among the inputs that a result asks for.
const QUESTION: &str = "confirm";

/// The field that decides. Hosts show fields in the order of their names, so it comes before [`NOTES`].
const DECISION: &str = "decision";

/// The field for what should change.
const NOTES: &str = "notes";

/// The one value that means yes.
const YES: &str = "confirm";

/// The value that asks for changes.
const REVISE: &str = "revise";

/// The longest notes that are passed on, in characters.
const LONGEST_NOTES: u32 = 500;

/// Asks the user whether they confirm a table.
///
/// # Errors
///
/// Whenever the outcome is not the user's yes.
pub(super) async fn confirm(
    server: &Server,
    definition: &Definition,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let mut given = request.arguments.unwrap_or_default();
    let relayed = match server.options.relayed {
        Relayed::Accepted => given.remove(RELAYED_ANSWER),
        Relayed::Refused => None,
    };
    let question: Arguments = definition.read(given)?;
    if !can_show_forms(context.client_capabilities().as_ref()) {
        return without_form(server, question, relayed, context).await;
    }
    if context.protocol_version().is_none_or(|version| version.has_initialize()) {
        return over_the_wire(server, question, context).await;
    }
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
    match (request.request_state, answer) {
        (Some(state), Some(answer)) => {
            let nonce = open(server, &question, &state)?;
            let said = Said::of_json(answer);
            take(server, question, Channel::Elicited, Some(nonce), said, context).await
        }
        // An answer without the question that it answers is none.
        _ => through_the_client(server, question).await,
    }
}

/// Puts the question into the result: the client asks, and calls again with the answer.
async fn through_the_client(
    server: &Server,
    question: Arguments,
) -> Result<CallToolResponse, Failure> {
    let asked = match put(server, &question).await? {
        Inquiry::Ask(asked) => asked,
        Inquiry::Confirmed(reply) => return structured(&reply),
    };
    let state = seal(server)?.seal_with(
        asked.nonce.as_bytes(),
        &SealOptions::new().associated_data(&bound_to(&question)).ttl(QUESTION_LIFETIME),
    );
    let form = InputRequest::Elicitation(ElicitRequest::new(form(&question.session_id, &asked)?));
    let requests = InputRequests::from([(QUESTION.to_owned(), form)]);
    Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
}

/// Sends the question as a request of its own and waits for the answer, as protocols with a handshake do.
async fn over_the_wire(
    server: &Server,
    question: Arguments,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let asked = match put(server, &question).await? {
        Inquiry::Ask(asked) => asked,
        Inquiry::Confirmed(reply) => return structured(&reply),
    };
    let form =
        ServerRequest::ElicitRequest(ElicitRequest::new(form(&question.session_id, &asked)?));
    let gone = || Failure::call_cancelled();
    let sent = context.peer.send_cancellable_request(form, PeerRequestOptions::no_options()).await;
    let mut handle = sent.map_err(|_| gone())?;
    let answer = tokio::select! {
        answer = watched(context, "Waiting for the user", &mut handle.rx) => answer,
        () = tokio::time::sleep(QUESTION_LIFETIME) => None,
        () = server.input_ended.cancelled() => return Err(gone()),
    };
    let said = match answer {
        Some(Ok(Ok(ClientResult::ElicitResult(result)))) => Said::of_result(&result),
        Some(Ok(Err(ServiceError::McpError(error))))
            if error.code == ErrorCode::METHOD_NOT_FOUND =>
        {
            return Err(Error::NoElicitation { session: question.session_id }.into());
        }
        // The client could not, or would not, show the form.
        Some(Ok(Ok(_) | Err(ServiceError::McpError(_)))) => Said::nothing(),
        Some(_) => return Err(gone()),
        None => {
            // Nobody waits any more, so the form should go.
            if let Err(error) = handle.cancel(Some("nobody waits for the answer".to_owned())).await
            {
                tracing::debug!("the form was not taken back: {error}");
            }
            Said::nothing()
        }
    };
    take(server, question, Channel::Elicited, Some(asked.nonce), said, context).await
}

/// What is left where a client cannot ask: the terminal, or the agent's word where the team accepts it.
async fn without_form(
    server: &Server,
    question: Arguments,
    relayed: Option<Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let about = question.clone();
    if let Some(reply) = server.work(move |planner| planner.standing(&about)).await?? {
        return structured(&reply);
    }
    // Where a person can be asked, they are.
    if app::apps_of(context) == Apps::Shown {
        return Err(app::not_pressed(&question.session_id));
    }
    match relayed {
        Some(answer) => {
            let reply = if answer == YES { Reply::Yes } else { Reply::Unclear };
            let said = Said::new(reply, None);
            take(server, question, Channel::Relayed, None, said, context).await
        }
        None => Err(Error::NoElicitation { session: question.session_id }.into()),
    }
}

async fn put(server: &Server, question: &Arguments) -> Result<Inquiry, Failure> {
    let about = question.clone();
    Ok(server.work(move |planner| planner.ask(&about, Channel::Elicited)).await??)
}

/// Hands an answer to the planner, which judges it.
///
/// # Errors
///
/// Whenever it is not the user's yes.
pub(super) async fn take(
    server: &Server,
    question: Arguments,
    channel: Channel,
    nonce: Option<String>,
    said: Said,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Failure> {
    let Said { reply, notes } = said;
    let answer =
        Answer { nonce, channel, digest: question.digest, reply, client: client_of(context) };
    let id = question.session_id;
    let judged = server.work(move |planner| planner.answer(&id, answer)).await?;
    let noted = notes.map(|notes| format!("; they wrote: \"{notes}\"")).unwrap_or_default();
    match judged {
        Ok(mut reply) => {
            reply.next.push_str(&noted);
            structured(&reply)
        }
        Err(error) => {
            let mut failure = Failure::from(error);
            if failure.code == Refusal::Changes.code() {
                failure.message.push_str(&noted);
            }
            Err(failure)
        }
    }
}

/// What the user said.
pub(super) struct Said {
    reply: Reply,
    notes: Option<String>,
}

impl Said {
    /// An answer with what the user wrote beside it.
    pub(super) fn new(reply: Reply, notes: Option<&str>) -> Self {
        let notes = notes.map(|notes| {
            let cut: String = notes.chars().take(LONGEST_NOTES as usize).collect();
            clean(cut.trim())
        });
        Self { reply, notes: notes.filter(|notes| !notes.is_empty()) }
    }

    fn of_result(result: &ElicitResult) -> Self {
        let field = |name: &str| result.content.as_ref()?.get(name)?.as_str();
        let reply = match (&result.action, field(DECISION)) {
            (ElicitationAction::Accept, Some(YES)) => Reply::Yes,
            (ElicitationAction::Accept, Some(REVISE)) => Reply::Changes,
            (ElicitationAction::Decline, _) => Reply::Declined,
            (ElicitationAction::Cancel, _) => Reply::Cancelled,
            _ => Reply::Unclear,
        };
        Self::new(reply, field(NOTES))
    }

    /// The same from an answer that came with a request; what cannot be read is no yes.
    fn of_json(answer: &Value) -> Self {
        match serde_json::from_value::<ElicitResult>(answer.clone()) {
            Ok(result) => Self::of_result(&result),
            Err(_) => Self::new(Reply::Unclear, None),
        }
    }

    fn nothing() -> Self {
        Self::new(Reply::Cancelled, None)
    }
}

/// The form. Its schema has no title or description of its own: Codex cancels such forms unseen.
fn form(session: &SessionId, asked: &Asked) -> Result<ElicitRequestParams, Failure> {
    // Claude Code shows three lines of the message, which are the plan in a nutshell, and one line of the
    // field; Codex shows everything. What the user saw is all that they agree to, so the table is in it.
    let message = format!("{}\n{}", terminal::render(&asked.view, FORM_WIDTH), asked.view.ask);
    let decision = EnumSchema::builder(vec![REVISE.to_owned(), YES.to_owned()])
        .enum_titles(vec!["Ask for changes".to_owned(), "Confirm this plan".to_owned()])
        .map_err(|error| Failure::internal(&error))?
        .title("Decision")
        .description(format!("Whole table: above, in the chat, or `quantplan confirm {session}`"))
        .build();
    let requested_schema = ElicitationSchema::builder()
        .required_property(DECISION, PrimitiveSchemaDefinition::Enum(decision))
        .optional_string_with(NOTES, |field| {
            field.title("Notes").description("What should change?").max_length(LONGEST_NOTES)
        })
        .build()
        .map_err(Failure::internal)?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Whether a client can show a form; an empty capability means that it can.
fn can_show_forms(capabilities: Option<&ClientCapabilities>) -> bool {
    capabilities
        .and_then(|capabilities| capabilities.elicitation.as_ref())
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

fn seal(server: &Server) -> Result<&RequestStateCodec, Failure> {
    if let Some(seal) = server.seal.get() {
        return Ok(seal);
    }
    let key = server.planner.sealing_key()?;
    let seal =
        RequestStateCodec::try_new(key).map_err(|error| Failure::internal(&error.to_string()))?;
    Ok(server.seal.get_or_init(|| seal))
}

/// What a sealed question is good for.
fn bound_to(question: &Arguments) -> Vec<u8> {
    format!("tools/call\nconfirm_plan\n{}\n{}", question.session_id, question.digest).into_bytes()
}

/// The nonce in a sealed question that the client brought back.
fn open(server: &Server, question: &Arguments, state: &str) -> Result<String, Failure> {
    let bad = || Failure {
        code: "BAD_REQUEST_STATE",
        message: "the request state is not the one that this question was given".to_owned(),
        hint: format!(
            "call `confirm_plan` with session_id `{}` and without a request state to ask again",
            question.session_id
        ),
    };
    match seal(server)?.open_with(state, &bound_to(question)) {
        Ok(nonce) => String::from_utf8(nonce).map_err(|_| bad()),
        Err(RequestStateError::Expired) => {
            let session = question.session_id.clone();
            Err(Error::Refusal { refusal: Refusal::Expired, session }.into())
        }
        Err(_) => Err(bad()),
    }
}

/// The client as it names itself, for the record in the plan.
fn client_of(context: &RequestContext<RoleServer>) -> Option<String> {
    let client = context.client_info()?;
    let text = clean(&format!("{}/{}", client.name, client.version));
    Some(text.chars().take(100).collect())
}

fn structured(reply: &crate::planner::confirm::Reply) -> Result<CallToolResponse, Failure> {
    serde_json::to_value(reply)
        .map(|value| CallToolResult::structured(value).into())
        .map_err(|error| Failure::internal(&error.to_string()))
}
