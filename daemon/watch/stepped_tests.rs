//! Tests of a hub that is moved step by step over a simulated kernel, for rare orders of events.

use super::backend::{Backend, BackendEvent, DirectoryId, Failure, Sink};
use super::filesystem::{EntryHandle, HostFileSystem};
use super::{ExternalSources, Signal, SteppedWorker, WatchHub};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A kernel that reports only the events that the test makes.
#[derive(Clone, Default)]
struct Kernel(Arc<Mutex<Watches>>);

#[derive(Default)]
struct Watches {
    watched: BTreeMap<DirectoryId, PathBuf>,
    /// The maximum number of watches.
    most: Option<usize>,
    sink: Option<Sink>,
}

impl Kernel {
    fn with<T>(&self, work: impl FnOnce(&mut Watches) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Backend for Kernel {
    fn watch(&self, directory: DirectoryId, path: &Path, _at: &EntryHandle) -> Result<(), Failure> {
        self.with(|kernel| {
            let is_new = !kernel.watched.contains_key(&directory);
            if is_new && kernel.most.is_some_and(|most| kernel.watched.len() >= most) {
                return Err(Failure::Limit("fs.inotify.max_user_watches"));
            }
            kernel.watched.insert(directory, path.to_owned());
            Ok(())
        })
    }

    fn unwatch(&self, directory: DirectoryId) {
        self.with(|kernel| kernel.watched.remove(&directory));
    }
}

/// The environment of a test.
struct Stage {
    hub: WatchHub,
    hand: SteppedWorker,
    kernel: Kernel,
    told: Arc<Mutex<Vec<Signal>>>,
    directory: TempDir,
    runtime: Runtime,
}

impl Stage {
    fn new() -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let (kernel, told) = (Kernel::default(), Arc::<Mutex<Vec<Signal>>>::default());
        let heard = Arc::clone(&told);
        let send = move |signals| heard.lock().expect("whole").extend(signals);
        let made = kernel.clone();
        let backend = |sink| -> Box<dyn Backend> {
            made.with(|kernel| kernel.sink = Some(sink));
            Box::new(made.clone())
        };
        let handle = runtime.handle().clone();
        let parts = (Arc::new(HostFileSystem) as Arc<_>, backend);
        let (hub, hand) =
            WatchHub::by_hand(handle, ExternalSources::default(), Box::new(send), parts);
        let directory = tempfile::tempdir().expect("a directory");
        Self { hub, hand, kernel, told, directory, runtime }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn make(&self, below: &str) -> PathBuf {
        fs::create_dir_all(self.path(below)).expect("made");
        self.path(below)
    }

    fn arm(&self, vertex: u32, below: &str) {
        let source = WatchSource::Path { path: self.path(below), below: false };
        self.hub.arm(VertexId(vertex), vec![source]);
    }

    fn walk(&self) {
        while self.hand.step() {}
    }

    /// Advances the paused clock and does the work that follows.
    fn wait(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
        self.walk();
    }

    fn told(&self) -> Vec<Signal> {
        std::mem::take(&mut *self.told.lock().expect("whole"))
    }

    fn limit(&self, most: Option<usize>) {
        self.kernel.with(|kernel| kernel.most = most);
    }

    fn number_of(&self, path: &Path) -> Option<DirectoryId> {
        self.kernel.with(|kernel| {
            kernel.watched.iter().find(|(_, known)| *known == path).map(|(id, _)| *id)
        })
    }

    /// Reports an event of the kernel.
    fn happens(&self, happening: BackendEvent<'_>) {
        self.kernel.with(|kernel| {
            let sink = kernel.sink.as_ref().expect("made");
            sink(&[happening]);
        });
    }

    /// Reports a structural change of an entry in a watched directory.
    fn moves(&self, directory: &Path, name: &str) {
        let directory = self.number_of(directory).expect("watched");
        self.happens(BackendEvent::Entry { directory, name: name.as_bytes(), structural: true });
    }

    /// Reports an edit of a file; returns true if the vertex gets a signal.
    fn hears(&self, vertex: u32, below: &str) -> bool {
        let path = self.path(below);
        let Some(directory) = self.number_of(path.parent().expect("a parent")) else {
            return false;
        };
        self.told();
        let name = path.file_name().expect("a name").as_encoded_bytes();
        self.happens(BackendEvent::Entry { directory, name, structural: false });
        self.told().contains(&Signal::Changed(VertexId(vertex)))
    }
}

/// R-9, E-4: a directory on the path moves while its only vertex is armed again, as by a new graph: the route is walked
/// all the same. Found by seed 4443 of the simulation.
#[test]
fn a_vertex_rearmed_during_a_move_is_watched_at_its_new_path() {
    let stage = Stage::new();
    stage.make("a/b");
    stage.arm(1, "a/b/file");
    stage.walk();
    let before = stage.number_of(&stage.path("a/b"));
    fs::rename(stage.path("a/b"), stage.path("a/old")).expect("moved");
    stage.make("a/b");
    stage.moves(&stage.path("a"), "b");
    stage.hub.disarm(VertexId(1));
    stage.arm(1, "a/b/file");
    stage.walk();
    assert_eq!(stage.told().last(), Some(&Signal::Established(VertexId(1))));
    assert_ne!(stage.number_of(&stage.path("a/b")), before, "it is another directory by now");
    assert!(stage.hears(1, "a/b/file"));
}

/// R-9, E-4: the vertex is armed again before the first walk of its route.
#[test]
fn a_vertex_armed_twice_before_the_first_walk_is_watched() {
    let stage = Stage::new();
    stage.make("a/b");
    stage.arm(1, "a/b/file");
    stage.hand.step();
    stage.hub.disarm(VertexId(1));
    stage.arm(1, "a/b/file");
    stage.walk();
    assert_eq!(stage.told(), [Signal::Established(VertexId(1))]);
    assert!(stage.hears(1, "a/b/file"));
}

/// F-6: failed watches are retried in time, and each success is followed by a `Suspect`.
#[test]
fn f6_a_failed_watch_is_retried_in_time() {
    let stage = Stage::new();
    for number in 0..300 {
        stage.make(&format!("d{number}"));
        stage.arm(number, &format!("d{number}/file"));
    }
    stage.limit(Some(0));
    stage.walk();
    let told = stage.told();
    assert_eq!(told.len(), 300);
    assert!(told.iter().all(|signal| matches!(signal, Signal::Absent(..))), "{told:?}");
    stage.wait(Duration::from_mins(10));
    assert_eq!(stage.told(), [], "nothing is new");
    stage.limit(None);
    stage.wait(Duration::from_secs(61));
    let told = stage.told();
    for number in 0..300 {
        let established = Signal::Established(VertexId(number));
        let suspect = Signal::Suspect(VertexId(number));
        assert!(told.contains(&established) && told.contains(&suspect), "{number}");
    }
    assert!(stage.hears(299, "d299/file"));
}

/// F-6: a free watch is used at once by a vertex without one.
#[test]
fn f6_a_watch_that_is_free_is_used() {
    let stage = Stage::new();
    stage.make("one");
    stage.make("other");
    stage.arm(1, "one/file");
    stage.walk();
    stage.limit(Some(stage.kernel.with(|kernel| kernel.watched.len())));
    stage.arm(2, "other/file");
    stage.walk();
    assert!(!stage.hears(2, "other/file"));
    stage.hub.disarm(VertexId(1));
    stage.walk();
    assert!(stage.hears(2, "other/file"));
}

/// F-5: a watch that is lost in an overflow and cannot be renewed is reported as absent, and retried until it succeeds.
#[test]
fn f5_a_watch_that_cannot_be_renewed_is_no_watch() {
    let stage = Stage::new();
    stage.make("a/b");
    for (vertex, below) in [(1, "a/b/one"), (2, "a/b/other"), (3, "a/file")] {
        stage.arm(vertex, below);
    }
    stage.walk();
    stage.told();
    let b = stage.number_of(&stage.path("a/b")).expect("watched");
    stage.kernel.with(|kernel| {
        kernel.watched.remove(&b);
        kernel.most = Some(kernel.watched.len());
    });
    stage.happens(BackendEvent::Overflow);
    stage.walk();
    let told = stage.told();
    let is_absent = |vertex: u32| {
        told.iter().any(|signal| matches!(signal, Signal::Absent(id, _) if id.0 == vertex))
    };
    assert_eq!([1, 2, 3].map(is_absent), [true, true, false], "{told:?}");
    stage.hub.walk_all();
    stage.walk();
    assert!(!stage.told().contains(&Signal::Established(VertexId(1))));
    stage.limit(None);
    stage.wait(Duration::from_secs(61));
    for (vertex, below) in [(1, "a/b/one"), (2, "a/b/other"), (3, "a/file")] {
        assert!(stage.hears(vertex, below), "{vertex}");
    }
}

/// F-6: the status follows a symbolic link that no longer leads to an unwatchable target. Found by seed 8437.
#[test]
fn f6_the_status_follows_a_changed_link() {
    let stage = Stage::new();
    stage.make("here");
    stage.arm(1, "here/file");
    stage.walk();
    stage.limit(Some(stage.kernel.with(|kernel| kernel.watched.len())));
    stage.make("there");
    let link = stage.path("here/file");
    std::os::unix::fs::symlink(stage.path("there/file"), &link).expect("linked");
    stage.moves(&stage.path("here"), "file");
    stage.walk();
    assert!(stage.told().iter().any(|signal| matches!(signal, Signal::Absent(..))));
    fs::remove_file(&link).expect("removed");
    stage.moves(&stage.path("here"), "file");
    stage.walk();
    assert!(stage.told().contains(&Signal::Established(VertexId(1))));
}

/// F-6: a lost watch of a muted vertex is reported.
#[test]
fn f6_a_muted_vertex_learns_that_it_has_no_events() {
    let stage = Stage::new();
    stage.make("a/b");
    stage.arm(1, "a/b/file");
    stage.walk();
    stage.told();
    stage.hub.mute(VertexId(1));
    stage.limit(Some(0));
    let b = stage.number_of(&stage.path("a/b")).expect("watched");
    stage.happens(BackendEvent::Lost(b));
    stage.walk();
    stage.hub.unmute(VertexId(1));
    let told = stage.told();
    assert!(told.iter().any(|signal| matches!(signal, Signal::Absent(..))), "{told:?}");
}
