//! The system calls of a simulated host, answered as Linux does for root.

use super::fault::Fault;
use super::state::What;
use super::{Call, Machine};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

type Result<T> = std::result::Result<T, Errno>;

/// A directory, and a path relative to that directory.
pub(super) type From<'a> = (BorrowedFd<'a>, &'a [u8]);

/// The set-user-id and set-group-id bits.
const SET_ID: u32 = 0o6000;

impl Machine {
    /// Counts the call, runs the hook, and applies the call's injected fault, if there is one.
    fn begin(&self, name: &'static str, changes: bool) -> Result<bool> {
        let (call, mut fault) = self.0.state.borrow_mut().faults.next(name, changes);
        if let Some(call) = call {
            self.call_hook(&call);
            let rule = &mut *self.0.rule.borrow_mut();
            fault = fault.or_else(|| rule.as_mut().and_then(|rule| rule(&call)));
        }
        match fault {
            Some(Fault::Fails(errno)) => Err(errno),
            Some(Fault::Dies) => Err(Errno::IO),
            Some(Fault::Short) => Ok(true),
            None => Ok(false),
        }
    }

    fn call_hook(&self, call: &Call) {
        let hook = self.0.hook.borrow_mut().take();
        if let Some(mut hook) = hook {
            hook(self, call);
            let mut place = self.0.hook.borrow_mut();
            if place.is_none() {
                *place = Some(hook);
            }
        }
    }

    pub(in crate::host::kernel) fn open(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        (flags, mode): (OFlags, Mode),
        resolve: ResolveFlags,
    ) -> Result<OwnedFd> {
        let makes = flags.contains(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
        self.begin(if makes { "creat" } else { "open" }, makes)?;
        let state = &mut *self.0.state.borrow_mut();
        let opened = state.open_at(at, path, (flags, mode), resolve)?;
        let descriptor = rustix::io::fcntl_dupfd_cloexec(&state.nothing, 3)?;
        state.open.insert(descriptor.as_raw_fd(), opened);
        Ok(descriptor)
    }

    pub(in crate::host::kernel) fn stat(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: AtFlags,
    ) -> Result<Stat> {
        self.begin("stat", false)?;
        let state = self.0.state.borrow();
        let ino = if path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            state.of(at)?.ino
        } else {
            let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
            state.walk(at, path, follow, ResolveFlags::empty())?.there()?
        };
        state.stat(ino).ok_or(Errno::NOENT)
    }

