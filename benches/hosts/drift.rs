//! The time from a foreign write to the restored content, with 10 000 declared files.

use super::process::{Held, bare};
use super::report::{Report, Sample};
use super::tree::{File, Graph, Tree};
use super::{Bench, Failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Measures the bare program and the daemon in turn; each holds its own tree all the time.
pub(crate) fn drift(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    let (their_tree, our_tree) =
        (Tree::new(bench, 10_000, false)?, Tree::new(bench, 10_000, false)?);
    super::process::timed(bare("make", &their_tree, 0)?)?;
    super::process::timed(super::process::apply(&our_tree))?;
    let mut bare = Held::bare("hold", &their_tree)?;
    bare.says("ready")?;
    let mut daemon = Held::daemon(&our_tree)?;
    daemon.converged()?;
    let their_files = Graph::read(&their_tree.graph)?.resources.file;
    let our_files = Graph::read(&our_tree.graph)?.resources.file;
    let (mut theirs, mut ours) = (Sample::default(), Sample::default());
    let mut dice = Dice(88_172_645_463_325_252);
    for _ in 0..bench.rounds(1500) {
        for (files, sample) in [(&their_files, &mut theirs), (&our_files, &mut ours)] {
            std::thread::sleep(Duration::from_micros(10_000 + dice.below(20_000)));
            let index = usize::try_from(dice.below(files.len() as u64))?;
            let file = files.get(index).ok_or("no files")?;
            sample.add(restored_after(file)?);
        }
    }
    report.ratio("drift put back, 10 000 files, median", &theirs, &ours, 2.0);
    report.ratio_at_99("drift put back, 10 000 files, at 99 %", &theirs, &ours, 2.5);
    Ok(())
}

/// Writes other bytes to a file and waits until a new file replaces it.
pub(crate) fn restored_after(file: &File) -> Result<Duration, Failure> {
    let name = file.path.file_name().ok_or("a path without a name")?;
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let flags = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CREATE;
    inotify::add_watch(&watcher, file.path.parent().ok_or("no parent")?, flags)?;
    // One write call, so that the change is complete when it is noticed.
    let mut open = fs::OpenOptions::new().write(true).open(&file.path)?;
    open.write_all(b"damaged")?;
    let began = Instant::now();
    loop {
        wait(&watcher)?;
        let now = began.elapsed();
        let mut buffer = [const { MaybeUninit::uninit() }; 4096];
        let mut events = inotify::Reader::new(&watcher, &mut buffer);
        loop {
            let event = events.next()?;
            if event.file_name().is_some_and(|n| n.to_bytes() == name.as_encoded_bytes())
                && fs::read(&file.path)? == file.content.as_bytes()
            {
                return Ok(now);
            }
            if events.is_buffer_empty() {
                break;
            }
        }
    }
}

fn wait(watcher: &OwnedFd) -> Result<(), Failure> {
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    match poll(&mut [PollFd::new(watcher, PollFlags::IN)], Some(&limit))? {
        0 => Err("nothing was put back within ten seconds".into()),
        _ => Ok(()),
    }
}

/// Random numbers that are equal in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// The repair times of a calm daemon and of another one at the same time, in turn.
pub(crate) struct Repairs {
    calm: Vec<File>,
    other: Vec<File>,
    dice: Dice,
    samples: (Sample, Sample),
    /// The index of the first damaged file. Files are damaged in turn, so that no repair counts as contention.
    first: usize,
    count: u64,
}

impl Repairs {
    /// Prepares repairs in two trees, beginning with this file.
    pub(crate) fn new(calm: &Tree, other: &Tree, first: usize) -> Result<Self, Failure> {
        let files = |tree: &Tree| Graph::read(&tree.graph).map(|graph| graph.resources.file);
        let dice = Dice(88_172_645_463_325_252);
        Ok(Self {
            calm: files(calm)?,
            other: files(other)?,
            dice,
            samples: <_>::default(),
            first,
            count: 0,
        })
    }

    /// Measures one repair in each tree.
    pub(crate) fn add(&mut self) -> Result<(), Failure> {
        let at = (self.first + usize::try_from(self.count)?) % self.calm.len();
        let (theirs, ours) = &mut self.samples;
        for (all, sample) in [(&self.calm, theirs), (&self.other, ours)] {
            std::thread::sleep(Duration::from_micros(20_000 + self.dice.below(20_000)));
            sample.add(restored_after(all.get(at).ok_or("no such file")?)?);
        }
        self.count += 1;
        Ok(())
    }

    /// Returns the number of repairs in each tree.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the times of the calm daemon and of the other one.
    pub(crate) fn samples(&self) -> (&Sample, &Sample) {
        (&self.samples.0, &self.samples.1)
    }
}
