//! Objects and directories that other users may have prepared: this module decides if they are safe to change,
//! and which of their attributes stay.
//!
//! A *stranger* is any user except root and the user of this process. A declared owner is no stranger to the
//! objects that are declared as theirs.

use crate::host::files::Files;
use crate::host::files::content::new_content::Origin;
use crate::host::files::content::read::seen;
use crate::host::files::content::write::Draft;
use crate::host::files::fault::{Fault, said};
use crate::host::files::objects::attributes::{Attributes, handle_of, path_of};
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat, SET_ID};
use crate::host::files::paths::safe_path::has_acl;
use crate::host::input_trust::Reader;
use crate::host::kernel::statat;
use rustix::fs::{AtFlags, CWD, FileType};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The extended attributes of a file that is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::files) enum Keeping {
    /// No attributes.
    Nothing,
    /// The default access list of the directory.
    Inherited,
    /// The attributes of the replaced file.
    OfTheOld,
}

/// The bits of others that an open file needs; an object without one of its bits is closed to others.
const READ_BY_OTHERS: u32 = 0o004;
const SEARCHED_BY_OTHERS: u32 = 0o005;

impl Files {
    /// Returns the user of this process.
    #[must_use]
    pub fn own_uid(&self) -> u32 {
        self.uid
    }

    /// Returns true if the object belongs to a stranger (any user except root and this process's user).
    #[must_use]
    pub fn is_strangers(&self, seen: &EntryStat) -> bool {
        !self.believes(seen.uid, None)
    }

    /// Returns true if the object belongs to a stranger and gets another owner.
    #[must_use]
    pub fn leaves_stranger(&self, seen: &EntryStat, owner: Option<u32>) -> bool {
        self.is_strangers(seen) && owner.is_some_and(|uid| uid != seen.uid)
    }

    pub(in crate::host::files) fn believes(&self, uid: u32, owner: Option<u32>) -> bool {
        uid == 0 || uid == self.uid || Some(uid) == owner
    }

    /// Returns the mode of an object before the declared changes, under this owner and group. Undeclared set-id
    /// bits are dropped with the old owner. If the old owner is a stranger, everybody and an undeclared group
    /// also lose the right to write.
    pub fn base_mode(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        (owner, group): (Option<u32>, Option<u32>),
    ) -> Result<u32, Fault> {
        let is_directory = found.kind == FileType::Directory;
        let mode = if is_directory { found.mode } else { found.kept_mode(owner, group) };
        if !self.leaves_stranger(found, owner) || found.kind == FileType::Symlink {
            return Ok(mode);
        }
        let kept = if mode & 0o070 == 0 { 0 } else { group_mode(spot, found)? };
        let mode = mode & !0o070 | kept;
        let is_sticky = is_directory && mode & 0o1000 != 0;
        let by_group = if group.is_none() && found.gid != 0 { 0o020 } else { 0 };
        Ok(if is_sticky { mode } else { mode & !(by_group | 0o002) })
    }

    /// Returns the mode of a file that replaces the found one and keeps `mode`, under this owner. If the access list
    /// does not stay, the group has its own rights of the list: the group bits of the mode are the mask.
    pub fn mode_once_replaced(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        (mode, owner): (u32, Option<u32>),
    ) -> Result<u32, Fault> {
        if mode & 0o070 == 0 || self.is_trusted(spot, found, owner)? {
            return Ok(mode);
        }
        Ok(mode & (!0o070 | group_mode(spot, found)?))
    }

