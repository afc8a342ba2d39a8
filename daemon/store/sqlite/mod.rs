//! The store on disk: one `SQLite` database (WAL, `synchronous=FULL`) in a directory of its own.
//!
//! Every row carries a checksum and the whole a digest over all rows: a database that was damaged is never taken for
//! another state (B-11), it is moved aside and kept.

mod owned;
mod rows;

use super::database::{self, Fault, move_aside, unused};
use super::directory::{self, Hold};
use super::fold::{Kept, fold, settle};
use super::{Entry, Key, Recalled, Store, StoreError};
use rows::Batch;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What this program writes, and the newest that it reads.
const SCHEMA: i64 = 4;

/// Keeps entries in `state.db` below the state directory, and holds the directory.
#[derive(Debug)]
pub struct SqliteStore {
    /// None between a handle that was given up and the next that could be opened.
    connection: Option<Connection>,
    /// What was read when the database was verified, until it is told or anything is written: reading it all twice would
    /// cost a start as much again.
    verified: Option<Kept>,
    path: PathBuf,
    moved_aside: Option<PathBuf>,
    /// Held as long as this value lives.
    _hold: Arc<Hold>,
}

impl SqliteStore {
    /// Opens the store of a state directory, which is made where it is missing. A damaged database is moved aside.
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        Self::open_held(Arc::new(Hold::take(state_directory)?))
    }

    /// The same of one that is held already.
    pub fn open_held(hold: Arc<Hold>) -> Result<Self, StoreError> {
        let path = hold.directory().join(directory::DATABASE);
        let mut moved_aside = None;
        let (connection, verified) = match connect(&path) {
            Ok(connected) => connected,
            Err(Fault::Refused(why)) => return Err(refusal(&path, why)),
            Err(Fault::Damaged(why)) => {
                let aside = move_aside(&path).map_err(|error| refusal(&path, error.to_string()))?;
                tracing::warn!(
                    event = "state_lost",
                    "state could not be read and is rebuilt; kept at {}: {why}",
                    aside.display()
                );
                moved_aside = Some(aside);
                connect(&path).map_err(|fault| refusal(&path, fault.to_string()))?
            }
        };
        let (connection, verified) = (Some(connection), Some(verified));
        Ok(Self { connection, verified, path, moved_aside, _hold: hold })
    }

    /// Whether something is kept in this state directory.
    #[must_use]
    pub fn is_there(state_directory: &Path) -> bool {
        state_directory.join(directory::DATABASE).exists()
    }

    /// All that is kept, for one who only looks: takes no lock and changes nothing, beside a daemon too. Nothing is kept where
    /// there is no state yet.
    pub fn peek(state_directory: &Path) -> Result<Recalled, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let kept = look(&path, rows::read_all);
        kept.map_err(|fault| refusal(&path, fault.to_string()))?
            .map_or_else(|| Ok(Recalled::default()), settled)
    }

    /// The same, with all that the database finds wrong with itself: its own check, and that of every row and the whole.
    pub fn verify(state_directory: &Path) -> Result<Verified, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let found = look(&path, |connection| {
            let mut check = connection.prepare("PRAGMA integrity_check")?;
            let lines = check.query_map((), |row| row.get::<_, String>(0))?;
            let mut damage = lines.collect::<Result<Vec<_>, _>>()?;
            damage.retain(|line| line != "ok");
            match rows::read_all(connection) {
                Ok(kept) => Ok((damage, kept)),
                Err(Fault::Damaged(why)) => {
                    damage.push(why);
                    Ok((damage, Kept::default()))
                }
                Err(refused) => Err(refused),
            }
        });
        match found {
            Ok(None) => Ok(Verified::default()),
            Ok(Some((damage, kept))) => Ok(Verified { damage, recalled: settled(kept)? }),
            Err(Fault::Damaged(why)) => Ok(Verified { damage: vec![why], ..Verified::default() }),
            Err(Fault::Refused(why)) => Err(refusal(&path, why)),
        }
    }

    /// The key of the hashes of this state directory: made where there is none.
    pub fn key(state_directory: &Path) -> Result<Key, StoreError> {
        directory::key(state_directory)
    }

    /// The same, for one who only looks: none where there is none.
    #[must_use]
    pub fn peek_key(state_directory: &Path) -> Option<Key> {
        directory::peek_key(state_directory)
    }

    /// Where the damaged database was put that was found at the start, if one was: nothing is remembered then.
    pub fn moved_aside(&self) -> Option<&Path> {
        self.moved_aside.as_deref()
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(refusal(&self.path, "it could not be opened again".to_owned()));
        };
        work(connection).map_err(|fault| refusal(&self.path, fault.to_string()))
    }
}

