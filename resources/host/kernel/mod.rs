//! The system calls by which this crate works on files, in one place.
//!
//! On a host they are those of `rustix`, as they stand. A thread that works in an overlay ([`overlay::Overlay`]) has its calls
//! answered by that; it reads the host and never writes to it. Built with the feature `simulated-host` (tests only), a thread that stands in a
//! simulated host (`simulated::Machine::enter`) has its calls answered by that host, with whatever faults it is told to have; every other thread
//! has the kernel's answers.

pub mod dispatch;
mod entries;
mod mounts;
pub(super) mod overlay;
#[cfg(feature = "simulated-host")]
pub mod simulated;

pub(crate) use dispatch::{
    chmodat, chownat, fchmod, fchown, fgetxattr, fsetxattr, fstat, fsync, ftruncate, getxattr,
    linkat, listxattr, mkdirat, openat, openat2, pwrite, read, readlinkat, removexattr, renameat,
    renameat_with, statat, symlinkat, sync, unlinkat,
};
pub(crate) use entries::Entries;
pub(crate) use mounts::Mounts;

/// Tells whether this thread may start commands: a change that is done in an overlay may not.
pub(crate) fn runs_commands() -> bool {
    dispatch::runs_commands()
}

/// Whether a name in a directory is where another file system begins.
pub(crate) fn is_mount_root(directory: impl std::os::fd::AsFd, name: &std::ffi::OsStr) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    use std::os::unix::ffi::OsStrExt as _;
    let at = directory.as_fd();
    if let Some(answer) = dispatch::overlay(|overlay| overlay.is_mount_root(at, name.as_bytes())) {
        return answer;
    }
    #[cfg(feature = "simulated-host")]
    if dispatch::simulated(|_| ()).is_some() {
        return false;
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(directory, name, flags, StatxFlags::TYPE)
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The birth time of the inode of a name in a directory, in seconds and nanoseconds since 1970; none if the file system does not tell.
pub(crate) fn born_at(
    directory: impl std::os::fd::AsFd,
    name: &std::ffi::OsStr,
) -> Option<(i64, u32)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    use std::os::unix::ffi::OsStrExt as _;
    let at = directory.as_fd();
    if let Some(answer) = dispatch::overlay(|overlay| overlay.born_at(at, name.as_bytes())) {
        return answer;
    }
    #[cfg(feature = "simulated-host")]
    if dispatch::simulated(|_| ()).is_some() {
        return None;
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = statx(directory, name, flags, StatxFlags::BTIME).ok()?;
    let is_told = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    is_told.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock on the wall, since 1970: the one that stamps files.
pub(crate) fn wall() -> Duration {
    #[cfg(feature = "simulated-host")]
    if let Some(wall) = dispatch::simulated(simulated::Machine::wall) {
        return wall;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Random bytes, of the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), rustix::io::Errno> {
    #[cfg(feature = "simulated-host")]
    if let Some(drawn) = dispatch::simulated(|machine| machine.random(bytes)) {
        return drawn;
    }
    from_system(bytes)
}

fn from_system(bytes: &mut [u8]) -> Result<(), rustix::io::Errno> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut *rest, flags))?;
    }
    Ok(())
}

/// A number that nobody can guess. It comes from the system in a simulated host too: no test may depend on it.
pub(crate) fn unguessable() -> Result<u64, rustix::io::Errno> {
    let mut bytes = [0; 8];
    from_system(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A process: its number, and when it began, since numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u32,
    pub(crate) began: u64,
}

/// This one.
pub(crate) fn process() -> Process {
    #[cfg(feature = "simulated-host")]
    if let Some(began) = dispatch::simulated(simulated::Machine::incarnation) {
        return Process { number: 1, began };
    }
    let number = std::process::id();
    Process { number, began: began(number).unwrap_or_default() }
}

/// Whether that very process still runs.
pub(crate) fn lives(process: Process) -> bool {
    #[cfg(feature = "simulated-host")]
    if let Some(began) = dispatch::simulated(simulated::Machine::incarnation) {
        return process == Process { number: 1, began };
    }
    began(process.number) == Some(process.began)
}

/// When a process began, in ticks since boot; `None` where there is no such process.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Who works on files besides the process itself (setfsuid(2)); answers who did before.
pub(crate) fn set_identity(
    uid: Option<nix::unistd::Uid>,
    gid: Option<nix::unistd::Gid>,
) -> (nix::unistd::Uid, nix::unistd::Gid) {
    use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
    #[cfg(feature = "simulated-host")]
    if let Some((before_uid, before_gid)) =
        dispatch::simulated(|host| host.set_identity(uid.map(Uid::as_raw), gid.map(Gid::as_raw)))
    {
        return (Uid::from_raw(before_uid), Gid::from_raw(before_gid));
    }
    // What is no id changes nothing, and the answer is what holds. The group first: it takes a right that the other identity may
    // not have.
    let gid = setfsgid(gid.unwrap_or(Gid::from_raw(u32::MAX)));
    let uid = setfsuid(uid.unwrap_or(Uid::from_raw(u32::MAX)));
    (uid, gid)
}
