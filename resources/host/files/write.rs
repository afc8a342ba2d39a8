//! A file is written whole: under no name or a hidden one, complete and synced before it takes the place of the old.

use super::Files;
use super::attributes::{handle_of, path_of};
use super::content::Content;
use super::entry::{Entry, EntryStat};
use super::fault::{Fault, Why};
use super::read::seen;
use super::staged_file::Candidate;
use super::takeover::Keeping;
use super::xattr;
use crate::host::kernel::{fchmod, fchown, fsync, ftruncate, openat, pwrite};
use crate::permit::Permit;
use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A regular file to be.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Its content.
    pub content: &'a Content<'a>,
    /// Its owner; ours where none is given.
    pub owner: Option<u32>,
    /// Its group; what the directory gives where none is given.
    pub group: Option<u32>,
    /// Its permission bits.
    pub mode: u32,
    /// What was found in its place; no directory.
    pub instead_of: Option<&'a EntryStat>,
    /// Who must accept it before it takes its place.
    pub acceptance: Option<&'a dyn Acceptance>,
    /// Its extended attributes; those of what was found in its place, as far as no stranger gave it them, where none are given.
    pub extended: Option<&'a [(Vec<u8>, Vec<u8>)]>,
    /// Nobody may read it but those whom owner, group and mode name.
    pub sensitive: bool,
}

/// Whoever must accept a file before it takes its place.
pub trait Acceptance: Debug {
    /// Looks at the complete file, which is at this path until the answer; a fault says why it is not accepted.
    fn accept(&self, candidate: &Path) -> Result<(), Fault>;
}

/// How a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// As a new file that took the place of the old in one step.
    Whole,
    /// Into the old file, because of this.
    InPlace(&'static str),
}

impl Files {
    /// Writes a file.
    pub fn put(&self, permit: &Permit, spot: &Entry<'_>, draft: &Draft<'_>) -> Result<Put, Fault> {
        let old = draft.instead_of.filter(|seen| seen.kind == FileType::RegularFile);
        if let Some(old) = old {
            self.guard_links(spot, old)?;
        }
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        let keeping = self.keeping(spot, draft, old)?;
        let group = match draft.group {
            Some(group) => Some(group),
            None => self.group_of_new(spot, draft.owner)?,
        };
        let draft = &Draft { group, ..*draft };
        // What must be accepted first is never written without that: then a fault is a fault.
        let may_write_into = old.filter(|_| draft.acceptance.is_none());
        let born = match draft.acceptance {
            Some(_) => self.birth_in_room(permit, spot),
            None => self.birth(permit, spot, (draft.owner, draft.group)),
        };
        let candidate = match born {
            Ok(candidate) => candidate,
            Err(fault) => {
                let (Some(old), Some(Errno::ACCESS)) = (may_write_into, fault.errno()) else {
                    return Err(fault);
                };
                return self.put_in_place(
                    permit,
                    spot,
                    draft,
                    (old, "the directory is not writable"),
                );
            }
        };
        if let Err(mut fault) = complete(permit, spot, draft, (old, keeping), &candidate) {
            // However much was written, nobody has seen it.
            fault.touched = false;
            let fault = candidate.abandon(spot, fault);
            return match (may_write_into, &fault.why) {
                // An owner that was not declared is kept, and we may not give files away.
                (Some(old), Why::Os { doing: GIVING, errno: Errno::PERM })
                    if draft.owner == Some(old.uid) && draft.group == Some(old.gid) =>
                {
                    self.put_in_place(permit, spot, draft, (old, "the owner must not change"))
                }
                _ => Err(fault),
            };
        }
        match self.place(permit, spot, draft.instead_of, candidate) {
            Ok(()) => {}
            Err(fault) => {
                let (Some(old), Some(Errno::BUSY)) = (old, fault.errno()) else {
                    return Err(fault);
                };
                return self.put_in_place(permit, spot, draft, (old, "the path is a mount point"));
            }
        }
        self.sync_directory(spot, directory)?;
        Ok(Put::Whole)
    }

