//! `propose_plan` and `revise_plan`: from facts and wishes to a draft in a session, or to a handoff.

mod handoffs;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    intake::IntakeError,
    intent::{Changes, Intent},
    plan::{Draft, Handoff, digest::Digest},
    planner::{
        Planner, context,
        error::Error,
        reading::{Reading, TORCH_INSTALL},
        unguessable,
    },
    render,
    rules::{self, Outcome, rows},
    session::{Session, event::Event},
    vocab::{Backend, DecisionId, QuestionId, SessionId},
};

/// Arguments of `propose_plan`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Path of the model; it is analysed now. Give this, `analysis_path` or `analysis`.
    #[serde(default)]
    pub model_path: Option<PathBuf>,
    /// Path of a `model_analysis.json`.
    #[serde(default)]
    pub analysis_path: Option<PathBuf>,
    /// A `model_analysis` as an object.
    #[serde(default)]
    pub analysis: Option<Map<String, Value>>,
    /// Path of an `env_context.json`.
    #[serde(default)]
    pub environment_path: Option<PathBuf>,
    /// An `env_context` as an object.
    #[serde(default)]
    pub environment: Option<Map<String, Value>>,
    /// Path of an `onnx_install_result.json`.
    #[serde(default)]
    pub onnx_install_result_path: Option<PathBuf>,
    /// An `onnx_install_result` as an object.
    #[serde(default)]
    pub onnx_install_result: Option<Map<String, Value>>,
    /// Path of a `quark_install_result.json`.
    #[serde(default)]
    pub quark_install_result_path: Option<PathBuf>,
    /// A `quark_install_result` as an object.
    #[serde(default)]
    pub quark_install_result: Option<Map<String, Value>>,
    /// Path of a `pytorch_install_result.json`.
    #[serde(default)]
    pub pytorch_install_result_path: Option<PathBuf>,
    /// A `pytorch_install_result` as an object.
    #[serde(default)]
    pub pytorch_install_result: Option<Map<String, Value>>,
    /// Path of a router's `session_context.json`; the artefacts that it refers to are read too.
    #[serde(default)]
    pub session_context_path: Option<PathBuf>,
    /// A `session_context` as an object.
    #[serde(default)]
    pub session_context: Option<Map<String, Value>>,
    /// `onnx` or `torch`; told from the model when left out.
    #[serde(default)]
    pub backend: Option<Backend>,
    /// What the user wants. Put in only what they said.
    #[serde(default)]
    pub intent: Intent,
}

/// Arguments of `revise_plan`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevisionArguments {
    /// The session.
    pub session_id: SessionId,
    /// Values to set, by decision, for example `{"preset": "A8W8", "calibration.data_size": 64}`.
    #[serde(default)]
    pub values: BTreeMap<DecisionId, Value>,
    /// Answers to questions of the draft, by question id. Only what the user has answered.
    #[serde(default)]
    pub answers: BTreeMap<QuestionId, String>,
    /// Decisions whose requested value the user keeps against advice; each becomes a recorded risk.
    #[serde(default)]
    pub insist: BTreeSet<DecisionId>,
    /// Decisions whose requested value is taken back.
    #[serde(default)]
    pub withdraw: BTreeSet<DecisionId>,
    /// What else the user has said since: another goal, a device, an engine, its number of ranks, data. Only
    /// the fields that are new.
    #[serde(default)]
    pub intent: Intent,
    /// Path of an `onnx_install_result.json` that `quark-onnx-install` has brought meanwhile.
    #[serde(default)]
    pub onnx_install_result_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub onnx_install_result: Option<Map<String, Value>>,
    /// Path of a `pytorch_install_result.json` that `quark-torch-install` has brought meanwhile.
    #[serde(default)]
    pub pytorch_install_result_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub pytorch_install_result: Option<Map<String, Value>>,
    /// Path of an `env_context.json` that has been made meanwhile.
    #[serde(default)]
    pub environment_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub environment: Option<Map<String, Value>>,
}

