//! The turn to edit one file: of several edits of a file at a time, one reads and writes it, and the others wait.
//!
//! A file that changes between reading and replacing is noticed, but two edits of this process could both look before
//! either replaces. Runs of one transaction group never meet here; those of several kinds do, such as the rows of
//! `mount` and `swap` in `/etc/fstab`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The files that are being edited.
static EDITED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Wakes the edits that wait.
static FREED: Condvar = Condvar::new();

/// The turn to edit one file. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct FileTurn(PathBuf);

impl FileTurn {
    /// Waits until nobody else in this process edits the file. Blocks the thread.
    pub(crate) fn wait_for(path: &Path) -> Self {
        let mut edited = edited_files();
        while !edited.insert(path.to_owned()) {
            edited = FREED.wait(edited).unwrap_or_else(PoisonError::into_inner);
        }
        Self(path.to_owned())
    }
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        edited_files().remove(&self.0);
        FREED.notify_all();
    }
}

fn edited_files() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    EDITED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Takes the turn many times, and records how many threads hold it at a time.
    fn take_turns(inside: &AtomicU32, most: &AtomicU32) {
        for _ in 0..50 {
            let _turn = FileTurn::wait_for(Path::new("/turn/one"));
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn one_edit_of_a_file_at_a_time() {
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| take_turns(&inside, &most));
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
        // Another file does not wait.
        let _one = FileTurn::wait_for(Path::new("/turn/one"));
        let _other = FileTurn::wait_for(Path::new("/turn/other"));
    }
}