    /// Into the file that is there: not whole if it is cut off, but the only way where no other file can take its place.
    fn put_in_place(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        draft: &Draft<'_>,
        (old, why): (&EntryStat, &'static str),
    ) -> Result<Put, Fault> {
        self.guard_in_place(spot, draft, old)?;
        permit.check()?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            openat(&spot.directory, spot.name, flags, Mode::empty()).map_err(Fault::os("write"))?;
        if seen(&file)? != *old {
            return Err(Fault::moved());
        }
        let owner = draft.owner.filter(|uid| *uid != old.uid).map(Uid::from_raw);
        let group = draft.group.filter(|gid| *gid != old.gid).map(Gid::from_raw);
        let mut touched = false;
        if owner.is_some() || group.is_some() {
            fchown(&file, owner, group).map_err(Fault::os("change the owner of"))?;
            touched = true;
        }
        // A change of hands may have taken bits away.
        if draft.mode != old.mode || touched {
            permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
            fchmod(&file, Mode::from_raw_mode(draft.mode))
                .map_err(|errno| Fault::os("change the mode of")(errno).after(touched))?;
            touched = true;
        }
        if !self.is_trusted(spot, old, draft.owner)? {
            permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
            xattr::remove_lists(&path_of(&file)).map_err(|fault| fault.after(touched))?;
        }
        let size = write_all(permit, &file, draft.content).map_err(|fault| fault.after(touched))?;
        ftruncate(&file, size)
            .and_then(|()| fsync(&file))
            .map_err(|errno| Fault::os("write")(errno).after(true))?;
        Ok(Put::InPlace(why))
    }

    /// Makes what was done in the directory durable, together with what others do there at the same time.
    pub(super) fn sync_directory(
        &self,
        spot: &Entry<'_>,
        identity: (u64, u64),
    ) -> Result<(), Fault> {
        if spot.synced_later {
            return Ok(());
        }
        self.syncs
            .sync(identity, &spot.directory)
            .map_err(|errno| Fault::os("sync the directory of")(errno).after(true))
    }
}

fn complete(
    permit: &Permit,
    spot: &Entry<'_>,
    draft: &Draft<'_>,
    kept: (Option<&EntryStat>, Keeping),
    candidate: &Candidate,
) -> Result<(), Fault> {
    fill(permit, spot, draft, kept, &candidate.file)?;
    match (draft.acceptance, candidate.path(spot)) {
        (Some(acceptance), Some(path)) => acceptance.accept(&path),
        (Some(_), None) => Err(Fault::moved()),
        (None, _) => Ok(()),
    }
}

/// A fault of giving a file to its owner, told from the others.
const GIVING: &str = "give to its owner";

/// Content and attributes, in an order in which it is never wider than in the end.
fn fill(
    permit: &Permit,
    spot: &Entry<'_>,
    draft: &Draft<'_>,
    (old, keeping): (Option<&EntryStat>, Keeping),
    file: &OwnedFd,
) -> Result<(), Fault> {
    if keeping != Keeping::Inherited {
        permit.check()?;
        xattr::remove_lists(&path_of(file))?;
    }
    if let (Some(old), Keeping::OfTheOld) = (old, keeping) {
        let handle = handle_of(spot, old)?;
        permit.check()?;
        xattr::copy(&path_of(&handle), file)?;
        // An access list carries a mode with it.
        fchmod(file, Mode::RUSR | Mode::WUSR).map_err(Fault::os("write"))?;
    }
    write_sparse(permit, file, draft.content)?;
    let born = seen(file)?;
    let owner = draft.owner.filter(|uid| *uid != born.uid);
    let group = draft.group.filter(|gid| *gid != born.gid);
    if owner.is_some() || group.is_some() {
        permit.check()?;
        fchown(file, owner.map(Uid::from_raw), group.map(Gid::from_raw))
            .map_err(Fault::os(GIVING))?;
    }
    if let Some(extended) = draft.extended {
        permit.check()?;
        // After the content and the owner, whose change would take capabilities away.
        xattr::write(file, extended)?;
    }
    permit.check()?;
    fchmod(file, Mode::from_raw_mode(draft.mode)).map_err(Fault::os("change the mode of"))?;
    fsync(file).map_err(Fault::os("sync"))
}

/// Holes are made of so many zeros, in the size of a page of most file systems.
const HOLE: usize = 4096;

/// Writes a new and empty file. Pages of zeros stay holes: a copy takes no more room than what it is made from.
fn write_sparse(permit: &Permit, file: &OwnedFd, content: &Content<'_>) -> Result<(), Fault> {
    let (mut offset, mut end) = (0, 0);
    content.feed(&|| permit.check(), &mut |piece| {
        let mut from = 0;
        for (number, page) in piece.chunks(HOLE).enumerate() {
            if page.len() == HOLE && page.iter().all(|byte| *byte == 0) {
                let at = number * HOLE;
                write_piece(file, piece.get(from..at).unwrap_or_default(), offset + from as u64)?;
                from = at + HOLE;
            }
        }
        let rest = piece.get(from..).unwrap_or_default();
        write_piece(file, rest, offset + from as u64)?;
        offset += piece.len() as u64;
        if !rest.is_empty() {
            end = offset;
        }
        Ok(true)
    })?;
    if end < offset {
        ftruncate(file, offset).map_err(Fault::os("write"))?;
    }
    Ok(())
}

/// Answers how much was written; a fault says whether anything was.
fn write_all(permit: &Permit, file: &OwnedFd, content: &Content<'_>) -> Result<u64, Fault> {
    let mut offset = 0;
    let written = content.feed(&|| permit.check(), &mut |piece| {
        write_piece(file, piece, offset)?;
        offset += piece.len() as u64;
        Ok(true)
    });
    written.map_err(|fault| fault.after(offset > 0))?;
    Ok(offset)
}

fn write_piece(file: &OwnedFd, piece: &[u8], mut offset: u64) -> Result<(), Fault> {
    let mut left = piece;
    while !left.is_empty() {
        match pwrite(file, left, offset) {
            Ok(0) => return Err(Fault::os("write")(Errno::IO)),
            Ok(count) => {
                offset += count as u64;
                left = left.get(count..).unwrap_or_default();
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::os("write")(errno).after(left.len() < piece.len())),
        }
    }
    Ok(())
}
