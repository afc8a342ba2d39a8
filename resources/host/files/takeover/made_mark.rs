//! Marks directories that this program makes where other users can move them, so that a removal can recognise
//! them.
//!
//! A user who can change the parent directory can give the same name to another private directory. The mark
//! is an extended attribute that only root can read and write, and holds the path at which the directory was
//! made.

use crate::host::files::Files;
use crate::host::files::fault::Fault;
use crate::host::files::objects::attributes::{handle_of, path_of};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{fsetxattr, getxattr};
use rustix::fs::XattrFlags;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

const MARK: &str = "trusted.steadfast.made";

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

    /// Returns true if the directory was made at this path.
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
