//! Creates links and directories under a temporary name, completes them there, and renames them to their
//! final name.

use crate::host::files::Files;
use crate::host::files::content::read::{is_empty, open_listed, seen};
use crate::host::files::content::staged_file::{forget, take_place};
use crate::host::files::fault::{Fault, said};
use crate::host::files::objects::attributes::{Attributes, path_of};
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{
    chownat, fchmod, fchown, linkat, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};
use crate::permit::Permit;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The mode of a new directory if none is declared.
const DIRECTORY_MODE: u32 = 0o755;

/// The set-group-id bit, by which a directory passes its group to new entries. The bit comes from the parent
/// and stays if no mode is declared.
const HANDS_GROUP_DOWN: u32 = 0o2000;

/// The access lists of a new directory, which it has before it gets its name.
#[derive(Clone, Copy, Debug)]
pub enum NewLists<'a> {
    /// The attributes that the directory above passes on.
    Inherited,
    /// No attributes: a declared list follows.
    None,
    /// Recorded attributes, with the lists among them.
    Recorded(&'a [(Vec<u8>, Vec<u8>)]),
}

impl NewLists<'_> {
    const fn without_inheritance(self) -> Self {
        match self {
            Self::Inherited => Self::None,
            other => other,
        }
    }
}

impl Files {
    /// Makes a symbolic link, in place of the object that was found (which is no directory).
    ///
    /// # Errors
    ///
    /// Fails if the present object has changed, the permit was revoked, or the kernel returned an error.
    pub fn put_link(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        target: &OsStr,
        (wanted, instead_of): (Attributes, Option<&EntryStat>),
    ) -> Result<(), Fault> {
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        permit.check()?;
        let owner_guard = self.become_owner(spot, wanted.owner, wanted.group)?;
        let (hidden, ()) =
            self.names.make("create", |name| symlinkat(target, &spot.directory, name))?;
        let done = own_link(permit, spot, &hidden, target, wanted)
            .and_then(|()| take_place(permit, spot, &hidden, instead_of));
        done.map_err(|fault| forget(spot, &hidden, fault))?;
        drop(owner_guard);
        self.sync_directory(spot, directory)
    }

    /// Makes a hard link to a regular file, in place of the file that was found.
    ///
    /// # Errors
    ///
    /// Fails if the target is no regular file, an object has changed, the permit was revoked, or the kernel returned an
    /// error, for example because the target is on another file system.
    pub fn put_hard_link(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        target: &Path,
        instead_of: Option<&EntryStat>,
    ) -> Result<(), Fault> {
        let missing = || {
            let failure = said("link", spot.path(), "the target of the hard link does not exist");
            Fault::refused(failure.hint("declare the target too"))
        };
        let from = self.open_entry(target)?.ok_or_else(missing)?;
        let linked = from.look()?.ok_or_else(missing)?;
        if linked.kind != FileType::RegularFile {
            let failure = said("link", spot.path(), "the target is no regular file");
            return Err(Fault::refused(failure.hint("a hard link names a regular file")));
        }
        permit.check()?;
        // A second name of a private file could show it elsewhere, or outlive it.
        self.guard_way(&from)?;
        self.guard_linked(&from, &linked)?;
        let directory = self.sweep_once(permit, spot)?;
        permit.check()?;
        let (hidden, ()) = self.names.make("link", |name| {
            linkat(&from.directory, from.name, &spot.directory, name, AtFlags::empty())
        })?;
        // Another user could have exchanged the target in between.
        let made = statat(&spot.directory, &*hidden, AtFlags::SYMLINK_NOFOLLOW);
        let made = made.map(|stat| EntryStat::of(&stat)).map_err(Fault::os("look at"));
        let done = made.and_then(|made| {
            if made.identity == linked.identity { Ok(()) } else { Err(Fault::moved()) }
        });
        done.and_then(|()| take_place(permit, spot, &hidden, instead_of))
            .map_err(|fault| forget(spot, &hidden, fault))?;
        self.sync_directory(spot, directory)
    }

