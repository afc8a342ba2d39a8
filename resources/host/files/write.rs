//! A file is written whole: under no name or a hidden one, complete and synced before it takes the place of the old.

use super::Files;
use super::attributes::{handle_of, path_of};
use super::fault::{Fault, Why};
use super::read::seen;
use super::spot::{Seen, Spot};
use super::xattr;
use crate::permit::Permit;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::fs::{fchmod, fchown, fsync, ftruncate, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

/// So much is written between two looks at the permit.
const CHUNK: usize = 1 << 20;

/// A regular file to be.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Its content.
    pub content: &'a [u8],
    /// Its owner; ours where none is given.
    pub owner: Option<u32>,
    /// Its group; what the directory gives where none is given.
    pub group: Option<u32>,
    /// Its permission bits.
    pub mode: u32,
    /// What was found in its place; no directory.
    pub instead_of: Option<&'a Seen>,
}

/// How a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// As a new file that took the place of the old in one step.
    Whole,
    /// Into the old file, because of this.
    InPlace(&'static str),
}

/// A file that is complete and has no name yet, or a hidden one.
struct Candidate {
    file: OwnedFd,
    hidden: Option<OsString>,
}

impl Files {
    /// Writes a file.
    pub fn put(&self, permit: &Permit, spot: &Spot<'_>, draft: &Draft<'_>) -> Result<Put, Fault> {
        let old = draft.instead_of.filter(|seen| seen.kind == FileType::RegularFile);
        if let Some(old) = old {
            self.guard_links(spot, old)?;
        }
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        let candidate = match self.birth(permit, spot) {
            Ok(candidate) => candidate,
            Err(fault) => {
                let (Some(old), Some(Errno::ACCESS)) = (old, fault.errno()) else {
                    return Err(fault);
                };
                return put_in_place(permit, spot, draft, old, "its directory is not writable");
            }
        };
        if let Err(mut fault) = fill(permit, spot, draft, old, &candidate.file) {
            // However much was written, nobody has seen it.
            fault.touched = false;
            let fault = abandon(spot, candidate, fault);
            return match (old, &fault.why) {
                // An owner that was not declared is kept, and we may not give files away.
                (Some(old), Why::Os { doing: GIVING, errno: Errno::PERM })
                    if draft.owner == Some(old.uid) && draft.group == Some(old.gid) =>
                {
                    put_in_place(permit, spot, draft, old, "its owner is kept")
                }
                _ => Err(fault),
            };
        }
        match self.place(permit, spot, draft, candidate) {
            Ok(()) => {}
            Err(fault) => {
                let (Some(old), Some(Errno::BUSY)) = (old, fault.errno()) else {
                    return Err(fault);
                };
                return put_in_place(permit, spot, draft, old, "it is a mount point");
            }
        }
        self.sync_directory(spot, directory)?;
        Ok(Put::Whole)
    }

    /// Makes what was done in the directory durable, together with what others do there at the same time.
    pub(super) fn sync_directory(
        &self,
        spot: &Spot<'_>,
        identity: (u64, u64),
    ) -> Result<(), Fault> {
        self.syncs
            .sync(identity, &spot.directory)
            .map_err(|errno| Fault::os("sync the directory of")(errno).after(true))
    }

    /// A file of ours that nobody else can open.
    fn birth(&self, permit: &Permit, spot: &Spot<'_>) -> Result<Candidate, Fault> {
        permit.check()?;
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&spot.directory, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(Candidate { file, hidden: None }),
            // The file system, or the kernel, has no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
            Err(errno) => return Err(Fault::os("write")(errno)),
        }
        let name = self.names.next();
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file =
            openat(&spot.directory, name.as_os_str(), flags, mode).map_err(Fault::os("write"))?;
        Ok(Candidate { file, hidden: Some(name) })
    }

    /// Gives the candidate its name.
    fn place(
        &self,
        permit: &Permit,
        spot: &Spot<'_>,
        draft: &Draft<'_>,
        mut candidate: Candidate,
    ) -> Result<(), Fault> {
        if draft.instead_of.is_none() && candidate.hidden.is_none() {
            permit.check()?;
            return match name_it(&candidate.file, spot, spot.name) {
                Err(Errno::EXIST) => Err(Fault::moved()),
                other => other.map_err(Fault::os("create")),
            };
        }
        let hidden = if let Some(hidden) = candidate.hidden.take() {
            hidden
        } else {
            permit.check()?;
            let hidden = self.names.next();
            name_it(&candidate.file, spot, &hidden).map_err(Fault::os("write"))?;
            hidden
        };
        take_place(permit, spot, &hidden, draft.instead_of)
            .map_err(|fault| forget(spot, &hidden, fault))
    }
}

