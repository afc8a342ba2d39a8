//! The event log on disk: numbered without gaps, durable before an event is sent to subscribers, limited in size and
//! age.
//!
//! The log has its own database, so that its failures never affect the engine (C-22). Reading order: `rows` (an event
//! as a row), this file (the writable log), `numbering` (numbers, and the publication), `writer` (the thread),
//! `reserve` (space for the last events), `waiting_marker` (events that only exist in memory), `reader`.

mod numbering;
mod reader;
mod reserve;
pub(in super::super) mod rows;
mod waiting_marker;
pub(super) mod writer;

pub use reader::{Place, Reader, Unreadable, Wanted};

use super::event::{NewEvent, unix_ms};
use super::session::session_end;
use crate::api::event_data::Session;
use crate::api::{EventKind, Level};
use crate::file_identity::FileIdentity;
use crate::store::LAST_GOOD_GRAPH;
use crate::store::database::{self, Fault, move_aside};
use crate::store::write_ahead_log::{WriteAheadLog, is_emptied};
use rusqlite::{Connection, OptionalExtension as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The name of the database in the state directory.
pub const DATABASE: &str = "events.db";

/// The number of events deleted at once, so that no write waits long.
const CHUNK: u64 = 5000;

/// The number of writes between two checks of the size.
const LOOK: u64 = 500;

/// The limits of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The maximum size on disk, in bytes.
    pub bytes: u64,
    /// The maximum age of an event.
    pub age: Duration,
}

impl Retention {
    /// Limits under which nothing is deleted.
    pub const ENDLESS: Self = Self { bytes: u64::MAX, age: Duration::MAX };
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: 64 << 20, age: Duration::from_hours(30 * 24) }
    }
}

/// A record of a recorder's position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The recorder exists; a new one begins after this number.
    Enlist(Arc<str>, u64),
    /// A batch is about to be sent: its first and last number.
    Begin(Arc<str>, u64, u64),
    /// The batch with this first number was confirmed; all events up to the second number are confirmed.
    Done(Arc<str>, u64, u64),
}

/// The event log, open for writing.
#[derive(Debug)]
pub struct Log {
    connection: Connection,
    /// The database at its path.
    place: FileIdentity,
    /// The write-ahead log of the database.
    write_ahead: WriteAheadLog,
    /// The number of the last event.
    last_number: u64,
    /// The number of the start event of this session.
    run: Option<u64>,
    retention: Retention,
    /// The number of events written since the last check of the size.
    unlooked: u64,
}

/// An error of a write. The handle must not be used again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unwritable(#[from] Fault);

impl From<rusqlite::Error> for Unwritable {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.into())
    }
}

/// Returns true if a daemon has loaded a graph with this state directory: its event log then has events.
fn is_used(state_directory: &Path) -> bool {
    state_directory.join(LAST_GOOD_GRAPH).exists()
}

impl Log {
    /// Opens the log of a state directory that this process has locked. A damaged log is moved aside and replaced.
    /// Sessions without an end get an end event, except `own_run`, the session of this process if it has begun.
    ///
    /// # Errors
    /// [`Unwritable`] if the database cannot be opened or written.
    pub fn open(
        state_directory: &Path,
        retention: Retention,
        own_run: Option<u64>,
    ) -> Result<Self, Unwritable> {
        let path = path(state_directory);
        let (connection, aside) = match connect(&path) {
            Ok(connection) => (connection, None),
            Err(Fault::Damaged(why)) => {
                let failed = |error: std::io::Error| Fault::Refused(error.to_string());
                let aside = move_aside(&path).map_err(failed)?;
                tracing::error!(
                    event = "events_lost",
                    "the event log could not be read and was recreated; the old one is kept at {}: {why}",
                    aside.display()
                );
                (connect(&path)?, Some((aside, why)))
            }
            Err(refused) => return Err(refused.into()),
        };
        let sql = "SELECT max(number) FROM event";
        let last: Option<i64> = connection.query_row(sql, (), |row| row.get(0))?;
        let last = last.unwrap_or_default().cast_unsigned();
        let place = FileIdentity::of(&path).map_err(Fault::from)?;
        let mut log = Self {
            connection,
            place,
            write_ahead: WriteAheadLog::of(&path),
            last_number: last,
            run: own_run,
            retention,
            unlooked: LOOK,
        };
        if let Some((aside, why)) = aside {
            log.begin_anew(format!(
                "earlier events cannot be read; the old log is kept at {}: {why}",
                aside.display()
            ))?;
        }
        log.end_others()?;
        log.write_ahead.note_commit(&log.connection);
        Ok(log)
    }