    /// Makes a directory at a path without an object, and returns its identity.
    ///
    /// # Errors
    ///
    /// Fails if an object exists by now, the permit was revoked, or the kernel returned an error.
    pub fn make_directory(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        wanted: Attributes,
        lists: NewLists<'_>,
    ) -> Result<(u64, u64), Fault> {
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        permit.check()?;
        let born = Mode::from_raw_mode(0o700 & wanted.mode.unwrap_or(DIRECTORY_MODE));
        // Only root can open a directory without the right to read.
        let born = if self.is_root() { born } else { born | Mode::RUSR };
        let inherits = self.inherits_from(spot, wanted.owner)?;
        let end_mode = wanted.mode.unwrap_or(DIRECTORY_MODE);
        let group_of_new = self.group_of_new(spot, (wanted.owner, end_mode))?;
        let wanted = Attributes { group: wanted.group.or(group_of_new), ..wanted };
        let owner_guard = self.become_owner(spot, wanted.owner, wanted.group)?;
        let lists = if inherits { lists } else { lists.without_inheritance() };
        let maker = if owner_guard.is_some() { wanted.owner.unwrap_or(self.uid) } else { self.uid };
        let (hidden, ()) =
            self.names.make("create", |name| mkdirat(&spot.directory, name, born))?;
        let done = self
            .dress_directory(permit, spot, (&hidden, maker), (wanted, inherits, lists))
            .and_then(|made| take_place(permit, spot, &hidden, None).map(|()| made));
        let made =
            done.map_err(|fault| match unlinkat(&spot.directory, &*hidden, AtFlags::REMOVEDIR) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => fault,
                Err(_) => fault.after(true),
            })?;
        drop(owner_guard);
        self.sync_directory(spot, directory)?;
        Ok(made)
    }

    fn dress_directory(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (hidden, maker): (&OsStr, u32),
        (wanted, inherits, lists): (Attributes, bool, NewLists<'_>),
    ) -> Result<(u64, u64), Fault> {
        let handle = open_listed(&spot.directory, hidden.as_ref())?;
        let born = seen(&handle)?;
        // The owner of the parent could have put another directory in place of the new one: an empty directory of the
        // same owner is harmless.
        if born.uid != maker || !is_empty(&handle)? {
            return Err(Fault::moved());
        }
        if !matches!(lists, NewLists::Inherited) {
            permit.check()?;
            xattr::remove_lists(&path_of(&handle))?;
        }
        permit.check()?;
        self.mark_made(spot, &handle)?;
        if wanted.owner.is_some() || wanted.group.is_some() {
            permit.check()?;
            let (owner, group) = (wanted.owner.map(Uid::from_raw), wanted.group.map(Gid::from_raw));
            fchown(&handle, owner, group).map_err(Fault::os("give to its owner"))?;
        }
        if let NewLists::Recorded(all) = lists {
            permit.check()?;
            xattr::write(&handle, all)?;
        }
        permit.check()?;
        let handed_down = if inherits { born.mode & HANDS_GROUP_DOWN } else { 0 };
        let mode = wanted.mode.unwrap_or(DIRECTORY_MODE | handed_down);
        fchmod(&handle, Mode::from_raw_mode(mode)).map_err(Fault::os("change the mode of"))?;
        Ok(born.identity)
    }
}

fn own_link(
    permit: &Permit,
    spot: &Entry<'_>,
    hidden: &OsStr,
    target: &OsStr,
    wanted: Attributes,
) -> Result<(), Fault> {
    if wanted.owner.is_none() && wanted.group.is_none() {
        return Ok(());
    }
    permit.check()?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle =
        openat(&spot.directory, hidden, flags, Mode::empty()).map_err(Fault::os("create"))?;
    let made = seen(&handle)?;
    let text = readlinkat(&handle, "", Vec::new()).map_err(Fault::os("create"))?;
    if made.kind != FileType::Symlink || made.links != 1 || text.as_bytes() != target.as_bytes() {
        return Err(Fault::moved());
    }
    let (owner, group) = (wanted.owner.map(Uid::from_raw), wanted.group.map(Gid::from_raw));
    chownat(&handle, "", owner, group, AtFlags::EMPTY_PATH).map_err(Fault::os("give to its owner"))
}
