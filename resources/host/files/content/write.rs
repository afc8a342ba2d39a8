//! Writes files whole: a staged file is completed and synced before it replaces the old file.

use crate::host::files::Files;
use crate::host::files::content::new_content::Content;
use crate::host::files::content::read::seen;
use crate::host::files::content::staged_file::Candidate;
use crate::host::files::fault::{Fault, Why, said};
use crate::host::files::objects::attributes::{Attributes, handle_of, path_of};
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::prior_state::record::{PendingNote, grants_group_more};
use crate::host::files::takeover::marks::{TAKEN_OVER, has_open_mark_at};
use crate::host::files::takeover::other_users::{Keeping, own_gid};
use crate::host::kernel::{
    fchmod, fchown, fsetxattr, fsync, ftruncate, openat, pwrite, reserve_room,
};
use crate::permit::Permit;
use rustix::fs::{FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A regular file to write.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// The content.
    pub content: &'a Content<'a>,
    /// The owner; the user of this process if none is given.
    pub owner: Option<u32>,
    /// The group; the choice of the directory if none is given.
    pub group: Option<u32>,
    /// The permission bits.
    pub mode: u32,
    /// The object to replace; no directory.
    pub instead_of: Option<&'a EntryStat>,
    /// The validation of the staged file before it replaces the old file.
    pub acceptance: Option<&'a dyn Acceptance>,
    /// The extended attributes. If none are given, those of the replaced file stay, except those that a stranger
    /// may have set.
    pub extended: Option<&'a [(Vec<u8>, Vec<u8>)]>,
    /// Only the owner and group may read the file, as far as the mode allows.
    pub sensitive: bool,
    /// The file is replaced in one step or not at all: a write in place would lose what others write meanwhile, and its
    /// interruption would leave a part.
    pub whole_only: bool,
    /// The record of the prior state, which is durable before the old file is replaced.
    pub record: Option<&'a PendingNote<'a>>,
}

impl<'a> Draft<'a> {
    /// Makes the draft of a new file that only the user of this process may read.
    #[must_use]
    pub fn private(content: &'a Content<'a>) -> Self {
        Self {
            content,
            owner: None,
            group: None,
            mode: 0o600,
            instead_of: None,
            acceptance: None,
            extended: None,
            sensitive: true,
            whole_only: false,
            record: None,
        }
    }

    /// Returns the owner, group and mode of the file.
    pub(in crate::host::files) const fn attributes(&self) -> Attributes {
        Attributes { owner: self.owner, group: self.group, mode: Some(self.mode) }
    }

    /// Waits until the record of the prior state is durable.
    fn wait_for_record(&self) -> Result<(), Fault> {
        self.record.map_or(Ok(()), PendingNote::wait)
    }
}

/// A validation that must accept a staged file before it replaces the old file.
pub trait Acceptance: Debug {
    /// Examines the complete file, which exists at this path during the call.
    ///
    /// # Errors
    ///
    /// Returns the reason for rejecting the file.
    fn accept(&self, candidate: &Path) -> Result<(), Fault>;
}

/// The method by which a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// A new file has replaced the old one in one step.
    Whole,
    /// The old file was overwritten in place, for this reason.
    InPlace(&'static str),
}

impl Files {
    /// Writes a file.
    ///
    /// # Errors
    ///
    /// Fails if the present object was replaced, the validation rejects the content, the permit was revoked, or
    /// the kernel returned an error. The fault says whether the file was changed.
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
            None if draft.sensitive && grants_group_more(draft.mode) => Some(own_gid()),
            None => self.group_of_new(spot, (draft.owner, draft.mode))?,
        };
        let draft = &Draft { group, ..*draft };
        // Before its validation, no content is written into the old file, so a fault here is final.
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
            // Nobody has seen the staged file, so nothing counts as changed.
            fault.touched = false;
            let fault = candidate.abandon(spot, fault);
            return match (may_write_into, &fault.why) {
                // The undeclared owner of the old file stays, and only root may give files away.
                (Some(old), Why::Os { doing: GIVING, errno: Errno::PERM })
                    if draft.owner == Some(old.uid) && draft.group == Some(old.gid) =>
                {
                    self.put_in_place(permit, spot, draft, (old, "the owner must not change"))
                }
                _ => Err(fault),
            };
        }
        if let Err(fault) = draft.wait_for_record() {
            return Err(candidate.abandon(spot, fault));
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

    /// Overwrites the existing file in place. An interruption leaves a partial file, so this is only for places
    /// that no other file can take.
    fn put_in_place(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        draft: &Draft<'_>,
        (old, why): (&EntryStat, &'static str),
    ) -> Result<Put, Fault> {
        if draft.whole_only {
            let what = format!("a part of the file cannot be changed safely: {why}");
            let hint =
                "declare the whole content with `file`, or edit the file that is mounted there";
            return Err(Fault::refused(said("edit", spot.path(), &what).hint(hint)));
        }
        self.guard_in_place(spot, draft, old)?;
        draft.wait_for_record()?;
        permit.check()?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            openat(&spot.directory, spot.name, flags, Mode::empty()).map_err(Fault::os("write"))?;
        if seen(&file)? != *old {
            return Err(Fault::moved());
        }
        // A write that ends in the middle would lose the rest of the old content.
        if draft.content.size() > 0 {
            reserve_room(&file, draft.content.size()).map_err(Fault::os("reserve room in"))?;
        }
        let owner = draft.owner.filter(|uid| *uid != old.uid).map(Uid::from_raw);
        let group = draft.group.filter(|gid| *gid != old.gid).map(Gid::from_raw);
        let mut touched = false;
        if owner.is_some() || group.is_some() {
            fchown(&file, owner, group).map_err(Fault::os("change the owner of"))?;
            touched = true;
        }
        // The change of owner may have cleared bits.
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

    /// Makes the changes in a directory durable, together with those of concurrent callers.
    pub(in crate::host::files) fn sync_directory(
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

/// The step name of a fault on changing the owner, to distinguish it from others.
const GIVING: &str = "give to its owner";

/// Writes content and attributes in an order in which the access is never wider than at the end.
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
        // Setting an access list also sets the mode.
        fchmod(file, Mode::RUSR | Mode::WUSR).map_err(Fault::os("write"))?;
    }
    // An edit keeps the rest of a content that another user may have chosen.
    if let Some(old) = old.filter(|_| draft.whole_only)
        && has_open_mark_at(Path::new(&path_of(&handle_of(spot, old)?)))
    {
        fsetxattr(file, TAKEN_OVER, b"", XattrFlags::empty()).map_err(Fault::os("mark"))?;
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
        // Comes after the content and the owner, because changing those clears capabilities.
        xattr::write(file, extended)?;
    }
    permit.check()?;
    fchmod(file, Mode::from_raw_mode(draft.mode)).map_err(Fault::os("change the mode of"))?;
    fsync(file).map_err(Fault::os("sync"))
}

/// The size of a hole in bytes, a page of most file systems.
const HOLE: usize = 4096;

/// Writes a new and empty file. Pages of zeros stay holes, so a sparse copy takes no more space than its
/// source.
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

/// Writes the content and returns its size; a fault says whether anything was written.
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
