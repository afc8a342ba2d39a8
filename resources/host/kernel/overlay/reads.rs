//! The reading system calls of an overlay, answered as the kernel would after all writes to the overlay.

use super::state::{Attributes, Fact, Node, Result, State, Stop, What};
use super::{Overlay, below};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

type Answer<T> = std::result::Result<T, Errno>;

impl Overlay {
    pub(in super::super) fn open(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        (flags, mode): (OFlags, Mode),
        resolve: ResolveFlags,
    ) -> Answer<OwnedFd> {
        let (opened, host) = self.ask(|state| {
            let opened = state.open_at(at, path, (flags, mode), resolve)?;
            let host = state.readable_on_host(&opened)?;
            state.opening.push(opened.ino);
            Ok((opened, host))
        })?;
        let descriptor = match host {
            Some(host) => below::open(&host, flags | OFlags::NOFOLLOW),
            None => rustix::io::fcntl_dupfd_cloexec(self.nothing(), 3),
        };
        let mut state = self.lock();
        if let Some(at) = state.opening.iter().position(|ino| *ino == opened.ino) {
            state.opening.swap_remove(at);
        }
        let descriptor = descriptor?;
        state.open.insert(descriptor.as_raw_fd(), opened);
        Ok(descriptor)
    }

    pub(in super::super) fn stat(
        &self,
        at: BorrowedFd<'_>,
        path: &[u8],
        flags: AtFlags,
    ) -> Answer<Stat> {
        self.ask(|state| {
            let ino = if path.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
                state.of(at)?.ino
            } else {
                let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
                state.walk(at, path, follow, ResolveFlags::empty())?.there()?
            };
            Ok(state.node(ino)?.stat)
        })
    }

    pub(in super::super) fn read(
        &self,
        file: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
    ) -> Answer<usize> {
        let number = file.as_raw_fd();
        let held = self.ask(|state| state.read_held(number, buffer))?;
        if let Some(count) = held {
            return Ok(count);
        }
        let count = below::read_on(file, buffer)?;
        if let Some(open) = self.lock().open.get_mut(&number) {
            open.at += count;
        }
        Ok(count)
    }

    pub(in super::super) fn read_link(&self, at: BorrowedFd<'_>, path: &[u8]) -> Answer<CString> {
        self.ask(|state| {
            let ino = if path.is_empty() {
                state.of(at)?.ino
            } else {
                state.walk(at, path, false, ResolveFlags::empty())?.there()?
            };
            match &state.node(ino)?.what {
                What::Link(target) => {
                    Ok(CString::new(target.clone()).map_err(|_nul| Errno::INVAL)?)
                }
                // The kernel's error for a descriptor that is no link.
                _ if path.is_empty() => Err(Errno::NOENT.into()),
                _ => Err(Errno::INVAL.into()),
            }
        })
    }

    pub(in super::super) fn attribute(
        &self,
        path: &[u8],
        name: &[u8],
        value: &mut [u8],
    ) -> Answer<usize> {
        let host = self.ask(|state| {
            let node = state.node_at(path)?;
            match &node.attributes {
                Some(all) => Ok(Err(fill(all.get(name).ok_or(Errno::NODATA)?, value)?)),
                None if matches!(node.what, What::Link(_)) => Err(Errno::NODATA.into()),
                None => Ok(Ok(node.host.clone().ok_or(Errno::NODATA)?)),
            }
        })?;
        match host {
            Ok(host) => below::attribute(&host, name, value),
            Err(length) => Ok(length),
        }
    }

    pub(in super::super) fn attributes(&self, path: &[u8], list: &mut [u8]) -> Answer<usize> {
        self.ask(|state| {
            let ino = state.walk(CWD, path, true, ResolveFlags::empty())?.there()?;
            if matches!(state.node(ino)?.what, What::Link(_)) {
                return Ok(0);
            }
            let names = state.attributes_of(ino)?.keys();
            let names: Vec<u8> = names.flat_map(|name| name.iter().copied().chain([0])).collect();
            Ok(fill(&names, list)?)
        })
    }

    pub(in super::super) fn entries(
        &self,
        directory: BorrowedFd<'_>,
    ) -> Answer<Vec<Answer<CString>>> {
        self.ask(|state| {
            let ino = state.of(directory)?.ino;
            let names = [&b"."[..], b".."].into_iter().chain(state.names(ino)?);
            Ok(names.map(|name| CString::new(name).map_err(|_nul| Errno::IO)).collect())
        })
    }

    pub(in super::super) fn is_mount_root(&self, at: BorrowedFd<'_>, name: &[u8]) -> bool {
        let host = self.ask(|state| Ok(state.at(at, name)?.host.clone()));
        host.ok().flatten().is_some_and(|host| below::is_mount_root(&host))
    }

    pub(in super::super) fn born_at(&self, at: BorrowedFd<'_>, name: &[u8]) -> Option<(i64, u32)> {
        let (stat, host, above) = self
            .ask(|state| {
                let node = state.at(at, name)?;
                Ok((node.stat, node.host.clone(), state.host_above(node)))
            })
            .ok()?;
        if let Some(host) = host {
            return below::born_at(&host);
        }
        // A file system stores birth times for all objects or for none.
        below::born_at(&above?)?;
        Some((stat.st_ctime, u32::try_from(stat.st_ctime_nsec).unwrap_or_default()))
    }
}

