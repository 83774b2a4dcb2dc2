//! The tools: what each is called, what it says of itself, and the one function of the planner behind it.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    mcp::{
        Options, Relayed, Server,
        app::{self, Apps},
        ask,
        failure::Failure,
        icons::icon,
        pace::watched,
        schema::{of_arguments, of_reply},
    },
    planner::{
        Planner, analyze, check, confirm, error::Error, explain, probe, propose, route, show, write,
    },
    vocab::{SessionId, near_names},
};

/// The name of the tool that shows the table.
pub(super) const SHOW: &str = "render_decision_table";

/// The name of the tool that asks the user.
pub(super) const CONFIRM: &str = "confirm_plan";

/// The argument that exists only where relayed answers are accepted.
pub(super) const RELAYED_ANSWER: &str = "relayed_answer";

/// A tool.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it does, when to call it and what comes next; written for the model that reads it.
    pub(super) description: &'static str,
    pub(super) effect: Effect,
    /// An outline, as the data of an SVG path.
    pub(super) icon: &'static str,
    pub(super) arguments: fn() -> JsonObject,
    pub(super) reply: fn() -> JsonObject,
    pub(super) run: Run,
}

/// What a tool does to the world, which is the session log and the workspace.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// A new event in the log of sessions.
    Event,
    /// An event in the log, once.
    EventOnce,
    /// A file, which may take the place of another one when the arguments ask for that.
    File,
}

/// How a tool runs.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// One call of the planner.
    Planner(fn(&Planner, JsonObject, &Definition) -> Result<CallToolResult, Failure>),
    /// With a question to the user.
    Ask,
    /// With the answer that the user gave to a page.
    Press,
}