    pub(in crate::host::kernel) fn read(
        &self,
        file: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<usize> {
        let is_short = self.begin("read", false)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.open.get_mut(&file.as_raw_fd()).ok_or(Errno::BADF)?;
        if !open.reads {
            return Err(Errno::BADF);
        }
        let content = match &state.nodes.get(&open.ino).ok_or(Errno::BADF)?.what {
            What::File(content) => content.as_slice(),
            What::Directory(_) => return Err(Errno::ISDIR),
            What::Link(_) => return Err(Errno::BADF),
            What::Fifo => &[],
        };
        let room = buffer.capacity() - buffer.len();
        let most = if is_short { room.min(1) } else { room };
        let left = content.get(open.at..).unwrap_or_default();
        let piece = left.get(..most).unwrap_or(left);
        buffer.extend_from_slice(piece);
        open.at += piece.len();
        Ok(piece.len())
    }

    pub(in crate::host::kernel) fn write_at(
        &self,
        file: BorrowedFd<'_>,
        from: &[u8],
        offset: u64,
    ) -> Result<usize> {
        let is_short = self.begin("write", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.of(file)?.clone();
        let offset = usize::try_from(offset).map_err(|_too_far| Errno::FBIG)?;
        if !open.writes {
            return Err(Errno::BADF);
        }
        let most = if is_short { from.len().min(1) } else { from.len() };
        if most == 0 {
            return Ok(0);
        }
        let node = state.nodes.get_mut(&open.ino).ok_or(Errno::BADF)?;
        let What::File(content) = &mut node.what else { return Err(Errno::BADF) };
        if content.len() < offset + most {
            content.resize(offset + most, 0);
        }
        for (to, byte) in content.iter_mut().skip(offset).zip(&from[..most]) {
            *to = *byte;
        }
        state.changed(open.ino, open.place.as_ref(), true);
        Ok(most)
    }

    /// Replaces the value of a parameter, as a write to a file of /proc/sys does.
    pub(in crate::host::kernel) fn write_parameter(
        &self,
        file: BorrowedFd<'_>,
        value: &[u8],
    ) -> Result<usize> {
        let is_short = self.begin("write", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.of(file)?.clone();
        let node = state.nodes.get_mut(&open.ino).ok_or(Errno::BADF)?;
        let What::File(content) = &mut node.what else { return Err(Errno::BADF) };
        if !open.writes {
            return Err(Errno::BADF);
        }
        let most = if is_short { value.len().min(1) } else { value.len() };
        *content = value.get(..most).unwrap_or(value).to_vec();
        state.changed(open.ino, open.place.as_ref(), true);
        Ok(most)
    }

    pub(in crate::host::kernel) fn truncate(
        &self,
        file: BorrowedFd<'_>,
        length: u64,
    ) -> Result<()> {
        self.begin("truncate", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.of(file)?.clone();
        let length = usize::try_from(length).map_err(|_too_far| Errno::FBIG)?;
        let node = state.nodes.get_mut(&open.ino).ok_or(Errno::BADF)?;
        let What::File(content) = &mut node.what else {
            return Err(if open.only_path { Errno::BADF } else { Errno::INVAL });
        };
        if !open.writes {
            return Err(if open.only_path { Errno::BADF } else { Errno::INVAL });
        }
        content.resize(length, 0);
        state.changed(open.ino, open.place.as_ref(), true);
        Ok(())
    }

    pub(in crate::host::kernel) fn sync(&self, file: BorrowedFd<'_>) -> Result<()> {
        self.begin("fsync", false)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.of(file)?;
        if open.only_path {
            return Err(Errno::BADF);
        }
        let ino = open.ino;
        state.durable.sync(&state.nodes, ino);
        Ok(())
    }

    pub(in crate::host::kernel) fn sync_all(&self) {
        if self.begin("sync", false).is_ok() {
            let state = &mut *self.0.state.borrow_mut();
            state.durable.sync_all(&state.nodes);
        }
    }

    pub(in crate::host::kernel) fn read_link(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
    ) -> Result<CString> {
        self.begin("readlink", false)?;
        let state = self.0.state.borrow();
        let ino = if path.is_empty() {
            state.of(at)?.ino
        } else {
            state.walk(at, path, false, ResolveFlags::empty())?.there()?
        };
        match state.nodes.get(&ino).map(|node| &node.what) {
            Some(What::Link(target)) => CString::new(target.clone()).map_err(|_nul| Errno::INVAL),
            // The kernel's error for a descriptor that is no link.
            _ if path.is_empty() => Err(Errno::NOENT),
            _ => Err(Errno::INVAL),
        }
    }

    pub(in crate::host::kernel) fn make_link(
        &self,
        target: &[u8],
        at: BorrowedFd<'_>,
        path: &[u8],
    ) -> Result<()> {
        self.begin("symlink", true)?;
        let state = &mut *self.0.state.borrow_mut();
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        let place = state.free(at, path)?;
        let ino = state.make(What::Link(target.to_vec()), 0o777, place.0);
        state.put(place, ino);
        Ok(())
    }

    pub(in crate::host::kernel) fn make_directory(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        mode: Mode,
    ) -> Result<()> {
        self.begin("mkdir", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let place = state.free(at, path)?;
        let mode = mode.as_raw_mode() & 0o1777 & !UMASK;
        let ino = state.make(What::Directory(BTreeMap::new()), mode, place.0);
        state.put(place, ino);
        Ok(())
    }

    pub(in crate::host::kernel) fn link(
        &self,
        old: From<'_>,
        new: From<'_>,
        flags: AtFlags,
    ) -> Result<()> {
        self.begin("link", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let ino = if old.1.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            state.of(old.0)?.ino
        } else {
            let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
            state.walk(old.0, old.1, follow, ResolveFlags::empty())?.there()?
        };
        let place = state.free(new.0, new.1)?;
        if state.entries(ino).is_some() {
            return Err(Errno::PERM);
        }
        let unborn = state.nodes.get(&ino).is_some_and(|node| node.unborn);
        if !unborn && state.links(ino) == 0 {
            return Err(Errno::NOENT);
        }
        state.stamp(ino, false);
        state.put(place, ino);
        Ok(())
    }

    pub(in crate::host::kernel) fn unlink(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: AtFlags,
    ) -> Result<()> {
        self.begin("unlink", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let is_for_directories = flags.contains(AtFlags::REMOVEDIR);
        let found = state.walk(at, path, false, ResolveFlags::empty())?;
        let dots = path.rsplit(|byte| *byte == b'/').next();
        match dots {
            Some(b".") if is_for_directories => return Err(Errno::INVAL),
            Some(b"..") if is_for_directories => return Err(Errno::NOTEMPTY),
            Some(b"." | b"..") => return Err(Errno::ISDIR),
            _ => {}
        }
        let Some(place) = found.place.clone() else {
            return Err(if is_for_directories { Errno::BUSY } else { Errno::ISDIR });
        };
        let ino = found.there()?;
        match (state.entries(ino), is_for_directories) {
            (Some(_), false) => return Err(Errno::ISDIR),
            (None, true) => return Err(Errno::NOTDIR),
            (Some(entries), true) if !entries.is_empty() => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        state.take(&place, ino);
        Ok(())
    }

    pub(in crate::host::kernel) fn rename(
        &self,
        old: From<'_>,
        new: From<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.begin("rename", true)?;
        self.0.state.borrow_mut().rename(old, new, flags)
    }

    pub(in crate::host::kernel) fn change_mode(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        mode: Mode,
        flags: AtFlags,
    ) -> Result<()> {
        self.begin("chmod", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let (ino, place) = state.target(at, path, flags)?;
        if path.is_empty() && state.of(at)?.only_path {
            return Err(Errno::BADF);
        }
        if let Some(node) = state.nodes.get_mut(&ino) {
            node.mode = mode.as_raw_mode() & 0o7777;
        }
        state.changed(ino, place.as_ref(), false);
        Ok(())
    }

    pub(in crate::host::kernel) fn change_owner(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        (owner, group): (Option<Uid>, Option<Gid>),
        flags: AtFlags,
    ) -> Result<()> {
        self.begin("chown", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let (ino, place) = state.target(at, path, flags)?;
        let mut changes = owner.is_some() || group.is_some();
        if let Some(node) = state.nodes.get_mut(&ino) {
            let before = node.mode;
            node.uid = owner.map_or(node.uid, Uid::as_raw);
            node.gid = group.map_or(node.gid, Gid::as_raw);
            if matches!(node.what, What::File(_)) {
                let kept = if node.mode & 0o010 == 0 { 0o2000 } else { 0 };
                node.mode &= !SET_ID | kept;
            }
            changes |= node.mode != before;
        }
        if changes {
            state.changed(ino, place.as_ref(), false);
        } else {
            state.stamp(ino, false);
        }
        Ok(())
    }

    pub(in crate::host::kernel) fn attribute(
        &self,
        path: &[u8],
        name: &[u8],
        value: &mut [u8],
    ) -> Result<usize> {
        self.begin("getxattr", false)?;
        let state = self.0.state.borrow();
        let node = state.node_at(path)?;
        let there = node.attributes.get(name).ok_or(Errno::NODATA)?;
        fill(there, value)
    }

    pub(in crate::host::kernel) fn attributes(
        &self,
        path: &[u8],
        list: &mut [u8],
    ) -> Result<usize> {
        self.begin("listxattr", false)?;
        let state = self.0.state.borrow();
        let names: Vec<u8> = state
            .node_at(path)?
            .attributes
            .keys()
            .flat_map(|name| name.iter().copied().chain([0]))
            .collect();
        fill(&names, list)
    }

    pub(in crate::host::kernel) fn set_attribute(
        &self,
        (file, may_be_path): (BorrowedFd<'_>, bool),
        name: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.begin("setxattr", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let open = state.of(file)?.clone();
        if open.only_path && !may_be_path {
            return Err(Errno::BADF);
        }
        if let Some(node) = state.nodes.get_mut(&open.ino) {
            node.attributes.insert(name.to_vec(), value.to_vec());
        }
        state.changed(open.ino, open.place.as_ref(), false);
        Ok(())
    }

    pub(in crate::host::kernel) fn remove_attribute(&self, path: &[u8], name: &[u8]) -> Result<()> {
        self.begin("removexattr", true)?;
        let state = &mut *self.0.state.borrow_mut();
        let found = state.walk(rustix::fs::CWD, path, true, ResolveFlags::empty())?;
        let place = found.place.clone();
        let ino = found.there()?;
        let node = state.nodes.get_mut(&ino).ok_or(Errno::NOENT)?;
        node.attributes.remove(name).ok_or(Errno::NODATA)?;
        state.changed(ino, place.as_ref(), false);
        Ok(())
    }

    pub(in crate::host::kernel) fn entries(
        &self,
        directory: BorrowedFd<'_>,
    ) -> Result<Vec<Result<CString>>> {
        self.begin("getdents", false)?;
        let state = self.0.state.borrow();
        let entries = state.entries(state.of(directory)?.ino).ok_or(Errno::NOTDIR)?;
        let names = [&b"."[..], b".."].into_iter().chain(entries.keys().map(Vec::as_slice));
        Ok(names.map(|name| CString::new(name).map_err(|_nul| Errno::IO)).collect())
    }
}

/// The umask of the daemon.
pub(super) const UMASK: u32 = 0o077;

fn fill(from: &[u8], to: &mut [u8]) -> Result<usize> {
    if !to.is_empty() {
        to.get_mut(..from.len()).ok_or(Errno::RANGE)?.copy_from_slice(from);
    }
    Ok(from.len())
}
