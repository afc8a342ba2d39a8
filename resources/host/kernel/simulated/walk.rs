//! Resolves a path to a node of a simulated host.

use super::state::{Ino, ROOT, State, What};
use rustix::fs::ResolveFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The limit of followed links, equal to the kernel's limit.
const LINKS: usize = 40;

/// The end of a path.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The directory and the last name; none if the path ends in a directory itself (`/`, `.`, `..`).
    pub(super) place: Option<(Ino, Vec<u8>)>,
    /// The node at the end, if there is one.
    pub(super) ino: Option<Ino>,
}

impl Found {
    pub(super) fn there(&self) -> Result<Ino, Errno> {
        self.ino.ok_or(Errno::NOENT)
    }
}

impl State {
    /// Returns the open file of a descriptor.
    pub(super) fn of(&self, descriptor: BorrowedFd<'_>) -> Result<&super::state::Open, Errno> {
        self.open.get(&descriptor.as_raw_fd()).ok_or(Errno::BADF)
    }

    /// Follows a path from a directory; the flag decides whether a link as the last part is followed.
    pub(super) fn walk(
        &self,
        from: BorrowedFd<'_>,
        path: &[u8],
        follow: bool,
        resolve: ResolveFlags,
    ) -> Result<Found, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        if path.len() >= 4096 {
            return Err(Errno::NAMETOOLONG);
        }
        if let Some(open) = self.through_proc(path) {
            let place = open.place.clone();
            return Ok(Found { place, ino: Some(open.ino) });
        }
        let start = if path.starts_with(b"/") { ROOT } else { self.start(from)? };
        let no_links = resolve.contains(ResolveFlags::NO_SYMLINKS);
        let mut walk = Walk { state: self, here: start, left: parts(path), links: 0 };
        let wants_directory = path.ends_with(b"/");
        walk.run(follow || wants_directory, no_links)
    }

    fn start(&self, from: BorrowedFd<'_>) -> Result<Ino, Errno> {
        // AT_FDCWD: the daemon works in `/`.
        if from.as_raw_fd() < 0 {
            return Ok(ROOT);
        }
        Ok(self.of(from)?.ino)
    }

    /// Returns the open file that `/proc/self/fd/N` names, whatever its present name is.
    fn through_proc(&self, path: &[u8]) -> Option<&super::state::Open> {
        let number = std::str::from_utf8(path.strip_prefix(b"/proc/self/fd/")?).ok()?;
        self.open.get(&number.parse::<i32>().ok()?)
    }
}

struct Walk<'a> {
    state: &'a State,
    here: Ino,
    left: VecDeque<Vec<u8>>,
    links: usize,
}

impl Walk<'_> {
    fn run(&mut self, follow: bool, no_links: bool) -> Result<Found, Errno> {
        let mut last = None;
        while let Some(name) = self.left.pop_front() {
            let entries = self.state.entries(self.here).ok_or(Errno::NOTDIR)?;
            if name.len() > 255 {
                return Err(Errno::NAMETOOLONG);
            }
            if name == b"." {
                last = None;
                continue;
            }
            if name == b".." {
                self.here = self.state.nodes.get(&self.here).map_or(ROOT, |node| node.above);
                last = None;
                continue;
            }
            let is_last = self.left.is_empty();
            let Some(ino) = entries.get(&name).copied() else {
                let place = Some((self.here, name));
                return if is_last { Ok(Found { place, ino: None }) } else { Err(Errno::NOENT) };
            };
            if let Some(What::Link(target)) = self.state.nodes.get(&ino).map(|node| &node.what)
                && (!is_last || follow)
            {
                self.links += 1;
                if no_links || self.links > LINKS {
                    return Err(Errno::LOOP);
                }
                if target.starts_with(b"/") {
                    self.here = ROOT;
                }
                for part in parts(target).into_iter().rev() {
                    self.left.push_front(part);
                }
                continue;
            }
            if is_last {
                return Ok(Found { place: Some((self.here, name)), ino: Some(ino) });
            }
            last = Some((self.here, name));
            self.here = ino;
        }
        Ok(Found { place: last, ino: Some(self.here) })
    }
}

fn parts(path: &[u8]) -> VecDeque<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
}
