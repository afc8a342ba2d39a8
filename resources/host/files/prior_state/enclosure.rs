//! The directory that closes an object to other users, and the check that a restored object returns below such a
//! directory.
//!
//! A content with a mode for all is private below a directory that others may not enter. An undo resolves each
//! path again: a user who can write a directory above can give another directory that name.

use crate::host::files::Files;
use crate::host::files::content::read::seen;
use crate::host::files::fault::{Fault, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::openat;
use crate::prior_state::{Enclosure, PriorEntry};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The right of others to enter a directory.
const ENTERED_BY_OTHERS: u32 = 0o001;

/// The directories that one undo has restored, with their identities.
#[derive(Debug, Default)]
pub struct RestoredDirectories(HashMap<PathBuf, (u64, u64)>);

impl RestoredDirectories {
    pub(in crate::host::files) fn note(&mut self, path: &Path, identity: (u64, u64)) {
        self.0.insert(path.to_owned(), identity);
    }

    /// Returns the nearest restored directory above the path, with its distance: 1 is the parent directory.
    fn above(&self, path: &Path) -> Option<(usize, (u64, u64))> {
        let mut ancestors = path.ancestors().enumerate().skip(1);
        ancestors.find_map(|(levels, above)| Some((levels, *self.0.get(above)?)))
    }
}

impl Entry<'_> {
    /// Returns the innermost directory above that others may not enter, if somebody besides its owner can give
    /// another directory its name.
    pub(in crate::host::files) fn enclosure(&self) -> Result<Option<Enclosure>, Fault> {
        let own_uid = rustix::process::geteuid().as_raw();
        if own_uid != 0 {
            return Ok(None);
        }
        let mut enclosure = None;
        for above in Above::of(self)? {
            let above = above?;
            let Some(Enclosure { uid, .. }) = enclosure else {
                let EntryStat { uid, gid, mode, .. } = above;
                let is_closed = mode & ENTERED_BY_OTHERS == 0;
                enclosure = is_closed.then_some(Enclosure { uid, gid, mode });
                continue;
            };
            let is_owners = above.uid == own_uid || above.uid == uid;
            if !is_owners || above.mode & 0o022 != 0 {
                return Ok(enclosure);
            }
        }
        Ok(None)
    }

    /// Returns true if a user besides root and this owner can change a directory above these levels.
    fn is_movable_above(&self, levels: usize, owner: u32) -> Result<bool, Fault> {
        for above in Above::of(self)?.skip(levels) {
            let above = above?;
            let is_open = above.mode & 0o022 != 0 && above.mode & 0o1000 == 0;
            if (above.uid != 0 && above.uid != owner) || is_open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn closed_directory(&self) -> Result<Option<EntryStat>, Fault> {
        for above in Above::of(self)? {
            let above = above?;
            if above.mode & ENTERED_BY_OTHERS == 0 {
                return Ok(Some(above));
            }
        }
        Ok(None)
    }
}

impl Files {
    /// Rejects a change below a directory that is declared with this owner and closed to others, if another directory
    /// has its name and other users can have put it there. A directory without a declared owner belongs to root, or to
    /// the declared owner of the changed object, which is `own`.
    pub fn guard_closed(
        &self,
        spot: &Entry<'_>,
        (directory, owner): (&Path, Option<u32>),
        own: Option<u32>,
    ) -> Result<(), Fault> {
        let levels = spot.path.components().count().saturating_sub(directory.components().count());
        let Some(nearest) = levels.checked_sub(1).filter(|_| self.is_root()) else { return Ok(()) };
        let Some(found) = Above::of(spot)?.nth(nearest).transpose()? else { return Ok(()) };
        let is_owners = match owner {
            Some(uid) => uid == found.uid,
            None => !self.is_strangers(&found) || own == Some(found.uid),
        };
        let is_declared = found.mode & ENTERED_BY_OTHERS == 0 && is_owners;
        let is_theirs = owner.is_some_and(|uid| uid != found.uid) && self.is_strangers(&found);
        let is_movable = || spot.is_movable_above(levels, owner.unwrap_or(0));
        if is_declared || !(is_theirs || is_movable()?) {
            return Ok(());
        }
        let why = "a directory above is not the declared one, or not closed to others yet";
        let hint = if owner.is_none() { UNOWNED } else { HINT };
        Err(Fault::refused(said("change", spot.path(), why).hint(hint)))
    }

    /// Rejects the restoration of an object in a directory that took the place of the recorded one: the directory
    /// that this undo restored, or the one that closed the object to others.
    pub(in crate::host::files) fn guard_enclosure(
        &self,
        spot: &Entry<'_>,
        thing: &PriorEntry,
        restored: &RestoredDirectories,
    ) -> Result<(), Fault> {
        if let Some((levels, identity)) = restored.above(spot.path) {
            let above = Above::of(spot)?.nth(levels - 1).transpose()?;
            if above.is_none_or(|above| above.identity != identity) {
                let why = "another directory has taken the place of the restored one";
                return Err(Fault::refused(said("put back", spot.path(), why).hint(HINT)));
            }
            // The directory itself has its recorded owner and mode again.
            if levels == 1 {
                return Ok(());
            }
        } else if thing.enclosure.is_none() {
            self.guard_way(spot)?;
        }
        let Some(recorded) = thing.enclosure.filter(|_| self.is_root()) else { return Ok(()) };
        let is_closed = |above: EntryStat| {
            let is_owners = above.uid == 0 || above.uid == recorded.uid;
            let by_group = above.mode & 0o070;
            is_owners
                && (by_group & !recorded.mode == 0)
                && (by_group == 0 || above.gid == 0 || above.gid == recorded.gid)
        };
        if spot.closed_directory()?.is_some_and(is_closed) {
            return Ok(());
        }
        let why = "the directory above that closed it to others is another one now, or open";
        Err(Fault::refused(said("put back", spot.path(), why).hint(HINT)))
    }
}

const UNOWNED: &str = "declare the `owner` of the directory above that the graph closes";
const HINT: &str = "check owner and mode of the directories above, and try again";

/// The directories above an entry, from its own directory to the root, through descriptors.
struct Above {
    next: Option<OwnedFd>,
}

impl Above {
    fn of(spot: &Entry<'_>) -> Result<Self, Fault> {
        open(&spot.directory, ".").map(|own| Self { next: Some(own) })
    }

    fn step(&mut self, here: &OwnedFd) -> Result<EntryStat, Fault> {
        let found = seen(here)?;
        let above = open(here, "..")?;
        // The root is its own parent.
        self.next = (seen(&above)?.identity != found.identity).then_some(above);
        Ok(found)
    }
}

impl Iterator for Above {
    type Item = Result<EntryStat, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let here = self.next.take()?;
        Some(self.step(&here))
    }
}

fn open(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty()).map_err(Fault::os("look at the directory of"))
}