/// Every tool, in the order in which a plan needs them.
pub(super) const TOOLS: [Definition; 10] = [
    Definition {
        name: "analyze_model",
        title: "Analyze a model",
        description: "Reads the facts of a model without loading a weight. Of an ONNX model (.onnx file, or \
            a folder that holds one): opsets, inputs and outputs, op histogram, architecture guess, \
            external data. Of a Hugging Face folder or config.json: family, layers, sizes, experts, real \
            module names. Of both: whether it is quantized already, and risks. Use it to look at a model, or with `output_path` to \
            write model_analysis.json for other Quark skills. To plan, call `propose_plan` with \
            `model_path`: it analyzes by itself.",
        effect: Effect::File,
        icon: "M4 20V10M10 20V4M16 20v-7M21 20H3",
        arguments: of_arguments::<analyze::Arguments>,
        reply: of_reply::<analyze::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::analyze)),
    },
    Definition {
        name: "probe_environment",
        title: "Probe this machine",
        description: "Reads the facts of this machine from its files, without starting anything: operating \
            system, CPU, AMD and NVIDIA GPUs, Ryzen AI NPU, ROCm and CUDA, Python and the installed \
            amd-quark, onnx, onnxruntime, torch and transformers, and which of them do not go together. \
            Use it when a plan depends on the machine; hand `env_context` to `propose_plan` as \
            `environment`, or write it with `output_path`.",
        effect: Effect::File,
        icon: "M4 5h16v11H4zM9 20h6M12 16v4M8 9h3v3H8z",
        arguments: of_arguments::<probe::Arguments>,
        reply: of_reply::<probe::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::probe)),
    },
    Definition {
        name: "propose_plan",
        title: "Propose a quantization plan",
        description: "Drafts an AMD Quark quantization plan for a model: preset, calibration, algorithms, \
            exclusions and options, each with its reason, plus risks and questions. Give the model as \
            `model_path`, `analysis_path` or `analysis`, and in `intent` only what the user has said: \
            leave the deployment target out when they have not named one. Answers with a session_id that \
            every other tool takes, or with a handoff to the skill that must do something first. Next: \
            ask the user the draft's questions (`revise_plan`), then `render_decision_table`.",
        effect: Effect::Event,
        icon: "M4 4h10l6 6v10H4zM14 4v6h6M8 14h8M8 17h5",
        arguments: of_arguments::<propose::Arguments>,
        reply: of_reply::<propose::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::propose)),
    },
    Definition {
        name: "revise_plan",
        title: "Revise the plan",
        description: "Changes the draft of a session: sets values by decision name, answers its questions, \
            insists on a value that a rule advises against, or withdraws one. Call it with what the user \
            said, never with a guess. Without changes it reads the files again, which repairs \
            STALE_INPUTS. An earlier confirmation is gone afterwards. Answers with the next revision and \
            what changed. Next: `render_decision_table`.",
        effect: Effect::Event,
        icon: "M4 20l1-5L16 4l4 4L9 19zM13 7l4 4",
        arguments: of_arguments::<propose::RevisionArguments>,
        reply: of_reply::<propose::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::revise)),
    },
    Definition {
        name: SHOW,
        title: "Show the decision table",
        description: "Gives the decision table of a session, which the user must see before they can \
            confirm: show them `table_markdown` whole and unchanged, with its risks, and ask `ask`. Needed \
            again after every revision. Next: `confirm_plan` with this `digest`, or `revise_plan` with \
            what the user wants changed.",
        effect: Effect::EventOnce,
        icon: "M3 4h18v16H3zM3 9h18M3 14h18M9 9v11",
        arguments: of_arguments::<show::Arguments>,
        reply: of_reply::<show::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::show)),
    },
    Definition {
        name: CONFIRM,
        title: "Ask the user to confirm",
        description: "Asks the user, in a form of the host, whether they confirm the table with this \
            digest. Call it after `render_decision_table`, when the user has seen the table. Only the \
            user can answer: never fill in or answer the form for them. Every answer but their yes is an \
            error whose code says what it was (DECLINED, CANCELLED, CHANGES_REQUESTED, NO_PERSON, \
            NO_ELICITATION, ...) and whose hint names the next step. Next: `emit_plan`.",
        effect: Effect::Event,
        icon: "M4 12l5 5L20 6",
        arguments: of_arguments::<confirm::Arguments>,
        reply: of_reply::<confirm::Reply>,
        run: Run::Ask,
    },
    Definition {
        name: "emit_plan",
        title: "Write the confirmed plan",
        description: "Writes quant_plan.json to `output_path`. Works only when the user has confirmed the \
            current table and the model and other inputs are still the same. An earlier plan there is kept \
            unless `overwrite` is true, and what is no plan always. Answers with the plan, a merge patch for the router's \
            session_context.json, and the skill that carries the plan out: this server quantizes nothing.",
        effect: Effect::File,
        icon: "M12 3v12M7 10l5 5 5-5M4 20h16",
        arguments: of_arguments::<write::Arguments>,
        reply: of_reply::<write::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::write)),
    },
    Definition {
        name: "route_recovery",
        title: "Find the skill that helps",
        description: "Says which Quark skill to go to, why and what to bring back. Give what there is: a \
            goal in the user's words, an error text or traceback from Quark, ONNX Runtime, torch or \
            transformers, the name of a missing artefact, or a session that does not go on. Use it when \
            something failed or the work belongs elsewhere.",
        effect: Effect::None,
        icon: "M5 21V8a4 4 0 0 1 8 0v8a4 4 0 0 0 8 0V4M18 7l3-3 3 3",
        arguments: of_arguments::<route::Arguments>,
        reply: of_reply::<route::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::route)),
    },
    Definition {
        name: "explain",
        title: "Explain a name",
        description: "Explains a name of Quark-ONNX (preset, calibration method, algorithm, extra option, \
            deployment target) or of Quark-Torch (scheme, algorithm, model family, entry point, serving \
            engine), a device, release, rule or row of the decision table: what it is, when it fits and \
            where the fact comes from; with `compare_with`, two beside each other; with a session or a \
            model, what it means there. `scheme:mxfp4` where a name means several things. Use it before \
            you tell the user what a name means, instead of relying on memory.",
        effect: Effect::None,
        icon: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20z",
        arguments: of_arguments::<explain::Arguments>,
        reply: of_reply::<explain::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::explain)),
    },
    Definition {
        name: "check_plan",
        title: "Check a plan",
        description: "Checks a quant_plan.json, whoever wrote it: its fields, its names against the release of \
            amd-quark, its values against the rules for the model and machine of today, what its patterns \
            match, and whether somebody confirmed this very content or it was edited since. Finds all \
            defects at once. Use it before a plan is carried out, and on plans of other origin. Show the \
            user `report_markdown`.",
        effect: Effect::None,
        icon: "M6 3h9l4 4v14H6zM15 3v4h4M9 13l2 2 4-4",
        arguments: of_arguments::<check::Arguments>,
        reply: of_reply::<check::Reply>,
        run: Run::Planner(|planner, given, tool| tool.plain(planner, given, Planner::check)),
    },
];

/// The tools that a client can call.
fn known(apps: Apps) -> impl Iterator<Item = &'static Definition> {
    let own: &[Definition] = if apps == Apps::Shown { &app::TOOLS } else { &[] };
    TOOLS.iter().chain(own)
}

