//! The share of memory for edits of text files: edits of large files wait for each other, in their order.
//!
//! The tree of a text can take eighty times the memory of the text, and another user can own the files. Small files
//! have a share of their own: large files of a user do not delay the edits of a file of root's.

use std::sync::{Condvar, Mutex, PoisonError};

/// The size limit of an edited file, and of all large files that are being edited at one time, in bytes.
pub(crate) const LARGEST: usize = 4 << 20;

/// The size limit of a small file, in bytes.
const SMALL_FILE: usize = 64 << 10;

/// The size limit of all small files that are being edited at one time, in bytes.
const SMALL_FILES: usize = 512 << 10;

static LARGE: Room = Room::of(LARGEST);
static SMALL: Room = Room::of(SMALL_FILES);

/// Room for files, which are admitted in the order of their arrival.
#[derive(Debug)]
struct Room {
    limit: usize,
    queue: Mutex<Queue>,
    /// Wakes the edits that wait.
    changed: Condvar,
}

#[derive(Debug)]
struct Queue {
    /// The bytes of the files that are being edited.
    used: usize,
    /// The ticket of the next arrival, and the ticket that is admitted next.
    next: u64,
    admitted: u64,
}

impl Room {
    const fn of(limit: usize) -> Self {
        let queue = Mutex::new(Queue { used: 0, next: 0, admitted: 0 });
        Self { limit, queue, changed: Condvar::new() }
    }

    fn wait_for(&'static self, size: usize) -> EditShare {
        let size = size.min(self.limit);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = queue.next;
        queue.next += 1;
        while queue.admitted != ticket || (queue.used > 0 && queue.used + size > self.limit) {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.admitted += 1;
        queue.used += size;
        drop(queue);
        // The next one may fit as well.
        self.changed.notify_all();
        EditShare { room: self, size }
    }
}

/// The share of one file. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct EditShare {
    room: &'static Room,
    size: usize,
}

impl EditShare {
    /// Waits until the file fits beside the others. Blocks the thread; a thread must not wait for a second share.
    pub(crate) fn wait_for(size: usize) -> Self {
        if size <= SMALL_FILE { SMALL.wait_for(size) } else { LARGE.wait_for(size) }
    }
}

impl Default for EditShare {
    fn default() -> Self {
        Self { room: &SMALL, size: 0 }
    }
}

impl Drop for EditShare {
    fn drop(&mut self) {
        self.room.queue.lock().unwrap_or_else(PoisonError::into_inner).used -= self.size;
        self.room.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

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

    #[test]
    fn a_small_file_does_not_wait_for_a_large_one() {
        let large = EditShare::wait_for(LARGEST);
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            drop(EditShare::wait_for(5));
            done.send(()).unwrap();
        });
        wait.recv_timeout(Duration::from_mins(1)).expect("a share");
        drop(large);
    }

    #[test]
    fn shares_are_given_in_the_order_of_arrival() {
        let room: &'static Room = Box::leak(Box::new(Room::of(100)));
        let mut own = room.wait_for(99);
        let (done, wait) = mpsc::channel();
        let waits = || {
            let queue = room.queue.lock().unwrap();
            queue.next > queue.admitted
        };
        let other = std::thread::spawn(move || {
            let share = room.wait_for(2);
            done.send(()).unwrap();
            drop(share);
        });
        while !waits() {
            std::thread::yield_now();
        }
        // An edit that comes again and again stands behind the one that waits.
        drop(own);
        own = room.wait_for(99);
        wait.try_recv().expect("the other one had its share first");
        drop(own);
        other.join().unwrap();
    }
}
