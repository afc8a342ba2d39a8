//! Walking a route: entry by entry through descriptors, each directory watched *before* anything in it is looked at.
//!
//! So whatever changes after a look is reported, and the route is walked again: there is no moment between.

use super::backend::{Backend, DirectoryId, Failure};
use super::table::{Directory, Identity, Name, RouteId, Walked};
use super::{Shared, Table};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

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
    pub(super) backend: &'w mut dyn Backend,
    pub(super) route: RouteId,
    /// After an overflow: the directories whose watch was renewed already; none where watches are trusted.
    pub(super) renewed: Option<&'w mut HashSet<DirectoryId>>,
}

/// Where a walk stands.
struct Place {
    descriptor: OwnedFd,
    /// Its path without links.
    path: PathBuf,
    /// None where it cannot be watched.
    directory: Option<DirectoryId>,
}

/// Something moved during the walk.
struct Moved;

impl Walk<'_> {
    pub(super) fn run(mut self, path: &Path) -> Walked {
        // What an attempt used that did not succeed is kept until the next walk: its entries are noted in the directories.
        let mut walked = Walked::default();
        for _ in 0..ATTEMPTS {
            walked.failed = None;
            if self.attempt(path, &mut walked).is_ok() {
                return walked;
            }
        }
        fail(&mut walked, path, "its directories are being moved about");
        walked
    }

    fn attempt(&mut self, path: &Path, walked: &mut Walked) -> Result<(), Moved> {
        let mut place = self.root(walked)?;
        let mut links = 0;
        let mut todo = Vec::new();
        push(&mut todo, path);
        while let Some(name) = todo.pop() {
            if name != ".." {
                self.note_step(&place, &name, walked);
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
            self.note_end(end);
        }
        Ok(())
    }

    fn root(&mut self, walked: &mut Walked) -> Result<Place, Moved> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/", flags, Mode::empty())
            .and_then(|root| rustix::fs::fstat(&root).map(|stat| (root, stat)));
        match root {
            Ok(root) => self.enter(root, PathBuf::from("/"), walked),
            Err(error) => {
                fail(walked, Path::new("/"), &error.to_string());
                Err(Moved)
            }
        }
    }

    /// Goes into a directory, watching it first.
    fn enter(
        &mut self,
        (descriptor, stat): (OwnedFd, Stat),
        path: PathBuf,
        walked: &mut Walked,
    ) -> Result<Place, Moved> {
        let identity = identity(&stat);
        let known = self.shared.lock().recognise(identity, &path);
        let directory = if let Some(known) = known {
            self.renew(known, &path, descriptor.as_fd(), walked);
            Some(known)
        } else if let Some(silent) = silent(&descriptor) {
            fail(walked, &path, &format!("a {silent} file system reports no changes"));
            None
        } else {
            self.watch(identity, &path, descriptor.as_fd(), walked)?
        };
        if let Some(directory) = directory
            && !walked.used.contains(&directory)
        {
            walked.used.push(directory);
        }
        Ok(Place { descriptor, path, directory })
    }

    fn watch(
        &mut self,
        identity: Identity,
        path: &Path,
        at: BorrowedFd<'_>,
        walked: &mut Walked,
    ) -> Result<Option<DirectoryId>, Moved> {
        let directory = self.shared.lock().add_directory(identity, path);
        match self.backend.watch(directory, path, at) {
            Ok(()) => {}
            Err(Failure::Gone) => {
                self.shared.lock().remove_directory(directory);
                return Err(Moved);
            }
            Err(error @ (Failure::Limit(_) | Failure::Other(_))) => {
                self.shared.lock().remove_directory(directory);
                fail(walked, path, &error.to_string());
                return Ok(None);
            }
        }
        if let Some(renewed) = &mut self.renewed {
            renewed.insert(directory);
        }
        // The watch may have gone by path: only now is it known what it is on.
        let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| self::identity(&found) == identity) {
            return Ok(Some(directory));
        }
        self.shared.lock().remove_directory(directory);
        self.backend.unwatch(directory);
        Err(Moved)
    }

    /// After an overflow a watch may have died without a word.
    fn renew(
        &mut self,
        directory: DirectoryId,
        path: &Path,
        at: BorrowedFd<'_>,
        walked: &mut Walked,
    ) {
        let Some(renewed) = &mut self.renewed else { return };
        if renewed.insert(directory)
            && let Err(error) = self.backend.watch(directory, path, at)
        {
            fail(walked, path, &error.to_string());
        }
    }

    /// Known before it is looked at, so that no change of it passes unseen.
    fn note_step(&self, place: &Place, name: &OsStr, walked: &mut Walked) {
        let Some(directory) = place.directory else { return };
        let mut state = self.shared.lock();
        let Some(known) = state.directories.get_mut(&directory) else { return };
        let name: Name = match known.steps.get_key_value(name.as_bytes()) {
            Some((name, _)) => Arc::clone(name),
            None => name.as_bytes().into(),
        };
        known.steps.entry(Arc::clone(&name)).or_default().insert(self.route);
        if !walked.steps.iter().any(|(at, step)| *at == directory && *step == name) {
            walked.steps.push((directory, name));
        }
    }

    fn note_end(&self, end: DirectoryId) {
        let mut state = self.shared.lock();
        let Some(known) = state.directories.get_mut(&end) else { return };
        if !known.ends.contains(&self.route) {
            known.ends.push(self.route);
        }
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