impl RevisionArguments {
    /// A revision without changes.
    pub fn of(session_id: SessionId) -> Self {
        Self {
            session_id,
            values: BTreeMap::new(),
            answers: BTreeMap::new(),
            insist: BTreeSet::new(),
            withdraw: BTreeSet::new(),
            intent: Intent::default(),
            onnx_install_result_path: None,
            onnx_install_result: None,
            pytorch_install_result_path: None,
            pytorch_install_result: None,
            environment_path: None,
            environment: None,
        }
    }
}

/// The value that a text means for a row: JSON where it is JSON, else a text; a list where the row takes
/// one, with its members separated by commas.
pub fn value_from_text(row: &str, text: &str) -> Value {
    use rows::Takes;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let takes_list = rows::find_any(row).is_some_and(|row| {
        matches!(
            row.takes,
            Takes::Names(_) | Takes::OpTypes | Takes::Nodes | Takes::Providers | Takes::Patterns
        )
    });
    match value {
        Value::String(text) if takes_list && text.eq_ignore_ascii_case("none") => Value::Null,
        Value::String(text) if takes_list => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
        }
        other => other,
    }
}

/// Whether a name is that of a question that drafts can have.
pub fn is_question(name: &str) -> bool {
    rules::request::QUESTIONS.iter().any(|(known, _)| *known == name)
}

/// Whether a name means a row of the table.
pub fn is_row(name: &str) -> bool {
    rows::find_any(name).is_some()
}

/// The answer of `propose_plan` and `revise_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Whether there is a draft now, or another skill has to do something first.
    pub outcome: OutcomeKind,
    /// The session; keep it, every other tool takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The number of the draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The digest of the table that the draft makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether a yes may be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmable: Option<bool>,
    /// What stands between the draft and a confirmation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The draft in three lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the revision changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// The draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Box<Draft>>,
    /// Where to go instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Box<Handoff>>,
    /// What to do next.
    pub next: String,
}

/// What a proposal led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// There is a draft.
    Draft,
    /// Another skill has to do something first.
    Handoff,
}

/// A row that a revision changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The row.
    pub decision: String,
    /// Its value before; `null` also when there was none.
    pub before: Value,
    /// Its value now.
    pub after: Value,
    /// Why.
    pub reason: String,
}

impl Planner {
    /// Makes a first draft, in a session of its own; or says who must do something first.
    ///
    /// # Errors
    ///
    /// When an artefact or the model cannot be read, or the intent names unknown or impossible values.
    pub fn propose(&self, arguments: &Arguments) -> Result<Reply, Error> {
        if let Some(handoff) = self.missing_analysis(arguments)? {
            return Ok(handed_off(handoff));
        }
        let reading = match self.first_reading(arguments) {
            Err(Error::Intake(IntakeError::HubId { id })) => {
                return Ok(handed_off(handoffs::on_the_hub(&id)));
            }
            reading => reading?,
        };
        let settled = reading.bundle.session_context.as_ref().and_then(context::backend);
        if let Some(handoff) = handoffs::other_half(arguments.backend.or(settled), &reading.bundle)
        {
            return Ok(handed_off(handoff));
        }
        match reading.reason()? {
            Outcome::Handoff(handoff) => Ok(handed_off(*handoff)),
            Outcome::Draft(draft) => {
                let id = SessionId::new(unguessable("qp-")?);
                let event = Event::Proposed { basis: Box::new(reading.basis(*draft)) };
                let now = self.now();
                self.with_store(|store| {
                    store.prune(now)?;
                    let log = store.empty_log();
                    Ok(store.append(&id, &log, now, &event)?)
                })?;
                let session = self.session(&id)?;
                Ok(drafted(&session, Vec::new()))
            }
        }
    }

