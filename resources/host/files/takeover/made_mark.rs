//! Marks directories that this program makes, or lends to users, where other users can move them, so that a
//! later change or removal can recognise them.
//!
//! A user who can change the parent directory can give the same name to another directory. The mark is an
//! extended attribute that only root can read and write, and holds the path at which the directory was made, or
//! was before other users could move it.

use crate::host::files::Files;
use crate::host::files::content::read::READ;
use crate::host::files::fault::Fault;
use crate::host::files::objects::attributes::{handle_of, path_of};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{fgetxattr, fsetxattr, fsync, getxattr, openat};
use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const MARK: &str = "trusted.steadfast.made";

/// The largest path in bytes that is marked: file systems bound the size of an attribute.
const LONGEST: usize = 1000;

impl Files {
    /// Marks a new directory, unless nobody else can move the directory.
    pub(in crate::host::files) fn mark_made(
        &self,
        spot: &Entry<'_>,
        handle: &OwnedFd,
    ) -> Result<(), Fault> {
        if !self.is_root() || self.is_private_place(spot)? {
            return Ok(());
        }
        match fsetxattr(handle, MARK, spot.path.as_os_str().as_bytes(), XattrFlags::empty()) {
            // Without extended attributes there is no mark: a removal then treats the directory as a foreign one.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Marks a directory that nobody can have moved to its name, unless nobody can move it later. The mark is
    /// durable on return: a crash after a change of owner must not make the directory look like a moved one.
    pub(in crate::host::files) fn mark_in_place(
        &self,
        spot: &Entry<'_>,
        handle: &OwnedFd,
    ) -> Result<(), Fault> {
        if self.is_private_place(spot)? {
            return Ok(());
        }
        // A path-only handle cannot set attributes.
        let directory = openat(handle, ".", READ | OFlags::DIRECTORY, Mode::empty());
        mark_path(&directory.map_err(Fault::os("mark"))?, spot.path)
    }

    /// Returns true if the directory was made at this path, or was there before other users could move it.
    pub(in crate::host::files) fn was_made_here(
        spot: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<bool, Fault> {
        let handle = handle_of(spot, found)?;
        let path = spot.path.as_os_str().as_bytes();
        let mut value = vec![0; path.len() + 1];
        let length = getxattr(path_of(&handle), MARK, &mut value);
        Ok(length.is_ok_and(|length| value.get(..length) == Some(path)))
    }
}

/// Returns true if an open directory was made at this path or above it.
pub(super) fn is_marked_on(directory: &OwnedFd, path: &Path) -> bool {
    let mut value = vec![0; path.as_os_str().len()];
    let length = getxattr(path_of(directory), MARK, &mut value);
    let marked = length.ok().and_then(|length| value.get(..length));
    marked
        .is_some_and(|marked| path.ancestors().any(|above| above.as_os_str().as_bytes() == marked))
}

/// Marks an open directory with its path, and makes the mark durable.
pub(super) fn mark_path(directory: &OwnedFd, path: &Path) -> Result<(), Fault> {
    let path = path.as_os_str().as_bytes();
    let mut value = vec![0; path.len() + 1];
    let length = fgetxattr(directory, MARK, &mut value);
    let is_marked = length.is_ok_and(|length| value.get(..length) == Some(path));
    if is_marked || path.len() > LONGEST {
        return Ok(());
    }
    match fsetxattr(directory, MARK, path, XattrFlags::empty()) {
        Ok(()) => fsync(directory).map_err(Fault::os("mark")),
        // This file system has no such attributes, or this process may not set them; on a read-only file system,
        // the change itself fails.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::ROFS) => Ok(()),
        Err(errno) => Err(Fault::os("mark")(errno)),
    }
}
