//! The writable database of the history: batches of new entries, and the removal of old ones.

use super::entry;
use super::entry::{COLUMNS, LATER, Stored, TABLES, content_seal};
use super::last_number::LastNumber;
use super::undo_log::Undoing;
use super::{HistoryError, Limits, database};
use crate::store::SqliteStore;
use crate::store::database::{self as store, Fault, Layout};
use crate::store::write_ahead_log::WriteAheadLog;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;
use steadfast_resources::{
    After, FieldValues, FormerValue, Loss, NotRecorded, PriorContent, PriorShape, PriorState,
    StateKey,
};

/// The schema version that this program writes, and the newest that it reads: the number of [`LATER`] schemas plus one.
pub(super) const SCHEMA: i64 = 5;

/// The layout that identifies a database as a history.
const LAYOUT: Layout = Layout { schema: SCHEMA, asks: entry::asks, later: |_| Vec::new() };

/// The number of free pages (4 KiB each) from which the file is made smaller.
const FREE_PAGES: u64 = 1024;

/// A write that waits for the next commit.
#[derive(Debug)]
pub(super) enum Job {
    /// The prior state of a change that is about to be made.
    Keep(Box<StoredPrior>),
    /// The end of a change, by entry number: true if the change was made.
    Settle(u64, bool),
    /// The values after a change of values.
    SettleValues(u64, FieldValues),
    /// The begin of an undo.
    Undoing(Undoing),
    /// The end of the undo of a resource.
    Undone(String),
}

/// The prior state of a change, with the content of the file apart.
#[derive(Debug)]
pub(super) struct StoredPrior {
    pub(super) stored: Stored,
    pub(super) content: Option<Vec<u8>>,
    /// The new content, if the change edits a part of the file and the former content is recorded.
    pub(super) edited: Option<Vec<u8>>,
    pub(super) secret: bool,
}

impl StoredPrior {
    /// Moves the content out of the state, so that only one copy exists.
    pub(super) fn new(mut stored: Stored, losing: Loss<'_>) -> Self {
        let mut content = None;
        if let PriorState::Thing(thing) = &mut stored.former
            && let PriorShape::File(_, PriorContent::Bytes(bytes)) = &mut thing.shape
        {
            content = Some(std::mem::take(bytes));
        }
        let is_recorded = content.is_some() || stored.former == PriorState::Nothing;
        let edited = losing.edited.filter(|_| is_recorded && !losing.secret).map(<[u8]>::to_vec);
        Self { stored, content, edited, secret: losing.secret }
    }
}

/// The reason why a batch was not written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// The batch is larger than the total limit. The database is unchanged.
    Beyond,
    /// The database failed.
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
    /// The weight of all entries and contents, in bytes.
    pub(super) total: u64,
    /// The number of the next entry.
    pub(super) next: u64,
    pub(super) log: WriteAheadLog,
    pub(super) numbers: LastNumber,
    /// The loss of entries since the last session, until it is reported.
    pub(super) loss: Option<String>,
}