/// Takes a hidden name away again; the fault says so if that fails.
fn abandon(spot: &Spot<'_>, candidate: Candidate, fault: Fault) -> Fault {
    match candidate.hidden {
        Some(name) => forget(spot, &name, fault),
        None => fault,
    }
}

/// Takes away a hidden name that did not become the real one.
pub(super) fn forget(spot: &Spot<'_>, name: &OsStr, fault: Fault) -> Fault {
    match unlinkat(&spot.directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => fault,
        Err(_) => fault.after(true),
    }
}

/// Renames over what was seen, and over nothing else.
pub(super) fn take_place(
    permit: &Permit,
    spot: &Spot<'_>,
    hidden: &OsStr,
    instead_of: Option<&Seen>,
) -> Result<(), Fault> {
    permit.check()?;
    if instead_of.is_some() {
        spot.still(instead_of)?;
        return renameat(&spot.directory, hidden, &spot.directory, spot.name)
            .map_err(Fault::os("replace"));
    }
    let (from, to) = (&spot.directory, &spot.directory);
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(from, hidden, to, spot.name, flags) {
        Err(Errno::EXIST) => Err(Fault::moved()),
        // A file system without that flag.
        Err(Errno::INVAL | Errno::NOSYS) => {
            spot.still(None)?;
            renameat(from, hidden, to, spot.name).map_err(Fault::os("create"))
        }
        other => other.map_err(Fault::os("create")),
    }
}

/// A fault of giving a file to its owner, told from the others.
const GIVING: &str = "give to its owner";

/// Content and attributes, in an order in which it is never wider than in the end.
fn fill(
    permit: &Permit,
    spot: &Spot<'_>,
    draft: &Draft<'_>,
    old: Option<&Seen>,
    file: &OwnedFd,
) -> Result<(), Fault> {
    if let Some(old) = old {
        let handle = handle_of(spot, old)?;
        permit.check()?;
        xattr::copy(&path_of(&handle), file)?;
        // An access list carries a mode with it.
        fchmod(file, Mode::RUSR | Mode::WUSR).map_err(Fault::os("write"))?;
    }
    write_all(permit, file, draft.content)?;
    let born = seen(file)?;
    let owner = draft.owner.filter(|uid| *uid != born.uid);
    let group = draft.group.filter(|gid| *gid != born.gid);
    if owner.is_some() || group.is_some() {
        permit.check()?;
        fchown(file, owner.map(Uid::from_raw), group.map(Gid::from_raw))
            .map_err(Fault::os(GIVING))?;
    }
    permit.check()?;
    fchmod(file, Mode::from_raw_mode(draft.mode)).map_err(Fault::os("change the mode of"))?;
    fsync(file).map_err(Fault::os("sync"))
}

fn write_all(permit: &Permit, file: &OwnedFd, content: &[u8]) -> Result<(), Fault> {
    let mut offset = 0_usize;
    while let Some(left) = content.get(offset..).filter(|left| !left.is_empty()) {
        permit.check()?;
        let chunk = &left[..left.len().min(CHUNK)];
        match rustix::io::pwrite(file, chunk, offset as u64) {
            Ok(0) => return Err(Fault::os("write")(Errno::IO)),
            Ok(count) => offset += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::os("write")(errno).after(offset > 0)),
        }
    }
    Ok(())
}

/// A first name for a file without one.
fn name_it(file: &OwnedFd, spot: &Spot<'_>, name: &OsStr) -> Result<(), Errno> {
    match linkat(file, "", &spot.directory, name, AtFlags::EMPTY_PATH) {
        // Older kernels want a capability for that, and offer /proc to all.
        Err(Errno::NOENT | Errno::PERM) => {
            linkat(CWD, path_of(file), &spot.directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}

/// Into the file that is there: not whole if it is cut off, but the only way where no other file can take its place.
fn put_in_place(
    permit: &Permit,
    spot: &Spot<'_>,
    draft: &Draft<'_>,
    old: &Seen,
    why: &'static str,
) -> Result<Put, Fault> {
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
    if draft.mode != old.mode {
        permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
        fchmod(&file, Mode::from_raw_mode(draft.mode))
            .map_err(|errno| Fault::os("change the mode of")(errno).after(touched))?;
        touched = true;
    }
    write_all(permit, &file, draft.content).map_err(|fault| fault.after(touched))?;
    ftruncate(&file, draft.content.len() as u64)
        .and_then(|()| fsync(&file))
        .map_err(|errno| Fault::os("write")(errno).after(true))?;
    Ok(Put::InPlace(why))
}
