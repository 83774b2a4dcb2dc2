//! One planning conversation as a state machine: drafted, presented, confirmed, emitted.
//!
//! A state is a type. [`Presented::confirm`] is the only way to a [`Confirmed`], and writing a plan takes a
//! `&Confirmed`. A session that is read back is replayed event by event through the same transitions, so
//! an edited log cannot skip the question. Nothing here does any I/O or reads a clock.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod event;
pub mod refusal;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{
    plan::{Draft, Input, digest::Digest, quant_plan::Confirmation},
    session::{
        event::{Answer, Basis, Event, Reply, Stamped},
        refusal::{Refusal, ReplayError},
    },
    vocab::{Channel, SessionId},
};

/// An answer that comes sooner than this did not come from a person, in milliseconds.
///
/// Every automated answer measured on today's hosts took 14 ms or less.
pub const FASTEST_PERSON_MS: i64 = 500;

/// How long a question may be answered, in milliseconds.
pub const QUESTION_LIFETIME_MS: i64 = 10 * 60 * 1000;

/// What every state has.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    id: SessionId,
    revision: u64,
    basis: Box<Basis>,
    questions: BTreeMap<String, AskedQuestion>,
}

/// A question that was put to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AskedQuestion {
    digest: Digest,
    channel: Channel,
    at: i64,
    used: bool,
}

/// There is a draft that nobody has seen, or whose table was turned down.
#[derive(Debug, Clone, PartialEq)]
pub struct Drafted(Core);

/// The table with this digest is on the user's screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Presented {
    core: Core,
    digest: Digest,
}

/// The user said yes to the table with this digest.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmed {
    core: Core,
    confirmation: Confirmation,
    begun: Option<PlanFile>,
}

/// The plan was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    confirmed: Confirmed,
    file: PlanFile,
}

/// A file that a plan was or is about to be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Where.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// A session in whatever state it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Session {
    /// See [`Drafted`].
    Drafted(Drafted),
    /// See [`Presented`].
    Presented(Presented),
    /// See [`Confirmed`].
    Confirmed(Confirmed),
    /// See [`Emitted`].
    Emitted(Emitted),
}

impl Core {
    /// The digest of what the user is shown and what it was derived from.
    fn digest(&self) -> Digest {
        #[derive(Serialize)]
        struct Shown<'a> {
            session_id: &'a SessionId,
            revision: u64,
            quantplan_version: &'a str,
            draft: &'a Draft,
            inputs: &'a [Input],
        }
        Digest::of_json(&Shown {
            session_id: &self.id,
            revision: self.revision,
            quantplan_version: &self.basis.quantplan_version,
            draft: &self.basis.draft,
            inputs: &self.basis.inputs,
        })
    }

    fn revised(mut self, basis: Basis) -> Drafted {
        self.revision += 1;
        self.basis = Box::new(basis);
        Drafted(self)
    }

    fn present(self) -> Presented {
        Presented { digest: self.digest(), core: self }
    }
}

impl Presented {
    /// The digest of the table that is shown.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Remembers that the user was asked about this table.
    fn ask(mut self, nonce: String, channel: Channel, at: i64) -> Self {
        let asked = AskedQuestion { digest: self.digest.clone(), channel, at, used: false };
        self.core.questions.insert(nonce, asked);
        self
    }

    /// Takes a yes: the only way to a confirmed plan.
    ///
    /// # Errors
    ///
    /// Gives the state back with the reason why this is no yes of a person to this very table.
    pub fn confirm(
        mut self,
        answer: &Answer,
        at: i64,
        timestamp: String,
    ) -> Result<Confirmed, (Self, Refusal)> {
        if let Err(refusal) = self.judge(answer, at) {
            return Err((self, refusal));
        }
        if let Some(question) = answer.nonce.as_ref().and_then(|n| self.core.questions.get_mut(n)) {
            question.used = true;
        }
        let attended = !matches!(answer.channel, Channel::Flag | Channel::Relayed);
        let confirmation = Confirmation {
            channel: answer.channel,
            attended,
            at: timestamp,
            client: answer.client.clone(),
            digest: self.digest.clone(),
        };
        Ok(Confirmed { core: self.core, confirmation, begun: None })
    }

