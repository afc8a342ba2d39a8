//! The database that is written: entries go in together, and what is too old or too much goes out with them.

use super::entry;
use super::entry::{LATER, Stored, TABLES, content_seal};
use super::undo_log::Undoing;
use super::{HistoryError, Limits, compression, database};
use crate::store::SqliteStore;
use crate::store::database::{self as store, Fault, Layout};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;
use steadfast_resources::{Loss, NotRecorded, PriorContent, PriorShape, PriorState, StateKey};

/// What this program writes, and the newest that it reads: one more than there are in [`LATER`].
pub(super) const SCHEMA: i64 = 3;

/// By this a history of ours is known.
const LAYOUT: Layout = Layout { schema: SCHEMA, asks: entry::asks };

/// So many free pages (4 KiB each) are given back together.
const FREE_PAGES: u64 = 1024;

/// Something that is to be written.
#[derive(Debug)]
pub(super) enum Job {
    /// What was there before a change.
    Keep(Box<Kept>),
    /// A change was made, or was not.
    Settle(u64, bool),
    /// An undo begins.
    Undoing(Undoing),
    /// That of a resource is over.
    Undone(String),
}

/// What was there before a change, with its content.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) stored: Stored,
    pub(super) content: Option<Vec<u8>>,
    pub(super) secret: bool,
}

impl Kept {
    /// Takes the content out of the state, so that it stands in one place only.
    pub(super) fn new(mut stored: Stored, losing: Loss<'_>) -> Self {
        let mut content = None;
        if let PriorState::Thing(thing) = &mut stored.former
            && let PriorShape::File(_, PriorContent::Bytes(bytes)) = &mut thing.shape
        {
            content = Some(std::mem::take(bytes));
        }
        Self { stored, content, secret: losing.secret }
    }
}

/// Why nothing of what was to be written is.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// It is more than all that may be kept. The database is as it was.
    Beyond,
    /// The database.
    Fault(Fault),
}

