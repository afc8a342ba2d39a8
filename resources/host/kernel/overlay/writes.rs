//! The writing system calls of an overlay, which change memory and nothing else.

use super::Overlay;
use super::state::{Entry, Fact, Ino, Open, Place, Result, State, Stop, What};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

type Answer<T> = std::result::Result<T, Errno>;

/// A directory, and a path relative to that directory.
type From<'a> = (BorrowedFd<'a>, &'a [u8]);

/// The set-user-id and set-group-id bits.
const SET_ID: u32 = 0o6000;

/// The umask of the daemon.
const UMASK: u32 = 0o077;

/// The permission bits of a mode.
const BITS: u32 = 0o7777;

impl Overlay {
    pub(in super::super) fn write_at(
        &self,
        file: BorrowedFd<'_>,
        from: &[u8],
        offset: u64,
    ) -> Answer<usize> {
        let offset = usize::try_from(offset).map_err(|_too_far| Errno::FBIG)?;
        self.change_content(file, Errno::BADF, |content| {
            if content.len() < offset + from.len() {
                content.resize(offset + from.len(), 0);
            }
            for (to, byte) in content.iter_mut().skip(offset).zip(from) {
                *to = *byte;
            }
            from.len()
        })
    }

    pub(in super::super) fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Answer<()> {
        let length = usize::try_from(length).map_err(|_too_far| Errno::FBIG)?;
        self.change_content(file, Errno::INVAL, |content| content.resize(length, 0))
    }

    fn change_content<T>(
        &self,
        file: BorrowedFd<'_>,
        not_open: Errno,
        change: impl Fn(&mut Vec<u8>) -> T,
    ) -> Answer<T> {
        self.ask(|state| {
            let open = state.of(file)?.clone();
            if !open.writes {
                return Err(if open.only_path { Errno::BADF } else { not_open }.into());
            }
            state.take_up(open.ino)?;
            let node = state.node_mut(open.ino)?;
            let What::File(Some(content)) = &mut node.what else {
                return Err(Errno::BADF.into());
            };
            let before = content.len();
            let done = change(content);
            let after = content.len();
            node.stat.st_size = i64::try_from(after).unwrap_or(i64::MAX);
            state.stamp(open.ino, true);
            state.note_room(after.saturating_sub(before), 0)?;
            Ok(done)
        })
    }

    pub(in super::super) fn sync(&self, file: BorrowedFd<'_>) -> Answer<()> {
        self.ask(|state| if state.of(file)?.only_path { Err(Errno::BADF.into()) } else { Ok(()) })
    }

    pub(in super::super) fn make_link(
        &self,
        target: &[u8],
        at: BorrowedFd<'_>,
        path: &[u8],
    ) -> Answer<()> {
        if target.is_empty() {
            return Err(Errno::NOENT);
        }
        self.ask(|state| {
            let place = state.free(at, path)?;
            let ino = state.make(What::Link(target.to_vec()), 0o777, place.0)?;
            state.put(place, ino);
            Ok(())
        })
    }

    pub(in super::super) fn make_directory(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        mode: Mode,
    ) -> Answer<()> {
        self.ask(|state| {
            let place = state.free(at, path)?;
            let mode = mode.as_raw_mode() & 0o1777 & !UMASK;
            let what = What::Directory { entries: BTreeMap::new(), is_listed: true };
            let ino = state.make(what, mode, place.0)?;
            state.node_mut(ino)?.stat.st_nlink = 2;
            state.put(place, ino);
            Ok(())
        })
    }