impl Book {
    /// Opens the history of a state directory, or creates it. A damaged database is moved aside.
    pub(super) fn open(state_directory: &Path, limits: Limits) -> Result<Self, HistoryError> {
        let path = database(state_directory);
        let refuse = |why: String| HistoryError::Database { path: path.display().to_string(), why };
        let key = SqliteStore::key(state_directory).map_err(|error| refuse(error.to_string()))?;
        let key = StateKey::new(key.0);
        prepare(&path).map_err(|error| refuse(error.to_string()))?;
        let is_new = !path.exists();
        let again = |book: Self, is_new: bool| {
            book.after_loss(state_directory, is_new).map_err(|fault| refuse(fault.to_string()))
        };
        match Self::connect(&path, key.clone(), limits) {
            Ok(book) => again(book, is_new),
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
                let book = Self::connect(&path, key, limits);
                let book = again(book.map_err(|fault| refuse(fault.to_string()))?, true)?;
                Ok(Self { loss: None, ..book })
            }
        }
    }

    /// Continues above the last known number if entries were lost since the last session.
    fn after_loss(mut self, state_directory: &Path, is_new: bool) -> Result<Self, Fault> {
        self.numbers = LastNumber::of(state_directory);
        if let Some(next) = self.numbers.after_loss(self.next, is_new) {
            self.connection.execute("UPDATE whole SET next = ?1", [next])?;
            self.log.note_commit(&self.connection);
            let what = if is_new { "is missing, and was recreated" } else { "is an older one" };
            self.loss = Some(format!(
                "the history {what}: earlier changes cannot be undone; its numbers continue at {next}: {}",
                database(state_directory).display()
            ));
            self.next = next;
        }
        Ok(self)
    }

    fn connect(path: &Path, key: StateKey, limits: Limits) -> Result<Self, Fault> {
        let (mut connection, version) = store::open(path, &LAYOUT)?;
        connection.execute_batch("PRAGMA auto_vacuum=INCREMENTAL")?;
        store::make_durable(&connection)?;
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
        let mut log = WriteAheadLog::of(path);
        log.note_commit(&connection);
        // The caller knows the state directory.
        let (numbers, loss) = (LastNumber::of(path), None);
        Ok(Self { connection, key, limits, total, next, log, numbers, loss })
    }

    /// Writes all jobs in one durable transaction, or none. Entries of the runs `live` are never dropped for room;
    /// `now` is the time of retention.
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
                Job::SettleValues(number, after) => work.settle_values(*number, after)?,
                Job::Undoing(undoing) => undoing.note(&transaction)?,
                Job::Undone(resource) => Undoing::end(&transaction, resource)?,
            }
        }
        if next != self.next {
            self.numbers.reserve(next);
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

    /// Makes the file smaller if enough pages are free. A failure is only logged.
    fn give_room_back(&self) {
        let free = self.connection.query_row("PRAGMA freelist_count", (), |row| row.get(0));
        if free.is_ok_and(|pages: u64| pages >= FREE_PAGES)
            && let Err(error) = self.connection.execute_batch("PRAGMA incremental_vacuum")
        {
            tracing::debug!(%error, "the history could not be compacted");
        }
    }
}

/// Converts a time to milliseconds, as stored in the database.
pub(super) fn milliseconds(time: Duration) -> u64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).unsigned_abs()
}

/// Creates the directory of the database with mode 0700 (S-7).
fn prepare(database: &Path) -> std::io::Result<()> {
    let Some(directory) = database.parent() else { return Ok(()) };
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => directory.parent().map_or(Ok(()), store::sync),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A write transaction and the state that changes with it.
struct Work<'a> {
    transaction: &'a Transaction<'a>,
    key: &'a StateKey,
    total: u64,
    /// True if the transaction deleted rows, so that the file may become smaller.
    freed: bool,
}

/// The room that the entries of one resource take.
struct Weighed {
    resource: String,
    /// The bytes of its entries and their contents.
    weighs: u64,
    /// The number of the oldest entry that may go.
    oldest: Option<u64>,
    /// The number of its last run, that of the first entry of the run.
    last: u64,
}

impl Weighed {
    /// Returns the binary logarithm of the weight: resources of one class count as equally large.
    fn size_class(&self) -> u32 {
        self.weighs.max(1).ilog2()
    }
}

/// Returns the resource that gives way where each one has only its last run: the oldest of the largest class. The last
/// change before the present one stays while there is another.
fn largest_of_last_runs(all: &[Weighed]) -> Option<&Weighed> {
    let may_go = || all.iter().filter(|one| one.oldest.is_some());
    let newest = may_go().map(|one| one.last).max()?;
    let older = may_go().filter(|one| one.last != newest);
    older.max_by_key(|one| (one.size_class(), Reverse(one.last))).or_else(|| may_go().next())
}