impl State {
    /// Returns the host's path of a file that was opened for reading, as long as the overlay has not replaced the
    /// file.
    fn readable_on_host(&self, opened: &super::state::Open) -> Result<Option<Vec<u8>>> {
        let node = self.node(opened.ino)?;
        let is_of_host = match &node.what {
            What::File(content) => content.is_none(),
            What::Directory { .. } | What::Other => true,
            What::Link(_) => false,
        };
        Ok(node.host.clone().filter(|_| opened.reads && is_of_host))
    }

    /// Reads the next bytes of a content in the overlay; none if the content is that of the host.
    fn read_held(&mut self, number: i32, buffer: &mut Vec<u8>) -> Result<Option<usize>> {
        let open = self.open.get_mut(&number).ok_or(Errno::BADF)?;
        if !open.reads {
            return Err(Errno::BADF.into());
        }
        let node = self.nodes.get(&open.ino).ok_or(Errno::BADF)?;
        let content = match &node.what {
            What::File(Some(content)) => content,
            What::Directory { .. } => return Err(Errno::ISDIR.into()),
            What::File(None) | What::Other if node.host.is_some() => return Ok(None),
            _ => return Err(Errno::BADF.into()),
        };
        let room = buffer.capacity() - buffer.len();
        let left = content.get(open.at..).unwrap_or_default();
        let piece = left.get(..room).unwrap_or(left);
        buffer.extend_from_slice(piece);
        open.at += piece.len();
        Ok(Some(piece.len()))
    }

    fn node_at(&self, path: &[u8]) -> Result<&Node> {
        let ino = self.walk(CWD, path, true, ResolveFlags::empty())?.there()?;
        self.node(ino)
    }

    /// Returns the node of a name in a directory, without following links.
    fn at(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<&Node> {
        let ino = self.walk(at, name, false, ResolveFlags::empty())?.there()?;
        self.node(ino)
    }

    /// Returns the path of the nearest directory above that exists on the host.
    fn host_above(&self, node: &Node) -> Option<Vec<u8>> {
        let mut above = self.nodes.get(&node.above)?;
        while above.host.is_none() {
            above = self.nodes.get(&above.above)?;
        }
        above.host.clone()
    }

    /// Returns all extended attributes of a node.
    pub(super) fn attributes_of(&self, node: super::state::Ino) -> Result<&Attributes> {
        let found = self.node(node)?;
        match (&found.attributes, &found.host) {
            (Some(all), _) => Ok(all),
            (None, Some(path)) => Err(Stop::Missing(Fact::Attributes { node, path: path.clone() })),
            (None, None) => Err(Errno::NODATA.into()),
        }
    }
}

fn fill(from: &[u8], to: &mut [u8]) -> Answer<usize> {
    if !to.is_empty() {
        to.get_mut(..from.len()).ok_or(Errno::RANGE)?.copy_from_slice(from);
    }
    Ok(from.len())
}
