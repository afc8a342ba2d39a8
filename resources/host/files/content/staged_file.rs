//! A staged file: without a name, under a temporary name, or in a private directory where a program can
//! validate the file.

use crate::host::files::Files;
use crate::host::files::content::temp_names::TemporaryName;
use crate::host::files::fault::Fault;
use crate::host::files::objects::attributes::path_of;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{linkat, mkdirat, openat, renameat, renameat_with, symlinkat, unlinkat};
use crate::permit::Permit;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

/// A complete file with a temporary name or none.
pub(in crate::host::files) struct Candidate {
    pub(in crate::host::files) file: OwnedFd,
    hidden: Option<TemporaryName>,
    room: Option<Room>,
}

/// A hidden directory that only this process's user may enter; the staged file inside has its final name.
///
/// The directory also contains a link with the directory's own name. Nobody else could have put that link
/// there, so a later process knows that it may remove the leftovers of a dead one (S-5).
struct Room {
    name: TemporaryName,
    handle: OwnedFd,
}

impl Files {
    /// Creates a staged file that only the user of this process, or the future owner, can open.
    pub(in crate::host::files) fn birth(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (owner, group): (Option<u32>, Option<u32>),
    ) -> Result<Candidate, Fault> {
        permit.check()?;
        let _guise = self.become_owner(spot, owner, group)?;
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&spot.directory, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(Candidate { file, hidden: None, room: None }),
            // The file system or the kernel does not support files without a name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
            Err(errno) => return Err(Fault::os("write")(errno)),
        }
        let (name, file) = self.names.make("write", |name| create(&spot.directory, name))?;
        Ok(Candidate { file, hidden: Some(name), room: None })
    }

    /// Creates a staged file in a private directory, so that a program can validate the file before it takes its
    /// place.
    pub(in crate::host::files) fn birth_in_room(
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
                // The owner of the parent could have put another directory in place of the new one.
                let seen = crate::host::files::content::read::seen(&handle)?;
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

    /// Gives the staged file its final name.
    pub(in crate::host::files) fn place(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        instead_of: Option<&EntryStat>,
        mut candidate: Candidate,
    ) -> Result<(), Fault> {
        let made = crate::host::files::content::read::seen(&candidate.file)?;
        if let Some(room) = candidate.room.take() {
            let placed = take_place_from(permit, (&room.handle, spot.name), spot, instead_of);
            return match placed {
                Ok(()) => room.vacate(spot, None),
                Err(fault) => Err(room.abandoned(spot, fault)),
            };
        }
        let _guise = self.become_owner(spot, Some(made.uid), Some(made.gid))?;
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
    /// Returns the path for another program: through this process's descriptor of the private directory, so that
    /// nobody can redirect the path.
    pub(in crate::host::files) fn path(&self, spot: &Entry<'_>) -> Option<PathBuf> {
        let room = self.room.as_ref()?;
        let process = std::process::id();
        let through = PathBuf::from(format!("/proc/{process}/fd/{}", room.handle.as_raw_fd()));
        let directory = if through.exists() {
            through
        } else {
            // Without /proc, only the name of the directory is left.
            spot.path.parent()?.join(&*room.name)
        };
        Some(directory.join(spot.name))
    }

    /// Removes the staged file after a fault, and reports a failure to do so in the fault.
    pub(in crate::host::files) fn abandon(self, spot: &Entry<'_>, fault: Fault) -> Fault {
        match (self.room, self.hidden) {
            (Some(room), _) => room.abandoned(spot, fault),
            (None, Some(name)) => forget(spot, &name, fault),
            (None, None) => fault,
        }
    }
}

impl Room {
    /// Removes the private directory and its contents.
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

/// Removes the link that identifies the private directory.
fn leave(room: &OwnedFd, name: &OsStr) {
    let _gone = unlinkat(room, name, AtFlags::empty());
}

fn create(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Removes a temporary name after a fault, and reports a failure to do so in the fault.
pub(in crate::host::files) fn forget(spot: &Entry<'_>, name: &OsStr, fault: Fault) -> Fault {
    match unlinkat(&spot.directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => fault,
        Err(_) => fault.after(true),
    }
}

/// Renames the staged file over the examined object, and over no other.
pub(in crate::host::files) fn take_place(
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
        // The file system does not support the flag.
        Err(Errno::INVAL | Errno::NOSYS) => {
            spot.still(None)?;
            renameat(from, hidden, to, spot.name).map_err(Fault::os("create"))
        }
        other => other.map_err(Fault::os("create")),
    }
}

/// Gives a name to a file that has none.
fn name_it(file: &OwnedFd, spot: &Entry<'_>, name: &OsStr) -> Result<(), Errno> {
    match linkat(file, "", &spot.directory, name, AtFlags::EMPTY_PATH) {
        // Older kernels need a capability for this call; the way through /proc is open to all.
        Err(Errno::NOENT | Errno::PERM) => {
            linkat(CWD, path_of(file), &spot.directory, name, AtFlags::SYMLINK_FOLLOW)
        }
        other => other,
    }
}
