//! Whether somebody confirmed the very content of a plan.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    emit::{self, destination::EmitError},
    plan::{
        digest::Digest,
        quant_plan::{AssembleError, Confirmation},
    },
    planner::{
        Planner,
        analyze::analysis_text,
        artefacts::digest_of_file,
        check::{Check, Finding, Grade, Subject, surroundings::is_analysis},
        error::Error,
        reading::{bundle_of, model_input},
    },
    render::plain,
    session::{Confirmed, Session, event::Event},
    store::StoreError,
    vocab::SessionId,
};

/// More changes than this are counted in the explanation, not told.
const TOLD: usize = 3;

/// Whether somebody confirmed this content.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Agreement {
    /// In a word.
    pub status: Status,
    /// In a sentence.
    pub explanation: String,
    /// The session that the plan names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Who agreed, how and when, as the log of sessions has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// What was changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// Whether somebody confirmed a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The log of sessions here has the yes to this content.
    Confirmed,
    /// The log has a yes, to another content.
    Edited,
    /// The plan names a session that this log does not have, so nothing can be proved.
    UnknownSession,
    /// The log of the session does not hold together, or this version makes no plan of it any more, so nothing
    /// can be proved.
    BrokenLog,
    /// The plan names no session.
    Unrecorded,
}

/// A field that is not as it was confirmed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Edit {
    /// Path of the field, with points.
    pub field: String,
    /// What was confirmed; `null` also when it was not there.
    pub confirmed: Value,
    /// What is there; `null` also when nothing is.
    pub found: Value,
}

impl Agreement {
    /// Whether the log has the yes to this content.
    pub fn is_confirmed(&self) -> bool {
        self.status == Status::Confirmed
    }

    fn new(status: Status, explanation: impl Into<String>) -> Self {
        Self {
            status,
            explanation: explanation.into(),
            session_id: None,
            confirmation: None,
            edits: Vec::new(),
        }
    }
}

/// What the log of sessions knows of a plan.
pub(in crate::planner) enum Known {
    /// The plan names no session.
    Unnamed,
    /// There is no such session here.
    Missing(SessionId),
    /// Its log cannot be trusted.
    Broken(SessionId, String),
    /// The session never was confirmed at that revision.
    Never(SessionId),
    /// As it was when it was confirmed.
    At {
        /// A session in the state "confirmed".
        session: Box<Session>,
        /// The revision of the session now.
        newest: u64,
        /// Digests of the files that were written.
        written: Vec<Digest>,
    },
}

impl Known {
    /// The session as it was when it was confirmed.
    pub(super) fn session(&self) -> Option<&Session> {
        match self {
            Self::At { session, .. } => Some(session),
            _ => None,
        }
    }
}

impl Planner {
    /// Looks up the session that a plan names, as it was when the plan was confirmed.
    ///
    /// # Errors
    ///
    /// When the log cannot be read now; that it has no such session, or a broken one, is an answer.
    pub(in crate::planner) fn known_session(&self, subject: &Subject) -> Result<Known, Error> {
        let provenance = &subject.value["provenance"];
        let Some(id) = provenance["session_id"].as_str().map(SessionId::new) else {
            return Ok(Known::Unnamed);
        };
        let (newest, log) = match self.load(&id) {
            Ok(loaded) => loaded,
            Err(Error::Store(StoreError::Unknown(_) | StoreError::Expired { .. })) => {
                return Ok(Known::Missing(id));
            }
            Err(error @ (Error::Store(StoreError::Broken { .. }) | Error::Replay(_))) => {
                return Ok(Known::Broken(id, error.whole()));
            }
            Err(error) => return Err(error),
        };
        let written = log.entries.iter().filter_map(|entry| match &entry.event {
            Event::Emitted { sha256, .. } => Some(sha256.clone()),
            _ => None,
        });
        let written = written.collect();
        let revision = provenance["revision"].as_u64();
        let digest = provenance["digest"].as_str();
        let yeses = log.entries.iter().enumerate().filter(|(_, entry)| {
            matches!(&entry.event, Event::Confirmed { answer } if digest.is_none_or(|d| answer.digest.as_str() == d))
        });
        let before = yeses.map(|(last, _)| Session::replay(&id, &log.entries[..=last]));
        let then = before
            .filter_map(Result::ok)
            .find(|session| revision.is_none_or(|revision| session.revision() == revision));
        Ok(match then {
            Some(session) => {
                Known::At { session: Box::new(session), newest: newest.revision(), written }
            }
            None => Known::Never(id),
        })
    }

