//! The reads of the host below an overlay. An overlay makes no other calls on the host.

use super::state::{Attributes, Fact, State};
use crate::host::kernel::dispatch;
use crate::host::kernel::dispatch::{getxattr, listxattr};
use crate::host::kernel::dispatch::{names, openat, read, readlinkat, statat};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

type Result<T> = std::result::Result<T, Errno>;

/// The flags for opening files of the host: none of them creates, truncates or writes.
const READS: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOATIME)
    .union(OFlags::PATH)
    .union(OFlags::CLOEXEC);

/// Opens a file of the host for reading.
pub(super) fn open(path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    dispatch::below(|| openat(CWD, path, flags & READS | OFlags::CLOEXEC, Mode::empty()))
}

/// Reads the next bytes of an open file.
pub(super) fn read_on(file: std::os::fd::BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize> {
    dispatch::below(|| read(file, buffer))
}

/// Returns the identity and attributes of the object at a path.
pub(super) fn stat(path: &[u8]) -> Result<Stat> {
    dispatch::below(|| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT))
}

/// Returns the birth time of the inode at a path.
pub(super) fn born_at(path: &[u8]) -> Option<(i64, u32)> {
    use std::os::unix::ffi::OsStrExt as _;
    dispatch::below(|| crate::host::kernel::born_at(CWD, std::ffi::OsStr::from_bytes(path)))
}

/// Returns true if a path is a mount point.
pub(super) fn is_mount_root(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    dispatch::below(|| crate::host::kernel::is_mount_root(CWD, std::ffi::OsStr::from_bytes(path)))
}

/// Returns an extended attribute of the object at a path.
pub(super) fn attribute(path: &[u8], name: &[u8], value: &mut [u8]) -> Result<usize> {
    dispatch::below(|| getxattr(path, name, value))
}

/// A fact that was read from the host for an overlay.
pub(super) enum Learned {
    Entry(Option<(Stat, Option<Vec<u8>>)>),
    Names(Vec<Vec<u8>>),
    Content(Vec<u8>),
    Attributes(Attributes),
}

/// Reads a fact from the host, with at most `most` bytes of content.
pub(super) fn learn(fact: &Fact, most: u64) -> Result<Learned> {
    match fact {
        Fact::Entry { path, .. } => entry(path).map(Learned::Entry),
        Fact::Names { path, .. } => list(path).map(Learned::Names),
        Fact::Content { path, .. } => content(path, most).map(Learned::Content),
        Fact::Attributes { path, .. } => attributes(path).map(Learned::Attributes),
    }
}

fn entry(path: &[u8]) -> Result<Option<(Stat, Option<Vec<u8>>)>> {
    let stat = match stat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let is_link = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink();
    let target = if is_link {
        Some(dispatch::below(|| readlinkat(CWD, path, Vec::new()))?.into_bytes())
    } else {
        None
    };
    Ok(Some((stat, target)))
}

fn list(path: &[u8]) -> Result<Vec<Vec<u8>>> {
    let directory = open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
    let found = dispatch::below(|| names(&directory)?.collect::<Result<Vec<_>>>())?;
    let names = found.into_iter().map(std::ffi::CString::into_bytes);
    Ok(names.filter(|name| name != b"." && name != b"..").collect())
}

fn content(path: &[u8], most: u64) -> Result<Vec<u8>> {
    let file = open(path, OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
    let mut content = Vec::new();
    loop {
        content.reserve(64 << 10);
        let count = dispatch::below(|| read(&file, &mut content))?;
        if count == 0 {
            return Ok(content);
        }
        if content.len() as u64 > most {
            return Err(Errno::NOSPC);
        }
    }
}

fn attributes(path: &[u8]) -> Result<Attributes> {
    let mut list = vec![0; 64 << 10];
    let length = match dispatch::below(|| listxattr(path, &mut list)) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => 0,
        Err(errno) => return Err(errno),
    };
    let mut all = Attributes::new();
    let names = list.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    for name in names.filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let length = attribute(path, name, &mut value)?;
        value.truncate(length);
        all.insert(name.to_vec(), value);
    }
    Ok(all)
}

impl State {
    /// Stores a fact that was read from the host.
    pub(super) fn learn(&mut self, fact: Fact, learned: Learned) -> super::state::Result<()> {
        match (fact, learned) {
            (Fact::Entry { directory, name, path }, Learned::Entry(found)) => {
                self.learn_entry((directory, name), path, found);
            }
            (Fact::Names { directory, .. }, Learned::Names(names)) => {
                self.learn_names(directory, names);
            }
            (Fact::Content { node, .. }, Learned::Content(content)) => {
                self.learn_content(node, content)?;
            }
            (Fact::Attributes { node, .. }, Learned::Attributes(all)) => {
                self.learn_attributes(node, all);
            }
            _ => {}
        }
        Ok(())
    }
}
