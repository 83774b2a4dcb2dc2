//! What sessions there are.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    planner::{Planner, error::Error},
    session::Session,
    store::rfc3339,
    vocab::SessionId,
};

/// A session in a line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Line {
    /// The session.
    pub session_id: SessionId,
    /// `drafted`, `presented`, `confirmed`, `emitted`, or `broken`.
    pub state: &'static str,
    /// The number of the draft.
    pub revision: u64,
    /// Path of the model.
    pub model: String,
    /// The preset, when one is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// When something last happened, in RFC 3339.
    pub at: String,
}

impl Planner {
    /// Sessions that have not expired, newest first.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn sessions(&self) -> Result<Vec<Line>, Error> {
        let now = self.now();
        let lines = self.with_store(|store| Ok(store.list(now)?))?;
        Ok(lines
            .into_iter()
            .map(|line| {
                let at = rfc3339(line.at);
                match self.session(&line.id) {
                    Ok(session) => described(&session, at),
                    Err(_) => Line {
                        session_id: line.id,
                        state: "broken",
                        revision: 0,
                        model: String::new(),
                        preset: None,
                        at,
                    },
                }
            })
            .collect())
    }

    /// The one session whose id begins so.
    ///
    /// # Errors
    ///
    /// When there is none, or there are several.
    pub fn session_id(&self, prefix: &str) -> Result<SessionId, Error> {
        let now = self.now();
        let lines = self.with_store(|store| Ok(store.list(now)?))?;
        let mut found =
            lines.into_iter().map(|line| line.id).filter(|id| id.as_str().starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(id), None) if !prefix.is_empty() => Ok(id),
            (Some(_), _) => Err(Error::Arguments {
                message: format!("several sessions begin with `{prefix}`"),
                hint: "type more of the id; `quantplan sessions` lists them".to_owned(),
            }),
            // An expired session has its own error.
            (None, _) => self.session(&SessionId::new(prefix)).map(|session| session.id().clone()),
        }
    }
}

fn described(session: &Session, at: String) -> Line {
    let draft = session.draft();
    Line {
        session_id: session.id().clone(),
        state: session.state(),
        revision: session.revision(),
        model: draft.model.path.clone(),
        preset: draft.decision("preset").and_then(|d| d.value.as_str()).map(str::to_owned),
        at,
    }
}
