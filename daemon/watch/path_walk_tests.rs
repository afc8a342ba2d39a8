//! Tests of walks with a change at the worst moment, over a scripted backend.

use super::backend::{Backend, DirectoryId, Failure};
use super::filesystem::{EntryHandle, HostFileSystem, Identity};
use super::index::{RouteId, Walked};
use super::path_walk::PathWalk;
use super::shared::Shared;
use super::sources::ExternalSources;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A backend that runs a closure of the test in each call of `watch`.
struct Scripted<F> {
    act: Mutex<F>,
    watched: Mutex<Vec<(DirectoryId, PathBuf)>>,
}

impl<F: FnMut(&Path) -> Result<(), Failure> + Send> Backend for Scripted<F> {
    fn watch(&self, directory: DirectoryId, path: &Path, _at: &EntryHandle) -> Result<(), Failure> {
        (self.act.lock().expect("whole"))(path)?;
        self.watched.lock().expect("whole").push((directory, path.to_owned()));
        Ok(())
    }

    fn unwatch(&self, directory: DirectoryId) {
        self.watched.lock().expect("whole").retain(|(known, _)| *known != directory);
    }
}

type Watched = Vec<(DirectoryId, PathBuf)>;

/// Walks a path once; returns the result, the remaining watches and the shared data.
fn walk(
    path: &Path,
    act: impl FnMut(&Path) -> Result<(), Failure> + Send,
) -> (Walked, Watched, Shared) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let shared =
        Shared::new(runtime.handle().clone(), ExternalSources::default(), Box::new(|_| {}));
    let backend = Scripted { act: Mutex::new(act), watched: Mutex::default() };
    let (ground, route) = (&HostFileSystem, RouteId(1));
    let walk = PathWalk { shared: &shared, backend: &backend, ground, thread: 0, route };
    let walked = walk.run(path).expect("not given up");
    (walked, backend.watched.into_inner().expect("whole"), shared)
}

fn identity(path: &Path) -> Identity {
    let found = fs::symlink_metadata(path).expect("there");
    (found.dev(), found.ino())
}

fn end_of(walked: &Walked, shared: &Shared) -> Option<Identity> {
    let end = walked.end?;
    shared.lock().directories.get(&end).map(|end| end.identity)
}

/// an opened directory is moved away before the watch, which goes by path, is set on its successor.
#[test]
fn a_directory_exchanged_before_its_watch_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (here, old) = (directory.path().join("a"), directory.path().join("old"));
    fs::create_dir_all(here.join("b")).expect("made");
    let mut first = true;
    let (walked, watched, shared) = walk(&here.join("b"), |path| {
        if path == here && std::mem::take(&mut first) {
            fs::rename(&here, &old).expect("moved");
            fs::create_dir_all(here.join("b")).expect("made");
        }
        Ok(())
    });
    assert_eq!(end_of(&walked, &shared), Some(identity(&here.join("b"))));
    let state = shared.lock();
    for (id, path) in &watched {
        assert_eq!(state.directories[id].identity, identity(path), "{}", path.display());
    }
}

/// an entry that appears while its directory is being watched is found.
#[test]
fn a_path_that_appears_during_a_watch_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path().join("a");
    fs::create_dir(&here).expect("made");
    let (walked, _, shared) = walk(&here.join("b/c"), |path| {
        if path == here {
            fs::create_dir_all(here.join("b/c")).expect("made");
        }
        Ok(())
    });
    assert_eq!(end_of(&walked, &shared), Some(identity(&here.join("b/c"))));
}

/// A path that moves during every attempt is given up for now; its entries are noted, so that the next event triggers
/// another walk.
#[test]
fn a_path_that_never_rests_is_given_up_for_now() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path().join("a");
    fs::create_dir(&here).expect("made");
    let mut count = 0;
    let (walked, watched, shared) = walk(&here, |path| {
        if path == here {
            count += 1;
            fs::rename(&here, directory.path().join(format!("old{count}"))).expect("moved");
            fs::create_dir(&here).expect("made");
        }
        Ok(())
    });
    assert_eq!(walked.end, None);
    assert!(
        walked
            .failed
            .as_deref()
            .is_some_and(|why| why.contains("the parent directories keep being renamed"))
    );
    assert!(watched.iter().all(|(_, path)| *path != here), "{watched:?}");
    let parent = shared.lock().identities[&identity(directory.path())];
    assert!(walked.steps.iter().any(|(at, name)| *at == parent && &**name == b"a"));
}

/// F-6: an unwatchable directory on the path is reported, and deeper ones are watched all the same.
#[test]
fn a_refusal_on_the_way_is_told_and_passed() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path().join("a/b/c");
    fs::create_dir_all(&here).expect("made");
    let refused = directory.path().join("a/b");
    let (walked, watched, shared) = walk(&here, |path| {
        if path == refused { Err(Failure::Other("permission denied".to_owned())) } else { Ok(()) }
    });
    let why = walked.failed.as_deref().expect("told");
    assert!(why.contains("a/b: permission denied"), "{why}");
    assert_eq!(end_of(&walked, &shared), Some(identity(&here)));
    assert!(watched.iter().any(|(_, path)| *path == here));
}
