//! Dispatches each system call to the overlay of the calling thread, to the simulated host of the thread
//! (tests only), or to the kernel. The signatures are those of `rustix`.

#![cfg_attr(
    not(feature = "simulated-host"),
    allow(
        unreachable_pub,
        reason = "tests that are built with `simulated` call these from outside"
    )
)]

use super::overlay::Overlay;
#[cfg(feature = "simulated-host")]
use super::simulated::Machine;
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::cell::RefCell;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

type Result<T> = std::result::Result<T, Errno>;

thread_local! {
    static OVERLAY: RefCell<Option<Inside>> = const { RefCell::new(None) };
    #[cfg(feature = "simulated-host")]
    static HERE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// The overlay of a thread.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) overlay: Overlay,
    /// The thread may start commands, as checks do. The commands run on the host.
    pub(super) runs_commands: bool,
}

/// A guard for the overlay of a thread, or for none; dropping the guard restores the earlier state.
#[derive(Debug)]
pub(super) struct InOverlay {
    before: Option<Inside>,
    /// Prevents a move to another thread: the overlay belongs to the thread of its start.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Drop for InOverlay {
    fn drop(&mut self) {
        OVERLAY.with(|overlay| overlay.replace(self.before.take()));
    }
}

/// Sets or clears the overlay of the calling thread.
pub(super) fn enter(inside: Option<Inside>) -> InOverlay {
    let before = OVERLAY.with(|current| current.replace(inside));
    InOverlay { before, _thread: std::marker::PhantomData }
}

/// Runs calls below the overlay of this thread.
pub(super) fn below<T>(act: impl FnOnce() -> T) -> T {
    let _outside = enter(None);
    act()
}

/// Calls a function with the overlay of this thread, if there is one.
pub(super) fn overlay<T>(ask: impl FnOnce(&Overlay) -> T) -> Option<T> {
    let inside = OVERLAY.with(|current| current.borrow().clone())?;
    Some(ask(&inside.overlay))
}

/// Returns true if this thread may start commands.
pub(super) fn runs_commands() -> bool {
    OVERLAY.with(|current| current.borrow().as_ref().is_none_or(|inside| inside.runs_commands))
}

/// Sets or clears the simulated host of the calling thread, and returns the earlier one.
#[cfg(feature = "simulated-host")]
pub(super) fn stand(machine: Option<Machine>) -> Option<Machine> {
    HERE.with(|here| here.replace(machine))
}

/// Calls a function with the simulated host of this thread, if there is one.
#[cfg(feature = "simulated-host")]
pub(super) fn simulated<T>(ask: impl FnOnce(&Machine) -> T) -> Option<T> {
    let machine = HERE.with(|here| here.borrow().clone())?;
    Some(ask(&machine))
}

/// Dispatches a call to the overlay, the simulated host or the kernel, all with the same results.
macro_rules! fork {
    (|$other:ident| $ask:expr, $kernel:expr) => {{
        if let Some(answer) = overlay(|$other| $ask) {
            return answer;
        }
        #[cfg(feature = "simulated-host")]
        if let Some(answer) = simulated(|$other| $ask) {
            return answer;
        }
        $kernel
    }};
}

fn bytes(path: impl Arg) -> Result<Vec<u8>> {
    path.into_with_c_str(|path| Ok(path.to_bytes().to_vec()))
}

/// Calls openat(2).
pub fn openat<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    openat2(directory, path, flags, mode, ResolveFlags::empty())
}

/// Calls openat2(2).
pub fn openat2<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(
            |host| host.open(at, path.to_bytes(), (flags, mode), resolve),
            if resolve.is_empty() {
                rustix::fs::openat(at, path, flags, mode)
            } else {
                rustix::fs::openat2(at, path, flags, mode, resolve)
            }
        )
    })
}

/// Calls fstat(2).
pub fn fstat<Fd: AsFd>(file: Fd) -> Result<Stat> {
    fork!(|host| host.stat(file.as_fd(), b"", AtFlags::EMPTY_PATH), rustix::fs::fstat(file))
}

/// Calls fstatat(2).
pub fn statat<P: Arg, Fd: AsFd>(directory: Fd, path: P, flags: AtFlags) -> Result<Stat> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(|host| host.stat(at, path.to_bytes(), flags), rustix::fs::statat(at, path, flags))
    })
}

/// Calls read(2) and fills the spare capacity of a buffer.
pub fn read<Fd: AsFd>(file: Fd, buffer: &mut Vec<u8>) -> Result<usize> {
    fork!(|host| host.read(file.as_fd(), buffer), rustix::io::read(file, spare_capacity(buffer)))
}

