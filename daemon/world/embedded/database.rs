//! The tables of the embedded world: entries, the history of changes, and leases. A value above the limit, which only
//! another program can have written, is not read.

use super::BootClock;
use crate::file_identity::FileIdentity;
use crate::world::{
    Committed, Compare, Entry, KeyChange, LeaseId, MAX_VALUE_BYTES, Operation, Range, Transaction,
    WatchBatch, WorldError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use std::path::Path;
use std::time::Duration;

/// The number of revisions whose changes are stored; older ones are compacted.
const HISTORY: u64 = 10_000;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS state (
  one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, compacted INTEGER NOT NULL,
  lease INTEGER NOT NULL, boot TEXT NOT NULL) STRICT;
INSERT OR IGNORE INTO state VALUES (1, 1, 0, 0, '');
CREATE TABLE IF NOT EXISTS entries (
  key TEXT PRIMARY KEY, value BLOB NOT NULL, created INTEGER NOT NULL, modified INTEGER NOT NULL,
  lease INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes (
  revision INTEGER NOT NULL, key TEXT NOT NULL, value BLOB, created INTEGER NOT NULL, lease INTEGER,
  PRIMARY KEY (revision, key)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
  id INTEGER PRIMARY KEY, lifetime INTEGER NOT NULL, ends INTEGER NOT NULL) STRICT;
";

/// The database of an embedded world.
pub(super) struct Database {
    connection: Connection,
    /// The file at its path; none in memory.
    place: Option<FileIdentity>,
    clock: BootClock,
    written: u64,
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives the error away")]
fn failed(error: rusqlite::Error) -> WorldError {
    WorldError::Unavailable(format!("the embedded world: {error}"))
}

/// Returns the id of the present boot; a lease of another boot has ended.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Returns the first text that is greater than all texts with a prefix. Keys are UTF-8, so that U+10FFFF is greater
/// than any character that a key has.
fn end_of(prefix: &str) -> String {
    format!("{prefix}\u{10FFFF}")
}

fn entry_of(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        key: row.get(0)?,
        value: row.get(1)?,
        create_revision: row.get(2)?,
        mod_revision: row.get(3)?,
        lease: row.get::<_, Option<i64>>(4)?.map(LeaseId),
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4)
}

impl Database {
    /// Opens a database; without a path it lives in memory.
    pub(super) fn open(path: Option<&Path>, clock: BootClock) -> Result<Self, WorldError> {
        let opened = match path {
            Some(path) => Connection::open(path),
            None => Connection::open_in_memory(),
        };
        let connection = opened.map_err(failed)?;
        if let Some(path) = path {
            restrict_access(path);
        }
        let setup = || -> rusqlite::Result<()> {
            connection.busy_timeout(Duration::from_secs(5))?;
            connection.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;",
            )?;
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT;"))
        };
        setup().map_err(failed)?;
        let place = path.and_then(|path| FileIdentity::of(path).ok());
        let mut database = Self { connection, place, clock, written: 0 };
        database.end_leases_of_other_boots()?;
        Ok(database)
    }

    /// Fails if the database was removed or replaced: other processes would not see what is written here.
    pub(super) fn check_place(&self) -> Result<(), WorldError> {
        let change = |place: &FileIdentity| Some((place.path().to_owned(), place.change()?.word()));
        match self.place.as_ref().and_then(change) {
            None => Ok(()),
            Some((path, change)) => Err(WorldError::Unavailable(format!(
                "{} was {change} while in use: restore it, or restart the daemons",
                path.display()
            ))),
        }
    }

    /// Returns the revision of the last write through this connection.
    pub(super) const fn last_written(&self) -> u64 {
        self.written
    }

    /// Ends the leases of earlier boots: their clock has begun anew.
    fn end_leases_of_other_boots(&mut self) -> Result<(), WorldError> {
        let boot = boot_id();
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(failed)?;
        let run = || -> rusqlite::Result<()> {
            let before: String =
                change.query_row("SELECT boot FROM state", [], |row| row.get(0))?;
            if before != boot {
                change.execute("UPDATE state SET boot = ?1", [&boot])?;
                change.execute("UPDATE leases SET ends = 0", [])?;
            }
            Ok(())
        };
        run().map_err(failed)?;
        change.commit().map_err(failed)?;
        self.expire_leases()
    }

    /// Deletes the keys of leases that have ended. Each lease ends at a revision of its own.
    fn expire_leases(&mut self) -> Result<(), WorldError> {
        let now = milliseconds((self.clock)());
        let find = "SELECT id FROM leases WHERE ends <= ?1 ORDER BY ends";
        let ended: Vec<i64> = {
            let mut query = self.connection.prepare_cached(find).map_err(failed)?;
            let rows = query.query_map([now], |row| row.get(0)).map_err(failed)?;
            rows.collect::<rusqlite::Result<_>>().map_err(failed)?
        };
        for lease in ended {
            self.remove_lease(lease, Some(now))?;
        }
        Ok(())
    }

    /// Deletes a lease and its keys; with a time only if the lease has ended by then.
    fn remove_lease(&mut self, lease: i64, by: Option<u64>) -> Result<(), WorldError> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(failed)?;
        let run = || -> rusqlite::Result<u64> {
            let by = by.unwrap_or(u64::MAX / 2);
            let removed = change
                .execute("DELETE FROM leases WHERE id = ?1 AND ends <= ?2", params![lease, by])?;
            let mut keys = Vec::new();
            if removed > 0 {
                let mut query =
                    change.prepare_cached("SELECT key FROM entries WHERE lease = ?1")?;
                let rows = query.query_map([lease], |row| row.get::<_, String>(0))?;
                keys = rows.collect::<rusqlite::Result<_>>()?;
            }
            let mut revision = revision_of(&change)?;
            if !keys.is_empty() {
                revision += 1;
                for key in keys {
                    delete_key(&change, &key, revision)?;
                }
                advance_to(&change, revision)?;
            }
            Ok(revision)
        };
        let revision = run().map_err(failed)?;
        change.commit().map_err(failed)?;
        self.written = self.written.max(revision);
        Ok(())
    }

    pub(super) fn read_key(&mut self, key: &str) -> Result<Option<Entry>, WorldError> {
        self.expire_leases()?;
        let find = "SELECT key, value, created, modified, lease FROM entries WHERE key = ?1 \
                    AND length(value) < ?2";
        let mut query = self.connection.prepare_cached(find).map_err(failed)?;
        query.query_row(params![key, MAX_VALUE_BYTES], entry_of).optional().map_err(failed)
    }

    pub(super) fn read_range(&mut self, prefix: &str) -> Result<Range, WorldError> {
        self.expire_leases()?;
        let read = self.connection.transaction().map_err(failed)?;
        let run = || -> rusqlite::Result<Range> {
            let find = "SELECT key, value, created, modified, lease FROM entries \
                        WHERE key >= ?1 AND key < ?2 AND length(value) < ?3 ORDER BY key";
            let mut query = read.prepare_cached(find)?;
            let range = params![prefix, end_of(prefix), MAX_VALUE_BYTES];
            let rows = query.query_map(range, entry_of)?;
            let entries = rows.collect::<rusqlite::Result<_>>()?;
            Ok(Range { revision: revision_of(&read)?, entries })
        };
        run().map_err(failed)
    }

    pub(super) fn commit(&mut self, wanted: &Transaction) -> Result<Committed, WorldError> {
        self.expire_leases()?;
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(failed)?;
        let run = || -> rusqlite::Result<Result<Committed, WorldError>> {
            let before = revision_of(&change)?;
            for condition in &wanted.conditions {
                if !holds(&change, condition)? {
                    return Ok(Ok(Committed { succeeded: false, revision: before }));
                }
            }
            let revision = before + 1;
            let mut changed = false;
            for operation in &wanted.operations {
                match operation {
                    Operation::Put(_, _, Some(lease)) if !has_lease(&change, *lease)? => {
                        return Ok(Err(WorldError::LeaseEnded));
                    }
                    Operation::Put(key, value, lease) => {
                        put_key(&change, key, value, *lease, revision)?;
                        changed = true;
                    }
                    Operation::Delete(key) => changed |= delete_key(&change, key, revision)?,
                }
            }
            let revision = if changed { revision } else { before };
            if changed {
                advance_to(&change, revision)?;
            }
            Ok(Ok(Committed { succeeded: true, revision }))
        };
        let done = run().map_err(failed)??;
        change.commit().map_err(failed)?;
        if done.succeeded {
            self.written = self.written.max(done.revision);
        }
        Ok(done)
    }

    /// Returns the changes of a prefix from a revision on.
    pub(super) fn changes_since(
        &mut self,
        prefix: &str,
        from: u64,
    ) -> Result<WatchBatch, WorldError> {
        self.expire_leases()?;
        let read = self.connection.transaction().map_err(failed)?;
        let run = || -> rusqlite::Result<Result<WatchBatch, WorldError>> {
            let compacted: u64 =
                read.query_row("SELECT compacted FROM state", [], |row| row.get(0))?;
            if from < compacted {
                return Ok(Err(WorldError::Compacted(compacted)));
            }
            let find = "SELECT revision, key, value, created, lease FROM changes \
                        WHERE revision >= ?1 AND key >= ?2 AND key < ?3 \
                        AND (value IS NULL OR length(value) < ?4) ORDER BY revision, key";
            let mut query = read.prepare_cached(find)?;
            let range = params![from, prefix, end_of(prefix), MAX_VALUE_BYTES];
            let rows = query.query_map(range, change_of)?;
            let changes = rows.collect::<rusqlite::Result<_>>()?;
            Ok(Ok(WatchBatch { revision: revision_of(&read)?, changes }))
        };
        run().map_err(failed)?
    }

    pub(super) fn grant_lease(&mut self, lifetime: Duration) -> Result<LeaseId, WorldError> {
        let now = milliseconds((self.clock)());
        let lifetime = milliseconds(lifetime).max(1);
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(failed)?;
        let run = || -> rusqlite::Result<i64> {
            change.execute("UPDATE state SET lease = lease + 1", [])?;
            let id = change.query_row("SELECT lease FROM state", [], |row| row.get(0))?;
            let add = "INSERT INTO leases (id, lifetime, ends) VALUES (?1, ?2, ?3)";
            change.execute(add, params![id, lifetime, now.saturating_add(lifetime)])?;
            Ok(id)
        };
        let id = run().map_err(failed)?;
        change.commit().map_err(failed)?;
        Ok(LeaseId(id))
    }

    pub(super) fn renew_lease(&mut self, lease: LeaseId) -> Result<(), WorldError> {
        self.expire_leases()?;
        let now = milliseconds((self.clock)());
        let renew = "UPDATE leases SET ends = ?2 + lifetime WHERE id = ?1";
        let renewed = self.connection.execute(renew, params![lease.0, now]).map_err(failed)?;
        if renewed == 0 { Err(WorldError::LeaseEnded) } else { Ok(()) }
    }

    pub(super) fn lease_time_left(&mut self, lease: LeaseId) -> Result<Duration, WorldError> {
        self.expire_leases()?;
        let now = milliseconds((self.clock)());
        let find = "SELECT ends FROM leases WHERE id = ?1";
        let ends = self.connection.query_row(find, [lease.0], |row| row.get::<_, u64>(0));
        let ends = ends.optional().map_err(failed)?.ok_or(WorldError::LeaseEnded)?;
        Ok(Duration::from_millis(ends.saturating_sub(now)))
    }

    pub(super) fn revoke_lease(&mut self, lease: LeaseId) -> Result<(), WorldError> {
        self.remove_lease(lease.0, None)
    }

    pub(super) fn compact_before(&mut self, revision: u64) -> Result<(), WorldError> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(failed)?;
        let run = || {
            let last = revision_of(&change)?;
            compact_to(&change, revision.min(last))
        };
        run().map_err(failed)?;
        change.commit().map_err(failed)
    }
}