    /// Returns true if a user may have the file open for writing who may not write it under this owner, group and
    /// mode. The inode of a mount point stays, so that there a user with the file open for reading counts, too.
    #[must_use]
    pub fn may_be_open(&self, spot: &Entry<'_>, seen: &EntryStat, after: Attributes) -> bool {
        let (of_group, of_others) = if spot.is_mounted() { (0o060, 0o006) } else { (0o020, 0o002) };
        let loses = |bits| after.mode.is_some_and(|mode| seen.mode & bits & !mode != 0);
        let changes_group = after.group.is_some_and(|gid| gid != seen.gid);
        let group_loses = seen.mode & of_group != 0 && (changes_group || loses(of_group));
        let is_listed = || handle_of(spot, seen).is_ok_and(|handle| has_acl(&handle));
        self.leaves_stranger(seen, after.owner)
            || loses(of_others)
            || (group_loses && (seen.gid != 0 || is_listed()))
    }

    /// Returns true if only root, this process's user or the declared owner can have put the object there: its
    /// attributes may stay.
    pub fn is_trusted(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        owner: Option<u32>,
    ) -> Result<bool, Fault> {
        Ok(self.believes(found.uid, owner) && self.is_private(&spot.directory, owner)?)
    }

    /// Returns true if only root and this process's user can put an object at this name.
    pub fn is_private_place(&self, spot: &Entry<'_>) -> Result<bool, Fault> {
        self.is_private(&spot.directory, None)
    }

    /// Returns true if only root, this process's user and this owner can put an object at this name.
    pub(in crate::host::files) fn is_closed_place(
        &self,
        spot: &Entry<'_>,
        owner: Option<u32>,
    ) -> Result<bool, Fault> {
        self.is_private(&spot.directory, owner)
    }

    /// Returns true if only root, this process's user and the given owner can change the entries of a directory,
    /// by its owner, mode and access list.
    fn is_private(&self, directory: &OwnedFd, owner: Option<u32>) -> Result<bool, Fault> {
        Ok(self.is_closed_directory(directory, &seen(directory)?, owner))
    }

    pub(in crate::host::files) fn is_closed_directory(
        &self,
        handle: &OwnedFd,
        seen: &EntryStat,
        owner: Option<u32>,
    ) -> bool {
        // The group of a trusted user is most often that user's alone.
        let own_group = seen.gid == 0 || (seen.gid == seen.uid && seen.uid != 0);
        let by_group = || seen.mode & 0o020 != 0 && (!own_group || has_acl(handle));
        self.believes(seen.uid, owner) && seen.mode & 0o002 == 0 && !by_group()
    }

    /// Returns true if a new object inherits the access list and the group of its directory, which must not be a
    /// stranger's.
    pub(in crate::host::files) fn inherits_from(
        &self,
        spot: &Entry<'_>,
        owner: Option<u32>,
    ) -> Result<bool, Fault> {
        Ok(self.believes(spot.directory_seen()?.uid, owner))
    }

    /// Returns the group of a new object if none is declared and a stranger's directory would choose the group, or if a
    /// directory would choose a group that can write a program with a set-user-ID bit.
    pub(in crate::host::files) fn group_of_new(
        &self,
        spot: &Entry<'_>,
        (owner, mode): (Option<u32>, u32),
    ) -> Result<Option<u32>, Fault> {
        let is_shared_program = mode & 0o4020 == 0o4020;
        let is_chosen = spot.directory_seen()?.mode & 0o2000 != 0
            && (is_shared_program || self.is_in_strangers_directory(spot, owner)?);
        Ok(is_chosen.then(own_gid))
    }

    /// Returns true if the directory of an object belongs to a stranger who is not this owner.
    pub fn is_in_strangers_directory(
        &self,
        spot: &Entry<'_>,
        owner: Option<u32>,
    ) -> Result<bool, Fault> {
        Ok(self.is_root() && !self.believes(spot.directory_seen()?.uid, owner))
    }

    pub(in crate::host::files) fn keeping(
        &self,
        spot: &Entry<'_>,
        draft: &Draft<'_>,
        old: Option<&EntryStat>,
    ) -> Result<Keeping, Fault> {
        if draft.extended.is_some() {
            return Ok(Keeping::Nothing);
        }
        let (keeping, stays) = if let Some(old) = old {
            (Keeping::OfTheOld, self.is_trusted(spot, old, draft.owner)?)
        } else {
            let inherits = !draft.sensitive && self.inherits_from(spot, draft.owner)?;
            (Keeping::Inherited, inherits)
        };
        Ok(if stays { keeping } else { Keeping::Nothing })
    }