    /// Who agreed to a plan, and what is to say about that.
    ///
    /// # Errors
    ///
    /// When the session does not tell what it was made from.
    pub(in crate::planner) fn agreement(
        &self,
        subject: &Subject,
        known: &Known,
    ) -> Result<(Agreement, Vec<Finding>), Error> {
        let mut agreement = match known {
            Known::Unnamed => Agreement::new(
                Status::Unrecorded,
                "the plan names no session of quantplan, so nothing here tells whether somebody agreed to it",
            ),
            Known::Missing(id) => Agreement::new(
                Status::UnknownSession,
                format!(
                    "the plan names session `{id}`, which is not in the log here: it ran elsewhere, or has expired"
                ),
            ),
            Known::Broken(id, why) => Agreement::new(
                Status::BrokenLog,
                format!("the log of session `{id}` cannot be trusted: {why}"),
            ),
            Known::Never(id) => Agreement::new(
                Status::Edited,
                format!(
                    "session `{id}` is here, and nobody confirmed what the plan says was confirmed"
                ),
            ),
            Known::At { session, written, .. } => {
                let reference = self.reference(subject, session)?;
                in_log(subject, session, written, reference)
            }
        };
        agreement.session_id = match known {
            Known::Unnamed => None,
            Known::Missing(id) | Known::Broken(id, _) | Known::Never(id) => Some(id.clone()),
            Known::At { session, .. } => Some(session.id().clone()),
        };
        let mut said = remarks(&agreement, known);
        if subject.value["requires_confirmation"] == Value::Bool(true) {
            said.push(
                say(
                    Grade::Warning,
                    "it is a draft: nobody may carry it out before somebody has confirmed it",
                )
                .at("requires_confirmation"),
            );
        }
        Ok((agreement, said))
    }

    /// What the `analysis_ref` of a plan leads to: the plan has the facts of its model from nowhere else.
    fn reference(&self, subject: &Subject, session: &Session) -> Result<Option<Edit>, Error> {
        let Some(found) = subject.value["model"]["analysis_ref"].as_str() else { return Ok(None) };
        let path = subject.folder().join(found);
        if !path.exists() {
            return Ok(None);
        }
        let bundle = bundle_of(session)?;
        let of_role = |role: &'static str| {
            session
                .inputs()
                .iter()
                .filter(move |input| input.role == role)
                .map(|input| &input.digest)
        };
        let same = if is_analysis(&path) {
            let written = Digest::of_bytes(analysis_text(&bundle.analysis).as_bytes());
            digest_of_file(&path).is_some_and(|now| {
                now == written || of_role("model_analysis").any(|then| *then == now.as_str())
            })
        } else {
            self.read_model(&path).is_ok_and(|model| {
                let now = model_input(model.analysis()).digest;
                of_role("model").any(|then| *then == now)
            })
        };
        Ok((!same).then(|| Edit {
            field: "model.analysis_ref".to_owned(),
            confirmed: json!(bundle.analysis.model.model_path),
            found: json!(found),
        }))
    }
}

fn say(grade: Grade, message: &str) -> Finding {
    Finding::new(grade, Check::Confirmation, message)
}