fn change_of(row: &Row<'_>) -> rusqlite::Result<KeyChange> {
    let revision: u64 = row.get(0)?;
    let key: String = row.get(1)?;
    let value: Option<Vec<u8>> = row.get(2)?;
    let create_revision = row.get(3)?;
    let lease = row.get::<_, Option<i64>>(4)?.map(LeaseId);
    let entry = value.map(|value| Entry {
        key: key.clone(),
        value,
        create_revision,
        mod_revision: revision,
        lease,
    });
    Ok(KeyChange { key, entry, revision })
}

/// Makes the files of the database readable by their owner alone.
fn restrict_access(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o600);
    if let Err(error) = std::fs::set_permissions(path, mode) {
        tracing::debug!(%error, "the mode of the embedded world was not changed");
    }
}

fn revision_of(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT revision FROM state", [], |row| row.get(0))
}

fn advance_to(connection: &Connection, revision: u64) -> rusqlite::Result<()> {
    connection.execute("UPDATE state SET revision = ?1", [revision])?;
    if revision.is_multiple_of(HISTORY / 10) && revision > HISTORY {
        compact_to(connection, revision - HISTORY)?;
    }
    Ok(())
}

fn compact_to(connection: &Connection, revision: u64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM changes WHERE revision < ?1", [revision])?;
    connection.execute("UPDATE state SET compacted = max(compacted, ?1)", [revision])?;
    Ok(())
}

