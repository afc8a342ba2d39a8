//! File events from inotify, with a mask that excludes read accesses.
//!
//! A directory is watched through the open handle of the walk, so the watch is on that very directory even if its path
//! leads elsewhere by now. The kernel's watch numbers are never reused. One thread reads events. After reads without
//! relevant names, the thread reads less often, so that the kernel merges repeated events.

use super::batch::{Batch, Read};
use super::{Backend, BackendEvent, DirectoryId, Failure, Sink};
use crate::watch::filesystem::EntryHandle;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// All events except read accesses.
const MASK: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The first pause after consecutive reads; it doubles up to one of the other limits.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_AFTER_NEWS: Duration = Duration::from_micros(500);
const LONGEST_AFTER_NOISE: Duration = Duration::from_micros(1600);

/// The maximum number of stored events for watches that are being set up.
const MOST_EARLY: usize = 1 << 16;

/// Two inotify instances, created at their first watch since the host may have none left: one for directories that only
/// root and the daemon's user can write, one for all others. A flood of events in the second loses events of the second
/// only.
pub(in crate::watch) struct InotifyBackend {
    sink: Arc<Sink>,
    instances: Mutex<[Option<Arc<Instance>>; 2]>,
}

/// The class of users who can write in a directory, which selects the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    Trusted,
    Others,
}

struct Instance {
    inotify: Arc<OwnedFd>,
    numbers: Arc<Numbers>,
    /// An eventfd that ends the thread.
    end: Arc<OwnedFd>,
}

/// The kernel's watch numbers of the directories.
#[derive(Default)]
struct Numbers(Mutex<Both>);

/// The maps between watch numbers and directories.
#[derive(Default)]
struct Both {
    by_number: HashMap<i32, DirectoryId>,
    by_id: HashMap<DirectoryId, i32>,
    /// The number of watches in setup, whose numbers are not known yet.
    coming: usize,
    /// Events with unknown numbers, stored during such a setup.
    early: Vec<Read>,
}

impl InotifyBackend {
    pub(in crate::watch) fn new(sink: Sink) -> Self {
        Self { sink: Arc::new(sink), instances: Mutex::default() }
    }

    /// Returns the instance for a class of directories; the other instance if no second one can be created.
    fn instance(&self, writers: Writers) -> Result<Arc<Instance>, Failure> {
        let (wanted, other) = match writers {
            Writers::Trusted => (0, 1),
            Writers::Others => (1, 0),
        };
        let mut instances = self.lock();
        let mut index = wanted;
        if instances[wanted].is_none() {
            match Instance::open(writers, &self.sink) {
                Ok(instance) => instances[wanted] = Some(Arc::new(instance)),
                Err(_) if instances[other].is_some() => index = other,
                Err(error) => return Err(error),
            }
        }
        instances[index].clone().ok_or(Failure::Gone)
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Arc<Instance>>; 2]> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Instance {
    fn open(writers: Writers, sink: &Arc<Sink>) -> Result<Self, Failure> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let inotify = Arc::new(inotify::init(flags).map_err(|error| match error {
            Errno::MFILE => Failure::Limit("fs.inotify.max_user_instances"),
            error => Failure::Other(error.to_string()),
        })?);
        let other = |error: &dyn ToString| Failure::Other(error.to_string());
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| other(&error))?);
        let numbers = Arc::new(Numbers::default());
        let listener = Listener {
            inotify: Arc::clone(&inotify),
            numbers: Arc::clone(&numbers),
            end: Arc::clone(&end),
            sink: Arc::clone(sink),
            writers,
        };
        let thread = std::thread::Builder::new().name("inotify".to_owned());
        thread.spawn(move || listener.run()).map_err(|error| other(&error))?;
        Ok(Self { inotify, numbers, end })
    }
}

impl Backend for InotifyBackend {
    fn watch(&self, directory: DirectoryId, path: &Path, at: &EntryHandle) -> Result<(), Failure> {
        let at = at.descriptor().map_err(|error| Failure::Other(error.to_string()))?;
        let instance = self.instance(writers(at))?;
        instance.numbers.lock().coming += 1;
        let exact = format!("/proc/self/fd/{}", at.as_raw_fd());
        let number = match inotify::add_watch(&instance.inotify, exact, MASK) {
            // Without /proc the watch is set by path; the walk then checks the identity.
            Err(Errno::NOENT) => inotify::add_watch(&instance.inotify, path, MASK),
            answer => answer,
        };
        let (early, lost) = instance.numbers.lock().finish_watch(number.ok(), directory);
        number.map_err(|error| match error {
            Errno::NOSPC => Failure::Limit("fs.inotify.max_user_watches"),
            Errno::NOENT | Errno::NOTDIR => Failure::Gone,
            error => Failure::Other(error.to_string()),
        })?;
        let mut told: Vec<_> = early.iter().map(|event| event.happening(directory)).collect();
        told.extend(lost.map(BackendEvent::Lost));
        if !told.is_empty() {
            (self.sink)(&told);
        }
        Ok(())
    }

    fn unwatch(&self, directory: DirectoryId) {
        for instance in self.lock().iter().flatten() {
            let mut numbers = instance.numbers.lock();
            if let Some(number) = numbers.take(directory) {
                // The kernel may have removed the watch already.
                let _gone = inotify::remove_watch(&instance.inotify, number);
            }
        }
    }
}

impl Drop for InotifyBackend {
    fn drop(&mut self) {
        for instance in self.lock().iter().flatten() {
            if let Err(error) = rustix::io::write(&instance.end, &1_u64.to_ne_bytes()) {
                tracing::error!(%error, "the inotify thread cannot be stopped");
            }
        }
    }
}

