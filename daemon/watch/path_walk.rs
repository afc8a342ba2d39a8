//! The walk of a route: entry by entry through open handles, each directory watched *before* its entries are looked up.
//!
//! So each change after a lookup is reported, and the route is walked again: no change falls into a gap.

use super::backend::{Backend, DirectoryId, Failure};
use super::filesystem::{EntryHandle, FileSystem, Found, Identity};
use super::index::{Name, Reason, RouteId, Walked, WatchIndex};
use super::proc_files::PROC;
use super::shared::Shared;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, MutexGuard};

/// The maximum number of symbolic links in one walk, as in the kernel.
const LINKS: usize = 40;

/// The part of /proc that reports writes of programs. It is watched; the kind `sysctl` is also polled for the changes
/// of the kernel.
const KERNEL_PARAMETERS: &str = "/proc/sys";

/// The maximum number of attempts of one walk. A change during an attempt starts another one; a later change is
/// reported, and triggers another walk.
const ATTEMPTS: usize = 5;

/// A walk of one route.
pub(super) struct PathWalk<'w> {
    pub(super) shared: &'w Shared,
    pub(super) backend: &'w dyn Backend,
    pub(super) ground: &'w dyn FileSystem,
    /// The number of the walking thread.
    pub(super) thread: u64,
    pub(super) route: RouteId,
}

/// The position of a walk.
struct WalkPosition {
    held: EntryHandle,
    /// The path without symbolic links.
    path: PathBuf,
    /// The directory; `None` if it cannot be watched.
    directory: Option<DirectoryId>,
    /// True if the file system changes without kernel events.
    is_silent: bool,
}

/// The reason for the early end of an attempt.
enum WalkEnd {
    /// A directory was moved during the attempt.
    Moved,
    /// The thread was abandoned: another one works, and this one must not change the index.
    GivenUp,
}