    /// Changes a draft; any yes is gone afterwards.
    ///
    /// Without changes it reads the files again, which is the way out when they changed.
    ///
    /// # Errors
    ///
    /// When there is no such session, a file cannot be read, or a value is unknown or impossible; the draft
    /// stays as it was.
    pub fn revise(&self, arguments: &RevisionArguments) -> Result<Reply, Error> {
        let id = &arguments.session_id;
        let (session, log) = self.load(id)?;
        let mut reading = self.next_reading(&session)?;
        let asked = Changes {
            values: arguments.values.clone(),
            answers: arguments.answers.clone(),
            insist: arguments.insist.clone(),
            withdraw: arguments.withdraw.clone(),
            said: arguments.intent.clone(),
        };
        let asked = rules::request::resolved(&reading.context(), &asked).map_err(Error::Request)?;
        reading.bundle.intent = reading.bundle.intent.after(&asked);
        reading.files = self.named_files(&reading.bundle.intent, &mut reading.inputs);
        let Reading { bundle, inputs, .. } = &mut reading;
        let install = self.brought(
            "onnx_install_result",
            arguments.onnx_install_result_path.as_deref(),
            arguments.onnx_install_result.as_ref(),
            inputs,
        )?;
        let torch = self.brought(
            TORCH_INSTALL,
            arguments.pytorch_install_result_path.as_deref(),
            arguments.pytorch_install_result.as_ref(),
            inputs,
        )?;
        let environment = self.brought(
            "environment",
            arguments.environment_path.as_deref(),
            arguments.environment.as_ref(),
            inputs,
        )?;
        bundle.install = install.or_else(|| bundle.install.take());
        bundle.torch_install = torch.or_else(|| bundle.torch_install.take());
        bundle.environment = environment.or_else(|| bundle.environment.take());
        match reading.reason()? {
            Outcome::Handoff(handoff) => Ok(handed_off(*handoff)),
            Outcome::Draft(draft) => {
                let changed = changes(session.draft(), &draft);
                let event = Event::Revised { basis: Box::new(reading.basis(*draft)) };
                let session = self.advance(id, &log, &event)?;
                Ok(drafted(&session, changed))
            }
        }
    }
}

fn handed_off(handoff: Handoff) -> Reply {
    let next = format!(
        "go to `{}`, bring back {}, then call `{}`",
        handoff.skill, handoff.bring_back, handoff.resume.tool
    );
    Reply {
        outcome: OutcomeKind::Handoff,
        session_id: None,
        revision: None,
        digest: None,
        confirmable: None,
        missing: Vec::new(),
        summary: None,
        changed: Vec::new(),
        draft: None,
        handoff: Some(Box::new(handoff)),
        next,
    }
}

fn drafted(session: &Session, changed: Vec<Change>) -> Reply {
    let draft = session.draft();
    let digest = session.digest();
    let view = render::view(draft, session.id(), session.revision(), &digest);
    let missing = draft.missing();
    let next = if missing.is_empty() {
        "call `render_decision_table` and show the whole table to the user, then `confirm_plan`"
            .to_owned()
    } else {
        "ask the user what is missing and call `revise_plan` with the answers".to_owned()
    };
    Reply {
        outcome: OutcomeKind::Draft,
        session_id: Some(session.id().clone()),
        revision: Some(session.revision()),
        digest: Some(digest),
        confirmable: Some(missing.is_empty()),
        missing,
        summary: Some(view.nutshell.join("\n")),
        changed,
        draft: Some(Box::new(draft.clone())),
        handoff: None,
        next,
    }
}

/// Rows whose value is another one.
fn changes(before: &Draft, after: &Draft) -> Vec<Change> {
    let old = |id: &str| before.decision(id).map(|d| d.value.clone());
    let mut changed: Vec<Change> = after
        .decisions
        .iter()
        .filter(|decision| old(decision.id.as_str()).as_ref() != Some(&decision.value))
        .map(|decision| Change {
            decision: decision.id.to_string(),
            before: old(decision.id.as_str()).unwrap_or_default(),
            after: decision.value.clone(),
            reason: decision.reason.clone(),
        })
        .collect();
    let gone = before.decisions.iter().filter(|d| after.decision(d.id.as_str()).is_none());
    changed.extend(gone.map(|decision| Change {
        decision: decision.id.to_string(),
        before: decision.value.clone(),
        after: Value::Null,
        reason: "the row is gone".to_owned(),
    }));
    changed
}
