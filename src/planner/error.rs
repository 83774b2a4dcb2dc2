//! What can go wrong for a user, with a code and one way out.

use std::path::PathBuf;

use crate::{
    emit::destination::EmitError,
    intake::IntakeError,
    rules::request::Defect,
    session::refusal::{Refusal, ReplayError},
    store::StoreError,
    vocab::SessionId,
};

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// The session log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log that does not replay.
    #[error("the log of this session does not hold together")]
    Replay(#[from] ReplayError),
    /// The destination.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// An artefact that is not there.
    #[error("the {role} `{path}` cannot be read")]
    ArtefactMissing {
        /// What it should have been.
        role: &'static str,
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// An artefact with missing or wrong fields.
    #[error("the {role}{} is not valid: {detail}", place.as_ref().map(|p| format!(" `{p}`")).unwrap_or_default())]
    ArtefactInvalid {
        /// What it should have been.
        role: &'static str,
        /// Where; `None` when it was handed over inline.
        place: Option<String>,
        /// What is wrong, with the field.
        detail: String,
    },
    /// Arguments that do not go together.
    #[error("{message}")]
    Arguments {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Values that are unknown, of the wrong type or out of range.
    #[error("{}", .0.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; "))]
    Request(Vec<Defect>),
    /// An answer that is no yes.
    #[error("{refusal}")]
    Refusal {
        /// Why.
        refusal: Refusal,
        /// The session.
        session: SessionId,
    },
    /// The client cannot show a form.
    #[error("this client cannot ask its user anything")]
    NoElicitation {
        /// The session.
        session: SessionId,
    },
    /// Writing without a yes.
    #[error("nobody has confirmed the current table of session `{session}`; its state is {state}")]
    NotConfirmed {
        /// The session.
        session: SessionId,
        /// Its state.
        state: &'static str,
    },
    /// Files changed since.
    #[error("what the plan was derived from has changed: {}", changed.join("; "))]
    Stale {
        /// The session.
        session: SessionId,
        /// What changed.
        changed: Vec<String>,
    },
    /// Written already.
    #[error("the plan of this session was written already, to `{path}`")]
    AlreadyEmitted {
        /// Where.
        path: String,
    },
    /// No such thing in the catalogue.
    #[error("there is nothing called `{name}`")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// Names near it.
        near: Vec<String>,
    },
    /// No current directory.
    #[error("the current directory cannot be told")]
    CurrentDirectory(#[source] std::io::Error),
    /// Nowhere to keep sessions.
    #[error("no directory for sessions can be found")]
    NoStateDirectory,
    /// No random numbers.
    #[error("the operating system gave no random bytes")]
    Random(#[source] getrandom::Error),
}

impl Error {
    /// The code that clients see.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Intake(error) => error.code(),
            Self::Store(StoreError::Unknown(_)) => "UNKNOWN_SESSION",
            Self::Store(StoreError::Expired { .. }) => "SESSION_EXPIRED",
            Self::Store(StoreError::Conflict(_)) => "CONFLICT",
            Self::Store(StoreError::Busy) => "BUSY",
            Self::Store(StoreError::Broken { .. }) | Self::Replay(_) => "LOG_BROKEN",
            Self::Store(_)
            | Self::CurrentDirectory(_)
            | Self::NoStateDirectory
            | Self::Random(_) => "STATE_UNAVAILABLE",
            Self::Emit(EmitError::OutsideRoots { .. }) => "OUTSIDE_WORKSPACE",
            Self::Emit(EmitError::Symlink { .. }) => "SYMLINK",
            Self::Emit(EmitError::NotAFile { .. }) => "NOT_A_FILE",
            Self::Emit(EmitError::Exists { .. }) => "OUTPUT_EXISTS",
            Self::Emit(EmitError::OtherKind { .. }) => "OUTPUT_OTHER_KIND",
            Self::Emit(EmitError::Io { .. }) => "OUTPUT_IO",
            Self::Emit(EmitError::Assemble(_)) => "PLAN_INCOMPLETE",
            Self::ArtefactMissing { .. } => "ARTEFACT_NOT_FOUND",
            Self::ArtefactInvalid { .. } => "ARTEFACT_INVALID",
            Self::Arguments { .. } => "BAD_ARGUMENTS",
            Self::Request(_) => "BAD_VALUE",
            Self::Refusal { refusal, .. } => refusal.code(),
            Self::NoElicitation { .. } => "NO_ELICITATION",
            Self::NotConfirmed { .. } => "NOT_CONFIRMED",
            Self::Stale { .. } => "STALE_INPUTS",
            Self::AlreadyEmitted { .. } => "ALREADY_EMITTED",
            Self::UnknownName { .. } => "UNKNOWN_NAME",
        }
    }

    /// The one thing to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Intake(error) => error.hint(),
            Self::Store(error) => match error {
                StoreError::Unknown(_) | StoreError::Expired { .. } => {
                    "call `propose_plan` to start a session, or list them with `quantplan sessions`"
                        .to_owned()
                }
                StoreError::Conflict(id) => format!(
                    "call `render_decision_table` with session_id `{id}` to see what it is now"
                ),
                StoreError::Broken { .. } => {
                    "call `propose_plan` to start over; this log cannot be trusted".to_owned()
                }
                StoreError::Busy => {
                    "call again; if it stays so, end the other `quantplan` process".to_owned()
                }
                StoreError::Directory { .. } | StoreError::Sqlite(_) => {
                    "name a folder that you may write to with `--state-dir`".to_owned()
                }
            },
            Self::Replay(_) => {
                "call `propose_plan` to start over; this log cannot be trusted".to_owned()
            }
            Self::Emit(error) => match error {
                EmitError::OutsideRoots { roots, .. } => format!(
                    "write into {}, or start quantplan with `--workspace`",
                    roots_text(roots)
                ),
                EmitError::Symlink { .. } => "name the file that the link points to".to_owned(),
                EmitError::NotAFile { .. } => {
                    "name a file, for example `quant_plan.json`".to_owned()
                }
                EmitError::Exists { .. } => {
                    "name another file, or pass `overwrite: true` (`--overwrite`)".to_owned()
                }
                EmitError::OtherKind { .. } => {
                    "name another file; remove that one yourself if it has to go".to_owned()
                }
                EmitError::Io { .. } => {
                    "check that the folder exists and that you may write to it".to_owned()
                }
                EmitError::Assemble(_) => {
                    "call `render_decision_table` and give every open row a value".to_owned()
                }
            },
            Self::ArtefactMissing { .. } => {
                "check the path; relative ones start at the current directory of quantplan"
                    .to_owned()
            }
            Self::ArtefactInvalid { role: "model_analysis", .. } => {
                "make the analysis again with `analyze_model` (`quantplan analyze`)".to_owned()
            }
            Self::ArtefactInvalid { .. } => {
                "have the skill that wrote it write it again".to_owned()
            }
            Self::Arguments { hint, .. } => hint.clone(),
            Self::Request(defects) => defects
                .iter()
                .find_map(|defect| defect.hint.clone())
                .unwrap_or_else(|| "correct the value and call again".to_owned()),
            Self::Refusal { refusal, session } => refusal_hint(refusal, session),
            Self::NoElicitation { session } => out_of_band(session),
            Self::NotConfirmed { session, state } => match *state {
                "drafted" => format!(
                    "call `render_decision_table` with session_id `{session}`, then `confirm_plan`"
                ),
                _ => format!(
                    "call `confirm_plan` with session_id `{session}`; only the user can say yes"
                ),
            },
            Self::Stale { session, .. } => format!(
                "call `revise_plan` with session_id `{session}` and no changes: it reads the files again"
            ),
            Self::AlreadyEmitted { .. } => "pass `overwrite: true` to write it again".to_owned(),
            Self::UnknownName { near, .. } if near.is_empty() => {
                "list the names with `quantplan explain`".to_owned()
            }
            Self::UnknownName { near, .. } => format!(
                "did you mean {}?",
                near.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
            Self::CurrentDirectory(_) => "start quantplan in a folder that exists".to_owned(),
            Self::NoStateDirectory => "set `QUANTPLAN_STATE_DIR`, or pass `--state-dir`".to_owned(),
            Self::Random(_) => "try again".to_owned(),
        }
    }

    /// The message with the causes that say more, for people.
    pub fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = error.source();
        }
        text
    }
}

/// The way out where a host cannot ask, or did not.
pub fn out_of_band(session: &SessionId) -> String {
    format!("ask the user to run `quantplan confirm {session}` in a terminal")
}

fn refusal_hint(refusal: &Refusal, session: &SessionId) -> String {
    match refusal {
        Refusal::StaleTable { .. } | Refusal::NotShown => format!(
            "call `render_decision_table` with session_id `{session}`, show the table, then confirm its digest"
        ),
        Refusal::NotAsked | Refusal::Replayed | Refusal::Expired | Refusal::Unclear => {
            format!("call `confirm_plan` with session_id `{session}` to ask again")
        }
        Refusal::Changes => {
            format!(
                "ask the user what to change and call `revise_plan` with session_id `{session}`"
            )
        }
        Refusal::NotConfirmable { .. } => format!(
            "ask the user and call `revise_plan` with session_id `{session}` and the answers"
        ),
        Refusal::NoPerson { .. } | Refusal::Declined | Refusal::Cancelled => {
            format!("{}, or call `revise_plan` with what they want changed", out_of_band(session))
        }
    }
}

fn roots_text(roots: &[PathBuf]) -> String {
    let mut shown: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    shown.dedup();
    shown.join(" or ")
}
