//! Creates objects with the rights of their owner where the directory belongs to that owner (S-3).
//!
//! An attack by that user then gains nothing beyond the user's own rights, even an unforeseen one. Quotas,
//! and file servers that do not trust root, also count the objects correctly. Linux stores the identity for
//! file access per thread (setfsuid(2)).

use crate::host::files::Files;
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::Entry;
use crate::host::kernel::set_identity;
use nix::unistd::{Gid, Uid};
use std::marker::PhantomData;

/// The owner's rights to enter a directory and to change its entries.
const MAY_CHANGE: u32 = 0o300;

/// A guard for the identity of another user: this thread accesses files as that user until the guard is
/// dropped.
pub(in crate::host::files) struct FsIdentity {
    own: (Uid, Gid),
    /// Prevents a move to another thread: the identity belongs to the thread of its start.
    _thread: PhantomData<*const ()>,
}

impl Files {
    /// Switches to the owner of the directory, if the new object will have the same owner. Returns none if that
    /// owner is root, if this process is not root, or if the owner may not change the directory.
    pub(in crate::host::files) fn become_owner(
        &self,
        spot: &Entry<'_>,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<Option<FsIdentity>, Fault> {
        let Some(owner) = owner.filter(|uid| self.is_root() && *uid != 0) else { return Ok(None) };
        let directory = spot.directory_seen()?;
        if directory.uid != owner || directory.mode & MAY_CHANGE != MAY_CHANGE {
            return Ok(None);
        }
        let own = set_identity(Some(Uid::from_raw(owner)), group.map(Gid::from_raw));
        Ok(Some(FsIdentity { own, _thread: PhantomData }))
    }
}

impl Drop for FsIdentity {
    fn drop(&mut self) {
        // The user is restored first: changing the group needs the rights of root.
        set_identity(Some(self.own.0), None);
        set_identity(None, Some(self.own.1));
    }
}