impl From<Fault> for Unwritten {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<rusqlite::Error> for Unwritten {
    fn from(error: rusqlite::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// The database, open for writing.
pub(super) struct Book {
    pub(super) connection: Connection,
    pub(super) key: StateKey,
    pub(super) limits: Limits,
    /// What all weighs.
    pub(super) total: u64,
    /// The number of the next entry.
    pub(super) next: u64,
}

impl Book {
    /// Opens the history of a state directory; made where there is none. A damaged one is moved aside.
    pub(super) fn open(state_directory: &Path, limits: Limits) -> Result<Self, HistoryError> {
        let path = database(state_directory);
        let refuse = |why: String| HistoryError::Database { path: path.display().to_string(), why };
        let key = SqliteStore::key(state_directory).map_err(|error| refuse(error.to_string()))?;
        let key = StateKey::new(key.0);
        prepare(&path).map_err(|error| refuse(error.to_string()))?;
        match Self::connect(&path, key.clone(), limits) {
            Ok(book) => Ok(book),
            Err(Fault::Refused(why)) => Err(refuse(why)),
            Err(newer @ Fault::Newer { .. }) => Err(HistoryError::Newer {
                path: path.display().to_string(),
                why: newer.to_string(),
            }),
            Err(Fault::Damaged(why)) => {
                let aside = store::move_aside(&path).map_err(|error| refuse(error.to_string()))?;
                tracing::warn!(
                    event = "history_lost",
                    "the history could not be read and was recreated; the old one is kept at {}: {why}",
                    aside.display()
                );
                Self::connect(&path, key, limits).map_err(|fault| refuse(fault.to_string()))
            }
        }
    }

    fn connect(path: &Path, key: StateKey, limits: Limits) -> Result<Self, Fault> {
        let (mut connection, version) = store::open(path, &LAYOUT)?;
        connection.execute_batch("PRAGMA auto_vacuum=INCREMENTAL")?;
        store::hold(&connection)?;
        if version < SCHEMA {
            let transaction = connection.transaction()?;
            if version == 0 {
                store::make(&transaction, TABLES)?;
            }
            let made = usize::try_from(version - 1).unwrap_or_default();
            for tables in LATER.iter().skip(made) {
                transaction.execute_batch(tables)?;
            }
            transaction.pragma_update(None, "user_version", SCHEMA)?;
            transaction.commit()?;
        }
        store::check(&connection)?;
        let total = "SELECT (SELECT coalesce(sum(weight), 0) FROM entry)
            + (SELECT coalesce(sum(stored), 0) FROM content)";
        let total = connection.query_row(total, (), |row| row.get(0))?;
        let next = connection.query_row("SELECT next FROM whole", (), |row| row.get(0))?;
        Ok(Self { connection, key, limits, total, next })
    }

    /// Writes all of these, or nothing; durable when it returns.
    /// Nothing is let go of that these runs have kept.
    pub(super) fn commit(
        &mut self,
        jobs: &[Job],
        now: Duration,
        live: &BTreeSet<u64>,
    ) -> Result<(), Unwritten> {
        let (key, limits) = (&self.key, self.limits);
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let mut work = Work { transaction: &transaction, key, total: self.total, freed: false };
        work.drop_older_than(now.saturating_sub(limits.age))?;
        let (mut next, mut runs) = (self.next, live.clone());
        for job in jobs {
            match job {
                Job::Keep(kept) => {
                    work.keep(kept)?;
                    runs.insert(kept.stored.run);
                    next = next.max(kept.stored.number + 1);
                }
                Job::Settle(number, true) => work.made(*number)?,
                Job::Settle(number, false) => work.not_made(*number)?,
                Job::Undoing(undoing) => undoing.note(&transaction)?,
                Job::Undone(resource) => Undoing::end(&transaction, resource)?,
            }
        }
        if next != self.next {
            transaction.prepare_cached("UPDATE whole SET next = ?1")?.execute([next])?;
        }
        if !work.drop_beyond(limits.total, &runs)? {
            return Err(Unwritten::Beyond);
        }
        let (total, freed) = (work.total, work.freed);
        transaction.commit()?;
        (self.total, self.next) = (total, next);
        if freed {
            self.give_room_back();
        }
        Ok(())
    }

    /// Makes the file smaller, where that is worth it. That it cannot be done now is no loss.
    fn give_room_back(&self) {
        let free = self.connection.query_row("PRAGMA freelist_count", (), |row| row.get(0));
        if free.is_ok_and(|pages: u64| pages >= FREE_PAGES)
            && let Err(error) = self.connection.execute_batch("PRAGMA incremental_vacuum")
        {
            tracing::debug!(%error, "the history could not be compacted");
        }
    }
}

/// As they are kept.
pub(super) fn milliseconds(time: Duration) -> u64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).unsigned_abs()
}

/// The directory is ours alone (S-7).
fn prepare(database: &Path) -> std::io::Result<()> {
    let Some(directory) = database.parent() else { return Ok(()) };
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => directory.parent().map_or(Ok(()), store::sync),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// One transaction.
struct Work<'a> {
    transaction: &'a Transaction<'a>,
    key: &'a StateKey,
    total: u64,
    /// There is room to be given back.
    freed: bool,
}

impl Work<'_> {
    fn keep(&mut self, kept: &Kept) -> Result<(), Fault> {
        let mut stored = kept.stored.clone();
        let mut content = kept.content.as_ref();
        let path = stored.path.as_os_str().as_encoded_bytes().to_vec();
        // What a run wrote there that was sensitive is that still, whatever is declared now.
        if content.is_some() && self.is_secret(&path)? {
            content = None;
            if let PriorState::Thing(thing) = &mut stored.former {
                if let PriorShape::File(_, content) = &mut thing.shape {
                    *content = PriorContent::Unkept(NotRecorded::Secret);
                }
                thing.extended.retain(|(name, _)| name.starts_with(b"system.posix_acl"));
            }
        }
        if kept.secret {
            let sql = "INSERT INTO secret VALUES (?1, ?2)
                ON CONFLICT (path) DO UPDATE SET number = excluded.number";
            self.transaction.prepare_cached(sql)?.execute((&path, stored.number))?;
        }
        if let Some(bytes) = content {
            let seal = content_seal(self.key, bytes);
            self.total += self.put_content(&seal.to_hex(), bytes)?;
            stored.content = Some(seal);
        }
        stored.insert(self.transaction, self.key)?;
        self.total += stored.weight();
        Ok(())
    }

