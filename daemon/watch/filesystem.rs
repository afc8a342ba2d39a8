//! What a walk treads on: the file system, entry by entry, each held before anything is asked of it.

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Device and inode: two names for one directory are one directory.
pub type Identity = (u64, u64);

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

/// Something that is held: it is that very thing, whatever its name leads to by now.
#[derive(Debug)]
pub enum EntryHandle {
    /// On this machine.
    Descriptor(OwnedFd),
    /// In a machine that a test makes up: the number it goes by there.
    Number(u64),
}

impl EntryHandle {
    /// On this machine.
    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::Descriptor(descriptor) => Ok(descriptor.as_fd()),
            Self::Number(_) => Err(Errno::BADF),
        }
    }
}

/// What stands at a name.
#[derive(Debug)]
pub struct Found {
    /// Held.
    pub at: EntryHandle,
    /// Which one it is.
    pub identity: Identity,
    /// What it is.
    pub kind: FileType,
}

/// A file system to walk on.
pub trait FileSystem: Send + Sync {
    /// The root.
    fn root(&self) -> Result<Found, Errno>;

    /// What stands at a name in a directory; a link is not followed.
    fn look(&self, at: &EntryHandle, name: &OsStr) -> Result<Found, Errno>;

    /// Where a link that is held leads.
    fn target(&self, link: &EntryHandle) -> Result<PathBuf, Errno>;

    /// The file system that a directory is on, where changes on it are made behind the kernel's back.
    fn silent(&self, directory: &EntryHandle) -> Option<&'static str>;

    /// What stands at a path now; a link is not followed.
    fn identity(&self, path: &Path) -> Option<Identity>;

    /// Where the link at a path leads; none where it is no link.
    fn link(&self, path: &Path) -> Option<PathBuf>;

    /// The names of the directories in a directory, without those on which something is mounted. None where another one is there
    /// by now: that is reported, and looked at again.
    fn directories_in(&self, path: &Path, identity: Identity) -> Vec<PathBuf>;
}

/// This machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostFileSystem;

impl FileSystem for HostFileSystem {
    fn root(&self) -> Result<Found, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        found(rustix::fs::open("/", flags, Mode::empty())?)
    }

    fn look(&self, at: &EntryHandle, name: &OsStr) -> Result<Found, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        found(rustix::fs::openat(at.descriptor()?, name, flags, Mode::empty())?)
    }

    fn target(&self, link: &EntryHandle) -> Result<PathBuf, Errno> {
        let target = rustix::fs::readlinkat(link.descriptor()?, c"", Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    fn silent(&self, directory: &EntryHandle) -> Option<&'static str> {
        let kind = rustix::fs::fstatfs(directory.descriptor().ok()?).ok()?.f_type;
        let magic = u32::try_from(kind & 0xffff_ffff).ok()?;
        SILENT.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
    }

    fn identity(&self, path: &Path) -> Option<Identity> {
        let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        let target = rustix::fs::readlink(path, Vec::new()).ok()?;
        Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    fn directories_in(&self, path: &Path, identity: Identity) -> Vec<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::openat(CWD, path, flags, Mode::empty()) else {
            return Vec::new();
        };
        let is_it =
            rustix::fs::fstat(&directory).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == identity);
        let Ok(entries) = Dir::read_from(&directory) else { return Vec::new() };
        let is_directory = |kind: FileType, name: &CStr| {
            let may_be = matches!(kind, FileType::Directory | FileType::Unknown);
            may_be
                && !matches!(name.to_bytes(), b"." | b"..")
                && rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(
                    |stat| {
                        FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                            && stat.st_dev == identity.0
                    },
                )
        };
        let entries = entries.flatten().filter(|_| is_it);
        entries
            .filter(|entry| is_directory(entry.file_type(), entry.file_name()))
            .map(|entry| PathBuf::from(OsStr::from_bytes(entry.file_name().to_bytes())))
            .collect()
    }
}

fn found(at: OwnedFd) -> Result<Found, Errno> {
    let stat = rustix::fs::fstat(&at)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    Ok(Found { at: EntryHandle::Descriptor(at), identity: (stat.st_dev, stat.st_ino), kind })
}
