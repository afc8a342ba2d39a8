//! File events from the crate `notify`, for the few quiet directories of the graph's own files, where its cost does not
//! matter (docs/decisions/0009-inotify-itself.md).
//!
//! Properties of notify 8 that this code relies on: a watch goes by path; a watch and all watches below its path are
//! dropped when the parent reports that the directory was removed or moved away, which becomes [`BackendEvent::Lost`].
//! The crate also subscribes to read accesses, which the handler below ignores. Adding and removing a watch waits for
//! the crate's thread, so the handler does neither.

use super::{Backend, BackendEvent, DirectoryId, Failure, Sink};
use crate::watch::filesystem::EntryHandle;
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Config, ErrorKind, Event, EventHandler, EventKind, RecommendedWatcher};
use notify::{RecursiveMode, Watcher as _};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const EMFILE: i32 = 24;

/// The backend with one watcher, created at the first watch since the host may have none left.
pub(in crate::watch) struct NotifyBackend {
    watcher: Mutex<Option<RecommendedWatcher>>,
    known: Arc<Known>,
}

/// The data that the handler and the hub's thread share.
struct Known {
    paths: Mutex<Paths>,
    sink: Sink,
}

#[derive(Default)]
struct Paths {
    /// Sorted by bytes, so that all paths below one directory are adjacent.
    by_path: BTreeMap<Arc<[u8]>, DirectoryId>,
    by_id: HashMap<DirectoryId, Arc<[u8]>>,
}

impl NotifyBackend {
    pub(in crate::watch) fn new(sink: Sink) -> Self {
        let known = Known { paths: Mutex::default(), sink };
        Self { watcher: Mutex::default(), known: Arc::new(known) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<RecommendedWatcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made<'w>(
        &self,
        watcher: &'w mut Option<RecommendedWatcher>,
    ) -> Result<&'w mut RecommendedWatcher, Failure> {
        if watcher.is_none() {
            let handler = Handler(Arc::clone(&self.known));
            let made = RecommendedWatcher::new(handler, Config::default());
            *watcher = Some(made.map_err(|error| failure(&error))?);
        }
        watcher.as_mut().ok_or(Failure::Gone)
    }
}

impl Backend for NotifyBackend {
    fn watch(&self, directory: DirectoryId, path: &Path, _at: &EntryHandle) -> Result<(), Failure> {
        let mut watcher = self.lock();
        let key: Arc<[u8]> = path.as_os_str().as_bytes().into();
        // Stored before the kernel call, so that no event is dropped.
        let (elsewhere, replaced) = self.known.lock().put(directory, &key);
        for old in elsewhere.as_ref().into_iter().chain(replaced.as_ref().map(|_| &key)) {
            // Two paths of one directory share a watch, which the first path would take away.
            drop(self.made(&mut watcher)?.unwatch(as_path(old)));
        }
        if let Some(other) = replaced {
            (self.known.sink)(&[BackendEvent::Lost(other)]);
        }
        let made = self.made(&mut watcher).and_then(|watcher| {
            watcher.watch(path, RecursiveMode::NonRecursive).map_err(|error| failure(&error))
        });
        if made.is_err() {
            self.known.lock().take(directory);
        }
        made
    }

    fn unwatch(&self, directory: DirectoryId) {
        let path = self.known.lock().take(directory);
        if let Some(path) = path
            && let Some(watcher) = self.lock().as_mut()
        {
            // The crate may have dropped the watch already.
            drop(watcher.unwatch(as_path(&path)));
        }
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn failure(error: &notify::Error) -> Failure {
    match &error.kind {
        ErrorKind::MaxFilesWatch => Failure::Limit("fs.inotify.max_user_watches"),
        ErrorKind::PathNotFound => Failure::Gone,
        ErrorKind::Io(io) if io.raw_os_error() == Some(EMFILE) => {
            Failure::Limit("fs.inotify.max_user_instances")
        }
        ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => Failure::Gone,
        ErrorKind::Io(io) => Failure::Other(io.to_string()),
        ErrorKind::Generic(_) | ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_) => {
            Failure::Other(error.to_string())
        }
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Paths> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Paths {
    /// Stores the path of a directory. Returns its former path, and the directory that had this path before, if they
    /// differ.
    fn put(
        &mut self,
        directory: DirectoryId,
        path: &Arc<[u8]>,
    ) -> (Option<Arc<[u8]>>, Option<DirectoryId>) {
        let elsewhere = self.by_id.insert(directory, Arc::clone(path));
        let elsewhere = elsewhere.filter(|elsewhere| elsewhere != path);
        if let Some(elsewhere) = &elsewhere {
            self.by_path.remove(elsewhere);
        }
        let before = self.by_path.insert(Arc::clone(path), directory);
        let other = before.filter(|before| *before != directory);
        if let Some(other) = other {
            self.by_id.remove(&other);
        }
        (elsewhere, other)
    }

    fn take(&mut self, directory: DirectoryId) -> Option<Arc<[u8]>> {
        let path = self.by_id.remove(&directory)?;
        self.by_path.remove(&path);
        Some(path)
    }

    /// Removes the directories that the crate drops together with this path.
    fn drop_below(&mut self, path: &[u8]) -> Vec<DirectoryId> {
        let Some(own) = self.by_path.get(path).copied() else { return Vec::new() };
        let mut below = path.to_vec();
        below.push(b'/');
        let mut dropped: Vec<DirectoryId> = self
            .by_path
            .range::<[u8], _>((
                std::ops::Bound::Included(below.as_slice()),
                std::ops::Bound::Unbounded,
            ))
            .take_while(|(path, _)| path.starts_with(&below))
            .map(|(_, id)| *id)
            .collect();
        dropped.push(own);
        for directory in &dropped {
            self.take(*directory);
        }
        dropped
    }
}

struct Handler(Arc<Known>);

impl EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            (self.0.sink)(&[BackendEvent::Overflow]);
            return;
        };
        if event.need_rescan() {
            (self.0.sink)(&[BackendEvent::Overflow]);
            return;
        }
        let (structural, away) = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => (false, false),
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
                (true, true)
            }
            EventKind::Any
            | EventKind::Other
            | EventKind::Create(_)
            | EventKind::Modify(ModifyKind::Name(_)) => (true, false),
            EventKind::Modify(_) => (false, false),
        };
        for path in &event.paths {
            self.send(path, structural, away);
        }
    }
}

impl Handler {
    /// Reports an event. Its path may belong to an entry, a watched directory, or both.
    fn send(&self, path: &Path, structural: bool, away: bool) {
        let bytes = path.as_os_str().as_bytes();
        let mut told = Vec::with_capacity(2);
        let mut paths = self.0.lock();
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(directory) = paths.by_path.get(parent.as_os_str().as_bytes())
        {
            let name = name.as_bytes();
            told.push(BackendEvent::Entry { directory: *directory, name, structural });
        }
        if away {
            told.extend(paths.drop_below(bytes).into_iter().map(BackendEvent::Lost));
        } else if let Some(directory) = paths.by_path.get(bytes) {
            told.push(BackendEvent::Entry { directory: *directory, name: b"", structural: false });
        }
        drop(paths);
        if !told.is_empty() {
            (self.0.sink)(&told);
        }
    }
}