    /// Rejects writing into a file that a user may have open who may not read or write the new content.
    pub(in crate::host::files) fn guard_in_place(
        &self,
        spot: &Entry<'_>,
        draft: &Draft<'_>,
        old: &EntryStat,
    ) -> Result<(), Fault> {
        let why = if self.leaves_stranger(old, draft.owner) {
            "the file belongs to another user and cannot be replaced by a new file"
        } else if self.is_root() && draft.mode & SET_ID != 0 {
            "set-id bits go to new files only, and the file cannot be replaced by a new file"
        } else if (draft.sensitive || self.is_root())
            && (old.mode & !draft.mode & 0o066 != 0
                || self.may_be_open(spot, old, draft.attributes())
                || self.is_marked_open(spot, old))
        {
            "other users may have the file open, and it cannot be replaced by a new file"
        } else {
            return Ok(());
        };
        Err(Fault::refused(
            said("write", spot.path(), why)
                .hint("unmount the path, make a new file for the mount, and mount that one"),
        ))
    }

    /// Returns true if another user can have put this name into its directory, including the time before root
    /// took the directory over.
    fn is_strange_name(&self, directory: &OwnedFd, name: &OsStr) -> Result<bool, Fault> {
        let above = seen(directory)?;
        Ok(!self.is_closed_directory(directory, &above, None)
            || self.is_older_than_takeover(directory, above.identity, name))
    }

    /// Rejects an object with several names if another user could have made one of them: the object may be a file
    /// of root (S-2).
    pub fn guard_links(&self, spot: &Entry<'_>, seen: &EntryStat) -> Result<(), Fault> {
        if !self.has_doubtful_name((&spot.directory, spot.name), seen)? {
            return Ok(());
        }
        let why =
            format!("the file has {} hard links, in a directory not owned by root", seen.links);
        Err(Fault::refused(said("change", spot.path(), &why).hint(
            "the file may be a hard link to a file of root: remove the file, or make root the owner of the directory",
        )))
    }

    /// Rejects the copy of a file with several names, because a user could make the daemon show a file that the
    /// user cannot read. In the user's own directory, the file may be the user's own.
    pub(in crate::host::files) fn guard_source(&self, origin: Origin) -> Result<Origin, Fault> {
        let (directory, name) = origin.place();
        let found = origin.seen();
        if !self.has_doubtful_name((directory, name), found)? {
            return Ok(origin);
        }
        let owner = seen(directory)?.uid;
        if owner != 0 && owner == found.uid {
            return Ok(origin);
        }
        let why =
            format!("the file has {} hard links, in a directory not owned by root", found.links);
        Err(Fault::refused(said("copy", origin.path(), &why).hint(
            "the file may be a hard link to a restricted file: copy the file, or make root the owner of the directory",
        )))
    }

    fn has_doubtful_name(
        &self,
        (directory, name): (&OwnedFd, &OsStr),
        seen: &EntryStat,
    ) -> Result<bool, Fault> {
        if !self.is_root() || seen.links <= 1 || seen.kind == FileType::Directory {
            return Ok(false);
        }
        self.is_strange_name(directory, name)
    }

    /// Rejects a change that opens a closed object to others, if a user besides its owner could have moved the
    /// object to this name. The wanted owner is also given if that user is the owner already.
    pub fn guard_private(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        if self.is_strangers(found) {
            return self.guard_private_of_user(spot, found, wanted);
        }
        let opens = self.is_closed(found) && self.opens(found, wanted);
        if !opens || !self.is_misplaced(&spot.directory, spot.path(), found)? {
            return Ok(());
        }
        let why = "only root may read the file, and other users can have moved it there";
        Err(Fault::refused(
            said("change", spot.path(), why).hint(
                "change the owner manually, or set force: true if the object may change hands",
            ),
        ))
    }

