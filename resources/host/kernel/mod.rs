//! The system calls for files, in one place.
//!
//! By default they are those of `rustix`, unchanged. For a thread in an overlay ([`overlay::Overlay`]), the
//! overlay answers the calls; an overlay reads the host and must never write to it. With the feature
//! `simulated-host` (tests only), a thread in a simulated host (`simulated::Machine::enter`) gets the answers
//! of that host, including injected faults. Every other thread gets the kernel's answers.
//!
//! Reading order: `dispatch.rs`, `entries.rs`, `mounts.rs`, `overlay/`, `simulated/`.

pub mod dispatch;
mod entries;
mod mounts;
pub(super) mod overlay;
#[cfg(feature = "simulated-host")]
pub mod simulated;

pub(crate) use dispatch::{
    chmodat, chownat, fchmod, fchown, fgetxattr, fsetxattr, fstat, fsync, ftruncate, getxattr,
    linkat, listxattr, mkdirat, openat, openat2, pwrite, read, readlinkat, removexattr, renameat,
    renameat_with, reserve_room, setxattr_of, statat, symlinkat, sync, unlinkat, write_parameter,
};
pub(crate) use entries::Entries;
pub(crate) use mounts::Mounts;

/// Returns true if this thread may start commands; an apply in an overlay may not.
pub(crate) fn runs_commands() -> bool {
    dispatch::runs_commands()
}

/// Returns true if this thread works in an overlay, so that nothing may reach the host.
pub(crate) fn is_in_overlay() -> bool {
    dispatch::overlay(|_| ()).is_some()
}

/// Returns true if this thread works in an overlay or in a simulated host, so that its work must stay here.
pub(crate) fn is_bound_to_thread() -> bool {
    #[cfg(feature = "simulated-host")]
    if dispatch::simulated(|_| ()).is_some() {
        return true;
    }
    dispatch::overlay(|_| ()).is_some()
}

/// Returns true if the file system at a path is mounted read-only.
pub(crate) fn is_read_only(path: &std::path::Path) -> bool {
    #[cfg(feature = "simulated-host")]
    if dispatch::simulated(|_| ()).is_some() {
        return false;
    }
    rustix::fs::statvfs(path)
        .is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Returns true if the name in a directory is the root of another mounted file system.
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

/// Returns the birth time of the inode at a name, in seconds and nanoseconds since 1970; none if the file
/// system does not store birth times.
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

/// Returns the wall clock time since 1970, which also stamps files.
pub(crate) fn wall() -> Duration {
    #[cfg(feature = "simulated-host")]
    if let Some(wall) = dispatch::simulated(simulated::Machine::wall) {
        return wall;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Fills a buffer with random bytes of the system.
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

/// Returns an unguessable number. The number comes from the system even in a simulated host, so no test may
/// depend on its value.
pub(crate) fn unguessable() -> Result<u64, rustix::io::Errno> {
    let mut bytes = [0; 8];
    from_system(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A process, identified by its number and its start time, because numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u32,
    pub(crate) began: u64,
}

/// Returns the current process.
pub(crate) fn process() -> Process {
    #[cfg(feature = "simulated-host")]
    if let Some(began) = dispatch::simulated(simulated::Machine::incarnation) {
        return Process { number: 1, began };
    }
    let number = std::process::id();
    Process { number, began: began(number).unwrap_or_default() }
}

/// Returns true if exactly this process is still running.
pub(crate) fn lives(process: Process) -> bool {
    #[cfg(feature = "simulated-host")]
    if let Some(began) = dispatch::simulated(simulated::Machine::incarnation) {
        return process == Process { number: 1, began };
    }
    began(process.number) == Some(process.began)
}

/// Returns the start time of a process in ticks since boot; `None` if the process does not exist.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Sets the user and group for file access of this thread (setfsuid(2)), and returns the earlier ones.
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
    // An invalid id changes nothing, and the result is the present id. The group is set first, because this needs
    // a right that the other user may not have.
    let gid = setfsgid(gid.unwrap_or(Gid::from_raw(u32::MAX)));
    let uid = setfsuid(uid.unwrap_or(Uid::from_raw(u32::MAX)));
    (uid, gid)
}
