//! The harness: a listener to a watch hub, with assertions about its signals.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use steadfast::watch::{ExternalSources, Signal, WatchHub};
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};

/// A time limit for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The signals received for one vertex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) established: usize,
    pub(crate) absent: Vec<String>,
    pub(crate) changed: usize,
    pub(crate) supplied: usize,
    pub(crate) suspect: usize,
}

impl Heard {
    pub(crate) fn news(&self) -> usize {
        self.changed + self.suspect
    }
}

#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) heard: Mutex<BTreeMap<u32, Heard>>,
    pub(crate) more: Condvar,
    /// A lock that a test holds to make the hub wait.
    pub(crate) gate: Mutex<()>,
}

impl Notes {
    fn take_in(&self, signals: Vec<Signal>) {
        drop(self.gate.lock().expect("not poisoned"));
        let mut heard = self.heard.lock().expect("not poisoned");
        for signal in signals {
            match signal {
                Signal::Established(vertex) => {
                    heard.entry(vertex.0).or_default().established += 1;
                }
                Signal::Absent(vertex, why) => heard.entry(vertex.0).or_default().absent.push(why),
                Signal::Changed(vertex) => heard.entry(vertex.0).or_default().changed += 1,
                Signal::Supplied(vertex) => heard.entry(vertex.0).or_default().supplied += 1,
                Signal::Suspect(vertex) => heard.entry(vertex.0).or_default().suspect += 1,
                Signal::Broken(why) => heard.entry(BROKEN).or_default().absent.push(why),
            }
        }
        self.more.notify_all();
    }
}

pub(crate) struct Ears {
    pub(crate) hub: WatchHub,
    pub(crate) notes: Arc<Notes>,
    _runtime: Runtime,
    /// The folder with the watched files.
    pub(crate) directory: TempDir,
    sentinel: TempDir,
}

/// The vertex under which a failure of the hub is recorded.
pub(crate) const BROKEN: u32 = u32::MAX - 1;

/// The vertex of the sentinel file, whose events show that earlier events have arrived.
const SENTINEL: u32 = u32::MAX;

impl Ears {
    pub(crate) fn new() -> Self {
        Self::with(ExternalSources::default())
    }

    pub(crate) fn with(sources: ExternalSources) -> Self {
        Self::over(&std::env::temp_dir(), |handle, sink| {
            WatchHub::with_sources(handle, sources, sink)
        })
    }

    /// Creates a listener to a hub with the `notify` backend.
    pub(crate) fn through_notify() -> Self {
        Self::over(&std::env::temp_dir(), WatchHub::through_notify)
    }

    /// Creates a listener in a directory that only root can write, parents included. Needs root.
    pub(crate) fn in_trusted_place() -> Self {
        Self::over(Path::new("/var/lib"), WatchHub::new)
    }

    fn over(
        place: &Path,
        hub: impl FnOnce(Handle, Box<dyn Fn(Vec<Signal>) + Send + Sync>) -> WatchHub,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let notes = Arc::new(Notes::default());
        let told = Arc::clone(&notes);
        let sink = move |signals| told.take_in(signals);
        let hub = hub(runtime.handle().clone(), Box::new(sink));
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let sentinel = tempfile::tempdir().expect("a directory");
        Self { hub, notes, _runtime: runtime, directory, sentinel }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// Creates a file with its parents.
    pub(crate) fn file(&self, below: &str, content: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, content).expect("written");
        path
    }

    pub(crate) fn arm(&self, vertex: u32, path: &Path) {
        self.hub
            .arm(VertexId(vertex), vec![WatchSource::Path { path: path.to_owned(), below: false }]);
    }

    /// Arms a vertex and asserts that its watch is established.
    pub(crate) fn watch(&self, vertex: u32, path: &Path) {
        self.arm(vertex, path);
        self.until(vertex, |heard| heard.established == 1);
    }

    pub(crate) fn heard(&self, vertex: u32) -> Heard {
        self.notes.heard.lock().expect("not poisoned").get(&vertex).cloned().unwrap_or_default()
    }

    /// Waits until the signals of a vertex meet a condition.
    pub(crate) fn until(&self, vertex: u32, enough: impl Fn(&Heard) -> bool) -> Heard {
        let limit = Instant::now() + LONG;
        let mut heard = self.notes.heard.lock().expect("not poisoned");
        loop {
            let known = heard.entry(vertex).or_default();
            if enough(known) {
                return known.clone();
            }
            let left = limit.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "of {vertex} only {known:?} was heard");
            heard = self.notes.more.wait_timeout(heard, left).expect("not poisoned").0;
        }
    }

    /// Performs an act and waits until the hub reports it for this vertex.
    pub(crate) fn hears(&self, vertex: u32, what: &str, act: impl FnOnce()) -> Heard {
        self.settle();
        let before = self.heard(vertex).news();
        act();
        let limit = Instant::now() + LONG;
        loop {
            let heard = self.heard(vertex);
            if heard.news() > before {
                return heard;
            }
            assert!(Instant::now() < limit, "{what}: nothing was heard of {vertex}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Performs an act and asserts that the hub reports nothing for this vertex.
    pub(crate) fn hears_nothing(&self, vertex: u32, what: &str, act: impl FnOnce()) {
        self.settle();
        let before = self.heard(vertex);
        act();
        self.settle();
        assert_eq!(self.heard(vertex), before, "{what}");
    }

    /// Waits until all past events have been reported. Events arrive in order, and the hub answers a request after
    /// the work before it.
    pub(crate) fn settle(&self) {
        let path = self.sentinel.path().join("sentinel");
        for _ in 0..2 {
            self.notes.heard.lock().expect("not poisoned").remove(&SENTINEL);
            self.watch(SENTINEL, &path);
            std::fs::write(&path, "x").expect("written");
            self.until(SENTINEL, |heard| heard.news() > 0);
        }
    }

    /// Disarms the sentinel vertex.
    pub(crate) fn unsettle(&self) {
        self.hub.disarm(VertexId(SENTINEL));
    }

    /// Counts the kernel watches of this process on directories inside the test's folder.
    pub(crate) fn kernel_watches(&self) -> usize {
        let mut inodes = Vec::new();
        inodes_of(self.directory.path(), &mut inodes);
        let mut count = 0;
        for entry in std::fs::read_dir("/proc/self/fdinfo").expect("listed") {
            let path = entry.expect("an entry").path();
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            for line in text.lines().filter_map(|line| line.strip_prefix("inotify wd:")) {
                let inode = line.split_once("ino:").and_then(|(_, rest)| rest.split(' ').next());
                let inode = u64::from_str_radix(inode.expect("an inode"), 16).expect("a number");
                count += usize::from(inodes.contains(&inode));
            }
        }
        count
    }
}

fn inodes_of(directory: &Path, inodes: &mut Vec<u64>) {
    inodes.push(std::fs::metadata(directory).expect("there").ino());
    for entry in std::fs::read_dir(directory).expect("listed") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("known").is_dir() {
            inodes_of(&entry.path(), inodes);
        }
    }
}
