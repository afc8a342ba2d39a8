//! File events straight from the kernel: inotify itself, with a mask that leaves out what only reads.
//!
//! A directory is watched through the descriptor that the walk holds, so it is that very directory, whatever its path leads to by
//! now; and the kernel names it by a number that is never given twice. A thread reads. While it reads nothing but noise (names
//! that nobody waits for) it reads less often: the kernel then merges what repeats.

use super::{Backend, BackendEvent, DirectoryId, Failure, Sink};
use crate::watch::batch::{Batch, Read};
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

/// Everything but reads.
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

/// The pause after a read that another one followed at once: doubles from the first to one of the others.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_AFTER_NEWS: Duration = Duration::from_micros(500);
const LONGEST_AFTER_NOISE: Duration = Duration::from_micros(1600);

/// So many events are kept for watches that are being made.
const MOST_EARLY: usize = 1 << 16;

/// Two instances, each made at its first watch, since a host may have none to give: one for directories in which only root and
/// we can write, one for all others. Whoever floods the second loses events of the second alone.
pub(in crate::watch) struct InotifyBackend {
    sink: Arc<Sink>,
    instances: Mutex<[Option<Arc<Instance>>; 2]>,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    Trusted,
    Others,
}

struct Instance {
    inotify: Arc<OwnedFd>,
    numbers: Arc<Numbers>,
    /// Written to when the thread is to end.
    end: Arc<OwnedFd>,
}

/// The kernel's numbers for our directories.
#[derive(Default)]
struct Numbers(Mutex<Both>);

#[derive(Default)]
struct Both {
    by_number: HashMap<i32, DirectoryId>,
    by_id: HashMap<DirectoryId, i32>,
    /// How many watches are being made, whose numbers are not known yet.
    coming: usize,
    /// Meanwhile, events of unknown numbers are kept.
    early: Vec<Read>,
}

impl InotifyBackend {
    pub(in crate::watch) fn new(sink: Sink) -> Self {
        Self { sink: Arc::new(sink), instances: Mutex::default() }
    }

    /// The instance for a directory; the other one where no second can be had.
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
            // Without /proc by its path; the walk looks afterwards whether it was the same one.
            Err(Errno::NOENT) => inotify::add_watch(&instance.inotify, path, MASK),
            answer => answer,
        };
        let (early, lost) = instance.numbers.lock().come(number.ok(), directory);
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
                // The kernel may have dropped it by itself already.
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

/// Who can write in a directory, as far as its mode says, when its watch is made.
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
    /// A directory that is watched again may have another number now. The directory that had this number, where another did: it
    /// was found by a path that led there meanwhile.
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

    /// A watch is made, or could not be: what happened in its directory so far, and what [`Self::put`] says.
    fn come(
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

/// The thread that reads.
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

    /// Reads until it is time to end.
    fn listen(&self) -> Result<(), Errno> {
        let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
        let mut pause = Duration::ZERO;
        loop {
            // After a pause there mostly is something: to ask first would be one call more.
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

    /// Waits for events; false when it is time to end.
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

    /// Lets events come together; false when it is time to end.
    fn pause(&self, pause: Duration) -> Result<bool, Errno> {
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&pause)) {
            Ok(ended) => Ok(ended == 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads once and tells; whether anybody waits for any of it, none where there was nothing.
    fn read(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<Option<bool>, Errno> {
        #[cfg(debug_assertions)]
        crate::fault_injection::suffer("inotify").map_err(|_fault| Errno::IO)?;
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
        if batch.0.is_empty() { Ok(None) } else { Ok(Some(self.tell(batch))) }
    }

    /// Whether anybody waits for any of it.
    fn tell(&self, batch: Batch) -> bool {
        let mut overflow = batch.overflowed();
        let Batch(mut events) = batch;
        let mut numbers = self.numbers.lock();
        if numbers.coming > 0 {
            let unknown = |event: &mut Read| !numbers.by_number.contains_key(&event.number);
            let early: Vec<_> = events.extract_if(.., unknown).collect();
            numbers.early.extend(early);
            if numbers.early.len() > MOST_EARLY {
                // Some watch has been in the making for long: its file system does not answer.
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
                // What others do in their directories is no reason to look at the rest.
                Writers::Others => {
                    known.extend(numbers.by_id.keys().copied().map(BackendEvent::Lost))
                }
            }
        }
        drop(numbers);
        !known.is_empty() && (self.sink)(&known)
    }
}

/// However the thread ends, it is known, unless it was asked to.
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
