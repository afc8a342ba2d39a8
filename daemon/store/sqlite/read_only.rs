//! Read-only access to the store: no lock, nothing opened for writing, also beside a running daemon.

use super::manifest::Manifest;
use super::read_snapshot::Generation;
use super::{Imported, LAYOUT, SqliteStore, fence, gone, keyless, no_tables, refusal, repair};
use crate::store::database;
use crate::store::database::Fault;
use crate::store::integrity;
use crate::store::integrity::RecordReaders;
use crate::store::replay::{Records, settle};
use crate::store::{Key, StoreError, StoredState, state_dir};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

impl SqliteStore {
    /// Reads the whole state without a lock and without changes, also beside a running daemon. The state is empty if
    /// there is none yet. The key is not needed to show the rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be read or is damaged.
    pub fn peek(state_directory: &Path) -> Result<StoredState, StoreError> {
        let found = generation(state_directory)?;
        found.map_or_else(|| Ok(StoredState::default()), |found| settled(found.records))
    }

    /// Reads the state like [`Self::peek`], with the runs in progress, and the program and time of the last write.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::peek`].
    pub fn overview(state_directory: &Path) -> Result<Overview, StoreError> {
        let path = state_directory.join(state_dir::DATABASE);
        let found = look(&path, |connection| {
            let found = Generation::of(connection)?;
            Ok((
                found,
                fence::current_epoch(connection).unwrap_or_default(),
                Manifest::written_at(connection)?,
            ))
        });
        let found = found.map_err(|fault| refusal(&path, fault))?;
        let Some((Generation { records: kept, manifest }, epoch, written_at)) = found else {
            return Ok(Overview::default());
        };
        let in_progress = match state_dir::holder(state_directory) {
            Some(_) => kept.begun_under(epoch),
            None => BTreeSet::new(),
        };
        let program = Some(manifest.program).filter(|program| !program.is_empty());
        Ok(Overview { recalled: settled(kept)?, in_progress, program, written_at })
    }

    /// Returns the state that a load would return, with nothing changed: repairs are made in memory only.
    ///
    /// # Errors
    ///
    /// Returns the error that a load would return.
    pub fn preview_load(
        state_directory: &Path,
        readers: &RecordReaders,
    ) -> Result<StoredState, StoreError> {
        let path = state_directory.join(state_dir::DATABASE);
        let Some(Generation { mut records, manifest }) = generation(state_directory)? else {
            return Ok(StoredState::default());
        };
        let wrong = integrity::of_kept(&records, readers);
        repair::repair_all(&mut records, wrong, readers).map_err(|fault| refusal(&path, fault))?;
        repair::adopt(&mut records, &manifest, state_dir::machine().as_deref());
        let key = key_of(state_directory, || Ok(!records.records.is_empty()))?;
        Ok(StoredState { key, ..readers.only_known(settled(records)?) })
    }

    /// Returns true if this process has no permission to read the state.
    #[must_use]
    pub fn is_denied(state_directory: &Path) -> bool {
        let path = state_directory.join(state_dir::DATABASE);
        let denied = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
        match path.metadata() {
            Ok(found) => found.is_file() && std::fs::File::open(path).is_err_and(denied),
            Err(error) => denied(error),
        }
    }

    /// Returns true if the daemon is paused and no run is in flight: as long as nobody writes, nothing begins.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::peek`].
    pub fn rests(state_directory: &Path) -> Result<bool, StoreError> {
        let found = generation(state_directory)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(found.is_some_and(|Generation { records: kept, .. }| {
            let pause = kept.whole.pause.as_ref();
            pause.is_some_and(|pause| pause.until_unix > now.as_secs())
                && kept.in_flight().is_empty()
        }))
    }

    /// Returns the epoch of the last owner, if it can be read.
    pub(in crate::store) fn current_epoch(state_directory: &Path) -> Option<u64> {
        look(&state_directory.join(state_dir::DATABASE), fence::current_epoch).ok()?
    }

    /// Reads the state like [`Self::peek`], with the ID of its machine.
    ///
    /// # Errors
    ///
    /// A state without its key is an error, as for a writer.
    pub fn export(state_directory: &Path) -> Result<Imported, StoreError> {
        let Some(Generation { records: kept, manifest }) = generation(state_directory)? else {
            return Ok(Imported::default());
        };
        key_of(state_directory, || Ok(!kept.records.is_empty()))?;
        Ok(Imported { recalled: settled(kept)?, machine: manifest.machine })
    }

