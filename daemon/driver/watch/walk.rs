//! Walking a route: entry by entry through descriptors, each directory watched *before* anything in it is looked at.
//!
//! So whatever changes after a look is reported, and the route is walked again: there is no moment between.

use super::backend::{Backend, DirectoryId, Failure};
use super::table::{Directory, Identity, Name, RouteId, Walked};
use super::{Shared, Table};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, MutexGuard};

/// The kernel follows as many links.
const LINKS: usize = 40;

/// How often a walk begins again because something moved under it; what moves is reported, and it is walked again then.
const ATTEMPTS: usize = 5;

/// File systems on which changes are made behind the kernel's back, by their magic numbers.
const SILENT: [(u32, &str); 14] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6367_7270, "cgroup2"),
    (0x0027_e0eb, "cgroup"),
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
];

/// One walk of one route.
pub(super) struct Walk<'w> {
    pub(super) shared: &'w Shared,
    pub(super) backend: &'w dyn Backend,
    /// The number of the thread that walks.
    pub(super) thread: u64,
    pub(super) route: RouteId,
}

/// Where a walk stands.
struct Place {
    descriptor: OwnedFd,
    /// Its path without links.
    path: PathBuf,
    /// None where it cannot be watched.
    directory: Option<DirectoryId>,
    /// Changes in it are made behind the kernel's back.
    is_silent: bool,
}

/// Why an attempt ends early.
enum Stop {
    /// Something moved under it.
    Moved,
    /// Its thread was given up: another one is at work, and the table is not ours to change.
    GivenUp,
}

