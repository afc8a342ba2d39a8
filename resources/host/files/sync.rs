//! Batched durability: many who want one directory synced at the same time are served by one sync (group commit).

use crate::host::kernel::{fsync, openat, sync};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Which directory: device and inode.
pub(super) type Key = (u64, u64);

/// The directories that are being synced.
#[derive(Debug, Default)]
pub(super) struct DirectorySyncs {
    groups: Mutex<HashMap<Key, Arc<Group>>>,
}

/// One directory: who is waiting for the sync that has not begun yet, and whether one is running.
#[derive(Debug, Default)]
struct Group {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: bool,
    next: Arc<Batch>,
}

/// A sync and all who are served by it: those who asked before it began.
#[derive(Debug, Default)]
struct Batch {
    result: OnceLock<Result<(), Errno>>,
}

impl DirectorySyncs {
    /// Returns when a sync of the directory that began after this call has ended.
    pub(super) fn sync(&self, key: Key, directory: impl AsFd) -> Result<(), Errno> {
        self.serve(key, || sync_now(&directory))
    }

    fn serve(&self, key: Key, sync: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let group = Arc::clone(locked(&self.groups).entry(key).or_default());
        let result = group.serve(sync);
        let mut groups = locked(&self.groups);
        // Ours and the table's: nobody else is here.
        if Arc::strong_count(&group) == 2 {
            groups.remove(&key);
        }
        result
    }
}

impl Group {
    fn serve(&self, sync: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let mut state = locked(&self.state);
        let batch = Arc::clone(&state.next);
        loop {
            if let Some(result) = batch.result.get() {
                return *result;
            }
            if !state.running {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Batches end in order, so one that has not ended while none runs is the next.
        state.running = true;
        state.next = Arc::default();
        drop(state);
        let result = sync();
        let mut state = locked(&self.state);
        state.running = false;
        let result = *batch.result.get_or_init(|| result);
        drop(state);
        self.ended.notify_all();
        result
    }
}

fn sync_now(directory: &impl AsFd) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(directory, ".", flags, Mode::empty()) {
        Ok(readable) => match fsync(&readable) {
            // Some file systems cannot sync a directory.
            Err(Errno::INVAL) => Ok(()),
            other => other,
        },
        // It may be written and entered, not read: nothing smaller can be synced through it.
        Err(Errno::ACCESS) => {
            sync();
            Ok(())
        }
        Err(errno) => Err(errno),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::DirectorySyncs;
    use rustix::io::Errno;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    /// How many hold the batch that has not begun, besides the group itself.
    fn waiting(syncs: &DirectorySyncs) -> usize {
        let groups = syncs.groups.lock().unwrap();
        let states = groups.values().map(|group| group.state.lock().unwrap());
        states.map(|state| Arc::strong_count(&state.next) - 1).sum()
    }

    #[test]
    fn all_who_ask_during_a_sync_share_the_next_one() {
        let (syncs, count) = (DirectorySyncs::default(), AtomicUsize::new(0));
        let (inside, at_inside) = mpsc::channel();
        let (go, at_go) = mpsc::channel::<()>();
        let counted = &count;
        let first = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            inside.send(()).unwrap();
            at_go.recv().unwrap();
            Ok(())
        };
        let later = || {
            count.fetch_add(1, Ordering::SeqCst);
            Err(Errno::IO)
        };
        std::thread::scope(|scope| {
            let syncs = &syncs;
            let later = &later;
            let leader = scope.spawn(move || syncs.serve((1, 1), first));
            at_inside.recv().unwrap();
            let others: Vec<_> =
                (0..8).map(|_| scope.spawn(move || syncs.serve((1, 1), later))).collect();
            while waiting(syncs) < 8 {
                std::thread::yield_now();
            }
            go.send(()).unwrap();
            assert_eq!(leader.join().unwrap(), Ok(()));
            for other in others {
                assert_eq!(other.join().unwrap(), Err(Errno::IO), "told to all who were served");
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 2, "one that ran, one for the eight");
        assert!(syncs.groups.lock().unwrap().is_empty(), "nothing is kept of it");
    }
}
