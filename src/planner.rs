//! One function for each thing a user can do; the command line and the server call the same ones.
//!
//! The planner reads artefacts, lets the rules reason, keeps the session in the log and writes the plan.
//! It prints nothing and knows no protocol.

pub mod analyze;
pub mod artefacts;
pub mod browse;
mod changed;
pub mod check;
pub mod confirm;
mod context;
pub mod diff;
pub mod error;
pub mod explain;
mod named_files;
pub mod probe;
pub mod propose;
mod reading;
pub mod route;
pub mod sessions;
pub mod show;
pub mod write;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    planner::error::Error,
    session::{Session, event::Event},
    store::{Log, Store},
    vocab::SessionId,
};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How a planner is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folders that may be written to; when empty, the current one and those of the session's model and
    /// analysis.
    pub workspaces: Vec<PathBuf>,
    /// Where sessions are kept.
    pub state_dir: PathBuf,
    /// The current directory: what relative paths are relative to.
    pub current_dir: PathBuf,
    /// How many days a session lives without an event.
    pub session_days: i64,
    /// Milliseconds since 1970.
    pub now: fn() -> i64,
}

impl Options {
    /// The usual set-up of this process.
    ///
    /// # Errors
    ///
    /// When there is no current directory, or no state directory can be found.
    pub fn from_environment(
        workspaces: Vec<PathBuf>,
        state_dir: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let current_dir = std::env::current_dir().map_err(Error::CurrentDirectory)?;
        let state_dir = match state_dir {
            Some(named) => current_dir.join(named),
            None => default_state_dir().ok_or(Error::NoStateDirectory)?,
        };
        Ok(Self { workspaces, state_dir, current_dir, session_days: 30, now: system_now })
    }
}

/// `$QUANTPLAN_STATE_DIR`, else `$XDG_STATE_HOME/quantplan`, else `~/.local/state/quantplan`.
fn default_state_dir() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty())
    };
    set("QUANTPLAN_STATE_DIR")
        .or_else(|| {
            set("XDG_STATE_HOME").filter(|path| path.is_absolute()).map(|p| p.join("quantplan"))
        })
        .or_else(|| set("LOCALAPPDATA").map(|path| path.join("quantplan")))
        .or_else(|| set("HOME").map(|home| home.join(".local/state/quantplan")))
}

fn system_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Everything behind both faces.
#[derive(Debug)]
pub struct Planner {
    options: Options,
    store: Mutex<Option<Store>>,
}

impl Planner {
    /// A planner; the log is opened when it is first needed.
    pub fn new(options: Options) -> Self {
        Self { options, store: Mutex::new(None) }
    }

    /// How it is set up.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn now(&self) -> i64 {
        (self.options.now)()
    }

    /// A path as the user wrote it, made whole.
    fn whole(&self, path: &Path) -> PathBuf {
        self.options.current_dir.join(path)
    }

    fn with_store<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Error>) -> Result<T, Error> {
        let mut guard: MutexGuard<'_, Option<Store>> =
            self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match &mut *guard {
            Some(store) => store,
            empty => empty.insert(Store::open(&self.options.state_dir, self.options.session_days)?),
        };
        work(store)
    }

    /// A session as its log tells it.
    ///
    /// # Errors
    ///
    /// When there is none, it has expired, or its log was edited.
    pub fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.load(id).map(|(session, _)| session)
    }

    fn load(&self, id: &SessionId) -> Result<(Session, Log), Error> {
        let now = self.now();
        let log = self.with_store(|store| Ok(store.load(id, now)?))?;
        let session = Session::replay(id, &log.entries)?;
        Ok((session, log))
    }

    fn append(&self, id: &SessionId, log: &Log, event: &Event) -> Result<Log, Error> {
        let now = self.now();
        self.with_store(|store| Ok(store.append(id, log, now, event)?))
    }

    /// Appends and gives the session as it is then.
    fn advance(&self, id: &SessionId, log: &Log, event: &Event) -> Result<Session, Error> {
        let log = self.append(id, log, event)?;
        Ok(Session::replay(id, &log.entries)?)
    }
}

/// A name that nobody can guess: a prefix and 26 letters and digits, 130 random bits.
fn unguessable(prefix: &str) -> Result<String, Error> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0_u8; 26];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    let letters = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    Ok(prefix.chars().chain(letters).collect())
}