    /// Returns true if the database is still at its path, with its last commits.
    pub(super) fn is_in_place(&self) -> bool {
        self.place.change().is_none() && !is_emptied(self.place.path())
    }

    /// Saves the content of a removed write-ahead log. Returns true if the log must be opened again.
    ///
    /// # Errors
    /// [`Unwritable`] if the content cannot be saved.
    pub(super) fn save(&self) -> Result<bool, Unwritable> {
        Ok(self.write_ahead.save(&self.connection)?)
    }

    /// Returns true if another program has truncated or overwritten the write-ahead log.
    pub(super) fn is_overwritten(&self) -> bool {
        self.write_ahead.is_overwritten(&self.connection)
    }

    /// Returns true if events may be in the write-ahead log alone.
    pub(super) fn is_ahead(&self) -> bool {
        self.write_ahead.is_ahead()
    }

    /// Copies the write-ahead log into the database after a quiet second.
    pub(super) fn copy_when_quiet(&mut self) {
        self.write_ahead.copy_when_quiet(&self.connection);
    }

    /// Gives up an overwritten write-ahead log. Returns true if events may be lost with it.
    pub(super) fn give_up(self) -> Result<bool, Unwritable> {
        let path = self.place.path().display().to_string();
        let is_lossy = self.write_ahead.give_up(self.connection)?;
        if !is_lossy {
            tracing::warn!(
                event = "log_saved",
                "{path}-wal was truncated or overwritten while in use; its content was in the database"
            );
        }
        Ok(is_lossy)
    }

    /// Reports in a new log that the one before it was removed while it was in use.
    pub(super) fn begin_after_removal(&mut self) -> Result<(), Unwritable> {
        tracing::error!(
            event = "events_lost",
            "the event log was removed or truncated while in use, and was recreated: {}",
            self.place.path().display()
        );
        self.begin_anew(
            "earlier events are lost: the event log was removed or truncated while in use"
                .to_owned(),
        )
    }

    /// Reports in an empty log that events of earlier sessions are lost.
    pub(super) fn begin_after_loss(&mut self) -> Result<(), Unwritable> {
        tracing::error!(
            event = "events_lost",
            "the event log is missing or empty, and was recreated: {}",
            self.place.path().display()
        );
        self.begin_anew("earlier events are lost: the event log is missing or empty".to_owned())
    }

    /// Reports that an earlier process was killed while events waited for the log.
    pub(super) fn report_killed_events(&mut self) -> Result<(), Unwritable> {
        tracing::error!(
            event = "events_lost",
            "steadfast was killed while events could not be recorded; these events are lost"
        );
        let reason = "steadfast was killed while events waited to be recorded".to_owned();
        self.append(&[(unix_ms(), NewEvent::gap(None, reason, Level::Error))], &[])?;
        Ok(())
    }

    /// Starts a new log after a damaged or removed one. Its first number is the present time in milliseconds since
    /// 1970, which was never used: no host records a thousand events per second all the time.
    fn begin_anew(&mut self, reason: String) -> Result<(), Unwritable> {
        let at = unix_ms();
        self.last_number = self.last_number.max(at);
        self.append(&[(at, NewEvent::gap(None, reason, Level::Error))], &[])?;
        Ok(())
    }

