//! The steps that the system calls of a simulated host consist of.

use super::calls::{From, UMASK};
use super::state::{Ino, Open, Place, State, What};
use super::walk::Found;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

type Result<T> = std::result::Result<T, Errno>;

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
        let mode = mode.as_raw_mode() & 0o7777 & !UMASK;
        let only_path = flags.contains(OFlags::PATH);
        if flags.contains(OFlags::TMPFILE) {
            let above = found.there()?;
            self.entries(above).ok_or(Errno::NOTDIR)?;
            let ino = self.make(What::File(Vec::new()), mode, above);
            if let Some(node) = self.nodes.get_mut(&ino) {
                node.unborn = true;
            }
            return Ok(Open {
                ino,
                at: 0,
                only_path: false,
                reads: true,
                writes: true,
                place: None,
            });
        }
        let ino = match (found.ino, flags.contains(OFlags::CREATE) && !only_path) {
            (Some(_), true) if is_free => return Err(Errno::EXIST),
            (Some(ino), _) => ino,
            (None, false) => return Err(Errno::NOENT),
            (None, true) => {
                let place = self.living(found.place.clone())?;
                let ino = self.make(What::File(Vec::new()), mode, place.0);
                self.put(place, ino);
                ino
            }
        };
        let Found { place, .. } = found;
        let what = &self.nodes.get(&ino).ok_or(Errno::NOENT)?.what;
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        match what {
            What::Link(_) if !only_path => return Err(Errno::LOOP),
            What::Directory(_) if writes && !only_path => return Err(Errno::ISDIR),
            What::Directory(_) => {}
            _ if flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR),
            // The fifo has no reader.
            What::Fifo if writes && flags.contains(OFlags::NONBLOCK) => return Err(Errno::NXIO),
            _ => {}
        }
        if flags.contains(OFlags::TRUNC) && writes {
            if let Some(What::File(content)) = self.nodes.get_mut(&ino).map(|node| &mut node.what) {
                content.clear();
            }
            self.changed(ino, place.as_ref(), true);
        }
        let reads = !only_path && !flags.contains(OFlags::WRONLY);
        Ok(Open { ino, at: 0, only_path, reads, writes: writes && !only_path, place })
    }

    /// Returns an unused name in an existing directory.
    pub(super) fn free(&self, at: BorrowedFd<'_>, path: &[u8]) -> Result<Place> {
        let found = self.walk(at, path, false, ResolveFlags::empty())?;
        if found.ino.is_some() {
            return Err(Errno::EXIST);
        }
        self.living(found.place)
    }

    pub(super) fn living(&self, place: Option<Place>) -> Result<Place> {
        let place = place.ok_or(Errno::EXIST)?;
        if self.links(place.0) == 0 { Err(Errno::NOENT) } else { Ok(place) }
    }

    /// Gives a node a name.
    pub(super) fn put(&mut self, place: Place, ino: Ino) {
        let directory = place.0;
        self.put_at_once(place, ino);
        self.durable.note(directory, &self.nodes);
    }

    /// Gives a node a name, as part of a step that becomes durable as a whole.
    pub(super) fn put_at_once(&mut self, place: Place, ino: Ino) {
        let (directory, name) = place.clone();
        if let Some(entries) = self.entries_mut(directory) {
            entries.insert(name.clone(), ino);
        }
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.place = Some(place);
            node.unborn = false;
            if matches!(node.what, What::Directory(_)) {
                node.above = directory;
            }
        }
        self.stamp(directory, true);
        self.report_change(directory, &name, true);
    }

    /// Removes a name.
    pub(super) fn take(&mut self, place: &Place, ino: Ino) {
        self.take_at_once(place, ino);
        self.durable.note(place.0, &self.nodes);
    }

    pub(super) fn take_at_once(&mut self, place: &Place, ino: Ino) {
        if let Some(entries) = self.entries_mut(place.0) {
            entries.remove(&place.1);
        }
        self.stamp(place.0, true);
        self.stamp(ino, false);
        if let Some(node) = self.nodes.get_mut(&ino)
            && node.place.as_ref() == Some(place)
        {
            node.place = None;
        }
        if self.entries(ino).is_some() {
            self.report_change(ino, b"", true);
        }
        self.report_change(place.0, &place.1, true);
    }

    pub(super) fn rename(
        &mut self,
        old: From<'_>,
        new: From<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let from = self.walk(old.0, old.1, false, ResolveFlags::empty())?;
        let to = self.walk(new.0, new.1, false, ResolveFlags::empty())?;
        let keeps = flags.contains(RenameFlags::NOREPLACE);
        let source = from.place.clone().ok_or(Errno::BUSY)?;
        let target = to.place.clone();
        let target = target.ok_or(if keeps { Errno::EXIST } else { Errno::BUSY })?;
        let ino = from.there()?;
        if keeps && to.ino.is_some() {
            return Err(Errno::EXIST);
        }
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        if exchanges {
            to.there()?;
        }
        let target = self.living(Some(target))?;
        if self.entries(ino).is_some() && self.is_below(target.0, ino) {
            return Err(Errno::INVAL);
        }
        if let Some(there) = to.ino
            && there != ino
            && self.entries(there).is_some()
            && self.is_below(source.0, there)
        {
            return Err(if exchanges { Errno::INVAL } else { Errno::NOTEMPTY });
        }
        if to.ino == Some(ino) {
            return Ok(());
        }
        if exchanges {
            let other = to.there()?;
            self.take_at_once(&source, ino);
            self.take_at_once(&target, other);
            self.put_at_once(source.clone(), other);
            self.put_at_once(target.clone(), ino);
            self.moved(&source, &target);
            self.note_both(source.0, target.0);
            return Ok(());
        }
        if let Some(there) = to.ino {
            match (self.entries(ino).is_some(), self.entries(there)) {
                (false, Some(_)) => return Err(Errno::ISDIR),
                (true, None) => return Err(Errno::NOTDIR),
                (true, Some(entries)) if !entries.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            }
            if self.entries(there).is_some() {
                // The replaced node loses a name, which changes its number of links.
                self.report_change(there, b"", false);
            }
            self.take_at_once(&target, there);
        }
        self.take_at_once(&source, ino);
        self.put_at_once(target.clone(), ino);
        self.moved(&source, &target);
        self.note_both(source.0, target.0);
        Ok(())
    }

    /// Updates the names of open files after a rename or an exchange.
    fn moved(&mut self, source: &Place, target: &Place) {
        for open in self.open.values_mut() {
            if open.place.as_ref() == Some(source) {
                open.place = Some(target.clone());
            } else if open.place.as_ref() == Some(target) {
                open.place = Some(source.clone());
            }
        }
    }

    pub(super) fn note_both(&mut self, one: Ino, other: Ino) {
        self.durable.note(one, &self.nodes);
        if one != other {
            self.durable.note(other, &self.nodes);
        }
    }

    pub(super) fn is_below(&self, mut ino: Ino, top: Ino) -> bool {
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
    pub(super) fn target(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: AtFlags,
    ) -> Result<(Ino, Option<Place>)> {
        if path.is_empty() {
            let open = self.of(at)?;
            return Ok((open.ino, open.place.clone()));
        }
        let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        let found = self.walk(at, path, follow, ResolveFlags::empty())?;
        Ok((found.there()?, found.place))
    }

    pub(super) fn node_at(&self, path: &[u8]) -> Result<&super::Node> {
        let ino = self.walk(rustix::fs::CWD, path, true, ResolveFlags::empty())?.there()?;
        self.nodes.get(&ino).ok_or(Errno::NOENT)
    }

    pub(super) fn changed(&mut self, ino: Ino, place: Option<&Place>, content: bool) {
        self.stamp(ino, content);
        self.report_node_change(ino, place);
    }
}
