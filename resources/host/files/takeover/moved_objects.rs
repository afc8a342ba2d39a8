//! Rules for directories, sockets and FIFOs that another user can have moved to a managed name.
//!
//! A user who moves a file could as well put another file in its place, so a right to write the file gives
//! that user nothing new. The entries of a directory, and the process behind a socket or FIFO, are those of
//! its owner.

use crate::host::files::content::read::{READ, open_listed, seen};
use crate::host::files::fault::{Fault, said};
use crate::host::files::objects::attributes::Attributes;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::paths::safe_path::{has_acl, open_way};
use crate::host::files::takeover::made_mark::{is_marked_on, mark_path};
use crate::host::files::takeover::marks::is_from_before;
use crate::host::files::takeover::other_users::is_shut;
use crate::host::files::{Files, denies_others, grants_group_more, own_gid};
use crate::host::kernel::{Entries, openat, statat};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::PoisonError;

/// A name with the identity of its object.
type Name = (OsString, (u64, u64));

/// The entries of directories that this process gave away or opened, by the identity of the directory. They
/// were at their names before the new users could move them.
pub(in crate::host::files) type Placed = HashMap<(u64, u64), Listing>;

/// The entries of one directory at the time of its change.
#[derive(Debug)]
pub(in crate::host::files) struct Listing {
    /// The only user, besides root, who could move these entries before.
    by: u32,
    entries: HashSet<Name>,
}

impl Files {
    /// Returns true if another user can have put the link of this owner, or a directory above it, at its path before
    /// root closed or took one of these directories: such a link is not followed.
    #[must_use]
    pub fn is_old_link(&self, spot: &Entry<'_>, owner: u32) -> bool {
        self.is_root() && is_from_before(spot.path, owner)
    }