    /// Reads the state like [`Self::peek`], with all damage that a full check finds: the check of `SQLite`, of every
    /// row and the whole, and of the key.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be opened; damage is a part of the result.
    pub fn verify(state_directory: &Path) -> Result<Verified, StoreError> {
        let path = state_directory.join(state_dir::DATABASE);
        let found = look(&path, |connection| {
            let mut check = connection.prepare("PRAGMA integrity_check")?;
            let lines = check.query_map((), |row| row.get::<_, String>(0))?;
            let mut damage = lines.collect::<Result<Vec<_>, _>>()?;
            damage.retain(|line| line != "ok");
            match Generation::unchecked(connection) {
                Ok(found) => Ok((damage, Some(found))),
                Err(Fault::Damaged(why)) => {
                    damage.push(why);
                    Ok((damage, None))
                }
                Err(refused) => Err(refused),
            }
        });
        let (mut damage, found) = match found {
            Ok(found) => found.unwrap_or_default(),
            Err(Fault::Damaged(why)) => (vec![why], None),
            Err(refused) => return Err(refusal(&path, refused)),
        };
        let Some(Generation { records: kept, manifest }) = found else {
            return Ok(Verified { damage, ..Verified::default() });
        };
        match key_of(state_directory, || Ok(!kept.records.is_empty())) {
            Ok(_) => {}
            Err(lost @ StoreError::Damaged { .. }) => damage.push(lost.to_string()),
            Err(refused) => return Err(refused),
        }
        Ok(Verified { damage, unsound: manifest.lines(), recalled: settled(kept)? })
    }
}

/// The result of [`SqliteStore::overview`].
#[derive(Debug, Default)]
pub struct Overview {
    /// The whole stored state.
    pub recalled: StoredState,
    /// The identities with a run that a living process has begun.
    pub in_progress: BTreeSet<String>,
    /// The version of the program that wrote the state last.
    pub program: Option<String>,
    /// The time of the last write, in seconds since 1970.
    pub written_at: Option<u64>,
}

/// The result of [`SqliteStore::verify`].
#[derive(Debug, Default)]
pub struct Verified {
    /// All damage, in words.
    pub damage: Vec<String>,
    /// Violations left by writes that no load has repaired yet (B-20).
    pub unsound: Vec<String>,
    /// The readable state; empty if rows are damaged.
    pub recalled: StoredState,
}

/// Returns true if the state contains any record of a resource.
pub(super) fn holds_rows(state_directory: &Path) -> Result<bool, StoreError> {
    Ok(generation(state_directory)?.is_some_and(|found| !found.records.records.is_empty()))
}

/// Returns the key of the state; none if there is neither a key nor a value hashed with it.
pub(super) fn key_of(
    state_directory: &Path,
    holds_rows: impl FnOnce() -> Result<bool, StoreError>,
) -> Result<Option<Key>, StoreError> {
    match state_dir::found_key(state_directory)? {
        Ok(key) => Ok(Some(key)),
        Err(why) if holds_rows()? => Err(keyless(state_directory, why)),
        Err(_) => Ok(None),
    }
}

/// Reads the state of a state directory; none if there is no state yet.
fn generation(state_directory: &Path) -> Result<Option<Generation>, StoreError> {
    let path = state_directory.join(state_dir::DATABASE);
    look(&path, Generation::of).map_err(|fault| refusal(&path, fault))
}

fn settled(mut kept: Records) -> Result<StoredState, StoreError> {
    for identity in kept.in_flight() {
        settle(&identity, &mut kept)?;
    }
    Ok(kept.recalled())
}

/// Reads a database in one transaction without a lock; none if there is no database.
fn look<T>(
    path: &Path,
    work: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    // Checked first: the key is made after the tables, also by a concurrent process.
    let was_there = path.parent().is_some_and(state_dir::has_key);
    match gone(path)? {
        Some(gone) if was_there => return Err(gone),
        // There is no state yet.
        Some(_) => return Ok(None),
        None => {}
    }
    database::read(path, |connection| match LAYOUT.version(connection)? {
        0 if was_there => Err(no_tables()),
        // The tables are being made at this moment.
        0 => Ok(None),
        _ => work(connection).map(Some),
    })
}