    /// Ends the sessions without an end event (C-11): their processes are gone, because this process has the lock.
    fn end_others(&mut self) -> Result<(), Unwritable> {
        let open: Vec<i64> = {
            let mut select = self.connection.prepare("SELECT number FROM run ORDER BY number")?;
            select.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        let others = open.into_iter().map(i64::cast_unsigned).filter(|run| Some(*run) != self.run);
        let mut ends: Vec<(u64, NewEvent)> = Vec::new();
        for run in others {
            let text = format!("the session that started with event {run} ended unexpectedly");
            let session = (Some(run), self.session(run)?);
            ends.push((unix_ms(), session_end(session, ("interrupted", text), Level::Warn)));
        }
        if !ends.is_empty() {
            self.append(&ends, &[])?;
        }
        Ok(())
    }

    /// Returns the session that started with an event; `None` if the event is no longer stored, or of an older version.
    fn session(&self, run: u64) -> Result<Option<Session>, Unwritable> {
        let sql = rows::selecting(rows::SCHEMA, "WHERE number = ?1");
        let mut select = self.connection.prepare(&sql)?;
        let mut found = select.query([run.cast_signed()])?;
        let Some(row) = found.next()? else { return Ok(None) };
        Ok(match &rows::read(row)?.kind {
            EventKind::RunStart(session) => Some(session.clone()),
            _ => None,
        })
    }

    /// Returns the number of the last event.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Returns the number of the start event of this session, if it has begun.
    #[must_use]
    pub fn run(&self) -> Option<u64> {
        self.run
    }

    /// Deletes some of the events beyond the limits; returns true if more must be deleted. `now` is the time of
    /// retention in milliseconds since 1970.
    ///
    /// # Errors
    /// [`Unwritable`] if the database fails.
    pub fn trim(&mut self, now: u64, is_asked: bool) -> Result<bool, Unwritable> {
        if self.unlooked < LOOK && !is_asked {
            return Ok(false);
        }
        self.unlooked = 0;
        let pragma = |name: &str| {
            let sql = format!("PRAGMA {name}");
            self.connection.query_row(&sql, (), |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
        };
        let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
        let sql = "SELECT min(number) FROM event";
        let first: Option<i64> = self.connection.query_row(sql, (), |row| row.get(0))?;
        let first = first.unwrap_or_default().cast_unsigned();
        let kept = (self.last_number + 1).saturating_sub(first);
        let mut until = first;
        if used > self.retention.bytes {
            // The estimate assumes events of similar length.
            let per_event = (used / kept.max(1)).max(1);
            until = first + (used - self.retention.bytes).div_ceil(per_event) + kept / 50;
        }
        let age = u64::try_from(self.retention.age.as_millis()).unwrap_or(u64::MAX);
        let sql = "SELECT number FROM event WHERE at >= ?1 ORDER BY number LIMIT 1";
        let young = [now.saturating_sub(age).cast_signed()];
        let young: Option<i64> =
            self.connection.query_row(sql, young, |row| row.get(0)).optional()?;
        until = until.max(young.map_or(self.last_number, i64::cast_unsigned));
        // The last event stays regardless of its age: it determines the next number.
        let wanted = until.min(self.last_number);
        let until = wanted.min(first + CHUNK);
        if until <= first {
            return Ok(false);
        }
        let sql = "DELETE FROM event WHERE number < ?1";
        let deleted = self.connection.execute(sql, [until.cast_signed()]);
        self.write_ahead.note_commit(&self.connection);
        deleted?;
        Ok(until < wanted)
    }
}

fn write(connection: &Connection, mark: &Mark) -> Result<(), Unwritable> {
    let place = "INSERT INTO cursor (recorder, number) VALUES (?1, ?2) ON CONFLICT (recorder)";
    match mark {
        Mark::Enlist(name, after) => {
            let sql = format!("{place} DO NOTHING");
            connection.execute(&sql, (&**name, after.cast_signed()))?;
        }
        Mark::Begin(name, first, last) => {
            let sql = "INSERT OR REPLACE INTO batch (recorder, first, last) VALUES (?1, ?2, ?3)";
            connection.execute(sql, (&**name, first.cast_signed(), last.cast_signed()))?;
        }
        Mark::Done(name, first, upto) => {
            let sql = "DELETE FROM batch WHERE recorder = ?1 AND first = ?2";
            connection.execute(sql, (&**name, first.cast_signed()))?;
            let sql = format!("{place} DO UPDATE SET number = max(number, excluded.number)");
            connection.execute(&sql, (&**name, upto.cast_signed()))?;
        }
    }
    Ok(())
}

/// Opens the database, creates the tables of a new one, and checks for damage.
fn connect(path: &Path) -> Result<Connection, Fault> {
    let opened = database::open(path, &rows::LAYOUT).map_err(|fault| match fault {
        // Unlike the state, a log of a newer program is replaced: a new log is better than none.
        newer @ Fault::Newer { .. } => Fault::Damaged(newer.to_string()),
        other => other,
    });
    let (mut connection, version) = opened?;
    // A number that a subscriber has seen must not be used again after a power failure, so each commit is synced.
    database::make_durable(&connection)?;
    connection.execute_batch("PRAGMA journal_size_limit=4194304")?;
    match version {
        0 => rows::create(&mut connection, unix_ms())?,
        rows::SCHEMA => {}
        older => rows::migrate(&mut connection, older)?,
    }
    database::check(&connection)?;
    Ok(connection)
}

/// Returns the path of the log in a state directory. A link leads to the log itself, beside which its other files are.
#[must_use]
pub fn path(state_directory: &Path) -> PathBuf {
    let path = state_directory.join(DATABASE);
    path.canonicalize().unwrap_or(path)
}