/// What somebody should know of an agreement.
fn remarks(agreement: &Agreement, known: &Known) -> Vec<Finding> {
    let mut findings = Vec::new();
    match agreement.status {
        // The report says it above its findings.
        Status::Confirmed | Status::Unrecorded => {}
        Status::Edited => findings.push(say(Grade::Defect, &agreement.explanation).hint(
            "do not carry it out; have the values that are wanted put into the session with `revise_plan`, and confirmed",
        )),
        Status::UnknownSession | Status::BrokenLog => {
            findings.push(say(Grade::Warning, &agreement.explanation));
        }
    }
    if let Some(given) = &agreement.confirmation
        && !given.attended
    {
        let how = given.channel.as_str();
        findings.push(say(
            Grade::Note,
            &format!("no person was asked: the yes came by the channel `{how}`"),
        ));
    }
    if let Known::At { session, newest, .. } = known
        && session.revision() < *newest
    {
        let text = format!(
            "the session has gone on to revision {newest}; this plan is revision {}",
            session.revision()
        );
        findings.push(
            say(Grade::Warning, &text)
                .hint("check whether the newer revision should be written instead"),
        );
    }
    findings
}

fn in_log(
    subject: &Subject,
    session: &Session,
    written: &[Digest],
    reference: Option<Edit>,
) -> Agreement {
    let Session::Confirmed(confirmed) = session else {
        return Agreement::new(Status::Edited, "the session was not confirmed");
    };
    let given = confirmed.confirmation().clone();
    let by = format!("by the channel `{}`, at {}", given.channel.as_str(), given.at);
    let is_file = written.iter().any(|digest| digest.as_str() == subject.digest);
    let edits = if is_file { Ok(Vec::new()) } else { edits(subject, confirmed) };
    let mut agreement = match edits {
        Err(error) => Agreement::new(
            Status::BrokenLog,
            format!("the session makes no plan any more, so it cannot be compared: {error}"),
        ),
        Ok(edits) => {
            let edits: Vec<Edit> = edits.into_iter().chain(reference).collect();
            if edits.is_empty() {
                let what = if is_file { "this very file" } else { "this content" };
                Agreement::new(Status::Confirmed, format!("{what} was confirmed, {by}"))
            } else {
                Agreement {
                    edits: edits.clone(),
                    ..Agreement::new(Status::Edited, told(&edits, &by))
                }
            }
        }
    };
    agreement.confirmation = Some(given);
    agreement
}

fn told(edits: &[Edit], by: &str) -> String {
    let first: Vec<String> = edits.iter().take(TOLD).map(described).collect();
    let more = edits.len().saturating_sub(first.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("it was edited after it was confirmed ({by}): {}{more}", first.join("; "))
}

fn described(edit: &Edit) -> String {
    format!("`{}` was `{}` and is `{}`", edit.field, plain(&edit.confirmed), plain(&edit.found))
}

/// Where a plan differs from what was confirmed; what its reference leads to is looked at elsewhere.
fn edits(subject: &Subject, confirmed: &Confirmed) -> Result<Vec<Edit>, EmitError> {
    let reference = subject.value["model"]["analysis_ref"].as_str().unwrap_or_default();
    let then = emit::prepare(confirmed, reference)?;
    let then = serde_json::to_value(then.plan()).map_err(AssembleError::from)?;
    let mut edits = Vec::new();
    compare("", &then, &subject.value, &mut edits);
    Ok(edits)
}

fn compare(path: &str, then: &Value, now: &Value, edits: &mut Vec<Edit>) {
    // Other writers of JSON make 1 of 1.0.
    let is_same_number = || then.as_f64().is_some_and(|number| now.as_f64() == Some(number));
    match (then, now) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|name| !before.contains_key(*name));
            for name in before.keys().chain(added) {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&inner, &then[name.as_str()], &now[name.as_str()], edits);
            }
        }
        _ if then == now || is_same_number() => {}
        _ => {
            edits.push(Edit { field: path.to_owned(), confirmed: then.clone(), found: now.clone() })
        }
    }
}
