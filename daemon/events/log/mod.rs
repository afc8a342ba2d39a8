//! The event log on disk: numbered without a hole, durable before it is told, bounded in size and age. It is apart from the state,
//! so that nothing that befalls it befalls the engine (C-22).

mod reader;
pub(in super::super) mod rows;
pub(super) mod writer;

pub use reader::{Place, Reader, Unreadable, Wanted};

use super::event::{Level, NewEvent, unix_ms, what};
use crate::store::database::{self, Fault, move_aside};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Its name in the state directory.
pub const DATABASE: &str = "events.db";

/// So many are let go at a time: nobody waits long.
const CHUNK: u64 = 5000;

/// So many are written between two looks at how much is kept.
const LOOK: u64 = 500;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many bytes on disk.
    pub bytes: u64,
    /// So long.
    pub age: Duration,
}

impl Retention {
    /// Nothing is let go.
    pub const ENDLESS: Self = Self { bytes: u64::MAX, age: Duration::MAX };
}

impl Default for Retention {
    fn default() -> Self {
        Self { bytes: 64 << 20, age: Duration::from_hours(30 * 24) }
    }
}

/// What a recorder has kept with the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is there, and begins after this number if it was never heard of.
    Enlist(Arc<str>, u64),
    /// A batch is about to be sent: first and last number.
    Begin(Arc<str>, u64, u64),
    /// The batch that begins so was confirmed, and all up to the second number are.
    Done(Arc<str>, u64, u64),
}

/// The log, as the one who writes it sees it.
#[derive(Debug)]
pub struct Log {
    connection: Connection,
    /// The number of the last event.
    last_number: u64,
    /// The number of the start of this run.
    run: Option<u64>,
    retention: Retention,
    /// How many were written since it was last looked how much is kept.
    unlooked: u64,
}

/// Why it cannot be written. A handle that failed is not used again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unwritable(#[from] Fault);

impl From<rusqlite::Error> for Unwritable {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.into())
    }
}

impl Log {
    /// Opens the log of a state directory that is held by this process. A damaged one is put aside, and one begun anew; runs
    /// that ended without a word are ended. `is_new_run` where this process has not begun its own yet.
    pub fn open(
        state_directory: &Path,
        retention: Retention,
        own_run: Option<u64>,
    ) -> Result<Self, Unwritable> {
        let path = state_directory.join(DATABASE);
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
        let mut log =
            Self { connection, last_number: last, run: own_run, retention, unlooked: LOOK };
        if let Some((aside, why)) = aside {
            log.begin_anew(&aside, &why)?;
        }
        log.end_others()?;
        Ok(log)
    }

    /// A log that is begun in place of one that cannot be read begins at a number that was never used: that of this
    /// millisecond since 1970, for nobody records a thousand events a second all the time.
    fn begin_anew(&mut self, aside: &Path, why: &str) -> Result<(), Unwritable> {
        let (at, aside) = (unix_ms(), aside.display());
        self.last_number = self.last_number.max(at);
        let says = format!("earlier events cannot be read; the old log is kept at {aside}: {why}");
        self.append(&[(at, NewEvent::new(what::GAP, says, Level::Error))], &[])?;
        Ok(())
    }

    /// Ends the runs that have no end (C-11): whoever made them is gone, for this process holds the directory.
    fn end_others(&mut self) -> Result<(), Unwritable> {
        let open: Vec<i64> = {
            let mut select = self.connection.prepare("SELECT number FROM run ORDER BY number")?;
            select.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        let others = open.into_iter().map(i64::cast_unsigned).filter(|run| Some(*run) != self.run);
        let ends: Vec<(u64, NewEvent)> = others
            .map(|run| {
                let says = format!("the session that started with event {run} ended unexpectedly");
                let told = NewEvent::new(what::RUN_END, says, Level::Warn);
                let (class, run) = (Some("interrupted"), Some(run));
                (unix_ms(), NewEvent { class, run, ..told })
            })
            .collect();
        if !ends.is_empty() {
            self.append(&ends, &[])?;
        }
        Ok(())
    }

    /// The number of the last event.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The number of the start of this run, if it has begun.
    #[must_use]
    pub fn run(&self) -> Option<u64> {
        self.run
    }

    /// Writes events and marks, all or none; durable when it returns. The first event gets the number after the last.
    pub fn append<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e (u64, NewEvent)>,
        marks: &[Mark],
    ) -> Result<u64, Unwritable> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let first = self.last_number + 1;
        let (mut number, mut run) = (self.last_number, self.run);
        let mut insert = rows::inserting(&transaction)?;
        for (at, happening) in events {
            number += 1;
            rows::insert(&mut insert, number, *at, happening)?;
            if happening.what == what::RUN_START {
                run = Some(number);
                transaction
                    .execute("INSERT INTO run (number) VALUES (?1)", [number.cast_signed()])?;
            }
            if let (what::RUN_END, Some(of)) = (happening.what, happening.run) {
                transaction.execute("DELETE FROM run WHERE number = ?1", [of.cast_signed()])?;
            }
        }
        drop(insert);
        for mark in marks {
            write(&transaction, mark)?;
        }
        transaction.commit()?;
        (self.last_number, self.run) = (number, run);
        self.unlooked += number + 1 - first;
        Ok(first)
    }

    /// Lets go of what is too much or too old, a little at a time; whether there is more to let go.
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
            // Events have about the same length.
            let per_event = (used / kept.max(1)).max(1);
            until = first + (used - self.retention.bytes).div_ceil(per_event) + kept / 50;
        }
        let age = u64::try_from(self.retention.age.as_millis()).unwrap_or(u64::MAX);
        let sql = "SELECT number FROM event WHERE at >= ?1 ORDER BY number LIMIT 1";
        let young = [now.saturating_sub(age).cast_signed()];
        let young: Option<i64> =
            self.connection.query_row(sql, young, |row| row.get(0)).optional()?;
        until = until.max(young.map_or(self.last_number, i64::cast_unsigned));
        // The last one stays, whatever its age: it tells which number is next.
        let wanted = until.min(self.last_number);
        let until = wanted.min(first + CHUNK);
        if until <= first {
            return Ok(false);
        }
        let sql = "DELETE FROM event WHERE number < ?1";
        self.connection.execute(sql, [until.cast_signed()])?;
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

/// Opens the database, makes its tables where it is new, and sees whether it is sound.
fn connect(path: &Path) -> Result<Connection, Fault> {
    let opened = database::open(path, &rows::LAYOUT).map_err(|fault| match fault {
        // Not refused, as the state is: a log that is begun anew is better than none.
        newer @ Fault::Newer { .. } => Fault::Damaged(newer.to_string()),
        other => other,
    });
    let (mut connection, version) = opened?;
    // A number that somebody was told must not be used again after a loss of power: hence to the disk.
    database::hold(&connection)?;
    connection.execute_batch("PRAGMA journal_size_limit=4194304")?;
    if version == 0 {
        rows::create(&mut connection, unix_ms())?;
    }
    database::check(&connection)?;
    Ok(connection)
}

/// Where the log of a state directory is.
#[must_use]
pub fn path(state_directory: &Path) -> PathBuf {
    state_directory.join(DATABASE)
}