impl Work<'_> {
    fn keep(&mut self, kept: &StoredPrior) -> Result<(), Fault> {
        let mut stored = kept.stored.clone();
        let (mut content, mut edited) = (kept.content.as_ref(), kept.edited.as_ref());
        let path = stored.path.as_os_str().as_encoded_bytes().to_vec();
        // Sensitive content that a run wrote stays sensitive, even if the present declaration is not.
        if (content.is_some() || edited.is_some()) && self.is_secret(&path)? {
            (content, edited) = (None, None);
            if let PriorState::Thing(thing) = &mut stored.former {
                if let PriorShape::File(_, content) = &mut thing.shape {
                    *content = PriorContent::NotRecorded(NotRecorded::Secret);
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
        if let Some(bytes) = edited {
            let seal = content_seal(self.key, bytes);
            self.total += self.put_content(&seal.to_hex(), bytes)?;
            stored.edited = Some(seal);
        }
        stored.insert(self.transaction, self.key)?;
        self.total += stored.weight();
        Ok(())
    }

    fn is_secret(&self, path: &[u8]) -> Result<bool, Fault> {
        let sql = "SELECT 1 FROM secret WHERE path = ?1";
        Ok(self.transaction.prepare_cached(sql)?.exists([path])?)
    }

    /// Stores a content and returns its packed size in bytes; 0 if the content is stored already.
    fn put_content(&self, seal: &str, bytes: &[u8]) -> Result<u64, Fault> {
        let sql = "SELECT 1 FROM content WHERE seal = ?1";
        if self.transaction.prepare_cached(sql)?.exists([seal])? {
            return Ok(0);
        }
        let packed =
            crate::compression::pack(bytes).map_err(|error| Fault::Refused(error.to_string()))?;
        let (size, stored) = (bytes.len() as u64, packed.len() as u64);
        let sql = "INSERT INTO content VALUES (?1, ?2, ?3, ?4)";
        self.transaction.prepare_cached(sql)?.execute((seal, size, stored, &packed))?;
        Ok(stored)
    }

    /// Records that a change was made: its path holds new content, so older marks of sensitive content end.
    fn made(&self, number: u64) -> Result<(), Fault> {
        let sql = "DELETE FROM secret WHERE number < ?1 AND path =
            (SELECT path FROM entry WHERE number = ?1 AND unkept IS NOT 'same')";
        self.transaction.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    /// Records the values after a change. If no value differs, the entry is deleted.
    fn settle_values(&mut self, number: u64, after: &FieldValues) -> Result<(), Fault> {
        let sql = format!("SELECT {COLUMNS} FROM entry WHERE number = ?1");
        let read = |row: &rusqlite::Row<'_>| Stored::read(row, self.key);
        let mut select = self.transaction.prepare_cached(&sql)?;
        let found = select.query_row([number], read).optional()?;
        let Some(mut stored) = found.flatten() else { return Ok(()) };
        let before = stored.weight();
        for value in &mut stored.values {
            let now = after.iter().find(|(field, _)| *field == value.field);
            value.after = now.map_or(After::Unknown, |(_, now)| After::from(now.clone()));
        }
        if !stored.values.iter().any(FormerValue::is_moved) {
            return self.not_made(number);
        }
        stored.update_values(self.transaction, self.key)?;
        self.total = (self.total + stored.weight()).saturating_sub(before);
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

    /// Drops entries until the total is at most `most` bytes; returns false if that is impossible. Entries of `runs`
    /// stay, because their changes may be about to happen. Without such runs the result is always true.
    fn drop_beyond(&mut self, most: u64, runs: &BTreeSet<u64>) -> Result<bool, Fault> {
        let held = format!("{:?}", runs.iter().collect::<Vec<_>>());
        while self.total > most {
            if !self.drop_some(most, &held)? {
                return Ok(runs.is_empty());
            }
        }
        Ok(true)
    }

    /// Drops the oldest entries of one resource, until the total is at most `most` bytes or another resource is to give
    /// way; returns false if no entry can go. `held` lists runs that stay, as a JSON array.
    ///
    /// A resource that takes more than half of the room gives way first, then the largest one with entries before its
    /// last run, so that one resource does not displace the others. The entries of the last run of each resource go
    /// only if nothing else is left, those of large resources first: the large trees of one user do not displace the
    /// only entry of another one.
    fn drop_some(&mut self, most: u64, held: &str) -> Result<bool, Fault> {
        let all = self.weighed(held)?;
        let large = all.iter().find(|one| one.weighs > most / 2 && one.oldest.is_some());
        let mut past = all.iter().filter(|one| one.oldest.is_some_and(|oldest| oldest < one.last));
        let next_weight = |next: Option<&Weighed>| next.map_or(0, |next| next.weighs);
        let (one, before, down_to) = if let Some(one) = large {
            (one, u64::MAX, most / 2)
        } else if let Some(one) = past.next() {
            (one, one.last, next_weight(past.next()))
        } else {
            let Some(one) = largest_of_last_runs(&all) else { return Ok(false) };
            (one, u64::MAX, (1 << one.size_class()) - 1)
        };
        let mut weighs = one.weighs;
        let sql = "SELECT number FROM entry WHERE resource = ?1 AND number < ?2
            AND run NOT IN (SELECT value FROM json_each(?3)) ORDER BY number";
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let given = (&one.resource, before, held);
        let numbers: Vec<u64> = {
            let mut select = self.transaction.prepare_cached(sql)?;
            select.query_map(given, |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        let mut dropped = false;
        for number in numbers {
            if dropped && (self.total <= most || weighs <= down_to) {
                break;
            }
            let total = self.total;
            dropped |= self.drop_where("number = ?1", number)?;
            weighs = weighs.saturating_sub(total - self.total);
        }
        Ok(dropped)
    }

    /// Returns the resources with entries, the one with the largest weight first.
    fn weighed(&self, held: &str) -> Result<Vec<Weighed>, Fault> {
        let sql = "SELECT resource, sum(weight + coalesce(content.stored, 0) + coalesce(after.stored, 0)) AS weighs,
                min(number) FILTER (WHERE run NOT IN (SELECT value FROM json_each(?1))), max(run)
            FROM entry LEFT JOIN content ON content.seal = entry.content
            LEFT JOIN content AS after ON after.seal = entry.edited
            GROUP BY resource ORDER BY weighs DESC";
        let mut select = self.transaction.prepare_cached(sql)?;
        let found = select.query_map([held], |row| {
            Ok(Weighed {
                resource: row.get(0)?,
                weighs: row.get(1)?,
                oldest: row.get(2)?,
                last: row.get(3)?,
            })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Drops one entry, and its contents unless another entry uses them.
    fn drop_where(&mut self, which: &str, value: u64) -> Result<bool, Fault> {
        let sql = format!("DELETE FROM entry WHERE {which} RETURNING weight, content, edited");
        let gone: Option<(u64, Option<String>, Option<String>)> = self
            .transaction
            .prepare_cached(&sql)?
            .query_row([value], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((weight, content, edited)) = gone else { return Ok(false) };
        let sql = "DELETE FROM content WHERE seal = ?1
            AND NOT EXISTS (SELECT 1 FROM entry WHERE content = ?1)
            AND NOT EXISTS (SELECT 1 FROM entry WHERE edited = ?1) RETURNING stored";
        let mut freed = weight;
        for seal in [content, edited].into_iter().flatten() {
            let mut delete = self.transaction.prepare_cached(sql)?;
            let stored: Option<u64> = delete.query_row([&seal], |row| row.get(0)).optional()?;
            freed += stored.unwrap_or_default();
        }
        self.total = self.total.saturating_sub(freed);
        self.freed = true;
        Ok(true)
    }
}
