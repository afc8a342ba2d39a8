//! The file system as a walk sees it: each entry is opened before its properties are read.

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The device and inode numbers, which identify a directory under all its names.
pub type Identity = (u64, u64);

/// File systems that change without kernel events, by their magic numbers.
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

/// An open entry: the handle stays with the same object when its name leads elsewhere.
#[derive(Debug)]
pub enum EntryHandle {
    /// A file descriptor on the host.
    Descriptor(OwnedFd),
    /// The number of an entry in a simulated file system of a test.
    Number(u64),
}

impl EntryHandle {
    /// Returns the descriptor.
    ///
    /// # Errors
    ///
    /// `BADF` for an entry of a simulated file system.
    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::Descriptor(descriptor) => Ok(descriptor.as_fd()),
            Self::Number(_) => Err(Errno::BADF),
        }
    }
}

/// An entry that was looked up.
#[derive(Debug)]
pub struct Found {
    /// The open handle.
    pub at: EntryHandle,
    /// The identity of the entry.
    pub identity: Identity,
    /// The type of the entry.
    pub kind: FileType,
}

/// A file system on which paths are walked.
pub trait FileSystem: Send + Sync {
    /// Opens the root directory.
    fn root(&self) -> Result<Found, Errno>;

    /// Opens an entry of a directory, without following a symbolic link.
    fn look(&self, at: &EntryHandle, name: &OsStr) -> Result<Found, Errno>;

    /// Reads the target of an open symbolic link.
    fn target(&self, link: &EntryHandle) -> Result<PathBuf, Errno>;

    /// Returns the name of the file system of a directory if it changes without kernel events.
    fn silent(&self, directory: &EntryHandle) -> Option<&'static str>;

    /// Returns the identity of the entry at a path, without following a symbolic link.
    fn identity(&self, path: &Path) -> Option<Identity>;

    /// Returns true if a path is a mount point and no directory: its changes are no events of the directory above.
    fn is_mounted_file(&self, path: &Path) -> bool;

    /// Reads the target of the symbolic link at a path; `None` if there is none.
    fn link(&self, path: &Path) -> Option<PathBuf>;

    /// Lists the subdirectories of a directory, except mount points. The list is empty if the path leads to another
    /// directory by now: an event reports that change, and the path is listed again.
    fn directories_in(&self, path: &Path, identity: Identity) -> Vec<PathBuf>;
}

/// The file system of the host.
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

    fn is_mounted_file(&self, path: &Path) -> bool {
        let asked = StatxFlags::TYPE | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, asked);
        found.is_ok_and(|found| {
            let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
            found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
                && kind != FileType::Directory
        })
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
