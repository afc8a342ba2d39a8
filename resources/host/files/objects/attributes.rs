//! Changes owner, group and mode of an existing object through a descriptor.

use crate::host::files::Files;
use crate::host::files::content::read::seen;
use crate::host::files::fault::Fault;
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat, SET_ID};
use crate::host::kernel::{chmodat, chownat, fchmod, fstat, openat};
use crate::permit::Permit;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// The declared attributes; absent ones stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The owner.
    pub owner: Option<u32>,
    /// The group.
    pub group: Option<u32>,
    /// The permission bits.
    pub mode: Option<u32>,
}

impl Attributes {
    /// Returns the attributes with a mode that gives the group no rights.
    pub(in crate::host::files) fn without_group_rights(self) -> Self {
        Self { mode: self.mode.map(|mode| mode & !0o070), ..self }
    }
}

impl Files {
    /// Sets the attributes of an object that was examined before.
    ///
    /// # Errors
    ///
    /// Fails if the object was replaced, has a doubtful second name (S-2), the permit was revoked, or the kernel
    /// returned an error. The fault says whether anything was changed.
    pub fn set_attributes(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        self.guard_links(spot, found)?;
        let handle = handle_of(spot, found)?;
        permit.check()?;
        let is_file = found.kind == FileType::RegularFile && self.is_root();
        if is_file && self.may_be_open(spot, found, wanted) {
            self.mark_open_file(&handle, found.identity)?;
        }
        self.with_marks(spot, &handle, (found, wanted), || {
            self.change(permit, spot, found, (&handle, wanted))
        })
    }

    /// Makes a change of rights, with marks on a directory that it takes from users or lends to them.
    pub(super) fn with_marks(
        &self,
        spot: &Entry<'_>,
        handle: &OwnedFd,
        (found, wanted): (&EntryStat, Attributes),
        change: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.note_placed(spot, handle, (found, wanted))?;
        let takes_over = self.begin_takeover(handle, found)?;
        let hands_over = self.begin_handover(handle, found, wanted)?;
        let done = change();
        if takes_over {
            self.finish_takeover(handle);
        }
        if let Some(mark) = hands_over {
            self.finish_handover(handle, mark);
        }
        done
    }

    fn change(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        found: &EntryStat,
        (handle, wanted): (&OwnedFd, Attributes),
    ) -> Result<(), Fault> {
        let mut touched = false;
        let changes_hands = wanted.owner.is_some() || wanted.group.is_some();
        let takes_lists =
            self.leaves_stranger(found, wanted.owner) && found.kind != FileType::Symlink;
        if takes_lists {
            permit.check()?;
            xattr::remove_lists(&path_of(handle))?;
            touched = true;
        }
        if let Some(mode) = wanted.mode
            && changes_hands
            && found.mode & !mode != 0
        {
            // Removes the rights that the new group may not have before the group changes. The rights of all other
            // users stay: a private file of root that lost them for a moment would not be given away by the next run
            // if this run was cut off.
            let mode = if takes_lists { mode } else { mode | 0o707 };
            permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
            change_mode(spot, handle, found, found.mode & mode)
                .map_err(|fault| fault.after(touched))?;
            touched = true;
        }
        if changes_hands {
            permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
            let (owner, group) = (wanted.owner.map(Uid::from_raw), wanted.group.map(Gid::from_raw));
            chownat(handle, "", owner, group, AtFlags::EMPTY_PATH)
                .map_err(|errno| Fault::os("change the owner of")(errno).after(touched))?;
            touched = true;
        }
        if takes_lists {
            // Before this point, the old owner could add an access list again.
            xattr::remove_lists(&path_of(handle)).map_err(|fault| fault.after(touched))?;
        }
        let mode = match wanted.mode {
            Some(mode) => mode,
            None if changes_hands => return drop_set_id(spot, handle, permit),
            None => return Ok(()),
        };
        permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
        change_mode(spot, handle, found, mode).map_err(|fault| fault.after(touched))
    }
}

/// Opens a handle of the examined object; nobody can exchange the object behind the handle.
pub(in crate::host::files) fn handle_of(
    spot: &Entry<'_>,
    found: &EntryStat,
) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&spot.directory, spot.name, flags, Mode::empty()) {
        Ok(handle) if seen(&handle)?.is_still(found) => Ok(handle),
        Ok(_) | Err(Errno::NOENT) => Err(Fault::moved()),
        Err(errno) => Err(Fault::os("open")(errno)),
    }
}

/// Returns the path of a handle under /proc, for system calls that take no descriptor.
pub(in crate::host::files) fn path_of(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// Removes undeclared set-id bits after a change of owner, including those that the kernel leaves.
fn drop_set_id(spot: &Entry<'_>, handle: &OwnedFd, permit: &Permit) -> Result<(), Fault> {
    let now = seen(handle).map_err(|fault| fault.after(true))?;
    if now.kind == FileType::Directory || now.mode & SET_ID == 0 {
        return Ok(());
    }
    permit.check().map_err(|revoked| Fault::from(revoked).after(true))?;
    change_mode(spot, handle, &now, now.mode & !SET_ID).map_err(|fault| fault.after(true))
}

fn change_mode(
    spot: &Entry<'_>,
    handle: &OwnedFd,
    found: &EntryStat,
    mode: u32,
) -> Result<(), Fault> {
    let fault = Fault::os("change the mode of");
    if found.kind == FileType::Symlink {
        return Err(fault(Errno::OPNOTSUPP));
    }
    let bits = Mode::from_raw_mode(mode);
    match chmodat(CWD, path_of(handle), bits, AtFlags::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => without_proc(spot, handle, bits).map_err(fault),
        other => other.map_err(fault),
    }
}

/// Changes the mode through a second descriptor of the same inode, for systems without /proc.
fn without_proc(spot: &Entry<'_>, handle: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&spot.directory, spot.name, flags, Mode::empty())?;
    let (ours, theirs) = (fstat(handle)?, fstat(&file)?);
    if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) {
        return Err(Errno::NOENT);
    }
    fchmod(&file, mode)
}