    pub(in super::super) fn link(
        &self,
        old: From<'_>,
        new: From<'_>,
        flags: AtFlags,
    ) -> Answer<()> {
        self.ask(|state| {
            let ino = if old.1.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
                state.of(old.0)?.ino
            } else {
                let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
                state.walk(old.0, old.1, follow, ResolveFlags::empty())?.there()?
            };
            let place = state.free(new.0, new.1)?;
            if state.is_directory(ino) {
                return Err(Errno::PERM.into());
            }
            state.same_device(ino, place.0)?;
            let node = state.node(ino)?;
            if !node.is_unborn && node.stat.st_nlink == 0 {
                return Err(Errno::NOENT.into());
            }
            state.stamp(ino, false);
            state.put(place, ino);
            Ok(())
        })
    }

    pub(in super::super) fn unlink(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: AtFlags,
    ) -> Answer<()> {
        let is_for_directories = flags.contains(AtFlags::REMOVEDIR);
        match path.rsplit(|byte| *byte == b'/').next() {
            Some(b".") if is_for_directories => return Err(Errno::INVAL),
            Some(b"..") if is_for_directories => return Err(Errno::NOTEMPTY),
            Some(b"." | b"..") => return Err(Errno::ISDIR),
            _ => {}
        }
        self.ask(|state| {
            let found = state.walk(at, path, false, ResolveFlags::empty())?;
            let Some(place) = found.place.clone() else {
                return Err(if is_for_directories { Errno::BUSY } else { Errno::ISDIR }.into());
            };
            let ino = found.there()?;
            match (state.is_directory(ino), is_for_directories) {
                (true, false) => return Err(Errno::ISDIR.into()),
                (false, true) => return Err(Errno::NOTDIR.into()),
                (true, true) if state.names(ino)?.next().is_some() => {
                    return Err(Errno::NOTEMPTY.into());
                }
                _ => {}
            }
            state.note_room(0, 1)?;
            state.take(&place, ino);
            Ok(())
        })
    }

    pub(in super::super) fn rename(
        &self,
        old: From<'_>,
        new: From<'_>,
        flags: RenameFlags,
    ) -> Answer<()> {
        self.ask(|state| state.rename(old, new, flags))
    }

    pub(in super::super) fn change_mode(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        mode: Mode,
        flags: AtFlags,
    ) -> Answer<()> {
        self.ask(|state| {
            let ino = state.target(at, path, flags)?;
            if path.is_empty() && state.of(at)?.only_path {
                return Err(Errno::BADF.into());
            }
            let stat = &mut state.node_mut(ino)?.stat;
            stat.st_mode = stat.st_mode & !BITS | mode.as_raw_mode() & BITS;
            state.stamp(ino, false);
            Ok(())
        })
    }

    pub(in super::super) fn change_owner(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        (owner, group): (Option<Uid>, Option<Gid>),
        flags: AtFlags,
    ) -> Answer<()> {
        self.ask(|state| {
            let ino = state.target(at, path, flags)?;
            let node = state.node_mut(ino)?;
            node.stat.st_uid = owner.map_or(node.stat.st_uid, Uid::as_raw);
            node.stat.st_gid = group.map_or(node.stat.st_gid, Gid::as_raw);
            if matches!(node.what, What::File(_)) {
                let kept = if node.stat.st_mode & 0o010 == 0 { 0o2000 } else { 0 };
                node.stat.st_mode &= !SET_ID | kept;
            }
            state.stamp(ino, false);
            Ok(())
        })
    }

    pub(in super::super) fn set_attribute(
        &self,
        (file, may_be_path): (BorrowedFd<'_>, bool),
        name: &[u8],
        value: &[u8],
    ) -> Answer<()> {
        self.ask(|state| {
            let open = state.of(file)?.clone();
            if open.only_path && !may_be_path {
                return Err(Errno::BADF.into());
            }
            let mut all = state.attributes_of(open.ino)?.clone();
            all.insert(name.to_vec(), value.to_vec());
            state.node_mut(open.ino)?.attributes = Some(all);
            state.stamp(open.ino, false);
            Ok(())
        })
    }

    pub(in super::super) fn remove_attribute(&self, path: &[u8], name: &[u8]) -> Answer<()> {
        self.ask(|state| {
            let ino = state.walk(CWD, path, true, ResolveFlags::empty())?.there()?;
            let mut all = state.attributes_of(ino)?.clone();
            all.remove(name).ok_or(Errno::NODATA)?;
            state.node_mut(ino)?.attributes = Some(all);
            state.stamp(ino, false);
            Ok(())
        })
    }
}

