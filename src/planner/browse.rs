//! What can be looked up without changing anything: rules, the history of a session, its confirmed plan.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    emit,
    planner::{Planner, error::Error, reading::bundle_of},
    rules,
    session::{Session, event::Event},
    vocab::SessionId,
};

/// Something that happened in a session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Happening {
    /// Its position, from 0.
    pub seq: i64,
    /// When, in RFC 3339.
    pub at: String,
    /// `proposed`, `revised`, `presented`, `asked`, `refused`, `confirmed`, `emitting` or `emitted`.
    pub event: &'static str,
    /// What else there is to say about it.
    pub details: Value,
}

impl Planner {
    /// The ids of all rules, in the order in which they run.
    pub fn rule_ids(&self) -> impl Iterator<Item = &'static str> {
        rules::RULES.iter().map(|rule| rule.id)
    }

    /// The documentation of a rule, in Markdown.
    pub fn rule_documentation(&self, id: &str) -> Option<String> {
        rules::find(id).map(rules::Rule::documentation)
    }

    /// The ids of all sessions that have not expired, newest first.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn session_ids(&self) -> Result<Vec<SessionId>, Error> {
        let now = self.now();
        let lines = self.with_store(|store| Ok(store.list(now)?))?;
        Ok(lines.into_iter().map(|line| line.id).collect())
    }

    /// What happened in a session, oldest first.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    pub fn history(&self, id: &SessionId) -> Result<Vec<Happening>, Error> {
        let (_, log) = self.load(id)?;
        Ok(log
            .entries
            .iter()
            .map(|stamped| Happening {
                seq: stamped.seq,
                at: stamped.timestamp.clone(),
                event: stamped.event.name(),
                details: details(&stamped.event),
            })
            .collect())
    }

    /// The plan that the user confirmed, as text; the analysis is referred to by its whole path.
    ///
    /// # Errors
    ///
    /// When there is no such session, or nobody confirmed its current table.
    pub fn confirmed_plan(&self, id: &SessionId) -> Result<String, Error> {
        let session = self.session(id)?;
        let confirmed = match &session {
            Session::Confirmed(confirmed) => confirmed,
            Session::Emitted(emitted) => emitted.confirmed(),
            Session::Drafted(_) | Session::Presented(_) => {
                return Err(Error::NotConfirmed { session: id.clone(), state: session.state() });
            }
        };
        let bundle = bundle_of(&session)?;
        let reference =
            bundle.analysis_path.as_deref().unwrap_or(Path::new("./model_analysis.json"));
        let prepared = emit::prepare(confirmed, &reference.display().to_string())?;
        Ok(prepared.text().to_owned())
    }
}

/// An event without the facts that a draft was made from, and without what an answer must bring back.
fn details(event: &Event) -> Value {
    match event {
        Event::Proposed { basis } | Event::Revised { basis } => {
            json!({ "quantplan_version": basis.quantplan_version, "inputs": basis.inputs })
        }
        Event::Presented { digest } => json!({ "digest": digest }),
        Event::Asked { channel, .. } => json!({ "channel": channel }),
        Event::Refused { refusal, .. } => {
            json!({ "code": refusal.code(), "message": refusal.to_string() })
        }
        Event::Confirmed { answer } => json!({
            "channel": answer.channel, "digest": answer.digest, "client": answer.client
        }),
        Event::Emitting { path, sha256 } | Event::Emitted { path, sha256 } => {
            json!({ "path": path, "sha256": sha256 })
        }
    }
}