    fn is_secret(&self, path: &[u8]) -> Result<bool, Fault> {
        let sql = "SELECT 1 FROM secret WHERE path = ?1";
        Ok(self.transaction.prepare_cached(sql)?.exists([path])?)
    }

    /// How much the content takes; nothing where it is there already.
    fn put_content(&self, seal: &str, bytes: &[u8]) -> Result<u64, Fault> {
        let sql = "SELECT 1 FROM content WHERE seal = ?1";
        if self.transaction.prepare_cached(sql)?.exists([seal])? {
            return Ok(0);
        }
        let packed = compression::pack(bytes).map_err(|error| Fault::Refused(error.to_string()))?;
        let (size, stored) = (bytes.len() as u64, packed.len() as u64);
        let sql = "INSERT INTO content VALUES (?1, ?2, ?3, ?4)";
        self.transaction.prepare_cached(sql)?.execute((seal, size, stored, &packed))?;
        Ok(stored)
    }

    /// What is there now was written by that change: it is as sensitive as that was.
    fn made(&self, number: u64) -> Result<(), Fault> {
        let sql = "DELETE FROM secret WHERE number < ?1 AND path =
            (SELECT path FROM entry WHERE number = ?1 AND unkept IS NOT 'same')";
        self.transaction.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    fn not_made(&mut self, number: u64) -> Result<(), Fault> {
        self.drop_where("number = ?1", number).map(drop)
    }

    fn drop_older_than(&mut self, then: Duration) -> Result<(), Fault> {
        let then = milliseconds(then);
        while self.drop_where("number = (SELECT number FROM entry WHERE at < ?1 LIMIT 1)", then)? {}
        Ok(())
    }

    /// Makes room, and says whether there is enough. What these runs keep stays: else what was kept for a change would be gone before the
    /// change is made. Where they keep nothing, there is nothing that must stay.
    fn drop_beyond(&mut self, most: u64, runs: &BTreeSet<u64>) -> Result<bool, Fault> {
        let held = format!("{:?}", runs.iter().collect::<Vec<_>>());
        while self.total > most {
            let dropped = match self.next_to_go(&held)? {
                Some(number) => self.drop_where("number = ?1", number)?,
                None => false,
            };
            if !dropped {
                return Ok(runs.is_empty());
            }
        }
        Ok(true)
    }

    /// Whoever has most gives up its oldest, so that nobody who changes one file again and again drives out all others. What the last run of
    /// somebody keeps goes only when nobody has anything else, and then the oldest of all. `held` are runs, as a JSON array.
    fn next_to_go(&self, held: &str) -> Result<Option<u64>, Fault> {
        let past = "SELECT oldest FROM (
                SELECT min(number) FILTER (WHERE run NOT IN (SELECT value FROM json_each(?1)))
                    AS oldest, max(run) AS last, sum(weight + coalesce(stored, 0)) AS weighs
                FROM entry LEFT JOIN content ON content.seal = entry.content GROUP BY resource)
            WHERE oldest < last ORDER BY weighs DESC LIMIT 1";
        let oldest = "SELECT min(number) FROM entry
            WHERE run NOT IN (SELECT value FROM json_each(?1))";
        for sql in [past, oldest] {
            let mut select = self.transaction.prepare_cached(sql)?;
            let found: Option<Option<u64>> =
                select.query_row([held], |row| row.get(0)).optional()?;
            if let Some(number) = found.flatten() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Drops one entry, and its content where nobody else has it.
    fn drop_where(&mut self, which: &str, value: u64) -> Result<bool, Fault> {
        let sql = format!("DELETE FROM entry WHERE {which} RETURNING weight, content");
        let gone: Option<(u64, Option<String>)> = self
            .transaction
            .prepare_cached(&sql)?
            .query_row([value], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((weight, content)) = gone else { return Ok(false) };
        let sql = "DELETE FROM content WHERE seal = ?1
            AND NOT EXISTS (SELECT 1 FROM entry WHERE content = ?1) RETURNING stored";
        let stored: Option<u64> = self
            .transaction
            .prepare_cached(sql)?
            .query_row([&content], |row| row.get(0))
            .optional()?;
        self.total = self.total.saturating_sub(weight + stored.unwrap_or_default());
        self.freed = true;
        Ok(true)
    }
}
