//! Files that another program is writing in place: a change of a part waits until the content looks whole.
//!
//! A program that writes in place truncates the file first. A change in that moment would replace the file by one that
//! has the declared part alone, and the text of that program would be lost with the old inode.

use crate::host::files::EntryStat;
use crate::host::kernel::{is_bound_to_thread, is_in_overlay, wall};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The age of the last change from which a content that looks whole is taken for whole.
const SETTLED: Duration = Duration::from_millis(20);

/// The age of the last change from which every content is taken for whole.
const QUIET: Duration = Duration::from_secs(1);

/// The longest wait for one file: some files are written all the time.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The files as this process has written them last.
static OWN: Mutex<Option<HashMap<PathBuf, EntryStat>>> = Mutex::new(None);

/// Returns the time to wait before the content may be used; none if it is whole. A file that this process has written
/// itself is whole.
pub(crate) fn time_until_whole(
    path: &Path,
    seen: &EntryStat,
    looks_whole: bool,
) -> Option<Duration> {
    // The times of an overlay and of a simulated host are not those of this host.
    if is_in_overlay() || is_bound_to_thread() {
        return None;
    }
    let is_own = own().get_or_insert_default().get(path) == Some(seen);
    if is_own { None } else { time_left(wall(), seen.changed_at()?, looks_whole) }
}

/// Records that this process has written the file.
pub(crate) fn note_own_write(path: &Path, seen: EntryStat) {
    own().get_or_insert_default().insert(path.to_owned(), seen);
}

fn own() -> MutexGuard<'static, Option<HashMap<PathBuf, EntryStat>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time_left(now: Duration, changed: Duration, looks_whole: bool) -> Option<Duration> {
    let needed = if looks_whole { SETTLED } else { QUIET };
    // A clock that was set back makes old files young: a time far in the future says nothing.
    needed.checked_sub(now.abs_diff(changed)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::time_left;
    use std::time::Duration;

    #[test]
    fn a_cut_off_content_waits_longer_than_a_whole_one() {
        let left = |now: u64, looks_whole: bool| {
            time_left(Duration::from_millis(now), Duration::from_secs(10), looks_whole)
                .map(|left| left.as_millis())
        };
        assert_eq!((left(10_000, true), left(10_000, false)), (Some(20), Some(1000)));
        assert_eq!((left(10_005, true), left(10_005, false)), (Some(15), Some(995)));
        assert_eq!((left(10_020, true), left(10_020, false)), (None, Some(980)));
        assert_eq!((left(11_000, true), left(11_000, false)), (None, None));
        // A file from the future.
        assert_eq!((left(1000, true), left(1000, false)), (None, None));
    }
}
