//! Reads and sets declared extended attributes, access lists and capabilities of an existing object.

use crate::host::files::Files;
use crate::host::files::content::read::seen;
use crate::host::files::fault::Fault;
use crate::host::files::objects::access_list::takes_write;
use crate::host::files::objects::attributes::{Attributes, handle_of, path_of};
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{fsetxattr, openat, removexattr};
use crate::permit::Permit;
use rustix::fs::{FileType, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The attribute with the access list.
const ACCESS: &str = "system.posix_acl_access";

/// A change of an extended attribute: the name, and the new value; none to remove the attribute.
pub type ExtendedChange<'a> = (&'a str, Option<&'a [u8]>);

/// All extended attributes of an object, name and value.
pub type ExtendedAttributes = Vec<(Vec<u8>, Vec<u8>)>;

impl Entry<'_> {
    /// Returns all readable extended attributes of the examined object.
    ///
    /// # Errors
    ///
    /// Fails if the object was replaced or cannot be opened.
    pub fn extended(&self, found: &EntryStat) -> Result<ExtendedAttributes, Fault> {
        let handle = handle_of(self, found)?;
        Ok(xattr::read(&path_of(&handle), false))
    }
}

impl Files {
    /// Sets and removes extended attributes of an examined file or directory. `opened` is the mode that gives others
    /// at least the rights of a new access list.
    ///
    /// # Errors
    ///
    /// Fails if the object was replaced, has a doubtful second name (S-2), the permit was revoked, or the kernel
    /// returned an error. The fault says whether anything was changed.
    pub fn set_extended(
        &self,
        permit: &Permit,
        (spot, found): (&Entry<'_>, &EntryStat),
        (changes, opened): (&[ExtendedChange<'_>], u32),
    ) -> Result<(), Fault> {
        self.guard_links(spot, found)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&spot.directory, spot.name, flags, Mode::empty()) {
            Ok(file) if seen(&file)?.is_still(found) => file,
            Ok(_) | Err(Errno::NOENT | Errno::LOOP) => return Err(Fault::moved()),
            Err(errno) => return Err(Fault::os("open")(errno)),
        };
        let change = || change_extended(permit, &file, changes);
        let Some((_, list)) = changes.iter().find(|(name, _)| *name == ACCESS) else {
            return change();
        };
        permit.check()?;
        let is_file = found.kind == FileType::RegularFile && self.is_root();
        let before = xattr::access_list(&path_of(&file));
        // A user with a mounted file open for reading reads what is written into it later.
        let is_changed = spot.is_mounted() && before.as_deref() != *list;
        if is_file && (is_changed || takes_write(found, before.as_deref(), *list)) {
            self.mark_open_file(&file, found.identity)?;
        }
        let wanted = Attributes { mode: Some(opened), ..Attributes::default() };
        self.with_marks(spot, &file, (found, wanted), change)
    }
}

fn change_extended(
    permit: &Permit,
    file: &OwnedFd,
    changes: &[ExtendedChange<'_>],
) -> Result<(), Fault> {
    let mut touched = false;
    for (name, value) in changes {
        permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
        let done = match value {
            Some(value) => fsetxattr(file, *name, value, XattrFlags::empty()),
            None => match removexattr(path_of(file), *name) {
                Err(Errno::NODATA) => Ok(()),
                other => other,
            },
        };
        done.map_err(|errno| Fault::os("set an attribute of")(errno).after(touched))?;
        touched = true;
    }
    Ok(())
}
