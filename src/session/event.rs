//! What can happen in a session, as the log keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    plan::{Draft, Input, digest::Digest},
    session::refusal::Refusal,
    vocab::Channel,
};

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    /// Position, from 0.
    pub seq: i64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The same in RFC 3339.
    pub timestamp: String,
    /// What happened.
    pub event: Event,
}

/// A draft with what it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// The version of quantplan that drafted it.
    pub quantplan_version: String,
    /// Facts and intent, to reason again from; the session does not look inside.
    pub context: Value,
    /// Files that the facts came from.
    pub inputs: Vec<Input>,
    /// The draft.
    pub draft: Draft,
}

/// What can happen in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A first draft was made.
    Proposed {
        /// The draft.
        basis: Box<Basis>,
    },
    /// The draft was changed.
    Revised {
        /// The new draft.
        basis: Box<Basis>,
    },
    /// The table was shown.
    Presented {
        /// What was shown.
        digest: Digest,
    },
    /// The user was asked.
    Asked {
        /// Names this question; it can be answered once.
        nonce: String,
        /// How the question was put.
        channel: Channel,
    },
    /// An answer was no yes.
    Refused {
        /// The question it answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<String>,
        /// Why it was none.
        refusal: Refusal,
    },
    /// The user said yes.
    Confirmed {
        /// The answer.
        answer: Answer,
    },
    /// The plan is about to be written; should the process die, the next one knows where to look.
    Emitting {
        /// Where.
        path: String,
        /// The digest of the file.
        sha256: Digest,
    },
    /// The plan was written.
    Emitted {
        /// Where.
        path: String,
        /// The digest of the file.
        sha256: Digest,
    },
}

impl Event {
    /// Its name in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Proposed { .. } => "proposed",
            Self::Revised { .. } => "revised",
            Self::Presented { .. } => "presented",
            Self::Asked { .. } => "asked",
            Self::Refused { .. } => "refused",
            Self::Confirmed { .. } => "confirmed",
            Self::Emitting { .. } => "emitting",
            Self::Emitted { .. } => "emitted",
        }
    }
}

/// An answer to the question whether the plan is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The question that it answers; none on channels that do not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// How it arrived.
    pub channel: Channel,
    /// The table that it is about.
    pub digest: Digest,
    /// What it says.
    pub reply: Reply,
    /// The client that carried it, as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The exact value that means yes.
    Yes,
    /// The choice "ask for changes".
    Changes,
    /// The host says that the user declined.
    Declined,
    /// The host says that the user dismissed the question.
    Cancelled,
    /// Accepted, but without the value that means yes.
    Unclear,
}