    fn judge(&self, answer: &Answer, at: i64) -> Result<(), Refusal> {
        if answer.digest != self.digest {
            return Err(Refusal::StaleTable {
                answered: answer.digest.clone(),
                current: self.digest.clone(),
            });
        }
        let missing = self.core.basis.draft.missing();
        if !missing.is_empty() {
            return Err(Refusal::NotConfirmable { missing });
        }
        // Nobody is asked on these two; everybody else must have been.
        if !matches!(answer.channel, Channel::Flag | Channel::Relayed) {
            let nonce = answer.nonce.as_deref().unwrap_or_default();
            let Some(question) = self.core.questions.get(nonce) else {
                return Err(Refusal::NotAsked);
            };
            if question.used {
                return Err(Refusal::Replayed);
            }
            if question.digest != answer.digest {
                return Err(Refusal::StaleTable {
                    answered: question.digest.clone(),
                    current: self.digest.clone(),
                });
            }
            if question.channel != answer.channel {
                return Err(Refusal::NotAsked);
            }
            let waited = at - question.at;
            if waited > QUESTION_LIFETIME_MS {
                return Err(Refusal::Expired);
            }
            let can_be_automated = matches!(answer.channel, Channel::Elicited | Channel::App);
            if can_be_automated && waited < FASTEST_PERSON_MS {
                return Err(Refusal::NoPerson { waited_ms: waited, reply: answer.reply });
            }
        }
        match answer.reply {
            Reply::Yes => Ok(()),
            Reply::Changes => Err(Refusal::Changes),
            Reply::Declined => Err(Refusal::Declined),
            Reply::Cancelled => Err(Refusal::Cancelled),
            Reply::Unclear => Err(Refusal::Unclear),
        }
    }

    /// Takes the answer as used up; a plain no takes the table off the screen.
    fn refused(mut self, nonce: Option<&str>, refusal: &Refusal) -> Session {
        if let Some(question) = nonce.and_then(|nonce| self.core.questions.get_mut(nonce)) {
            question.used = true;
        }
        if refusal.takes_the_table_away() {
            Session::Drafted(Drafted(self.core))
        } else {
            Session::Presented(self)
        }
    }
}

impl Confirmed {
    /// What was agreed to.
    pub fn draft(&self) -> &Draft {
        &self.core.basis.draft
    }

    /// Who agreed, how and when.
    pub fn confirmation(&self) -> &Confirmation {
        &self.confirmation
    }

    /// The session.
    pub fn id(&self) -> &SessionId {
        &self.core.id
    }

    /// The revision that was agreed to.
    pub fn revision(&self) -> u64 {
        self.core.revision
    }

    /// What it was derived from.
    pub fn inputs(&self) -> &[Input] {
        &self.core.basis.inputs
    }

    /// The version of quantplan that drafted it.
    pub fn quantplan_version(&self) -> &str {
        &self.core.basis.quantplan_version
    }

    /// The file that was begun last; whether it was finished shows at its place only.
    pub fn begun(&self) -> Option<&PlanFile> {
        self.begun.as_ref()
    }

    fn beginning(mut self, path: &str, sha256: &Digest) -> Self {
        self.begun = Some(PlanFile { path: path.to_owned(), sha256: sha256.clone() });
        self
    }
}

impl Emitted {
    /// The file that was written.
    pub fn file(&self) -> &PlanFile {
        &self.file
    }

    /// What was confirmed.
    pub fn confirmed(&self) -> &Confirmed {
        &self.confirmed
    }
}

impl Session {
    /// The session that a log tells of.
    ///
    /// # Errors
    ///
    /// When an event does not follow from the ones before it.
    pub fn replay(id: &SessionId, log: &[Stamped]) -> Result<Self, ReplayError> {
        let mut events = log.iter();
        let first = events.next().ok_or(ReplayError::Empty)?;
        let Event::Proposed { basis } = &first.event else {
            return Err(ReplayError::OutOfPlace { seq: first.seq, event: first.event.name() });
        };
        let mut session = Self::proposed(id.clone(), (**basis).clone());
        for stamped in events {
            session = session.after(stamped)?;
        }
        Ok(session)
    }

    /// A new session.
    pub fn proposed(id: SessionId, basis: Basis) -> Self {
        Self::Drafted(Drafted(Core {
            id,
            revision: 1,
            basis: Box::new(basis),
            questions: BTreeMap::new(),
        }))
    }