impl PathWalk<'_> {
    /// Walks the path; returns `None` if the thread was abandoned.
    pub(super) fn run(self, path: &Path) -> Option<Walked> {
        // Directories of failed attempts stay in use until the next walk: their entries are noted in the index.
        let mut walked = Walked::default();
        for _ in 0..ATTEMPTS {
            walked.failed = None;
            match self.attempt(path, &mut walked) {
                Ok(()) => return Some(walked),
                Err(WalkEnd::Moved) => {}
                Err(WalkEnd::GivenUp) => return None,
            }
        }
        fail(&mut walked, path, "the parent directories keep being renamed");
        Some(walked)
    }

    /// Locks the index, unless the thread was abandoned.
    fn lock(&self) -> Result<MutexGuard<'_, WatchIndex>, WalkEnd> {
        let state = self.shared.lock();
        if state.turn.thread == self.thread { Ok(state) } else { Err(WalkEnd::GivenUp) }
    }

    fn attempt(&self, path: &Path, walked: &mut Walked) -> Result<(), WalkEnd> {
        let is_of_kernel = path == Path::new(PROC);
        let mut place = self.root(walked)?;
        let mut links = 0;
        let mut todo = Vec::new();
        push(&mut todo, path);
        while let Some(name) = todo.pop() {
            if !self.step(&place, &name, walked)? {
                fail(walked, &place.path.join(&name), "the path does not respond");
                return Ok(());
            }
            let found = match self.ground.look(&place.held, &name) {
                Ok(found) => found,
                Err(error) => {
                    if !matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
                        fail(walked, &place.path.join(&name), &error.to_string());
                    }
                    return Ok(());
                }
            };
            match found.kind {
                FileType::Directory => {
                    let path = if name == ".." {
                        place.path.parent().unwrap_or(&place.path).to_owned()
                    } else {
                        place.path.join(&name)
                    };
                    place = self.enter(found, path, (walked, is_of_kernel))?;
                    if place.is_silent {
                        // Deeper directories could be watched only below another mount.
                        return Ok(());
                    }
                }
                FileType::Symlink => {
                    links += 1;
                    let Ok(target) = self.ground.target(&found.at) else { return Ok(()) };
                    if links > LINKS {
                        return Ok(());
                    }
                    push(&mut todo, &target);
                    if target.is_absolute() {
                        place = self.root(walked)?;
                    }
                }
                _ => return Ok(()),
            }
        }
        walked.end = place.directory;
        if let Some(end) = place.directory {
            self.note_end(end)?;
        }
        Ok(())
    }

    fn root(&self, walked: &mut Walked) -> Result<WalkPosition, WalkEnd> {
        match self.ground.root() {
            Ok(root) => self.enter(root, PathBuf::from("/"), (walked, false)),
            Err(error) => {
                fail(walked, Path::new("/"), &error.to_string());
                Err(WalkEnd::Moved)
            }
        }
    }

    /// Enters a directory after watching it. `is_of_kernel` is true for the route that ends in /proc.
    fn enter(
        &self,
        Found { at, identity, .. }: Found,
        path: PathBuf,
        (walked, is_of_kernel): (&mut Walked, bool),
    ) -> Result<WalkPosition, WalkEnd> {
        let is_proc = path == Path::new(PROC);
        // The watch of /proc is for the files that the kernel marks; routes through /proc lead to others.
        let known = self.lock()?.recognise(identity, &path).filter(|_| is_of_kernel || !is_proc);
        let mut is_silent = false;
        let directory = if let Some(known) = known {
            self.renew(known, &path, &at, walked)?
        } else if let Some(silent) = self.ground.silent(&at) {
            if path.starts_with(KERNEL_PARAMETERS) {
                // The failure is that of /proc above.
                walked.failed = None;
                self.watch(identity, &path, &at, walked)?
            } else if is_of_kernel && is_proc {
                // `kernel_files` reports the mark of a file as a change of this directory; `status` names the others.
                self.watch(identity, &path, &at, walked)?
            } else {
                fail(walked, &path, &format!("a {silent} file system reports no changes"));
                is_silent = !is_proc;
                None
            }
        } else {
            self.watch(identity, &path, &at, walked)?
        };
        if let Some(directory) = directory
            && !walked.used.contains(&directory)
        {
            walked.used.push(directory);
        }
        Ok(WalkPosition { held: at, path, directory, is_silent })
    }

    fn watch(
        &self,
        identity: Identity,
        path: &Path,
        at: &EntryHandle,
        walked: &mut Walked,
    ) -> Result<Option<DirectoryId>, WalkEnd> {
        let directory = self.lock()?.add_directory(identity, path);
        let watched = self.backend.watch(directory, path, at);
        let Ok(mut state) = self.lock() else {
            self.backend.unwatch(directory);
            return Err(WalkEnd::GivenUp);
        };
        match watched {
            Ok(()) => {}
            Err(Failure::Gone) => {
                state.remove_directory(directory);
                return Err(WalkEnd::Moved);
            }
            Err(error @ (Failure::Limit(_) | Failure::Other(_))) => {
                state.remove_directory(directory);
                fail(walked, path, &error.to_string());
                return Ok(None);
            }
        }
        if let Some(renewed) = &mut state.turn.renewed {
            renewed.insert(directory);
        }
        drop(state);
        // The watch may have been set by path; so the identity is checked afterwards.
        if self.ground.identity(path) == Some(identity) {
            return Ok(Some(directory));
        }
        let mut state = self.lock()?;
        state.remove_directory(directory);
        drop(state);
        self.backend.unwatch(directory);
        Err(WalkEnd::Moved)
    }

    /// Renews a watch after an overflow, since it may have been lost without an event. Returns `None` if the directory
    /// cannot be watched any more.
    fn renew(
        &self,
        directory: DirectoryId,
        path: &Path,
        at: &EntryHandle,
        walked: &mut Walked,
    ) -> Result<Option<DirectoryId>, WalkEnd> {
        let is_due =
            self.lock()?.turn.renewed.as_mut().is_some_and(|renewed| renewed.insert(directory));
        let Some(error) = is_due.then(|| self.backend.watch(directory, path, at).err()).flatten()
        else {
            return Ok(Some(directory));
        };
        // The watch has failed for all routes through the directory: they are walked again.
        let mut state = self.lock()?;
        if let Some(lost) = state.remove_directory(directory) {
            let others = lost.steps.values().flatten().chain(&lost.ends);
            for route in others.filter(|route| **route != self.route) {
                state.turn.work.walk(*route, Reason::Lost);
            }
        }
        drop(state);
        self.backend.unwatch(directory);
        match error {
            Failure::Gone => Err(WalkEnd::Moved),
            error @ (Failure::Limit(_) | Failure::Other(_)) => {
                fail(walked, path, &error.to_string());
                Ok(None)
            }
        }
    }

    /// Notes a lookup before it is made, so that every later change is reported. Returns false if the entry must be
    /// left alone.
    fn step(
        &self,
        place: &WalkPosition,
        name: &OsStr,
        walked: &mut Walked,
    ) -> Result<bool, WalkEnd> {
        let mut state = self.lock()?;
        let known = place.directory.filter(|_| name != "..");
        let Some((directory, known)) =
            known.and_then(|id| Some((id, state.directories.get_mut(&id)?)))
        else {
            return Ok(state.look_at(place.path.join(name), self.route));
        };
        let name: Name = match known.steps.get_key_value(name.as_bytes()) {
            Some((name, _)) => Arc::clone(name),
            None => name.as_bytes().into(),
        };
        known.steps.entry(Arc::clone(&name)).or_default().insert(self.route);
        if !walked.steps.iter().any(|(at, step)| *at == directory && *step == name) {
            walked.steps.push((directory, Arc::clone(&name)));
        }
        Ok(state.look_in(directory, name, self.route))
    }

    fn note_end(&self, end: DirectoryId) -> Result<(), WalkEnd> {
        let mut state = self.lock()?;
        if let Some(known) = state.directories.get_mut(&end)
            && !known.ends.contains(&self.route)
        {
            known.ends.push(self.route);
        }
        Ok(())
    }
}

/// Pushes the components of a path onto the stack, the first one on top.
fn push(todo: &mut Vec<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => todo.push(name.to_owned()),
            Component::ParentDir => todo.push("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

fn fail(walked: &mut Walked, path: &Path, why: &str) {
    if walked.failed.is_none() {
        walked.failed = Some(format!("cannot watch {}: {why}", path.display()).into());
    }
}