    /// Rejects a change that lets other users read a user's closed object, unless only that user can have put the
    /// object there.
    fn guard_private_of_user(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        let shows = self.is_root() && is_shut(found) && self.shows(found, wanted);
        if !shows {
            return Ok(());
        }
        // In a sticky directory, any user could have moved a file here. A graph that names the file's owner refers to
        // the file that this user put there.
        let is_brought = found.kind != FileType::Directory
            && wanted.owner != Some(found.uid)
            && spot.directory_seen()?.mode & 0o1000 != 0;
        if !is_brought
            && (!self.is_movable_by_others(spot, found)? || self.was_placed(spot, found)?)
        {
            return Ok(());
        }
        let why = "the file is not readable by others, and other users can have moved it there";
        Err(Fault::refused(
            said("change", spot.path(), why).hint(
                "change the owner manually, or set force: true if the object may change hands",
            ),
        ))
    }

    /// Rejects the copy of a root-only object for another user, if that user could have moved the object to this
    /// name.
    pub fn guard_copied(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        reader: Reader,
    ) -> Result<(), Fault> {
        self.guard_loan(&spot.directory, (spot.path(), found), reader)
    }

    pub(in crate::host::files) fn guard_loan(
        &self,
        directory: &OwnedFd,
        (path, found): (&Path, &EntryStat),
        reader: Reader,
    ) -> Result<(), Fault> {
        let is_closed = || self.is_closed(found) || self.is_behind_closed_directory(path);
        let lends = reader.reads_for_another() && is_closed();
        if !lends || !self.is_misplaced(directory, path, found)? {
            return Ok(());
        }
        let why = "only root may read the file, and other users can have moved it there";
        Err(Fault::refused(
            said("copy", path, why)
                .hint("copy the file manually, or set force: true if the owner may read the file"),
        ))
    }

