//! The event log of every session, in SQLite.
//!
//! Hosts run several server processes at once and restart them, so a session belongs to its id and lives
//! here. `(session_id, seq)` is unique: of two processes that act on one session one wins and the other is
//! told. Each row carries the hash of the row before it, so a later edit shows.

use std::{fs, path::Path, thread, time::Duration};

use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use tracing::trace;

use crate::{
    plan::digest::Digest,
    session::event::{Event, Stamped},
    vocab::SessionId,
};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS events (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (session_id, seq)
);";

/// How long a process waits for another one that writes.
const PATIENCE: Duration = Duration::from_secs(5);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The log.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    lifetime_ms: i64,
}

/// The events of one session.
#[derive(Debug, Clone)]
pub struct Log {
    /// In order.
    pub entries: Vec<Stamped>,
    head: String,
}

impl Log {
    /// The position of the next event.
    pub fn next_seq(&self) -> i64 {
        self.entries.len() as i64
    }

    fn push(&mut self, at: i64, event: Event, hash: String) {
        self.entries.push(Stamped { seq: self.next_seq(), at, timestamp: rfc3339(at), event });
        self.head = hash;
    }
}

/// A session as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The handle.
    pub id: SessionId,
    /// When the last event was, in milliseconds since 1970.
    pub at: i64,
}

/// What can go wrong with the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such session.
    #[error("there is no session `{0}`")]
    Unknown(SessionId),
    /// Too old.
    #[error("session `{id}` has expired; nothing happened in it for {days} days")]
    Expired {
        /// The session.
        id: SessionId,
        /// How long sessions live.
        days: i64,
    },
    /// Another process was faster.
    #[error("another process changed session `{0}` at the same moment")]
    Conflict(SessionId),
    /// The log was edited.
    #[error("event {seq} of session `{id}` was changed after it was written")]
    Broken {
        /// The session.
        id: SessionId,
        /// The first event whose hash is wrong.
        seq: i64,
    },
    /// The state directory cannot be used.
    #[error("the state directory `{path}` cannot be used")]
    Directory {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Another process holds the log.
    #[error("another process has been writing to the session log for {} seconds", PATIENCE.as_secs())]
    Busy,
    /// SQLite.
    #[error("the session log cannot be used")]
    Sqlite(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Sqlite(error),
        }
    }
}

impl Store {
    /// Opens the log in a state directory, and makes both when there are none.
    ///
    /// # Errors
    ///
    /// When the directory or the file cannot be made or read.
    pub fn open(directory: &Path, lifetime_days: i64) -> Result<Self, StoreError> {
        let failed =
            |source| StoreError::Directory { path: directory.display().to_string(), source };
        make_private_directory(directory).map_err(failed)?;
        let file = directory.join("sessions.db");
        let connection = Connection::open(&file)?;
        keep_private(&file).map_err(failed)?;
        connection.busy_timeout(PATIENCE)?;
        use_wal(&connection)?;
        // Every event is on the disk before it counts.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection, lifetime_ms: lifetime_days * DAY_MS })
    }

    /// The events of a session.
    ///
    /// # Errors
    ///
    /// When there is none, it has expired, or its log was edited.
    pub fn load(&self, id: &SessionId, now: i64) -> Result<Log, StoreError> {
        read(&self.connection, id, now, self.lifetime_ms)
    }

    /// Adds an event behind the ones that were loaded, and gives the log with it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when another process added one first.
    pub fn append(
        &mut self,
        id: &SessionId,
        log: &Log,
        at: i64,
        event: &Event,
    ) -> Result<Log, StoreError> {
        self.append_with(id, log, at, event, || Ok::<(), std::convert::Infallible>(())).map(
            |done| match done {
                Ok(((), log)) => log,
                Err(never) => match never {},
            },
        )
    }

    /// Adds an event and does something outside the log that must go together with it.
    ///
    /// The action runs while the event is written and not yet committed, and nobody else can write: when it
    /// fails the event is gone, and when the process dies in between the next one finds the session as it
    /// was, so the action must recognise its own work.
    ///
    /// # Errors
    ///
    /// The outer one is the log's, the inner one the action's.
    pub fn append_with<T, E>(
        &mut self,
        id: &SessionId,
        log: &Log,
        at: i64,
        event: &Event,
        action: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<(T, Log), E>, StoreError> {
        let conflict = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => StoreError::Conflict(id.clone()),
            _ => error.into(),
        };
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        trace!("transaction begun");
        let text = serde_json::to_string(event).unwrap_or_default();
        let seq = log.next_seq();
        let hash = chained(id, seq, at, &text, &log.head);
        transaction
            .execute(
                "INSERT INTO events (session_id, seq, at, event, prev_hash, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id.as_str(), seq, at, text, log.head, hash],
            )
            .map_err(conflict)?;
        trace!(event = event.name(), "event appended");
        match action() {
            Ok(done) => {
                transaction.commit()?;
                trace!(event = event.name(), "transaction committed");
                let mut log = log.clone();
                log.push(at, event.clone(), hash);
                Ok(Ok((done, log)))
            }
            Err(error) => {
                transaction.rollback()?;
                Ok(Err(error))
            }
        }
    }

