//! The share of memory for edits of text files: edits of large files wait for each other.
//!
//! The tree of a text can take eighty times the memory of the text, and another user can own the files.

use std::sync::{Condvar, Mutex, PoisonError};

/// The size limit of an edited file, and of all files that are being edited at one time, in bytes.
pub(crate) const LARGEST: usize = 4 << 20;

/// The bytes of the files that are being edited.
static IN_USE: Mutex<usize> = Mutex::new(0);

/// Wakes the edits that wait.
static FREED: Condvar = Condvar::new();

/// The share of one file. It ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct EditShare(usize);

impl EditShare {
    /// Waits until the file fits beside the others. Blocks the thread; a thread must not wait for a second share.
    pub(crate) fn wait_for(size: usize) -> Self {
        let size = size.min(LARGEST);
        let mut used = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        while *used > 0 && *used + size > LARGEST {
            used = FREED.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
        *used += size;
        Self(size)
    }
}

impl Drop for EditShare {
    fn drop(&mut self) {
        *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        FREED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn large_files_are_edited_one_after_the_other() {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let take_shares = || {
            for _ in 0..50 {
                let _share = EditShare::wait_for(LARGEST / 2);
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(take_shares);
            }
        });
        assert_eq!(inside.load(Ordering::SeqCst), 0);
        assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} halves at a time");
    }
}