    /// Rejects the purge of a closed directory, if a user besides its owner could have moved the directory to
    /// this name.
    pub fn guard_purge(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<(), Fault> {
        self.guard_way(spot)?;
        if !self.is_root() || !is_shut(found) || !self.is_movable_by_others(spot, found)? {
            return Ok(());
        }
        let why =
            "the directory is not accessible to others, and other users can have moved it there";
        Err(Fault::refused(said("purge", spot.path(), why).hint(
            "check the content of the directory, and set force: true if all of it may be removed",
        )))
    }

    /// Rejects emptying a closed directory, if a user besides its owner could have moved the directory to this
    /// name. A directory that this program made under this name is recognised.
    pub fn guard_emptying(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<(), Fault> {
        if found.kind == FileType::Directory {
            self.guard_way(spot)?;
        }
        let is_doubtful = self.is_root()
            && found.kind == FileType::Directory
            && is_shut(found)
            && self.is_movable_by_others(spot, found)?;
        if !is_doubtful || spot.is_empty()? || Self::was_made_here(spot, found)? {
            return Ok(());
        }
        let why =
            "the directory is not accessible to others, and other users can have moved it there";
        Err(Fault::refused(
            said("remove", spot.path(), why)
                .hint("check the content of the directory, and remove it manually if all of it may be removed"),
        ))
    }

    /// Returns true if a user besides root, this process's user and the owner can have moved the object to its
    /// name.
    pub(in crate::host::files) fn is_movable_by_others(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<bool, Fault> {
        let owner = Some(found.uid);
        let above = spot.directory_seen()?;
        let is_held = above.mode & 0o1000 != 0 && self.believes(above.uid, owner);
        let reader = Reader::here().on_behalf_of(owner);
        let is_reached_by_others =
            || spot.path.parent().is_some_and(|path| reader.untrusted_on_the_way(path).is_some());
        Ok(!(is_held || self.is_closed_directory(&spot.directory, &above, owner))
            || self.is_older_than_handover(&spot.directory, above.identity, (spot.name, found.uid))
            || (!is_held && is_reached_by_others())
            || self.leads_through_handover(spot.path, found.uid))
    }

    /// Returns true for an object of root that is closed to others.
    fn is_closed(&self, found: &EntryStat) -> bool {
        self.is_root() && !self.is_strangers(found) && is_shut(found)
    }

    /// Returns true for a path below a closed directory of root, which protects everything inside.
    fn is_behind_closed_directory(&self, path: &Path) -> bool {
        self.is_root()
            && path.ancestors().skip(1).any(|above| {
                let found = statat(CWD, above, AtFlags::SYMLINK_NOFOLLOW);
                let found = found.map(|stat| EntryStat::of(&stat));
                found.is_ok_and(|found| found.kind == FileType::Directory && self.is_closed(&found))
            })
    }

    /// Returns true if the change gives others a right that they did not have.
    fn opens(&self, found: &EntryStat, wanted: Attributes) -> bool {
        let mode = wanted.mode.unwrap_or(found.mode);
        let group = wanted.group.unwrap_or(found.gid);
        let had = if group == found.gid { found.mode } else { 0 };
        let by_group = group != 0 && mode & !had & 0o070 != 0;
        let by_others = mode & !found.mode & 0o007 != 0;
        let by_owner = wanted.owner.is_some_and(|uid| !self.believes(uid, None));
        by_owner || by_group || by_others
    }

    /// Returns true if the change lets a user besides the owner read or enter the object. A right to write
    /// reveals nothing here: a user who moved the file could have put another file in its place.
    fn shows(&self, found: &EntryStat, wanted: Attributes) -> bool {
        let bits = bits_of_others(found);
        let mode = wanted.mode.unwrap_or(found.mode);
        let group = wanted.group.unwrap_or(found.gid);
        let had = if group == found.gid { found.mode } else { 0 };
        let by_group = group != 0 && mode & !had & bits << 3 != 0;
        let by_others = mode & !found.mode & bits != 0;
        let by_owner = wanted.owner.is_some_and(|uid| !self.believes(uid, Some(found.uid)));
        by_owner || by_group || by_others
    }

    fn is_misplaced(
        &self,
        directory: &OwnedFd,
        path: &Path,
        found: &EntryStat,
    ) -> Result<bool, Fault> {
        let has_names = found.links > 1 && found.kind != FileType::Directory;
        let is_reached_by_others = || {
            path.parent().is_some_and(|above| Reader::here().untrusted_on_the_way(above).is_some())
        };
        let name = path.file_name().unwrap_or_default();
        Ok(has_names
            || self.is_strange_name(directory, name)?
            || is_reached_by_others()
            || self.leads_through_takeover(path))
    }
}

/// Returns the group of this process.
#[must_use]
pub fn own_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Returns true if others may not read, or not enter, the object.
pub(in crate::host::files) fn is_shut(found: &EntryStat) -> bool {
    let bits = bits_of_others(found);
    found.mode & bits != bits
}

/// Returns the rights of others whose absence closes an object; none for a link.
fn bits_of_others(found: &EntryStat) -> u32 {
    match found.kind {
        FileType::Symlink => 0,
        FileType::Directory => SEARCHED_BY_OTHERS,
        _ => READ_BY_OTHERS,
    }
}

/// Returns the rights of the object's group. With an access list, the mode's group bits are only the mask of
/// that list.
fn group_mode(spot: &Entry<'_>, found: &EntryStat) -> Result<u32, Fault> {
    let handle = handle_of(spot, found)?;
    let listed = xattr::group_of_list(&path_of(&handle));
    Ok(found.mode & 0o070 & listed.map_or(0o070, |bits| bits << 3))
}