    /// The session after one more event.
    ///
    /// # Errors
    ///
    /// When the event is not possible in this state.
    pub fn after(self, stamped: &Stamped) -> Result<Self, ReplayError> {
        let out_of_place =
            || ReplayError::OutOfPlace { seq: stamped.seq, event: stamped.event.name() };
        match (&stamped.event, self) {
            (Event::Revised { basis }, session) => {
                Ok(Self::Drafted(session.into_core().revised((**basis).clone())))
            }
            (Event::Presented { digest }, Self::Drafted(Drafted(core))) => {
                let presented = core.present();
                if presented.digest == *digest {
                    Ok(Self::Presented(presented))
                } else {
                    Err(ReplayError::OtherDigest { seq: stamped.seq })
                }
            }
            (Event::Asked { nonce, channel }, Self::Presented(presented)) => {
                Ok(Self::Presented(presented.ask(nonce.clone(), *channel, stamped.at)))
            }
            (Event::Refused { nonce, refusal }, Self::Presented(presented)) => {
                Ok(presented.refused(nonce.as_deref(), refusal))
            }
            (Event::Confirmed { answer }, Self::Presented(presented)) => presented
                .confirm(answer, stamped.at, stamped.timestamp.clone())
                .map(Self::Confirmed)
                .map_err(|(_, refusal)| ReplayError::Refused { seq: stamped.seq, refusal }),
            (Event::Emitting { path, sha256 }, Self::Confirmed(confirmed)) => {
                Ok(Self::Confirmed(confirmed.beginning(path, sha256)))
            }
            (Event::Emitting { path, sha256 }, Self::Emitted(emitted)) => {
                let confirmed = emitted.confirmed.beginning(path, sha256);
                Ok(Self::Emitted(Emitted { confirmed, ..emitted }))
            }
            (Event::Emitted { path, sha256 }, Self::Confirmed(confirmed)) => {
                Ok(Self::emitted(confirmed, path, sha256))
            }
            (Event::Emitted { path, sha256 }, Self::Emitted(emitted)) => {
                Ok(Self::emitted(emitted.confirmed, path, sha256))
            }
            _ => Err(out_of_place()),
        }
    }

    fn emitted(confirmed: Confirmed, path: &str, sha256: &Digest) -> Self {
        let file = PlanFile { path: path.to_owned(), sha256: sha256.clone() };
        Self::Emitted(Emitted { confirmed, file })
    }

    fn into_core(self) -> Core {
        match self {
            Self::Drafted(Drafted(core)) => core,
            Self::Presented(presented) => presented.core,
            Self::Confirmed(confirmed) => confirmed.core,
            Self::Emitted(emitted) => emitted.confirmed.core,
        }
    }

    fn core(&self) -> &Core {
        match self {
            Self::Drafted(Drafted(core)) => core,
            Self::Presented(presented) => &presented.core,
            Self::Confirmed(confirmed) => &confirmed.core,
            Self::Emitted(emitted) => &emitted.confirmed.core,
        }
    }

    /// The handle.
    pub fn id(&self) -> &SessionId {
        &self.core().id
    }

    /// The number of the draft; the first is 1.
    pub fn revision(&self) -> u64 {
        self.core().revision
    }

    /// The draft.
    pub fn draft(&self) -> &Draft {
        &self.core().basis.draft
    }

    /// What the draft was derived from.
    pub fn inputs(&self) -> &[Input] {
        &self.core().basis.inputs
    }

    /// Facts and intent, as the planner put them down.
    pub fn context(&self) -> &Value {
        &self.core().basis.context
    }

    /// The digest of the table that this draft makes.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Presented(presented) => presented.digest.clone(),
            Self::Confirmed(confirmed) => confirmed.confirmation.digest.clone(),
            Self::Emitted(emitted) => emitted.confirmed.confirmation.digest.clone(),
            Self::Drafted(Drafted(core)) => core.digest(),
        }
    }

    /// A word for the state.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Drafted(_) => "drafted",
            Self::Presented(_) => "presented",
            Self::Confirmed(_) => "confirmed",
            Self::Emitted(_) => "emitted",
        }
    }
}