    /// Rejects a second name for a closed file that a user besides its owner can have moved to its name.
    pub(in crate::host::files) fn guard_linked(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<(), Fault> {
        let is_doubtful = self.is_root() && is_shut(found);
        if !is_doubtful || !self.is_movable_by_others(spot, found)? {
            return Ok(());
        }
        let why = "it is closed to others, and others can have moved it there";
        let hint = "make its owner, or root, the owner of its directory";
        Err(Fault::refused(said("link", spot.path, why).hint(hint)))
    }

    /// Rejects a change below a closed directory that a user besides its owner can have moved to its name: the change
    /// would destroy or show what the owner keeps there. A directory that this program made under its name is
    /// recognised.
    pub fn guard_way(&self, spot: &Entry<'_>) -> Result<(), Fault> {
        self.judge_way(spot).map(drop)
    }

    /// Rejects a change as [`Self::guard_way`] does, and the change of a private file of a user below an open
    /// directory that others can have moved. The declared owner of the file is no other user.
    pub fn guard_file(&self, spot: &Entry<'_>, owner: Option<u32>) -> Result<(), Fault> {
        if !self.judge_way(spot)? {
            return Ok(());
        }
        match spot.look()?.filter(|found| found.kind == FileType::RegularFile) {
            Some(found) => self.guard_purged(("change", spot), &found, owner),
            None => Ok(()),
        }
    }

    /// Rejects an edit that writes a secret into a file that other users can read: one that all users or a stranger's
    /// group may read, that of a user other than the declared owner, and that of a user in a directory where others can
    /// have put it. The owner of the directory has a file there in the usual case.
    pub fn guard_secret_edit(
        &self,
        spot: &Entry<'_>,
        found: Option<&EntryStat>,
        owner: Option<u32>,
    ) -> Result<(), Fault> {
        let Some(found) = found.filter(|_| self.is_root()) else { return Ok(()) };
        let is_strangers = self.is_strangers(found);
        let (why, hint) = if is_strangers && owner.is_some_and(|uid| uid != found.uid) {
            ("it belongs to another user", "declare it as a `file` with this `owner`, or remove it")
        } else if is_strangers && !self.is_closed_place(spot, Some(found.uid))? {
            (
                "it belongs to another user, and others can have put it there",
                "make root, or its owner, the owner of the directory, or remove the file",
            )
        } else if !denies_others(found.mode) {
            ("all users may read it", "declare it as a `file` with mode: 0600, or 0640 and a group")
        } else if grants_group_more(found.mode)
            && found.gid != own_gid()
            && self.is_in_strangers_directory(spot, Some(found.uid))?
        {
            ("the group of another user may read it", "declare it as a `file` with its `group`")
        } else {
            return Ok(());
        };
        Err(Fault::refused(said("write a secret into", spot.path, why).hint(hint)))
    }

    /// Rejects a copy into a closed directory that a user besides its owner can have moved to its name.
    pub fn guard_filling(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<(), Fault> {
        if !is_shut(found) || spot.is_empty()? || !self.is_doubtful_tree(spot, found)? {
            return Ok(());
        }
        let why = "the directory is closed to others, who can have moved it there";
        let hint = "move it away, or write force: true if its files may be replaced";
        Err(Fault::refused(said("copy into", spot.path, why).hint(hint)))
    }

    /// Judges the directories above an object, and returns true if a user besides its owner can have moved one of them.
    fn judge_way(&self, spot: &Entry<'_>) -> Result<bool, Fault> {
        let Some(parent) = spot.path.parent().filter(|_| self.is_root()) else { return Ok(false) };
        let way = open_way(parent, self.uid)?;
        if way.last().map(|(_, found)| found.identity) != Some(spot.directory_seen()?.identity) {
            return Err(Fault::moved());
        }
        let mut is_moved = false;
        for pair in way.windows(2) {
            let [(above, seen_above), (inner, found)] = pair else { continue };
            is_moved |= self.is_movable_into(above, found)?;
            if !is_moved {
                continue;
            }
            if is_marked_on(inner, spot.path) {
                is_moved = false;
            } else if is_closed_to_movers((inner, found), (above, seen_above)) {
                let why = "a directory above is closed to others, who can have moved it there";
                let hint = "make its owner, or root, the owner of the directory that contains it";
                return Err(Fault::refused(said("change", spot.path, why).hint(hint)));
            }
        }
        Ok(is_moved)
    }

    /// Returns true if a user besides the owner of the inner directory can have moved it into the other one.
    pub(in crate::host::files) fn is_movable_into(
        &self,
        directory: &OwnedFd,
        inner: &EntryStat,
    ) -> Result<bool, Fault> {
        if !self.is_root() {
            return Ok(false);
        }
        let (above, owner) = (seen(directory)?, Some(inner.uid));
        let is_held = above.mode & 0o1000 != 0 && self.believes(above.uid, owner);
        let is_closed = self.is_closed_directory(directory, &above, owner);
        Ok(!is_held && !is_closed)
    }

    /// Rejects a change that gives a user a right to write or enter an object which that user did not have, if
    /// somebody besides its owner can have moved the object to this name. Regular files and empty directories
    /// are not rejected.
    pub fn guard_moved(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        let is_directory = found.kind == FileType::Directory;
        let is_judged = is_directory || matches!(found.kind, FileType::Socket | FileType::Fifo);
        if !is_judged || !self.is_root() || !self.lends(found, wanted) {
            return Ok(());
        }
        if (is_directory && spot.is_empty()?) || !self.is_brought(spot, found, wanted)? {
            return Ok(());
        }
        let holds = if is_directory { "it is not empty" } else { "it is in use by its owner" };
        let why = format!("{holds}, and others can have moved it there");
        Err(refused("change", spot.path(), &why))
    }

    /// Rejects giving away a file of root's that somebody else can have moved to this name.
    pub fn guard_given(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        let is_roots = found.kind == FileType::RegularFile && !self.is_strangers(found);
        let is_given = is_roots && self.is_root() && self.changes_owner(found, wanted);
        if !is_given || !self.is_brought(spot, found, wanted)? {
            return Ok(());
        }
        let why = "it is root's, and others can have moved it there";
        Err(refused("change", spot.path(), why))
    }

    /// Returns true if somebody besides its owner can have moved the managed directory to its name, and this
    /// program has not made it.
    pub fn is_doubtful_tree(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<bool, Fault> {
        Ok(self.is_root()
            && self.is_movable_by_others(spot, found)?
            && !Self::was_made_here(spot, found)?)
    }

    /// Rejects the purge or the replacement of a private object of a user below a directory that others can have moved.
    pub fn guard_purged(
        &self,
        (doing, spot): (&str, &Entry<'_>),
        found: &EntryStat,
        owner: Option<u32>,
    ) -> Result<(), Fault> {
        if !self.is_strangers(found) || Some(found.uid) == owner || !is_shut(found) {
            return Ok(());
        }
        let why = "it is private, and others can have moved the directory above it";
        Err(Fault::refused(
            said(doing, spot.path(), why)
                .hint("move it away, or write force: true if it may be lost"),
        ))
    }

    /// Records that a directory and its entries are at their names, before a change that lets other users move
    /// them. Marks make the record durable: the next run finishes a change that a crash interrupted.
    pub(in crate::host::files) fn note_placed(
        &self,
        spot: &Entry<'_>,
        handle: &OwnedFd,
        (found, wanted): (&EntryStat, Attributes),
    ) -> Result<(), Fault> {
        if found.kind != FileType::Directory || !self.is_root() {
            return Ok(());
        }
        let lends = self.lends(found, wanted);
        let is_moved = match self.is_moved(spot, found) {
            Err(fault) if lends => return Err(fault),
            judged => judged.unwrap_or(true),
        };
        // The owner who loses the directory can move it later, and nobody else could before.
        let is_taken = self.leaves_stranger(found, wanted.owner);
        if (lends || is_taken) && (!is_moved || spot.is_empty()?) {
            self.mark_in_place(spot, handle)?;
        }
        let is_sticky = found.mode & 0o1000 != 0;
        let is_one_users = is_sticky || self.is_closed_directory(handle, found, Some(found.uid));
        if is_moved || !is_one_users {
            return Ok(());
        }
        let entries = match entries(handle, is_sticky) {
            Ok(entries) => entries,
            Err(fault) if lends => return Err(fault),
            Err(_) => return Ok(()),
        };
        if entries.is_empty() {
            return Ok(());
        }
        if lends {
            for (name, identity) in &entries {
                mark_entry(spot, handle, (name, *identity), found.uid)?;
            }
        }
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        placed.insert(found.identity, Listing { by: found.uid, entries });
        drop(placed);
        Ok(())
    }

    /// Returns true if somebody besides the owner can have moved the object to its name. Any user can have moved
    /// a socket or file into a sticky directory, unless the graph names its owner.
    fn is_brought(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<bool, Fault> {
        let is_from_anywhere = found.kind != FileType::Directory
            && wanted.owner != Some(found.uid)
            && spot.directory_seen()?.mode & 0o1000 != 0;
        Ok((is_from_anywhere && !self.was_placed(spot, found)?) || self.is_moved(spot, found)?)
    }

    fn is_moved(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<bool, Fault> {
        if !self.is_movable_by_others(spot, found)? || self.was_placed(spot, found)? {
            return Ok(false);
        }
        Ok(found.kind != FileType::Directory || !Self::was_made_here(spot, found)?)
    }

    /// Returns true if the object was at this name before this process let other users move it.
    pub(in crate::host::files) fn was_placed(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<bool, Fault> {
        let above = spot.directory_seen()?.identity;
        let placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(placed.get(&above).is_some_and(|listing| {
            (listing.by == 0 || listing.by == found.uid)
                && listing.entries.contains(&(spot.name.to_owned(), found.identity))
        }))
    }

    fn changes_owner(&self, found: &EntryStat, wanted: Attributes) -> bool {
        wanted.owner.is_some_and(|uid| !self.believes(uid, Some(found.uid)))
    }

    /// Returns true if the change gives a user a right to change what the object stands for.
    fn lends(&self, found: &EntryStat, wanted: Attributes) -> bool {
        let is_directory = found.kind == FileType::Directory;
        let bits = if is_directory { 0o003 } else { 0o002 };
        let mode = wanted.mode.unwrap_or(found.mode);
        let group = wanted.group.unwrap_or(found.gid);
        // The members of a new group had at least the rights of others.
        let had = if group == found.gid { found.mode } else { found.mode << 3 };
        let by_group = group != 0 && mode & !had & (bits << 3) != 0;
        let by_others = mode & !found.mode & bits != 0;
        let frees = is_directory && found.mode & !mode & 0o1000 != 0 && mode & 0o022 != 0;
        self.changes_owner(found, wanted) || by_group || by_others || frees
    }
}

/// Marks an entry of a directory that its only user gives away, if it is a directory that nobody else can have
/// put there.
fn mark_entry(
    above: &Entry<'_>,
    directory: &OwnedFd,
    (name, identity): (&OsStr, (u64, u64)),
    by: u32,
) -> Result<(), Fault> {
    let flags = READ | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let entry = match openat(directory, name, flags, Mode::empty()) {
        Ok(entry) => entry,
        // It is no directory, or another one by now.
        Err(Errno::NOTDIR | Errno::NOENT | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(Fault::os("mark the directories in")(errno)),
    };
    let now = seen(&entry)?;
    if now.identity == identity && (by == 0 || by == now.uid) {
        mark_path(&entry, &above.path.join(name))?;
    }
    Ok(())
}

fn refused(doing: &str, path: &Path, why: &str) -> Fault {
    Fault::refused(
        said(doing, path, why)
            .hint("change it by hand, or write force: true if it may be given away"),
    )
}

/// Returns true if those who can write the upper directory perhaps cannot enter and list the inner one. With an access
/// list, the mode does not tell who can.
fn is_closed_to_movers(
    (inner, found): (&OwnedFd, &EntryStat),
    (above, seen_above): (&OwnedFd, &EntryStat),
) -> bool {
    let has_list = has_acl(inner);
    let is_by_group = seen_above.mode & 0o002 == 0
        && (seen_above.uid == 0 || seen_above.uid == found.uid)
        && !has_acl(above);
    let opens_to_group = found.gid == seen_above.gid && found.mode & 0o050 == 0o050 && !has_list;
    (is_shut(found) || has_list) && !(is_by_group && opens_to_group)
}

/// Returns the entries of a directory that a change judges: all but links, files of root, and files that others can
/// read. A sticky directory protects only its directories: any user can move another object of a different user into
/// it.
fn entries(handle: &OwnedFd, only_directories: bool) -> Result<HashSet<Name>, Fault> {
    let directory = open_listed(handle, Path::new("."))?;
    let mut found = HashSet::new();
    for entry in Entries::read_from(&directory).map_err(Fault::os("list"))? {
        let entry = entry.map_err(Fault::os("list"))?;
        let name = entry.file_name().to_bytes();
        let name = OsStr::from_bytes(name);
        let stat = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat.map_err(Fault::os("list"))?,
        };
        let seen = EntryStat::of(&stat);
        let is_kept = match seen.kind {
            FileType::Directory => !matches!(name.as_bytes(), b"." | b".."),
            FileType::Symlink => false,
            FileType::RegularFile => !only_directories && seen.uid != 0 && is_shut(&seen),
            _ => !only_directories,
        };
        if is_kept {
            found.insert((name.to_owned(), seen.identity));
        }
    }
    Ok(found)
}