fn has_lease(connection: &Connection, lease: LeaseId) -> rusqlite::Result<bool> {
    let mut query = connection.prepare_cached("SELECT 1 FROM leases WHERE id = ?1")?;
    query.exists([lease.0])
}

fn holds(connection: &Connection, condition: &Compare) -> rusqlite::Result<bool> {
    let (column, key, expected) = match condition {
        Compare::ModRevision(key, revision) => ("modified", key, *revision),
        Compare::CreateRevision(key, revision) => ("created", key, *revision),
    };
    let find = format!("SELECT {column} FROM entries WHERE key = ?1");
    let found: Option<u64> = connection.query_row(&find, [key], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(0) == expected)
}

fn put_key(
    connection: &Connection,
    key: &str,
    value: &[u8],
    lease: Option<LeaseId>,
    revision: u64,
) -> rusqlite::Result<()> {
    let lease = lease.map(|lease| lease.0);
    let put = "INSERT INTO entries (key, value, created, modified, lease) VALUES (?1, ?2, ?3, ?3, ?4) \
               ON CONFLICT (key) DO UPDATE SET value = ?2, modified = ?3, lease = ?4";
    connection.execute(put, params![key, value, revision, lease])?;
    let note = "INSERT INTO changes (revision, key, value, created, lease) \
                SELECT ?1, key, value, created, lease FROM entries WHERE key = ?2";
    connection.execute(note, params![revision, key])?;
    Ok(())
}

/// Deletes a key and records the deletion; returns false if the key was absent.
fn delete_key(connection: &Connection, key: &str, revision: u64) -> rusqlite::Result<bool> {
    if connection.execute("DELETE FROM entries WHERE key = ?1", [key])? == 0 {
        return Ok(false);
    }
    let note =
        "INSERT INTO changes (revision, key, value, created, lease) VALUES (?1, ?2, NULL, 0, NULL)";
    connection.execute(note, params![revision, key])?;
    Ok(true)
}
