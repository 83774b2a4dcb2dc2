//! Why an answer is no yes, and why a log does not replay.

use serde::{Deserialize, Serialize};

use crate::{plan::digest::Digest, session::event::Reply};

/// Why an answer is no yes of a person to the table on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Refusal {
    /// The table has changed since.
    #[error("the answer is about table `{}`, the current one is `{}`", answered.short(), current.short())]
    StaleTable {
        /// What was answered.
        answered: Digest,
        /// What is current.
        current: Digest,
    },
    /// The table was not shown before it was asked about.
    #[error("the table of this revision was not shown yet")]
    NotShown,
    /// Nobody asked this.
    #[error("nobody was asked this question")]
    NotAsked,
    /// The answer was used already.
    #[error("this answer was used already; a question is answered once")]
    Replayed,
    /// The question is too old.
    #[error("the question was asked more than ten minutes ago")]
    Expired,
    /// No person can have answered.
    #[error(
        "the answer came after {waited_ms} ms, faster than any person: no person answered here"
    )]
    NoPerson {
        /// How long it took, in milliseconds.
        waited_ms: i64,
        /// What it said.
        reply: Reply,
    },
    /// The user wants changes.
    #[error("the user asked for changes")]
    Changes,
    /// A no.
    #[error("the host answered `decline`; it may not have shown the question to anybody")]
    Declined,
    /// No answer.
    #[error("the host answered `cancel`; it may not have shown the question to anybody")]
    Cancelled,
    /// Accepted, but not with the value that means yes.
    #[error("the form came back without the choice `confirm`")]
    Unclear,
    /// The draft is not ready for a yes.
    #[error("the draft cannot be confirmed yet: {}", missing.join("; "))]
    NotConfirmable {
        /// What is missing.
        missing: Vec<String>,
    },
}

impl Refusal {
    /// The code that clients see.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StaleTable { .. } => "STALE_TABLE",
            Self::NotShown => "NOT_SHOWN",
            Self::NotAsked => "NOT_ASKED",
            Self::Replayed => "REPLAYED",
            Self::Expired => "EXPIRED",
            Self::NoPerson { .. } => "NO_PERSON",
            Self::Changes => "CHANGES_REQUESTED",
            Self::Declined => "DECLINED",
            Self::Cancelled => "CANCELLED",
            Self::Unclear => "NOT_CONFIRMED",
            Self::NotConfirmable { .. } => "NOT_CONFIRMABLE",
        }
    }

    /// Whether the table has to be shown again before the next question.
    pub fn takes_the_table_away(&self) -> bool {
        matches!(self, Self::Changes | Self::Declined)
    }
}

/// Why a log does not replay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// There is no event.
    #[error("the log is empty")]
    Empty,
    /// An event stands where it cannot.
    #[error("event {seq} (`{event}`) cannot follow the ones before it")]
    OutOfPlace {
        /// Its position.
        seq: i64,
        /// Its name.
        event: &'static str,
    },
    /// A table was shown that this draft does not make.
    #[error("event {seq} shows a table that this draft does not make")]
    OtherDigest {
        /// Its position.
        seq: i64,
    },
    /// A yes that is none.
    #[error("event {seq} claims a confirmation that is none: {refusal}")]
    Refused {
        /// Its position.
        seq: i64,
        /// Why it is none.
        refusal: Refusal,
    },
}