/// Calls pwrite(2).
pub fn pwrite<Fd: AsFd>(file: Fd, from: &[u8], offset: u64) -> Result<usize> {
    fork!(|host| host.write_at(file.as_fd(), from, offset), rustix::io::pwrite(file, from, offset))
}

/// Calls write(2) once, on a file whose writes are commands to the kernel. An overlay refuses with EROFS.
pub fn write_parameter<Fd: AsFd>(file: Fd, value: &[u8]) -> Result<usize> {
    if overlay(|_| ()).is_some() {
        return Err(Errno::ROFS);
    }
    #[cfg(feature = "simulated-host")]
    if let Some(answer) = simulated(|host| host.write_parameter(file.as_fd(), value)) {
        return answer;
    }
    rustix::io::write(file, value)
}

/// Calls ftruncate(2).
pub fn ftruncate<Fd: AsFd>(file: Fd, length: u64) -> Result<()> {
    fork!(|host| host.truncate(file.as_fd(), length), rustix::fs::ftruncate(file, length))
}

/// Calls fallocate(2) to reserve room for the first `length` bytes of a file, whose size stays. An overlay and a
/// simulated host reserve nothing.
pub fn reserve_room<Fd: AsFd>(file: Fd, length: u64) -> Result<()> {
    if overlay(|_| ()).is_some() {
        return Ok(());
    }
    #[cfg(feature = "simulated-host")]
    if simulated(|_| ()).is_some() {
        return Ok(());
    }
    let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, 0, length) {
        // The file system has no such call.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => other,
    }
}

/// Calls fsync(2).
pub fn fsync<Fd: AsFd>(file: Fd) -> Result<()> {
    fork!(|host| host.sync(file.as_fd()), rustix::fs::fsync(file))
}

/// Calls sync(2).
pub fn sync() {
    if overlay(|_| ()).is_some() {
        return;
    }
    #[cfg(feature = "simulated-host")]
    if simulated(Machine::sync_all).is_some() {
        return;
    }
    rustix::fs::sync();
}

/// Calls readlinkat(2).
pub fn readlinkat<P: Arg, Fd: AsFd, B: Into<Vec<u8>>>(
    directory: Fd,
    path: P,
    reuse: B,
) -> Result<CString> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(|host| host.read_link(at, path.to_bytes()), rustix::fs::readlinkat(at, path, reuse))
    })
}

/// Calls symlinkat(2).
pub fn symlinkat<P: Arg, Q: Arg, Fd: AsFd>(target: P, directory: Fd, path: Q) -> Result<()> {
    let (at, target, path) = (directory.as_fd(), bytes(target)?, bytes(path)?);
    fork!(
        |host| host.make_link(&target, at, &path),
        rustix::fs::symlinkat(target.as_slice(), at, path.as_slice())
    )
}

/// Calls mkdirat(2).
pub fn mkdirat<P: Arg, Fd: AsFd>(directory: Fd, path: P, mode: Mode) -> Result<()> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(
            |host| host.make_directory(at, path.to_bytes(), mode),
            rustix::fs::mkdirat(at, path, mode)
        )
    })
}

/// Calls linkat(2).
pub fn linkat<P: Arg, Q: Arg, A: AsFd, B: AsFd>(
    old_directory: A,
    old: P,
    new_directory: B,
    new: Q,
    flags: AtFlags,
) -> Result<()> {
    let (from, to) = (old_directory.as_fd(), new_directory.as_fd());
    let (old, new) = (bytes(old)?, bytes(new)?);
    fork!(
        |host| host.link((from, &old), (to, &new), flags),
        rustix::fs::linkat(from, old.as_slice(), to, new.as_slice(), flags)
    )
}

/// Calls unlinkat(2).
pub fn unlinkat<P: Arg, Fd: AsFd>(directory: Fd, path: P, flags: AtFlags) -> Result<()> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(|host| host.unlink(at, path.to_bytes(), flags), rustix::fs::unlinkat(at, path, flags))
    })
}

/// Calls renameat(2).
pub fn renameat<P: Arg, Q: Arg, A: AsFd, B: AsFd>(
    old_directory: A,
    old: P,
    new_directory: B,
    new: Q,
) -> Result<()> {
    renameat_with(old_directory, old, new_directory, new, RenameFlags::empty())
}

