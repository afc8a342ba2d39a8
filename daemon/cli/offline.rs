//! A command that does something to a state directory by itself, where no daemon runs: it holds the directory, and what it does is recorded
//! in the event log as a daemon would have it.

use super::output::count;
use super::output::event_recording::Recording;
use super::state_dir;
use crate::events::{Level, NewEvent, Retention};
use crate::store::{RecordReaders, SqliteStore, StateLock, StoreError};
use crate::workers::readers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The one who does it. What it has told is recorded before it lets go of the directory.
pub(super) struct OfflineCommand {
    command: &'static str,
    told: AtomicUsize,
    recording: Recording,
    directory: PathBuf,
    /// The last of its fields: it is let go last.
    hold: Arc<StateLock>,
}

impl OfflineCommand {
    /// Takes the state directory; no daemon can while this lives.
    pub(super) fn take(command: &'static str, directory: &Path) -> Result<Self, StoreError> {
        state_dir::judge(directory)?;
        let hold = Arc::new(StateLock::take(directory)?);
        // Who writes three events lets go of none: how many are kept is for the daemon to say.
        let recording = Recording::new(command, directory.to_owned(), Retention::ENDLESS);
        let (told, directory) = (AtomicUsize::new(0), directory.to_owned());
        Ok(Self { command, told, recording, directory, hold })
    }

    /// What it holds.
    pub(super) fn hold(&self) -> Arc<StateLock> {
        Arc::clone(&self.hold)
    }

    /// The store, with what was put right in it told in the log and recorded. What is kept without its key is damaged for a command too.
    pub(super) fn store(&self) -> Result<SqliteStore, StoreError> {
        let store = SqliteStore::open_held(self.hold(), self.readers())?;
        SqliteStore::key(&self.directory)?;
        Ok(store)
    }

    /// Who judges the state, and tells of it.
    pub(super) fn readers(&self) -> RecordReaders {
        let recording = self.recording.clone();
        readers(move |event, line| {
            tracing::warn!(event, "{line}");
            recording.tell(NewEvent::new(event, line, Level::Warn));
        })
    }

    /// Records what is done, and durable.
    pub(super) fn tell(&self, deeds: impl IntoIterator<Item = NewEvent>) {
        for deed in deeds {
            self.told.fetch_add(1, Ordering::SeqCst);
            self.recording.tell(deed);
        }
    }
}

impl Drop for OfflineCommand {
    fn drop(&mut self) {
        let deeds = count(self.told.load(Ordering::SeqCst), "change");
        self.recording.finish("stopped", format!("{} ended: {deeds}", self.command));
    }
}