/// Returns the class of users who can write in a directory according to its mode at setup time.
fn writers(directory: BorrowedFd<'_>) -> Writers {
    let trusted = rustix::fs::fstat(directory).is_ok_and(|stat| {
        let owner = stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw();
        let group = stat.st_mode & 0o020 == 0 || stat.st_gid == 0;
        owner && group && stat.st_mode & 0o002 == 0
    });
    if trusted { Writers::Trusted } else { Writers::Others }
}

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, Both> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Both {
    /// Stores the number of a directory, which may change with a renewal. Returns the directory that had this number
    /// before, if another one was reached by a path that has changed.
    fn put(&mut self, number: i32, directory: DirectoryId) -> Option<DirectoryId> {
        if let Some(before) = self.by_id.insert(directory, number).filter(|b| *b != number) {
            self.by_number.remove(&before);
        }
        let other = self.by_number.insert(number, directory).filter(|other| *other != directory);
        if let Some(other) = other {
            self.by_id.remove(&other);
        }
        other
    }

    /// Finishes the setup of a watch; returns its early events and the result of [`Self::put`].
    fn finish_watch(
        &mut self,
        number: Option<i32>,
        directory: DirectoryId,
    ) -> (Vec<Read>, Option<DirectoryId>) {
        let of_it = |event: &mut Read| Some(event.number) == number;
        let early = self.early.extract_if(.., of_it).collect();
        self.coming -= 1;
        if self.coming == 0 {
            self.early.clear();
        }
        (early, number.and_then(|number| self.put(number, directory)))
    }

    fn take(&mut self, directory: DirectoryId) -> Option<i32> {
        let number = self.by_id.remove(&directory)?;
        self.by_number.remove(&number);
        Some(number)
    }
}

/// The thread that reads events.
struct Listener {
    inotify: Arc<OwnedFd>,
    numbers: Arc<Numbers>,
    end: Arc<OwnedFd>,
    sink: Arc<Sink>,
    writers: Writers,
}

impl Listener {
    fn run(self) {
        let mut ends = Ends { sink: &self.sink, why: Some("it panicked".to_owned()) };
        ends.why = self.listen().err().map(|error| error.to_string());
    }

    /// Reads events until the backend is dropped.
    fn listen(&self) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
        let mut pause = Duration::ZERO;
        loop {
            // After a pause there are mostly events: a poll first would be a wasted call.
            let mut news = if pause.is_zero() { None } else { self.read(&mut buffer)? };
            let mut quiet = false;
            while news.is_none() {
                let began = Instant::now();
                if !self.wait()? {
                    return Ok(());
                }
                quiet |= began.elapsed() > LONGEST_AFTER_NEWS;
                news = self.read(&mut buffer)?;
            }
            let longest = if news == Some(true) { LONGEST_AFTER_NEWS } else { LONGEST_AFTER_NOISE };
            pause = if quiet { Duration::ZERO } else { (pause * 2).clamp(FIRST_PAUSE, longest) };
            if !pause.is_zero() && !self.pause(pause)? {
                return Ok(());
            }
        }
    }

    /// Waits for events; returns false when the thread must end.
    fn wait(&self) -> Result<bool, Errno> {
        let mut both =
            [PollFd::new(&self.inotify, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
        loop {
            match poll(&mut both, None) {
                Ok(_) => return Ok(both[1].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Pauses to let events accumulate; returns false when the thread must end.
    fn pause(&self, pause: Duration) -> Result<bool, Errno> {
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&pause)) {
            Ok(ended) => Ok(ended == 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads once and reports the events. Returns true if any of them matters to a vertex; `None` if there were none.
    fn read(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<Option<bool>, Errno> {
        #[cfg(feature = "fault-injection")]
        crate::fault_injection::inject_fault("inotify").map_err(|_fault| Errno::IO)?;
        let mut batch = Batch::default();
        let mut reader = Reader::new(&self.inotify, buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(CStr::to_bytes).unwrap_or_default();
                    batch.put(event.wd(), event.events(), name);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => break,
                Err(error) => return Err(error),
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        if batch.0.is_empty() { Ok(None) } else { Ok(Some(self.send(batch))) }
    }

    /// Reports a batch of events; returns true if any of them matters to a vertex.
    fn send(&self, batch: Batch) -> bool {
        let mut overflow = batch.overflowed();
        let Batch(mut events) = batch;
        let mut numbers = self.numbers.lock();
        if numbers.coming > 0 {
            let unknown = |event: &mut Read| !numbers.by_number.contains_key(&event.number);
            let early: Vec<_> = events.extract_if(.., unknown).collect();
            numbers.early.extend(early);
            if numbers.early.len() > MOST_EARLY {
                // A watch has been in setup for long: its file system hangs.
                numbers.early.clear();
                overflow = true;
            }
        }
        let mut known = Vec::with_capacity(events.len());
        for event in &events {
            let directory = numbers.by_number.get(&event.number);
            known.extend(directory.map(|directory| event.happening(*directory)));
        }
        if overflow {
            match self.writers {
                Writers::Trusted => known.push(BackendEvent::Overflow),
                // A flood in directories of other users affects only these directories.
                Writers::Others => {
                    known.extend(numbers.by_id.keys().copied().map(BackendEvent::Lost));
                }
            }
        }
        drop(numbers);
        !known.is_empty() && (self.sink)(&known)
    }
}

/// A guard that reports an unrequested end of the thread, panics included.
struct Ends<'l> {
    sink: &'l Sink,
    why: Option<String>,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Some(why) = &self.why {
            let why = format!("inotify can no longer be read: {why}");
            (self.sink)(&[BackendEvent::Broken(&why)]);
        }
    }
}