    /// The log of a session that does not exist yet.
    pub fn empty_log(&self) -> Log {
        Log { entries: Vec::new(), head: String::new() }
    }

    /// Sessions that have not expired, newest first.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub fn list(&self, now: i64) -> Result<Vec<Line>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT session_id, MAX(at) AS last FROM events GROUP BY session_id HAVING last > ?1 ORDER BY last DESC, session_id",
        )?;
        let lines = statement.query_map([now - self.lifetime_ms], |row| {
            Ok(Line { id: SessionId::new(row.get::<_, String>(0)?), at: row.get(1)? })
        })?;
        Ok(lines.collect::<Result<_, _>>()?)
    }

    /// Forgets sessions that expired as long ago as they may live.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub fn prune(&mut self, now: i64) -> Result<(), StoreError> {
        self.connection.execute(
            "DELETE FROM events WHERE session_id IN (SELECT session_id FROM events GROUP BY session_id HAVING MAX(at) <= ?1)",
            [now - 2 * self.lifetime_ms],
        )?;
        Ok(())
    }
}

/// Switches to the write-ahead log.
///
/// On a new file SQLite does not wait for another process that does the same at this moment.
fn use_wal(connection: &Connection) -> Result<(), StoreError> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL").map_err(StoreError::from) {
            Err(StoreError::Busy) if waited < PATIENCE => {
                thread::sleep(PAUSE);
                waited += PAUSE;
            }
            done => return done,
        }
    }
}

fn read(
    connection: &Connection,
    id: &SessionId,
    now: i64,
    lifetime_ms: i64,
) -> Result<Log, StoreError> {
    let last: Option<i64> = connection
        .query_row("SELECT MAX(at) FROM events WHERE session_id = ?1", [id.as_str()], |row| {
            row.get(0)
        })
        .optional()?
        .flatten();
    let Some(last) = last else { return Err(StoreError::Unknown(id.clone())) };
    if last <= now - lifetime_ms {
        return Err(StoreError::Expired { id: id.clone(), days: lifetime_ms / DAY_MS });
    }
    let mut statement = connection.prepare(
        "SELECT seq, at, event, prev_hash, hash FROM events WHERE session_id = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([id.as_str()])?;
    let mut log = Log { entries: Vec::new(), head: String::new() };
    while let Some(row) = rows.next()? {
        let (seq, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (text, prev, hash): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let broken = || StoreError::Broken { id: id.clone(), seq };
        if seq != log.next_seq() || prev != log.head || chained(id, seq, at, &text, &prev) != hash {
            return Err(broken());
        }
        let event = serde_json::from_str(&text).map_err(|_| broken())?;
        log.push(at, event, hash);
    }
    Ok(log)
}

fn chained(id: &SessionId, seq: i64, at: i64, text: &str, prev: &str) -> String {
    Digest::of_bytes(format!("{id}\n{seq}\n{at}\n{prev}\n{text}").as_bytes()).as_str().to_owned()
}

/// A moment in RFC 3339, to the second.
pub fn rfc3339(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1000);
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

fn make_private_directory(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A directory that somebody else shares on purpose stays as it is.
        if fs::read_dir(path)?.next().is_none() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

fn keep_private(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// The key that seals questions: 32 random bytes in a file that only the user may read.
///
/// # Errors
///
/// When it can be neither read nor made.
pub fn sealing_key(directory: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |source| StoreError::Directory { path: directory.display().to_string(), source };
    make_private_directory(directory).map_err(failed)?;
    let file = directory.join("seal.key");
    if let Ok(key) = fs::read(&file)
        && key.len() == 32
    {
        return Ok(key);
    }
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key).map_err(|error| failed(std::io::Error::other(error)))?;
    // Another process may make it at the same moment; the first one counts.
    let temporary = directory.join(format!("seal.key.{}", std::process::id()));
    fs::write(&temporary, key).map_err(failed)?;
    keep_private(&temporary).map_err(failed)?;
    let linked = fs::hard_link(&temporary, &file);
    let _ = fs::remove_file(&temporary);
    match linked {
        Ok(()) => Ok(key.to_vec()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs::read(&file).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
