//! `confirm_plan`: putting the question, and taking the answer.
//!
//! How the question travels is the faces' business; that it was put, about which table, and what came
//! back is noted here.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    plan::{digest::Digest, quant_plan::Confirmation},
    planner::{Planner, error::Error, show::view_of, unguessable},
    render::View,
    session::{
        QUESTION_LIFETIME_MS, Session,
        event::{Answer, Event},
        refusal::Refusal,
    },
    store,
    vocab::{Channel, SessionId},
};

/// How long a question may be answered.
pub const QUESTION_LIFETIME: Duration = Duration::from_millis(QUESTION_LIFETIME_MS.unsigned_abs());

/// Arguments of `confirm_plan`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The session.
    pub session_id: SessionId,
    /// The digest of the table that the user has seen, from `render_decision_table`.
    pub digest: Digest,
}

/// The answer of `confirm_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The session.
    pub session_id: SessionId,
    /// Always `true`; anything else is an error with a code.
    pub confirmed: bool,
    /// The number of the draft.
    pub revision: u64,
    /// The table that was confirmed.
    pub digest: Digest,
    /// Who agreed, how and when.
    pub confirmation: Confirmation,
    /// What to do next.
    pub next: String,
}

/// A question that can be put now.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Names the question; the answer must bring it back.
    pub nonce: String,
    /// The table that it is about.
    pub digest: Digest,
    /// What the user must see.
    pub view: View,
}

/// What stands before a question.
#[derive(Debug, Clone)]
pub enum Inquiry {
    /// The user can be asked.
    Ask(Box<Asked>),
    /// The user has said yes to this very table already.
    Confirmed(Box<Reply>),
}

impl Planner {
    /// What keeps this table from being asked about, without asking; the reply when the user has said yes to
    /// it already.
    ///
    /// # Errors
    ///
    /// When the table was not shown, is not the current one, cannot be confirmed yet, or what it was
    /// derived from has changed.
    pub fn standing(&self, arguments: &Arguments) -> Result<Option<Reply>, Error> {
        let (session, _) = self.load(&arguments.session_id)?;
        self.examine(&session, arguments)
    }

    /// Notes that the user is being asked about the table with this digest.
    ///
    /// # Errors
    ///
    /// The same as of [`Planner::standing`].
    pub fn ask(&self, arguments: &Arguments, channel: Channel) -> Result<Inquiry, Error> {
        let id = &arguments.session_id;
        let (session, log) = self.load(id)?;
        if let Some(reply) = self.examine(&session, arguments)? {
            return Ok(Inquiry::Confirmed(Box::new(reply)));
        }
        let nonce = unguessable("q-")?;
        self.append(id, &log, &Event::Asked { nonce: nonce.clone(), channel })?;
        Ok(Inquiry::Ask(Box::new(Asked {
            nonce,
            digest: session.digest(),
            view: view_of(&session),
        })))
    }

    fn examine(&self, session: &Session, arguments: &Arguments) -> Result<Option<Reply>, Error> {
        let id = &arguments.session_id;
        if let Some(reply) = already(session, &arguments.digest) {
            return Ok(Some(reply));
        }
        let refuse = |refusal| Err(Error::Refusal { refusal, session: id.clone() });
        if arguments.digest != session.digest() {
            return refuse(Refusal::StaleTable {
                answered: arguments.digest.clone(),
                current: session.digest(),
            });
        }
        if matches!(session, Session::Drafted(_)) {
            return refuse(Refusal::NotShown);
        }
        let missing = session.draft().missing();
        if !missing.is_empty() {
            return refuse(Refusal::NotConfirmable { missing });
        }
        let changed = self.changed_inputs(session);
        if !changed.is_empty() {
            return Err(Error::Stale { session: id.clone(), changed });
        }
        Ok(None)
    }

    /// The key that seals questions which travel through a client.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn sealing_key(&self) -> Result<Vec<u8>, Error> {
        Ok(store::sealing_key(&self.options().state_dir)?)
    }

    /// Takes an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Refusal`] when it is no yes of a person to the current table; the refusal is noted.
    pub fn answer(&self, id: &SessionId, answer: Answer) -> Result<Reply, Error> {
        let (session, log) = self.load(id)?;
        let refuse = |refusal| Err(Error::Refusal { refusal, session: id.clone() });
        let presented = match session {
            Session::Presented(presented) => presented,
            // A yes that is there already cannot be given twice, and a newer draft has another table.
            ref other => {
                let current = other.digest();
                return refuse(if answer.digest != current {
                    Refusal::StaleTable { answered: answer.digest, current }
                } else if matches!(other, Session::Drafted(_)) {
                    Refusal::NotShown
                } else {
                    Refusal::Replayed
                });
            }
        };
        match presented.confirm(&answer, self.now(), String::new()) {
            Ok(_) => {
                let session = self.advance(id, &log, &Event::Confirmed { answer })?;
                already(&session, &session.digest()).ok_or_else(|| Error::NotConfirmed {
                    session: id.clone(),
                    state: session.state(),
                })
            }
            Err((_, refusal)) => {
                let settles = !matches!(refusal, Refusal::Replayed | Refusal::NotAsked);
                if settles {
                    let event = Event::Refused { nonce: answer.nonce, refusal: refusal.clone() };
                    self.append(id, &log, &event)?;
                }
                refuse(refusal)
            }
        }
    }
}

/// The reply for a session whose user has said yes to this very table.
fn already(session: &Session, digest: &Digest) -> Option<Reply> {
    let confirmed = match session {
        Session::Confirmed(confirmed) => confirmed,
        Session::Emitted(emitted) => emitted.confirmed(),
        Session::Drafted(_) | Session::Presented(_) => return None,
    };
    (confirmed.confirmation().digest == *digest).then(|| Reply {
        session_id: confirmed.id().clone(),
        confirmed: true,
        revision: confirmed.revision(),
        digest: digest.clone(),
        confirmation: confirmed.confirmation().clone(),
        next: format!(
            "call `emit_plan` with session_id `{}` and the path for `quant_plan.json`",
            confirmed.id()
        ),
    })
}
