//! A file that is to take a place: first without a name, or under a hidden one, or in a room of its own where it can be tried.

use super::Files;
use super::attributes::path_of;
use super::entry::{Entry, EntryStat};
use super::fault::Fault;
use super::temp_names::TemporaryName;
use crate::host::kernel::{linkat, mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat};
use crate::permit::Permit;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

/// A file that is complete and has no name yet, or a hidden one.
pub(super) struct Candidate {
    pub(super) file: OwnedFd,
    hidden: Option<TemporaryName>,
    room: Option<Room>,
}

/// A hidden directory that only we may enter: what lies in it has the name that it will have.
///
/// It also holds a link of the directory's own name: nobody else could have put that there, so that what a dead process left
/// is known to be ours (S-5).
struct Room {
    name: TemporaryName,
    handle: OwnedFd,
}

impl Files {
    /// A file that nobody else can open: ours, or that of who will own it.
    pub(super) fn birth(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (owner, group): (Option<u32>, Option<u32>),
    ) -> Result<Candidate, Fault> {
        permit.check()?;
        let _guise = self.guise(spot, owner, group)?;
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&spot.directory, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(Candidate { file, hidden: None, room: None }),
            // The file system, or the kernel, has no files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
            Err(errno) => return Err(Fault::os("write")(errno)),
        }
        let (name, file) = self.names.make("write", |name| create(&spot.directory, name))?;
        Ok(Candidate { file, hidden: Some(name), room: None })
    }

    /// The same, in a room of its own, so that a program can be shown it before it takes its place.
    pub(super) fn birth_in_room(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
    ) -> Result<Candidate, Fault> {
        permit.check()?;
        let (room, ()) =
            self.names.make("write", |name| mkdirat(&spot.directory, name, Mode::RWXU))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&spot.directory, &*room, flags, Mode::empty())
            .map_err(Fault::os("write"))
            .and_then(|handle| {
                // Whoever owns the directory above could have put another in its place.
                let seen = super::read::seen(&handle)?;
                if seen.uid != self.uid || seen.mode & 0o777 != 0o700 {
                    return Err(Fault::moved());
                }
                symlinkat("ours", &handle, &*room).map_err(Fault::os("write"))?;
                let file = create(&handle, spot.name).map_err(Fault::os("write"));
                let file = file.inspect_err(|_| leave(&handle, &room))?;
                Ok((handle, file))
            });
        let (handle, file) = made.inspect_err(|_| {
            let _left = unlinkat(&spot.directory, &*room, AtFlags::REMOVEDIR);
        })?;
        Ok(Candidate { file, hidden: None, room: Some(Room { name: room, handle }) })
    }

    /// Gives the candidate its name.
    pub(super) fn place(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        instead_of: Option<&EntryStat>,
        mut candidate: Candidate,
    ) -> Result<(), Fault> {
        let made = super::read::seen(&candidate.file)?;
        if let Some(room) = candidate.room.take() {
            let placed = take_place_from(permit, (&room.handle, spot.name), spot, instead_of);
            return match placed {
                Ok(()) => room.vacate(spot, None),
                Err(fault) => Err(room.abandoned(spot, fault)),
            };
        }
        let _guise = self.guise(spot, Some(made.uid), Some(made.gid))?;
        if instead_of.is_none() && candidate.hidden.is_none() {
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
            self.names.make("write", |name| name_it(&candidate.file, spot, name))?.0
        };
        take_place(permit, spot, &hidden, instead_of).map_err(|fault| forget(spot, &hidden, fault))
    }
}

impl Candidate {
    /// Where another program finds it: through our own descriptor of its room, so that nobody can lead it elsewhere.
    pub(super) fn path(&self, spot: &Entry<'_>) -> Option<PathBuf> {
        let room = self.room.as_ref()?;
        let process = std::process::id();
        let through = PathBuf::from(format!("/proc/{process}/fd/{}", room.handle.as_raw_fd()));
        let directory = if through.exists() {
            through
        } else {
            // Without /proc there is only its name.
            spot.path.parent()?.join(&*room.name)
        };
        Some(directory.join(spot.name))
    }

    /// Takes it away again; the fault says so if that fails.
    pub(super) fn abandon(self, spot: &Entry<'_>, fault: Fault) -> Fault {
        match (self.room, self.hidden) {
            (Some(room), _) => room.abandoned(spot, fault),
            (None, Some(name)) => forget(spot, &name, fault),
            (None, None) => fault,
        }
    }
}

impl Room {
    /// Takes away the room and what is still in it.
    fn vacate(self, spot: &Entry<'_>, left: Option<&OsStr>) -> Result<(), Fault> {
        if let Some(name) = left {
            let _gone = unlinkat(&self.handle, name, AtFlags::empty());
        }
        leave(&self.handle, &self.name);
        match unlinkat(&spot.directory, &*self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Fault::os("tidy the directory of")(errno).after(true)),
        }
    }

    fn abandoned(self, spot: &Entry<'_>, fault: Fault) -> Fault {
        match self.vacate(spot, Some(spot.name)) {
            Ok(()) => fault,
            Err(_) => fault.after(true),
        }
    }
}

/// Takes away what says whose room it is.
fn leave(room: &OwnedFd, name: &OsStr) {
    let _gone = unlinkat(room, name, AtFlags::empty());
}

fn create(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Takes away a hidden name that did not become the real one.
pub(super) fn forget(spot: &Entry<'_>, name: &OsStr, fault: Fault) -> Fault {
    match unlinkat(&spot.directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => fault,
        Err(_) => fault.after(true),
    }
}

/// Renames over what was seen, and over nothing else.
pub(super) fn take_place(
    permit: &Permit,
    spot: &Entry<'_>,
    hidden: &OsStr,
    instead_of: Option<&EntryStat>,
) -> Result<(), Fault> {
    take_place_from(permit, (&spot.directory, hidden), spot, instead_of)
}

fn take_place_from(
    permit: &Permit,
    (from, hidden): (&OwnedFd, &OsStr),
    spot: &Entry<'_>,
    instead_of: Option<&EntryStat>,
) -> Result<(), Fault> {
    permit.check()?;
    let to = &spot.directory;
    if instead_of.is_some() {
        spot.still(instead_of)?;
        return renameat(from, hidden, to, spot.name).map_err(Fault::os("replace"));
    }
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match renameat_with(from, hidden, to, spot.name, flags) {
        Err(Errno::EXIST) => Err(Fault::moved()),
        // A file system without that flag.
        Err(Errno::INVAL | Errno::NOSYS) => {
            spot.still(None)?;
            renameat(from, hidden, to, spot.name).map_err(Fault::os("create"))
        }
        other => other.map_err(Fault::os("create")),
    }
}

/// A first name for a file without one.
fn name_it(file: &OwnedFd, spot: &Entry<'_>, name: &OsStr) -> Result<(), Errno> {
    match linkat(file, "", &spot.directory, name, AtFlags::EMPTY_PATH) {
        // Older kernels want a capability for that, and offer /proc to all.
        Err(Errno::NOENT | Errno::PERM) => {
            linkat(CWD, path_of(file), &spot.directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}
