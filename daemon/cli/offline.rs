//! Offline commands: commands that change a state directory while no daemon runs. They take the lock of the directory,
//! and record events as a daemon would.

use super::exit::Exit;
use super::output::event_recording::Recording;
use super::output::{count, error};
use super::state_dir;
use crate::events::{NewEvent, Retention, integrity};
use crate::selection::LABEL;
use crate::store::{RecordReaders, SqliteStore, StateLock, StoreError};
use crate::workers::readers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast_resources::KindSet;

/// An offline command. All its events are recorded before the lock is released.
pub(super) struct OfflineCommand {
    command: &'static str,
    told: AtomicUsize,
    recording: Recording,
    directory: PathBuf,
    /// The lock; the last field, so that it is dropped last.
    state_lock: Arc<StateLock>,
}

impl OfflineCommand {
    /// Takes the lock of the state directory, so that no daemon can start meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if the directory is locked or untrusted.
    pub(super) fn take(command: &'static str, directory: &Path) -> Result<Self, StoreError> {
        state_dir::judge(directory)?;
        let state_lock = Arc::new(StateLock::take(directory)?);
        // A short command deletes no events: the daemon determines the limits of the log.
        let recording = Recording::new(command, directory.to_owned(), Retention::ENDLESS);
        let (told, directory) = (AtomicUsize::new(0), directory.to_owned());
        Ok(Self { command, told, recording, directory, state_lock })
    }

    /// Returns the lock.
    pub(super) fn state_lock(&self) -> Arc<StateLock> {
        Arc::clone(&self.state_lock)
    }

    /// Opens the store; repaired records are logged and recorded. A state without its key is damaged.
    pub(super) fn store(&self) -> Result<SqliteStore, StoreError> {
        let store = SqliteStore::open_held(self.state_lock(), self.readers())?;
        SqliteStore::key(&self.directory)?;
        Ok(store)
    }

    /// Returns the record readers, which report repaired records.
    pub(super) fn readers(&self) -> RecordReaders {
        let recording = self.recording.clone();
        readers(KindSet::of_this_build(), move |event, line| {
            tracing::warn!(event, "{line}");
            recording.record(integrity(event, line));
        })
    }

    /// Records what was done.
    pub(super) fn record(&self, deeds: impl IntoIterator<Item = NewEvent>) {
        for deed in deeds {
            self.told.fetch_add(1, Ordering::SeqCst);
            self.recording.record(deed);
        }
    }
}

impl Drop for OfflineCommand {
    fn drop(&mut self) {
        let deeds = count(self.told.load(Ordering::SeqCst), "change");
        self.recording.finish("stopped", format!("{} ended: {deeds}", self.command));
    }
}

/// Refuses selectors of labels, which only a daemon can answer: labels are not recorded.
pub(in crate::cli) fn refuse_labels(texts: &[String]) -> Result<(), Exit> {
    if !texts.iter().any(|text| text.starts_with(LABEL)) {
        return Ok(());
    }
    let hint = "start the daemon, or name the resources, for example 'file[/etc/*]'";
    error("labels select declared resources, and no daemon runs", Some(hint));
    Err(Exit::Usage)
}
