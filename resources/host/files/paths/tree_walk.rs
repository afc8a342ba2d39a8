//! A walk through a directory tree by descriptors, which never crosses a mount and never follows a link.

use crate::host::files::Files;
use crate::host::files::content::new_content::Origin;
use crate::host::files::content::read::{open_listed, seen};
use crate::host::files::fault::{Fault, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::paths::protected_paths::{protected_inodes, purgeable_inodes};
use crate::host::kernel::{Entries, openat2};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The depth limit of a tree, because each level keeps a descriptor open.
pub(in crate::host::files) const DEEPEST: usize = 200;

/// A directory of a tree.
#[derive(Debug)]
pub struct DirWalk {
    handle: Arc<OwnedFd>,
    path: PathBuf,
    depth: usize,
    /// The device and inode numbers of the protected paths; empty where a tree is only read.
    protected_paths: Arc<HashSet<(u64, u64)>>,
}

/// The result of entering a directory of a tree.
#[derive(Debug)]
pub enum Entered {
    /// The entered directory.
    Branch(DirWalk),
    /// The directory was not entered, because it is a mount point.
    Mounted,
}

impl Entry<'_> {
    /// Opens the examined directory as the top of a tree. With `holds_all`, the caller changes everything in the
    /// tree, so directories on protected paths are rejected.
    ///
    /// # Errors
    ///
    /// Fails if the directory was replaced or is such a protected path.
    pub fn branch(&self, found: &EntryStat, holds_all: bool) -> Result<DirWalk, Fault> {
        let protected_paths = Arc::new(if holds_all { protected_inodes() } else { HashSet::new() });
        let handle = open_listed(&self.directory, self.name.as_ref())?;
        if seen(&handle)?.identity != found.identity {
            return Err(Fault::moved());
        }
        if protected_paths.contains(&found.identity)
            && !purgeable_inodes().contains(&found.identity)
        {
            return Err(refuse_protected(self.path));
        }
        Ok(DirWalk {
            handle: Arc::new(handle),
            path: self.path.to_owned(),
            depth: 0,
            protected_paths,
        })
    }
}

impl Origin {
    /// Opens the source directory of a copy as the top of a tree to read.
    pub fn branch(&self) -> Result<DirWalk, Fault> {
        let (directory, name) = self.place();
        let path = self.path();
        let handle = open_listed(directory, name.as_ref()).map_err(|fault| fault.named(path))?;
        if seen(&handle)?.identity != self.seen().identity {
            return Err(Fault::moved());
        }
        let (handle, protected_paths) = (Arc::new(handle), Arc::default());
        Ok(DirWalk { handle, path: path.to_owned(), depth: 0, protected_paths })
    }
}

impl Files {
    /// Makes the changed entries of a directory durable.
    pub fn sync_branch(&self, branch: &DirWalk) -> Result<(), Fault> {
        let identity = seen(&branch.handle)?.identity;
        self.syncs
            .sync(identity, &branch.handle)
            .map_err(|errno| Fault::os("sync the directory of")(errno).after(true))
    }
}

impl DirWalk {
    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names in the directory, sorted.
    pub fn names(&self) -> Result<Vec<OsString>, Fault> {
        let mut names = Vec::new();
        let listed = Entries::read_from(&self.handle).map_err(Fault::os("list"));
        for entry in listed.map_err(|fault| fault.named(&self.path))? {
            let entry = entry.map_err(Fault::os("list")).map_err(|f| f.named(&self.path))?;
            let bytes = entry.file_name().to_bytes();
            if !matches!(bytes, b"." | b"..") {
                names.push(OsStr::from_bytes(bytes).to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the last part of a path as an entry of this directory; a caller that changes the entry syncs the
    /// directory at the end.
    #[must_use]
    pub fn open_entry<'p>(&self, path: &'p Path) -> Entry<'p> {
        let name = path.file_name().unwrap_or_else(|| OsStr::new("."));
        Entry { directory: Arc::clone(&self.handle), path, name, synced_later: true }
    }

    /// Enters the directory that was examined at an entry.
    ///
    /// # Errors
    ///
    /// Fails if the directory was replaced, is a protected path in a tree that is being changed, or is deeper
    /// than 200 levels.
    pub fn enter(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<Entered, Fault> {
        if self.depth >= DEEPEST {
            return Err(Fault::refused(said(
                "walk",
                &self.path,
                "the tree is deeper than 200 levels",
            )));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let handle = match openat2(&self.handle, spot.name, flags, Mode::empty(), resolve) {
            Ok(handle) => handle,
            Err(Errno::XDEV) => return Ok(Entered::Mounted),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(Fault::moved()),
            Err(errno) => return Err(Fault::os("list")(errno).named(spot.path)),
        };
        let now = seen(&handle)?;
        if now.identity != found.identity || now.kind != FileType::Directory {
            return Err(Fault::moved());
        }
        if self.protected_paths.contains(&now.identity) {
            return Err(refuse_protected(spot.path));
        }
        Ok(Entered::Branch(Self {
            handle: Arc::new(handle),
            path: spot.path.to_owned(),
            depth: self.depth + 1,
            protected_paths: Arc::clone(&self.protected_paths),
        }))
    }
}

fn refuse_protected(path: &Path) -> Fault {
    Fault::refused(
        said("hold all below", path, "the directory is protected")
            .hint("name the intended subdirectories"),
    )
}
