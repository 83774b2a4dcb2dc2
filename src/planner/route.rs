//! `route_recovery`: which skill to go to, why, and what to bring back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    catalogue::{Catalogue, recoveries::Recovery},
    plan::{Handoff, Resume},
    planner::{Planner, error::Error},
    rules::routing::{self, Asked},
    session::Session,
    vocab::{Backend, RuleId, SessionId, SkillId},
};

/// Arguments of `route_recovery`; give at least one.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// What the user wants, in their words.
    #[serde(default)]
    pub goal: Option<String>,
    /// An error text or traceback from Quark, ONNX Runtime, torch or transformers.
    #[serde(default)]
    pub error: Option<String>,
    /// An artefact that is missing, for example `model_analysis.json`.
    #[serde(default)]
    pub missing: Option<String>,
    /// A session that does not go on.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// `onnx` or `torch`, when known.
    #[serde(default)]
    pub backend: Option<Backend>,
}

/// The answer of `route_recovery`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Where to go: one route, or two or three when it is ambiguous, the likeliest first.
    pub routes: Vec<Handoff>,
    /// What was recognised in the error text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recognised: Option<Recognised>,
    /// What to ask the user when there are several routes or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// What to do next.
    pub next: String,
}

/// A known error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recognised {
    /// Its id in the catalogue.
    pub id: String,
    /// What it means.
    pub meaning: String,
    /// What in a plan leads to it.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
}

impl Planner {
    /// Finds the smallest right skill.
    ///
    /// # Errors
    ///
    /// When nothing is given to go by, there is no such session, or nothing is known of the missing thing.
    pub fn route(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let (goal, error, missing) =
            (given(&arguments.goal), given(&arguments.error), given(&arguments.missing));
        let has_text = goal.is_some() || error.is_some() || missing.is_some();
        let session = match &arguments.session_id {
            Some(id) => Some(self.session(id)?),
            None => None,
        };
        if let Some(session) = session.as_ref().filter(|_| !has_text) {
            return Ok(self.next_of(session));
        }
        if !has_text {
            return Err(Error::Arguments {
                message: "there is nothing to go by".to_owned(),
                hint: "give a `goal`, an `error`, a `missing` artefact or a `session_id`"
                    .to_owned(),
            });
        }
        let routes = routing::route(
            Catalogue,
            &Asked {
                goal: goal.as_deref(),
                error: error.as_deref(),
                missing: missing.as_deref(),
                backend: arguments.backend.or(session.as_ref().map(|s| s.draft().backend)),
                session: arguments.session_id.as_ref(),
            },
        );
        if routes.ways.is_empty() && routes.ask.is_none() {
            let name = missing.unwrap_or_default();
            let near = routing::near_artefacts(Catalogue, &name);
            return Err(Error::UnknownName { name, near });
        }
        Ok(reply(routes.ways, routes.recovery.map(recognised), routes.ask))
    }

    /// What a session lacks.
    fn next_of(&self, session: &Session) -> Reply {
        let id = session.id();
        let draft = session.draft();
        let changed = match session {
            Session::Emitted(_) => Vec::new(),
            _ => self.changed_inputs(session),
        };
        if !changed.is_empty() {
            let reason =
                format!("what the plan was derived from has changed: {}", changed.join("; "));
            let arguments = json!({ "session_id": id });
            return here(draft.backend, reason, "the next revision", "revise_plan", arguments);
        }
        if let Session::Emitted(emitted) = session {
            let mut routes = routing::route(
                Catalogue,
                &Asked {
                    goal: Some("quantize the model"),
                    backend: Some(draft.backend),
                    ..Asked::default()
                },
            );
            for way in &mut routes.ways {
                way.reason =
                    format!("the plan is confirmed and written to `{}`", emitted.file().path);
                way.resume = Resume {
                    tool: "check_plan".to_owned(),
                    arguments: json!({ "path": emitted.file().path }),
                };
            }
            return reply(routes.ways, None, None);
        }
        if matches!(session, Session::Confirmed(_)) {
            return here(
                draft.backend,
                "the user has confirmed the plan, and it is not written yet".to_owned(),
                "`quant_plan.json`",
                "emit_plan",
                json!({ "session_id": id, "output_path": "<path of quant_plan.json>" }),
            );
        }
        let blocking: Vec<_> =
            draft.questions.iter().filter(|question| question.blocking).collect();
        if !draft.is_confirmable() {
            let mut arguments = json!({ "session_id": id });
            for question in &blocking {
                arguments["answers"][question.id.as_str()] = json!("<the user's answer>");
            }
            for decision in draft.decisions.iter().filter(|decision| !decision.set) {
                arguments["values"][decision.id.as_str()] = json!("<a value>");
            }
            let mut answer = here(
                draft.backend,
                format!("the draft is not complete: {}", draft.missing().join("; ")),
                "the user's answers",
                "revise_plan",
                arguments,
            );
            // A skill that must do something first goes before what the user can say.
            answer.routes.splice(0..0, draft.handoffs.iter().cloned());
            answer.routes.truncate(3);
            let asked: Vec<&str> = blocking.iter().map(|question| question.text.as_str()).collect();
            answer.ask = (!asked.is_empty()).then(|| asked.join(" "));
            answer.next = next_step(&answer.routes, answer.ask.as_deref());
            return answer;
        }
        let mut answer = match session {
            Session::Presented(presented) => here(
                draft.backend,
                "the table was shown, and the user has not said yes to it".to_owned(),
                "the user's yes",
                "confirm_plan",
                json!({ "session_id": id, "digest": presented.digest() }),
            ),
            _ => here(
                draft.backend,
                "the draft is complete, and nobody has seen its table".to_owned(),
                "the table on the user's screen",
                "render_decision_table",
                json!({ "session_id": id }),
            ),
        };
        answer.routes.extend(draft.handoffs.iter().take(2).cloned());
        answer
    }
}

/// A route to this planner itself.
fn here(backend: Backend, reason: String, bring_back: &str, tool: &str, arguments: Value) -> Reply {
    let handoff = Handoff {
        skill: SkillId::new(match backend {
            Backend::Onnx => "quark-onnx-quant-plan",
            Backend::Torch => "quark-torch-quant-plan",
        }),
        reason,
        artefact: Some("quant_plan.json".to_owned()),
        bring_back: bring_back.to_owned(),
        resume: Resume { tool: tool.to_owned(), arguments },
        rule: RuleId::new("route-session"),
    };
    reply(vec![handoff], None, None)
}

fn reply(routes: Vec<Handoff>, recognised: Option<Recognised>, ask: Option<String>) -> Reply {
    let next = next_step(&routes, ask.as_deref());
    Reply { routes, recognised, ask, next }
}

fn next_step(routes: &[Handoff], ask: Option<&str>) -> String {
    match (routes.first(), ask) {
        (_, Some(_)) => "put the question in `ask` to the user; do not choose for them".to_owned(),
        (Some(way), None) if way.rule == "route-session" => {
            format!("call `{}` with the arguments in `resume`", way.resume.tool)
        }
        (Some(way), None) if way.rule == "route-other-backend" => {
            format!("hand over to `{}` and stop here", way.skill)
        }
        (Some(way), None) => format!(
            "go to `{}`, bring back {}, then call `{}`",
            way.skill, way.bring_back, way.resume.tool
        ),
        (None, None) => "say more about what failed".to_owned(),
    }
}

fn recognised(recovery: &Recovery) -> Recognised {
    Recognised {
        id: recovery.id.to_string(),
        meaning: recovery.summary.clone(),
        cause: recovery.cause.clone(),
        remedy: recovery.remedy.clone(),
    }
}
