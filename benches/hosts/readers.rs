//! A thousand subscribers to the events of a busy daemon; half of them read nothing.

use super::drift::{Repairs, restored_after};
use super::process::{Held, apply, timed};
use super::report::Report;
use super::tree::{File, Graph, Tree};
use super::{Bench, Failure, console};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of readers, and of stalled subscribers.
const HALF: usize = 500;

/// The number of declared files.
const FILES: usize = 10_000;

/// The time limit until every reader has received something.
const PATIENCE: Duration = Duration::from_mins(1);

/// The duration of a round: shorter than the thirty seconds after which the daemon drops a stalled subscriber.
const ROUND: Duration = Duration::from_secs(20);

/// Less than the kernel's buffer for a stalled subscriber, in bytes, and far more than the report of one repair.
const FULL: u64 = 64 * 1024;

/// Compares repairs with those of a daemon without subscribers. Each round has its own subscribers. A round counts
/// only if each reader received something and the buffer of each stalled one was full before and after.
pub(crate) fn readers(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    many_files()?;
    let (calm_tree, tree) = (Tree::new(bench, FILES, false)?, Tree::new(bench, FILES, false)?);
    timed(apply(&calm_tree))?;
    timed(apply(&tree))?;
    let (mut calm, mut followed) = (Held::daemon(&calm_tree)?, Held::daemon(&tree)?);
    calm.converged()?;
    followed.converged()?;
    let socket = tree.state.join("control.socket");
    let files = Graph::read(&tree.graph)?.resources.file;
    let mut repairs = Repairs::new(&calm_tree, &tree, 0)?;
    for some in files.chunks(FILES / 5).take(bench.rounds(5)) {
        let followers = Followers::new(&socket)?;
        followers.fill(some)?;
        let full = followers.stalled()?;
        let (began, told, before) = (Instant::now(), followers.told(), repairs.count());
        while began.elapsed() < ROUND && repairs.count() - before < 100 {
            repairs.add()?;
        }
        let count = repairs.count() - before;
        followers.wait_for("all repairs to be told", |now| {
            now.iter().zip(&told).all(|(now, then)| now - then >= count)
        })?;
        if followers.stalled()? != full {
            return Err("one who stalls was told something".into());
        }
    }
    let (theirs, ours) = repairs.samples();
    report.ratio("a repair beside 1000 who follow events", theirs, ours, 1.2);
    Ok(())
}

/// Raises the limit of open files for this process and the daemons that it starts.
fn many_files() -> Result<(), Failure> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    if most.is_some_and(|most| most < 8192) {
        return Err("8192 files must be open at once: raise the hard limit (ulimit -Hn)".into());
    }
    Ok(())
}

/// The subscribers of one round.
struct Followers {
    stalled: Vec<UnixStream>,
    /// The number of lines that each reader has read.
    lines: Arc<[AtomicU64]>,
    failed: Arc<Mutex<Option<String>>>,
    end: Arc<AtomicBool>,
    reading: Option<JoinHandle<()>>,
}

impl Followers {
    fn new(socket: &Path) -> Result<Self, Failure> {
        let follow = "{\"verb\":\"events\",\"follow\":true,\"resource\":null,\"from\":null,\
                      \"limit\":0}";
        let connect = || console::connect(socket, follow);
        let stalled = (0..HALF).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        let live = (0..HALF).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        let lines: Arc<[AtomicU64]> = live.iter().map(|_| AtomicU64::new(0)).collect();
        let failed = Arc::<Mutex<Option<String>>>::default();
        let end = Arc::<AtomicBool>::default();
        let (counts, ended, told) = (Arc::clone(&lines), Arc::clone(&end), Arc::clone(&failed));
        let reading = std::thread::spawn(move || {
            if let Err(error) = read(&live, &counts, &ended) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        });
        Ok(Self { stalled, lines, failed, end, reading: Some(reading) })
    }

    /// Returns the number of lines that each reader has received.
    fn told(&self) -> Vec<u64> {
        self.lines.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    fn wait_for(&self, what: &str, so: impl Fn(&[u64]) -> bool) -> Result<(), Failure> {
        let began = Instant::now();
        while !so(&self.told()) {
            if let Some(why) = &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
                return Err(format!("a follower: {why}").into());
            }
            if began.elapsed() > PATIENCE {
                let least = self.told().into_iter().min().unwrap_or_default();
                return Err(format!("waited for {what}; one was told {least} lines").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns the unread bytes of each stalled subscriber.
    fn stalled(&self) -> Result<Vec<u64>, Failure> {
        let mut all: Vec<PollFd<'_>> =
            self.stalled.iter().map(|stream| PollFd::new(stream, PollFlags::HUP)).collect();
        poll(&mut all, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        if all.iter().any(|one| one.revents().contains(PollFlags::HUP)) {
            return Err("one who stalls was let go".into());
        }
        let waiting = self.stalled.iter().map(ioctl_fionread).collect::<Result<Vec<_>, _>>()?;
        match waiting.iter().min() {
            Some(least) if *least >= FULL => Ok(waiting),
            least => Err(format!("one who stalls has room: {least:?} bytes wait for it").into()),
        }
    }

    /// Causes events until each stalled subscriber has a full buffer and each reader has received something. Each
    /// file is written once, so that no repair counts as contention.
    fn fill(&self, files: &[File]) -> Result<(), Failure> {
        let waiting = || -> Result<Vec<u64>, Failure> {
            Ok(self.stalled.iter().map(ioctl_fionread).collect::<Result<Vec<_>, _>>()?)
        };
        let mut last = waiting()?;
        for some in files.chunks(files.len() / 5) {
            let (first, rest) = some.split_first().ok_or("no files")?;
            for file in rest {
                std::fs::write(&file.path, "damaged")?;
            }
            restored_after(first)?;
            self.wait_for("each to be told something", |told| told.iter().all(|n| *n > 0))?;
            std::thread::sleep(Duration::from_secs(1));
            let now = waiting()?;
            // No more bytes arrive, since every buffer is full.
            if now == last && now.iter().all(|count| *count >= FULL) {
                return Ok(());
            }
            last = now;
        }
        Err(format!("those who stall have room: {:?} bytes wait", last.iter().min()).into())
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        drop(self.reading.take().map(JoinHandle::join));
    }
}

/// Reads all connections on one thread: real readers are processes of their own and not part of the measured cost.
fn read(live: &[UnixStream], counts: &[AtomicU64], end: &AtomicBool) -> Result<(), Failure> {
    for stream in live {
        stream.set_nonblocking(true)?;
    }
    let mut buffer = vec![0; 64 * 1024];
    let limit = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !end.load(Ordering::Relaxed) {
        let mut ready: Vec<PollFd<'_>> =
            live.iter().map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
        poll(&mut ready, Some(&limit))?;
        let ready: Vec<bool> = ready.iter().map(|one| !one.revents().is_empty()).collect();
        for ((mut stream, count), _) in
            live.iter().zip(counts).zip(ready).filter(|(_, ready)| *ready)
        {
            match stream.read(&mut buffer) {
                Ok(0) => return Err("the daemon has closed the connection".into()),
                Ok(length) => {
                    let read = buffer.get(..length).unwrap_or_default();
                    if read.starts_with(b"{\"unavailable\"") {
                        return Err(String::from_utf8_lossy(read).into_owned().into());
                    }
                    let lines = read.split(|byte| *byte == b'\n').count() as u64 - 1;
                    count.fetch_add(lines, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
