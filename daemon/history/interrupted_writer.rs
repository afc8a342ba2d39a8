//! The mark of a killed writer: the directories that its last runs changed are cleaned by the next session.

use super::{History, database};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// An upper bound of the number of runs at the same time.
const AT_ONCE: u64 = 256;

impl History {
    /// Returns true if the previous writer was killed and the affected directories were not cleaned yet.
    #[must_use]
    pub fn was_cut_off(&self) -> bool {
        self.was_cut_off.load(Ordering::SeqCst)
    }

    /// Returns the directories that the last runs of a killed writer changed; empty once they were cleaned.
    #[must_use]
    pub fn where_cut_off(&self) -> BTreeSet<PathBuf> {
        if !self.was_cut_off() {
            return BTreeSet::new();
        }
        let listed = self.read().and_then(|reader| {
            reader.map_or_else(|| Ok(Vec::new()), |reader| reader.last_runs(AT_ONCE))
        });
        let listed = listed.unwrap_or_else(|error| {
            tracing::debug!(%error, "the paths of the last changes cannot be read");
            Vec::new()
        });
        let paths = listed.into_iter().filter_map(|listed| Some(listed.entry()?.path));
        paths.filter_map(|path| path.parent().map(Path::to_owned)).collect()
    }

    /// Records that the affected directories were cleaned.
    pub fn is_seen_to(&self) {
        if self.was_cut_off.swap(false, Ordering::SeqCst)
            && let Err(error) = std::fs::remove_file(cut_off(&self.state_directory))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::debug!(%error, "retried after the next start");
        }
    }

    /// Marks the killed writer with a file, because a clean end of another program would hide the write-ahead log.
    pub(super) fn remember_cut_off(&self) {
        let mark = cut_off(&self.state_directory);
        if self.was_cut_off()
            && !mark.exists()
            && let Err(error) = std::fs::File::create(&mark).and_then(|file| file.sync_all())
        {
            tracing::debug!(%error, "the interrupted run is remembered until this session ends");
        }
    }
}

/// Returns the path of the marker file that exists until the directories of a killed writer are cleaned.
pub(super) fn cut_off(state_directory: &Path) -> PathBuf {
    database(state_directory).with_file_name("cut-off")
}
