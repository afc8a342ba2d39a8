//! A store that only reads until the first commit: a command that finds nothing to do writes nothing to the disk (B-5).

use super::manifest::Manifest;
use super::read_snapshot::Generation;
use super::repair::RepairReport;
use super::{
    LAYOUT, SCHEMA, SqliteStore, fence, gone, replace, report_unknown_kinds, rows, secure_erase,
};
use crate::store::StoreError;
use crate::store::database;
use crate::store::database::{Fault, with_suffix};
use crate::store::integrity;
use crate::store::integrity::RecordReaders;
use crate::store::replay::Records;
use crate::store::state_dir;
use crate::store::state_dir::StateLock;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;

/// The epoch and checksum of a state when it was read. Another value at the first commit shows that somebody wrote in
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    epoch: u64,
    /// The checksum over the whole.
    sum: u64,
}

impl Seen {
    /// Returns the current checksum, with this epoch.
    pub(super) fn of(connection: &Connection, epoch: u64) -> Result<Self, Fault> {
        Ok(Self { epoch, sum: rows::sum(connection)? })
    }
}

/// A state that opening would leave unchanged.
struct Sound {
    records: Records,
    manifest: Manifest,
    seen: Seen,
}

impl SqliteStore {
    /// Opens the store of a state directory for an owner that may find nothing to write: a valid state is only read.
    /// The first commit takes the state over, and is rejected if the state has changed by then.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::open_held`].
    pub fn open_later(
        state_lock: Arc<StateLock>,
        readers: RecordReaders,
    ) -> Result<Self, StoreError> {
        let path = state_lock.directory().join(state_dir::DATABASE);
        // A full open repairs the state, or returns its error.
        let Some(Sound { records: kept, manifest, seen }) = sound(&path, &readers) else {
            return Self::open_held(state_lock, readers);
        };
        report_unknown_kinds(&kept, &readers);
        let (verified, repaired) = (Some(kept), RepairReport::default());
        let seen = Some(seen);
        Ok(Self {
            connection: None,
            log: None,
            unsaved: Vec::new(),
            is_log_lost: false,
            seen,
            verified,
            manifest,
            path,
            readers,
            repaired,
            state_lock,
        })
    }
}

/// Reads the state; none if a full open would change more than the owner.
fn sound(path: &Path, readers: &RecordReaders) -> Option<Sound> {
    let is_ours_alone = std::fs::metadata(path).is_ok_and(|found| state_dir::is_private(&found));
    let is_left = with_suffix(path, "-journal").exists() || replace::is_whole(path);
    // Leftovers of a killed process are resolved by a full open first.
    if !is_ours_alone || is_left || database::unused(path).is_none() {
        return None;
    }
    let read = |connection: &Connection| {
        if LAYOUT.version(connection)? != SCHEMA {
            return Ok(None);
        }
        let Generation { records: kept, manifest } = Generation::of(connection)?;
        if secure_erase::is_owed(connection)? {
            return Ok(None);
        }
        let seen = Seen::of(connection, fence::current_epoch(connection)?)?;
        Ok(Some(Sound { records: kept, manifest, seen }))
    };
    let found = match database::read(path, read) {
        Ok(found) => found?,
        Err(fault) => {
            tracing::debug!(%fault, "the state cannot be opened read-only");
            return None;
        }
    };
    let machine = state_dir::machine().or_else(|| found.manifest.machine.clone());
    let stays = found.manifest == Manifest::on(machine)
        && found.records.in_flight().is_empty()
        && integrity::of_kept(&found.records, readers).is_empty();
    (stays && path.parent().is_some_and(state_dir::has_key)).then_some(found)
}

/// Opens a database for writing that was only read so far. A missing database is not made again.
pub(super) fn take_over(
    path: &Path,
    state_lock: &StateLock,
    seen: Seen,
) -> Result<Connection, Fault> {
    if let Some(gone) = gone(path)? {
        return Err(gone);
    }
    let (mut connection, version) = database::open(path, &LAYOUT)?;
    if version != SCHEMA {
        return Err(Fault::Refused("the database was replaced while being read".to_owned()));
    }
    super::make_durable(&connection)?;
    fence::take(&mut connection, state_lock, Some(seen))?;
    Ok(connection)
}