/// What was found by [`SqliteStore::verify`].
#[derive(Debug, Default)]
pub struct Verified {
    /// All damage, in words.
    pub damage: Vec<String>,
    /// What could be read; nothing where rows are damaged.
    pub recalled: Recalled,
}

fn settled(mut kept: Kept) -> Result<Recalled, StoreError> {
    for identity in kept.in_flight() {
        settle(&identity, &mut kept)?;
    }
    Ok(kept.recalled())
}

/// Reads a database without a lock of ours, at one moment; nothing where there is none.
fn look<T>(
    path: &Path,
    work: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    if !path.try_exists().map_err(|error| Fault::Refused(error.to_string()))? {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |name: &Path, flags| {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        // What follows is of one generation, whatever a daemon commits meanwhile (B-25).
        connection.execute_batch("BEGIN")?;
        work(&connection)
    };
    // A reader of a log in use must write into the file that readers and writers share.
    let alone = unused(path).and_then(|name| {
        read(&name, flags | OpenFlags::SQLITE_OPEN_URI)
            .inspect_err(|fault: &Fault| {
                tracing::debug!(%fault, "the state was taken into use while it was read");
            })
            .ok()
    });
    match alone {
        Some(found) => Ok(Some(found)),
        None => read(path, flags).map(Some),
    }
}

impl Store for SqliteStore {
    fn recall(&mut self) -> Result<Recalled, StoreError> {
        let mut kept = match self.verified.take() {
            Some(verified) => verified,
            None => self.with(|connection| rows::read_all(connection))?,
        };
        let in_flight = kept.in_flight();
        if in_flight.is_empty() {
            return Ok(kept.recalled());
        }
        let before = kept.clone();
        for identity in &in_flight {
            settle(identity, &mut kept)?;
        }
        // Kept now, so that an end that comes later clears nothing that is still owed. Where there is no room, what is
        // told back is right all the same, and the next recall finds it again (B-12).
        if let Err(error) = self.with(|connection| write_settled(connection, &before, &in_flight)) {
            tracing::warn!(%error, "cannot record what the last run left behind");
        }
        Ok(kept.recalled())
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.verified = None;
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut rows = Batch::begin(&transaction)?;
            for entry in batch {
                fold(entry, &mut rows).map_err(|error| Fault::Refused(error.to_string()))?;
            }
            rows.write()?;
            Ok(transaction.commit()?)
        })
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        // Dropped first: after a failed sync nothing may be asked of the old handle again.
        drop(self.connection.take());
        self.verified = None;
        match connect(&self.path) {
            Ok((connection, _)) => {
                self.connection = Some(connection);
                Ok(())
            }
            // Not moved aside while we run: nothing is recorded, so nothing is changed, until a restart.
            Err(fault) => Err(refusal(&self.path, fault.to_string())),
        }
    }
}

fn write_settled(
    connection: &mut Connection,
    before: &Kept,
    in_flight: &[String],
) -> Result<(), Fault> {
    debug_assert!(in_flight.iter().all(|identity| before.records.contains_key(identity)));
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut rows = Batch::begin(&transaction)?;
    for identity in in_flight {
        settle(identity, &mut rows).map_err(|error| Fault::Refused(error.to_string()))?;
    }
    rows.write()?;
    Ok(transaction.commit()?)
}

/// Opens the database, makes its tables where it is new, and verifies everything in it.
fn connect(path: &Path) -> Result<(Connection, Kept), Fault> {
    let (mut connection, version) = database::open(path)?;
    if version > SCHEMA {
        return Err(Fault::Refused(database::newer(version, SCHEMA)));
    }
    database::hold(&connection)?;
    if version == 0 {
        rows::create(&mut connection, SCHEMA)?;
    }
    if (1..SCHEMA).contains(&version) {
        rows::upgrade(&mut connection, version, SCHEMA)?;
    }
    database::check(&connection)?;
    let verified = rows::read_all(&connection)?;
    Ok((connection, verified))
}

fn refusal(path: &Path, why: String) -> StoreError {
    StoreError::Database { path: path.display().to_string(), why }
}
