//! Batched durability: one sync of a directory serves all callers that wait at the same time (group commit).

use crate::host::kernel::{fsync, openat, sync};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// The device and inode of a directory.
pub(in crate::host::files) type Key = (u64, u64);

/// The directories with running syncs.
#[derive(Debug, Default)]
pub(in crate::host::files) struct DirectorySyncs {
    groups: Mutex<HashMap<Key, Arc<Group>>>,
}

/// The state of one directory: the batch that waits for the next sync, and whether a sync is running.
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

/// One sync with its callers: those that asked before its start.
#[derive(Debug, Default)]
struct Batch {
    result: OnceLock<Result<(), Errno>>,
}

impl DirectorySyncs {
    /// Returns after the end of a sync that began after this call.
    pub(in crate::host::files) fn sync(&self, key: Key, directory: impl AsFd) -> Result<(), Errno> {
        self.serve(key, || sync_now(&directory))
    }

    fn serve(&self, key: Key, sync: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let group = Arc::clone(locked(&self.groups).entry(key).or_default());
        let result = group.serve(sync);
        let mut groups = locked(&self.groups);
        // Two references, from here and from the table, mean that no other caller is left.
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
        // Batches end in order: if none is running, the first unfinished batch is the next one.
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
        // A directory without the right to read cannot be opened for a sync, so the whole file system is synced.
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

    /// Returns the number of callers in the batch that has not begun.
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