impl Walk<'_> {
    /// What was found; none where the thread was given up meanwhile.
    pub(super) fn run(self, path: &Path) -> Option<Walked> {
        // What an attempt used that did not succeed is kept until the next walk: its entries are noted in the directories.
        let mut walked = Walked::default();
        for _ in 0..ATTEMPTS {
            walked.failed = None;
            match self.attempt(path, &mut walked) {
                Ok(()) => return Some(walked),
                Err(Stop::Moved) => {}
                Err(Stop::GivenUp) => return None,
            }
        }
        fail(&mut walked, path, "its directories are being moved about");
        Some(walked)
    }

    /// The table, as long as it is ours to change.
    fn lock(&self) -> Result<MutexGuard<'_, Table>, Stop> {
        let state = self.shared.lock();
        if state.turn.thread == self.thread { Ok(state) } else { Err(Stop::GivenUp) }
    }

    fn attempt(&self, path: &Path, walked: &mut Walked) -> Result<(), Stop> {
        let mut place = self.root(walked)?;
        let mut links = 0;
        let mut todo = Vec::new();
        push(&mut todo, path);
        while let Some(name) = todo.pop() {
            if !self.step(&place, &name, walked)? {
                fail(walked, &place.path.join(&name), "it does not answer");
                return Ok(());
            }
            let found = match look(&place.descriptor, &name) {
                Ok(found) => found,
                Err(error) => {
                    if !matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
                        fail(walked, &place.path.join(&name), &error.to_string());
                    }
                    return Ok(());
                }
            };
            match FileType::from_raw_mode(found.1.st_mode) {
                FileType::Directory => {
                    let path = if name == ".." {
                        place.path.parent().unwrap_or(&place.path).to_owned()
                    } else {
                        place.path.join(&name)
                    };
                    place = self.enter(found, path, walked)?;
                    if place.is_silent {
                        // What is further down could be watched at best where something else is mounted there.
                        return Ok(());
                    }
                }
                FileType::Symlink => {
                    links += 1;
                    let Ok(target) = rustix::fs::readlinkat(&found.0, c"", Vec::new()) else {
                        return Ok(());
                    };
                    if links > LINKS {
                        return Ok(());
                    }
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
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

    fn root(&self, walked: &mut Walked) -> Result<Place, Stop> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/", flags, Mode::empty())
            .and_then(|root| rustix::fs::fstat(&root).map(|stat| (root, stat)));
        match root {
            Ok(root) => self.enter(root, PathBuf::from("/"), walked),
            Err(error) => {
                fail(walked, Path::new("/"), &error.to_string());
                Err(Stop::Moved)
            }
        }
    }

    /// Goes into a directory, watching it first.
    fn enter(
        &self,
        (descriptor, stat): (OwnedFd, Stat),
        path: PathBuf,
        walked: &mut Walked,
    ) -> Result<Place, Stop> {
        let identity = identity(&stat);
        let known = self.lock()?.recognise(identity, &path);
        let mut is_silent = false;
        let directory = if let Some(known) = known {
            self.renew(known, &path, descriptor.as_fd(), walked)?;
            Some(known)
        } else if let Some(silent) = silent(&descriptor) {
            fail(walked, &path, &format!("a {silent} file system reports no changes"));
            is_silent = true;
            None
        } else {
            self.watch(identity, &path, descriptor.as_fd(), walked)?
        };
        if let Some(directory) = directory
            && !walked.used.contains(&directory)
        {
            walked.used.push(directory);
        }
        Ok(Place { descriptor, path, directory, is_silent })
    }

    fn watch(
        &self,
        identity: Identity,
        path: &Path,
        at: BorrowedFd<'_>,
        walked: &mut Walked,
    ) -> Result<Option<DirectoryId>, Stop> {
        let directory = self.lock()?.add_directory(identity, path);
        let watched = self.backend.watch(directory, path, at);
        let Ok(mut state) = self.lock() else {
            self.backend.unwatch(directory);
            return Err(Stop::GivenUp);
        };
        match watched {
            Ok(()) => {}
            Err(Failure::Gone) => {
                state.remove_directory(directory);
                return Err(Stop::Moved);
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
        // The watch may have gone by path: only now is it known what it is on.
        let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| self::identity(&found) == identity) {
            return Ok(Some(directory));
        }
        let mut state = self.lock()?;
        state.remove_directory(directory);
        drop(state);
        self.backend.unwatch(directory);
        Err(Stop::Moved)
    }

    /// After an overflow a watch may have died without a word.
    fn renew(
        &self,
        directory: DirectoryId,
        path: &Path,
        at: BorrowedFd<'_>,
        walked: &mut Walked,
    ) -> Result<(), Stop> {
        let is_due =
            self.lock()?.turn.renewed.as_mut().is_some_and(|renewed| renewed.insert(directory));
        if is_due && let Err(error) = self.backend.watch(directory, path, at) {
            fail(walked, path, &error.to_string());
        }
        Ok(())
    }

    /// Before an entry is looked at: it is known, so that no change of it passes unseen. False where it is to be left alone.
    fn step(&self, place: &Place, name: &OsStr, walked: &mut Walked) -> Result<bool, Stop> {
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

    fn note_end(&self, end: DirectoryId) -> Result<(), Stop> {
        let mut state = self.lock()?;
        if let Some(known) = state.directories.get_mut(&end)
            && !known.ends.contains(&self.route)
        {
            known.ends.push(self.route);
        }
        Ok(())
    }
}

impl Table {
    /// A directory that is watched already, under whichever name.
    fn recognise(&mut self, identity: Identity, path: &Path) -> Option<DirectoryId> {
        let directory = *self.identities.get(&identity)?;
        let known = self.directories.get_mut(&directory)?;
        if known.path != path {
            path.clone_into(&mut known.path);
        }
        Some(directory)
    }

    fn add_directory(&mut self, identity: Identity, path: &Path) -> DirectoryId {
        let id = self.next_directory();
        let path = path.to_owned();
        let (steps, ends) = (HashMap::new(), Vec::new());
        self.directories.insert(id, Directory { path, identity, routes: 0, steps, ends });
        self.identities.insert(identity, id);
        id
    }

    /// Forgets a directory; the caller ends its watch.
    pub(super) fn remove_directory(&mut self, id: DirectoryId) -> Option<Directory> {
        let directory = self.directories.remove(&id)?;
        if self.identities.get(&directory.identity) == Some(&id) {
            self.identities.remove(&directory.identity);
        }
        Some(directory)
    }
}

/// Puts the parts of a path on the stack, the first on top.
fn push(todo: &mut Vec<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => todo.push(name.to_owned()),
            Component::ParentDir => todo.push("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

fn look(at: &OwnedFd, name: &OsStr) -> rustix::io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(at, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    Ok((found, stat))
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

fn silent(directory: &OwnedFd) -> Option<&'static str> {
    let magic = u32::try_from(rustix::fs::fstatfs(directory).ok()?.f_type & 0xffff_ffff).ok()?;
    SILENT.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

fn fail(walked: &mut Walked, path: &Path, why: &str) {
    if walked.failed.is_none() {
        walked.failed = Some(format!("cannot watch {}: {why}", path.display()).into());
    }
}