/// Calls renameat2(2).
pub fn renameat_with<P: Arg, Q: Arg, A: AsFd, B: AsFd>(
    old_directory: A,
    old: P,
    new_directory: B,
    new: Q,
    flags: RenameFlags,
) -> Result<()> {
    let (from, to) = (old_directory.as_fd(), new_directory.as_fd());
    let (old, new) = (bytes(old)?, bytes(new)?);
    fork!(
        |host| host.rename((from, &old), (to, &new), flags),
        if flags.is_empty() {
            rustix::fs::renameat(from, old.as_slice(), to, new.as_slice())
        } else {
            rustix::fs::renameat_with(from, old.as_slice(), to, new.as_slice(), flags)
        }
    )
}

/// Calls fchmod(2).
pub fn fchmod<Fd: AsFd>(file: Fd, mode: Mode) -> Result<()> {
    fork!(
        |host| host.change_mode(file.as_fd(), b"", mode, AtFlags::EMPTY_PATH),
        rustix::fs::fchmod(file, mode)
    )
}

/// Calls fchmodat(2).
pub fn chmodat<P: Arg, Fd: AsFd>(directory: Fd, path: P, mode: Mode, flags: AtFlags) -> Result<()> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(
            |host| host.change_mode(at, path.to_bytes(), mode, flags),
            rustix::fs::chmodat(at, path, mode, flags)
        )
    })
}

/// Calls fchown(2).
pub fn fchown<Fd: AsFd>(file: Fd, owner: Option<Uid>, group: Option<Gid>) -> Result<()> {
    fork!(
        |host| host.change_owner(file.as_fd(), b"", (owner, group), AtFlags::EMPTY_PATH),
        rustix::fs::fchown(file, owner, group)
    )
}

/// Calls fchownat(2).
pub fn chownat<P: Arg, Fd: AsFd>(
    directory: Fd,
    path: P,
    owner: Option<Uid>,
    group: Option<Gid>,
    flags: AtFlags,
) -> Result<()> {
    let at = directory.as_fd();
    path.into_with_c_str(|path| {
        fork!(
            |host| host.change_owner(at, path.to_bytes(), (owner, group), flags),
            rustix::fs::chownat(at, path, owner, group, flags)
        )
    })
}

/// Calls getxattr(2).
pub fn getxattr<P: Arg, N: Arg>(path: P, name: N, value: &mut [u8]) -> Result<usize> {
    let (path, name) = (bytes(path)?, bytes(name)?);
    fork!(
        |host| host.attribute(&path, &name, value),
        rustix::fs::getxattr(path.as_slice(), name.as_slice(), value)
    )
}

/// Calls fgetxattr(2).
pub fn fgetxattr<N: Arg, Fd: AsFd>(file: Fd, name: N, value: &mut [u8]) -> Result<usize> {
    let (file, name) = (file.as_fd(), bytes(name)?);
    fork!(
        |host| host.attribute(
            format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes(),
            &name,
            value
        ),
        rustix::fs::fgetxattr(file, name.as_slice(), value)
    )
}

/// Calls listxattr(2).
pub fn listxattr<P: Arg>(path: P, list: &mut [u8]) -> Result<usize> {
    let path = bytes(path)?;
    fork!(|host| host.attributes(&path, list), rustix::fs::listxattr(path.as_slice(), list))
}

/// Calls fsetxattr(2).
pub fn fsetxattr<N: Arg, Fd: AsFd>(
    file: Fd,
    name: N,
    value: &[u8],
    flags: XattrFlags,
) -> Result<()> {
    let (file, name) = (file.as_fd(), bytes(name)?);
    fork!(
        |host| host.set_attribute((file, false), &name, value),
        rustix::fs::fsetxattr(file, name.as_slice(), value, flags)
    )
}

/// Calls setxattr(2) on the object of a handle, which may be path-only.
pub fn setxattr_of<N: Arg>(
    handle: &OwnedFd,
    name: N,
    value: &[u8],
    flags: XattrFlags,
) -> Result<()> {
    let name = bytes(name)?;
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    fork!(
        |host| host.set_attribute((handle.as_fd(), true), &name, value),
        rustix::fs::setxattr(path.as_str(), name.as_slice(), value, flags)
    )
}

/// Calls removexattr(2).
pub fn removexattr<P: Arg, N: Arg>(path: P, name: N) -> Result<()> {
    let (path, name) = (bytes(path)?, bytes(name)?);
    fork!(
        |host| host.remove_attribute(&path, &name),
        rustix::fs::removexattr(path.as_slice(), name.as_slice())
    )
}

/// Calls getdents(2) for a whole directory, including `.` and `..`.
pub fn names(directory: impl AsFd) -> Result<impl Iterator<Item = Result<CString>>> {
    let entries = super::Entries::read_from(directory)?;
    Ok(entries.map(|entry| entry.map(|entry| entry.file_name().to_owned())))
}