/// The tools as a client sees them.
pub(super) fn list(options: Options, apps: Apps) -> Vec<Tool> {
    known(apps)
        .map(|definition| {
            let mut arguments = (definition.arguments)();
            if definition.name == CONFIRM && options.relayed == Relayed::Accepted {
                arguments["properties"][RELAYED_ANSWER] = json!({
                    "type": "string",
                    "description": "Only for clients that cannot ask their user: the user's own answer to \
                        the table, word for word. `confirm` confirms; the plan records that an agent \
                        passed it on.",
                });
            }
            let mut tool = Tool::new(definition.name, definition.description, arguments);
            tool.title = Some(definition.title.to_owned());
            tool.output_schema = Some((definition.reply)().into());
            tool.annotations = Some(definition.effect.annotations());
            tool.icons = Some(vec![icon(definition.icon)]);
            if apps == Apps::Shown { app::mark(tool) } else { tool }
        })
        .collect()
}

/// Runs a tool.
///
/// # Errors
///
/// Only when there is no such tool; whatever else goes wrong is a result that the model can read.
pub(super) async fn call(
    server: &Server,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let apps = app::apps_of(&context);
    let Some(definition) = known(apps).find(|tool| tool.name == request.name) else {
        let near = near_names(&request.name, known(apps).map(|tool| tool.name));
        let message = format!("unknown tool `{}`", crate::render::clean(&request.name));
        return Err(ErrorData::invalid_params(message, Some(json!({ "near": near }))));
    };
    let named =
        request.arguments.as_ref().and_then(|arguments| arguments.get("session_id")).cloned();
    let done = match definition.run {
        Run::Ask => ask::confirm(server, definition, request, &context).await,
        Run::Press => app::press(server, definition, request, &context).await,
        Run::Planner(run) => {
            let given = request.arguments.unwrap_or_default();
            let work = server.work(move |planner| run(planner, given, definition));
            match watched(&context, definition.title, work).await {
                Some(done) => done.flatten().map(CallToolResponse::from),
                None => Err(Failure::call_cancelled()),
            }
        }
    };
    if !matches!(definition.effect, Effect::None) {
        tell(server, definition, named, &done, &context).await;
    }
    Ok(done.unwrap_or_else(|failure| failure.into_tool_result().into()))
}

/// Tells subscribers that a session may have changed; a refusal changes it too.
async fn tell(
    server: &Server,
    definition: &Definition,
    named: Option<Value>,
    done: &Result<CallToolResponse, Failure>,
    context: &RequestContext<RoleServer>,
) {
    let session = named.or_else(|| match done {
        Ok(CallToolResponse::Complete(result)) => {
            result.structured_content.as_ref()?.get("session_id").cloned()
        }
        _ => None,
    });
    if let Some(Value::String(id)) = session {
        let is_new = definition.name == "propose_plan";
        server.updates.changed(&SessionId::new(id), is_new, &context.peer).await;
    }
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let (read_only, destructive, idempotent) = match self {
            Self::None => (true, false, true),
            Self::Event => (false, false, false),
            Self::EventOnce => (false, false, true),
            Self::File => (false, true, true),
        };
        ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(false)
    }
}

impl Definition {
    /// Reads the arguments, calls the planner, and gives the reply.
    fn plain<A: DeserializeOwned, R: Serialize>(
        &self,
        planner: &Planner,
        given: JsonObject,
        run: fn(&Planner, &A) -> Result<R, Error>,
    ) -> Result<CallToolResult, Failure> {
        let reply = run(planner, &self.read(given)?)?;
        serde_json::to_value(reply)
            .map(CallToolResult::structured)
            .map_err(|error| Failure::internal(&error.to_string()))
    }

    /// The arguments as the planner takes them.
    ///
    /// # Errors
    ///
    /// Names the argument that is missing, unknown or of the wrong type.
    pub(super) fn read<A: DeserializeOwned>(&self, given: JsonObject) -> Result<A, Failure> {
        serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
            let place = error.path().to_string();
            let place = if place == "." { String::new() } else { format!("`{place}`: ") };
            let reason =
                error.into_inner().to_string().replace("expected u64", "expected a whole number");
            let hint = match meant(&reason) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("correct it and call `{}` again", self.name),
            };
            Failure::bad_arguments(format!("{place}{reason}"), hint)
        })
    }
}

/// The known name nearest to an unknown one: ``unknown field `a`, expected one of `b`, `c` ``.
fn meant(reason: &str) -> Option<&str> {
    let (unknown, known) = reason.strip_prefix("unknown ")?.split_once(", expected ")?;
    let unknown = unknown.split('`').nth(1)?;
    near_names(unknown, known.split('`').skip(1).step_by(2)).first().copied()
}
