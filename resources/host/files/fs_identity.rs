//! In a directory that belongs to a user, what is to be theirs is made with that user's rights (S-3).
//!
//! Whatever that user could bring about there then ends where their own rights end, whatever else was thought of; and quotas, and
//! file servers that trust no root, count it as theirs. Linux keeps the identity for file systems for each thread (setfsuid(2)).

use super::Files;
use super::entry::Entry;
use super::fault::Fault;
use crate::host::kernel::set_identity;
use nix::unistd::{Gid, Uid};
use std::marker::PhantomData;

/// To enter a directory and change its entries.
const MAY_CHANGE: u32 = 0o300;

/// As long as it lives, this thread works on files as somebody else.
pub(super) struct FsIdentity {
    own: (Uid, Gid),
    /// It must end on the thread on which it began.
    _thread: PhantomData<*const ()>,
}

impl Files {
    /// The guise of whom the directory belongs to, where it is also who is to own what is made. None where that is root, or not
    /// for us to choose, or where the owner may change nothing in it.
    pub(super) fn guise(
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
        // Back in the other order: the rights of root come with the user.
        set_identity(Some(self.own.0), None);
        set_identity(None, Some(self.own.1));
    }
}