impl State {
    pub(super) fn open_at(
        &mut self,
        at: BorrowedFd<'_>,
        path: &[u8],
        (flags, mode): (OFlags, Mode),
        resolve: ResolveFlags,
    ) -> Result<Open> {
        let is_free = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let follow = !flags.contains(OFlags::NOFOLLOW) && !is_free;
        let found = self.walk(at, path, follow, resolve)?;
        let mode = mode.as_raw_mode() & BITS & !UMASK;
        let only_path = flags.contains(OFlags::PATH);
        if flags.contains(OFlags::TMPFILE) {
            let above = found.there()?;
            if !self.is_directory(above) {
                return Err(Errno::NOTDIR.into());
            }
            let ino = self.make(What::File(Some(Vec::new())), mode, above)?;
            self.node_mut(ino)?.is_unborn = true;
            return Ok(Open { ino, at: 0, only_path: false, reads: true, writes: true });
        }
        let ino = match (found.ino, flags.contains(OFlags::CREATE) && !only_path) {
            (Some(_), true) if is_free => return Err(Errno::EXIST.into()),
            (Some(ino), _) => ino,
            (None, false) => return Err(Errno::NOENT.into()),
            (None, true) => {
                let place = self.living(found.place)?;
                let ino = self.make(What::File(Some(Vec::new())), mode, place.0)?;
                self.put(place, ino);
                ino
            }
        };
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR) && !only_path;
        self.may_open(ino, flags, writes)?;
        if writes {
            if flags.contains(OFlags::TRUNC) {
                self.node_mut(ino)?.what = What::File(Some(Vec::new()));
                self.node_mut(ino)?.stat.st_size = 0;
                self.stamp(ino, true);
            } else {
                self.take_up(ino)?;
            }
        }
        let reads = !only_path && !flags.contains(OFlags::WRONLY);
        Ok(Open { ino, at: 0, only_path, reads, writes })
    }

    fn may_open(&self, ino: Ino, flags: OFlags, writes: bool) -> Result<()> {
        let only_path = flags.contains(OFlags::PATH);
        match &self.node(ino)?.what {
            What::Link(_) if !only_path => Err(Errno::LOOP.into()),
            What::Directory { .. } if writes => Err(Errno::ISDIR.into()),
            What::Directory { .. } => Ok(()),
            _ if flags.contains(OFlags::DIRECTORY) => Err(Errno::NOTDIR.into()),
            // A fifo, socket or device cannot be written.
            What::Other if writes => Err(Errno::NXIO.into()),
            _ => Ok(()),
        }
    }

    /// Loads the content of a file of the host, so that the overlay can change a copy.
    fn take_up(&self, node: Ino) -> Result<()> {
        let found = self.node(node)?;
        match (&found.what, &found.host) {
            (What::File(None), Some(path)) => {
                Err(Stop::Missing(Fact::Content { node, path: path.clone() }))
            }
            _ => Ok(()),
        }
    }

    /// Stores the content of a file of the host.
    pub(super) fn learn_content(&mut self, ino: Ino, content: Vec<u8>) -> Result<()> {
        // The node was dropped meanwhile; the repeated operation reads the content again.
        if !self.nodes.contains_key(&ino) {
            return Ok(());
        }
        self.note_room(content.len(), 1)?;
        if let What::File(held @ None) = &mut self.node_mut(ino)?.what {
            *held = Some(content);
        }
        Ok(())
    }

    /// Returns an unused name in an existing directory.
    fn free(&self, at: BorrowedFd<'_>, path: &[u8]) -> Result<Place> {
        let found = self.walk(at, path, false, ResolveFlags::empty())?;
        if found.ino.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.living(found.place)
    }

    fn living(&self, place: Option<Place>) -> Result<Place> {
        let place = place.ok_or(Errno::EXIST)?;
        if self.node(place.0)?.stat.st_nlink == 0 { Err(Errno::NOENT.into()) } else { Ok(place) }
    }

    fn same_device(&self, ino: Ino, directory: Ino) -> Result<()> {
        let is_same = self.node(ino)?.stat.st_dev == self.node(directory)?.stat.st_dev;
        if is_same { Ok(()) } else { Err(Errno::XDEV.into()) }
    }

    /// Gives a node a name.
    fn put(&mut self, place: Place, ino: Ino) {
        let directory = place.0;
        if let Some(node) = self.nodes.get_mut(&ino) {
            (node.is_unborn, node.is_changed) = (false, true);
            match &node.what {
                What::Directory { .. } => node.stat.st_nlink = node.stat.st_nlink.max(2),
                _ => node.stat.st_nlink += 1,
            }
            node.above = directory;
        }
        self.set_entry(place, Entry::There(ino));
        self.stamp(directory, true);
    }

    /// Removes a name.
    fn take(&mut self, place: &Place, ino: Ino) {
        self.set_entry(place.clone(), Entry::Gone);
        self.stamp(place.0, true);
        self.stamp(ino, false);
        if let Some(node) = self.nodes.get_mut(&ino) {
            match &node.what {
                What::Directory { .. } => node.stat.st_nlink = 0,
                _ => node.stat.st_nlink = node.stat.st_nlink.saturating_sub(1),
            }
        }
    }

    fn rename(&mut self, old: From<'_>, new: From<'_>, flags: RenameFlags) -> Result<()> {
        let from = self.walk(old.0, old.1, false, ResolveFlags::empty())?;
        let to = self.walk(new.0, new.1, false, ResolveFlags::empty())?;
        let keeps = flags.contains(RenameFlags::NOREPLACE);
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        let source = from.place.clone().ok_or(Errno::BUSY)?;
        let target = to.place.clone();
        let target = target.ok_or(if keeps { Errno::EXIST } else { Errno::BUSY })?;
        let ino = from.there()?;
        if keeps && to.ino.is_some() {
            return Err(Errno::EXIST.into());
        }
        if exchanges {
            to.there()?;
        }
        let target = self.living(Some(target))?;
        self.same_device(ino, target.0)?;
        if self.is_directory(ino) && self.is_below(target.0, ino) {
            return Err(Errno::INVAL.into());
        }
        let Some(there) = to.ino else {
            self.note_room(0, 1)?;
            self.take(&source, ino);
            self.put(target, ino);
            return Ok(());
        };
        if there == ino {
            return Ok(());
        }
        if self.is_directory(there) && self.is_below(source.0, there) {
            return Err(if exchanges { Errno::INVAL } else { Errno::NOTEMPTY }.into());
        }
        if exchanges {
            self.take(&source, ino);
            self.take(&target, there);
            self.put(source, there);
            self.put(target, ino);
            return Ok(());
        }
        self.may_replace(ino, there)?;
        self.note_room(0, 1)?;
        self.take(&target, there);
        self.take(&source, ino);
        self.put(target, ino);
        Ok(())
    }

    fn may_replace(&self, ino: Ino, there: Ino) -> Result<()> {
        match (self.is_directory(ino), self.is_directory(there)) {
            (false, true) => Err(Errno::ISDIR.into()),
            (true, false) => Err(Errno::NOTDIR.into()),
            (true, true) if self.names(there)?.next().is_some() => Err(Errno::NOTEMPTY.into()),
            _ => Ok(()),
        }
    }

    fn is_below(&self, mut ino: Ino, top: Ino) -> bool {
        loop {
            if ino == top {
                return true;
            }
            match self.nodes.get(&ino) {
                Some(node) if node.above != ino => ino = node.above,
                _ => return false,
            }
        }
    }

    /// Returns the node that a call changes, from a descriptor or a path.
    fn target(&self, at: BorrowedFd<'_>, path: &[u8], flags: AtFlags) -> Result<Ino> {
        if path.is_empty() {
            return Ok(self.of(at)?.ino);
        }
        let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        self.walk(at, path, follow, ResolveFlags::empty())?.there()
    }
}
