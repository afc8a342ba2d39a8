//! Recovery from a write-ahead log that another program has truncated or overwritten: the entries that the database may
//! lack are in memory, and are written again.

use super::{SqliteStore, refusal};
use crate::store::integrity;
use crate::store::write_ahead_log::WriteAheadLog;
use crate::store::{Entry, Store as _, StoreError};
use rusqlite::Connection;
use std::path::Path;

/// The number of entries in memory from which the log is copied into the database without a quiet second.
const MOST_UNSAVED: usize = 1024;

/// Returns the log of a connection. The commits of the open are copied into the database, because no entry repeats
/// them.
pub(super) fn own_log(path: &Path, connection: &Connection) -> WriteAheadLog {
    let mut log = WriteAheadLog::of(path);
    log.note_commit(connection);
    log.copy(connection);
    log
}

impl SqliteStore {
    /// Saves a removed log, and writes the commits of an overwritten one again.
    pub(super) fn check_log(&mut self) -> Result<(), StoreError> {
        if self.save_log()? || self.is_log_overwritten() { self.reopen() } else { Ok(()) }
    }

    fn is_log_overwritten(&self) -> bool {
        let both = self.log.as_ref().zip(self.connection.as_ref());
        both.is_some_and(|(log, connection)| log.is_overwritten(connection))
    }

    /// Closes the connection of an overwritten log without copying the log.
    pub(super) fn give_up_log(&mut self) -> Result<(), StoreError> {
        if !self.is_log_overwritten() {
            return Ok(());
        }
        self.state_lock.check_place()?;
        let (Some(log), Some(connection)) = (self.log.take(), self.connection.take()) else {
            return Ok(());
        };
        self.is_log_lost = true;
        log.give_up(connection).map(drop).map_err(|fault| refusal(&self.path, fault))
    }

    /// Writes the entries that an overwritten log had.
    pub(super) fn write_unsaved(&mut self) -> Result<(), StoreError> {
        if !self.is_log_lost {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.unsaved);
        let written = if entries.is_empty() { Ok(()) } else { self.write_batch(&entries) };
        self.unsaved = entries;
        written?;
        self.is_log_lost = false;
        self.copy_log();
        let line = format!(
            "{}-wal was truncated or overwritten while in use; nothing is lost",
            self.path.display()
        );
        (self.readers.report)(integrity::REPAIRED, &line);
        Ok(())
    }

    /// Records the log after a write, and retains committed entries until they are in the database.
    pub(super) fn note_write(&mut self, batch: &[Entry], is_committed: bool) {
        if !is_committed {
            if let (Some(log), Some(connection)) = (&mut self.log, &self.connection) {
                log.note_extent(connection);
            }
            return;
        }
        self.unsaved.extend_from_slice(batch);
        if let (Some(log), Some(connection)) = (&mut self.log, &self.connection) {
            if batch.iter().any(|entry| matches!(entry, Entry::Wipe { .. })) {
                log.allow_truncation();
            }
            log.note_commit(connection);
        }
        if self.unsaved.len() >= MOST_UNSAVED {
            self.copy_log();
        }
    }

    /// Copies the log into the database, after a commit.
    pub(super) fn copy_log(&mut self) {
        if let (Some(log), Some(connection)) = (&mut self.log, &self.connection) {
            log.note_commit(connection);
            log.copy(connection);
        }
        self.forget_saved();
    }

    /// Copies the log into the database after a quiet second.
    pub(super) fn copy_log_when_quiet(&mut self) {
        if let (Some(log), Some(connection)) = (&mut self.log, &self.connection) {
            log.copy_when_quiet(connection);
        }
        self.forget_saved();
    }

    fn forget_saved(&mut self) {
        if self.log.as_ref().is_some_and(|log| !log.is_ahead()) {
            // The room of a first run is not kept.
            self.unsaved = Vec::new();
        }
    }
}

/// An overwritten log must not reach the database: closing the connection would copy it.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.is_log_overwritten()
            && let Err(error) = self.reopen()
        {
            tracing::warn!(%error, "the last entries of the state could not be written again");
        }
    }
}
