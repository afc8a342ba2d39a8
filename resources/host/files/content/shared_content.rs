//! One reading of a file for many resources that edit it or check a part of it.
//!
//! A copy lasts as long as the device, inode, size, mode and change time of the file are the same. A file that changed
//! within the last 20 ms is always read again: the clock of the times is too coarse for it. Only files that everybody
//! can read are stored.

use crate::host::files::Files;
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{is_bound_to_thread, is_in_overlay, wall};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The size limit of a stored file in bytes.
const LARGEST: u64 = 64 * 1024;

/// The number of stored files; one more discards all.
const MOST: usize = 64;

/// The age of a file from which its times tell all later changes apart.
const SETTLED: Duration = Duration::from_millis(20);

/// The stored files.
#[derive(Debug, Default)]
pub(in crate::host::files) struct SharedContents(Mutex<HashMap<PathBuf, Stored>>);

#[derive(Debug)]
struct Stored {
    stamp: EntryStat,
    bytes: Arc<[u8]>,
}

impl Files {
    /// Reads a file that others of this host may have read already; none for a file above the limit.
    ///
    /// # Errors
    ///
    /// Fails as a reading of the file does.
    pub(crate) fn shared_content(
        &self,
        path: &Path,
        (entry, seen): (&Entry<'_>, &EntryStat),
        at_most: usize,
    ) -> Result<Option<Arc<[u8]>>, Fault> {
        let read = || Ok(entry.content(seen, at_most)?.map(Arc::from));
        // The times of an overlay are not those of the host, and a simulated host has one thread for all its jobs.
        let is_real = !is_in_overlay() && !is_bound_to_thread();
        if !is_real || seen.size > LARGEST || seen.mode & 0o004 == 0 || is_young(seen) {
            return read();
        }
        // Held during the reading: the others wait for this one instead of reading too.
        let mut all = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = all.get(path).filter(|stored| stored.stamp == *seen) {
            return Ok(Some(Arc::clone(&stored.bytes)));
        }
        let Some(bytes) = read()? else { return Ok(None) };
        if all.len() >= MOST && !all.contains_key(path) {
            all.clear();
        }
        all.insert(path.to_owned(), Stored { stamp: *seen, bytes: Arc::clone(&bytes) });
        Ok(Some(bytes))
    }
}

/// Returns true if the file changed within the last 20 ms, or in the future.
fn is_young(seen: &EntryStat) -> bool {
    seen.changed_at().is_none_or(|changed| changed + SETTLED > wall())
}
