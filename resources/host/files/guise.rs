//! In a directory that belongs to a user, what is to be theirs is made with that user's rights (S-3).
//!
//! Whatever that user could bring about there then ends where their own rights end, whatever else was thought of; and quotas, and
//! file servers that trust no root, count it as theirs. Linux keeps the identity for file systems for each thread (setfsuid(2)).

use super::Files;
use super::fault::Fault;
use super::spot::Spot;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use std::marker::PhantomData;

/// To enter a directory and change its entries.
const MAY_CHANGE: u32 = 0o300;

/// As long as it lives, this thread works on files as somebody else.
pub(super) struct Guise {
    own: (Uid, Gid),
    /// It must end on the thread on which it began.
    _thread: PhantomData<*const ()>,
}

impl Files {
    /// The guise of whom the directory belongs to, where it is also who is to own what is made. None where that is root, or not
    /// for us to choose, or where the owner may change nothing in it.
    pub(super) fn guise(
        &self,
        spot: &Spot<'_>,
        owner: Option<u32>,
        group: Option<u32>,
    ) -> Result<Option<Guise>, Fault> {
        let Some(owner) = owner.filter(|uid| self.is_root() && *uid != 0) else { return Ok(None) };
        let directory = spot.directory_seen()?;
        if directory.uid != owner || directory.mode & MAY_CHANGE != MAY_CHANGE {
            return Ok(None);
        }
        // The group first: it takes a right that the other identity may not have.
        let gid = group.map_or_else(own_gid, |group| setfsgid(Gid::from_raw(group)));
        let uid = setfsuid(Uid::from_raw(owner));
        Ok(Some(Guise { own: (uid, gid), _thread: PhantomData }))
    }
}

fn own_gid() -> Gid {
    // What is no group changes nothing, and the answer is what holds.
    setfsgid(Gid::from_raw(u32::MAX))
}

impl Drop for Guise {
    fn drop(&mut self) {
        setfsuid(self.own.0);
        setfsgid(self.own.1);
    }
}
