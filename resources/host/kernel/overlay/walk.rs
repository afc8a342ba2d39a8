//! Resolves a path to a node of an overlay.

use super::state::{Ino, Open, Place, ROOT, Result, State, What};
use rustix::fs::ResolveFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;

/// The limit of followed links, equal to the kernel's limit.
const LINKS: usize = 40;

/// The end of a path.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The directory and the last name; none if the path ends in a directory itself (`/`, `.`, `..`).
    pub(super) place: Option<Place>,
    /// The node at the end, if there is one.
    pub(super) ino: Option<Ino>,
}

impl Found {
    pub(super) fn there(&self) -> Result<Ino> {
        Ok(self.ino.ok_or(Errno::NOENT)?)
    }
}

impl State {
    /// Returns the open file of a descriptor.
    pub(super) fn of(&self, descriptor: BorrowedFd<'_>) -> Result<&Open> {
        Ok(self.open.get(&descriptor.as_raw_fd()).ok_or(Errno::BADF)?)
    }

    /// Follows a path from a directory; the flag decides whether a link as the last part is followed.
    pub(super) fn walk(
        &self,
        from: BorrowedFd<'_>,
        path: &[u8],
        follow: bool,
        resolve: ResolveFlags,
    ) -> Result<Found> {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if path.len() >= 4096 {
            return Err(Errno::NAMETOOLONG.into());
        }
        let mut left = parts(path);
        let opened = self.through_proc(path);
        if let Some((open, below)) = opened {
            if below.is_empty() {
                return Ok(Found { place: None, ino: Some(open.ino) });
            }
            left = parts(below);
        }
        let is_below = resolve.contains(ResolveFlags::BENEATH);
        let mut here = opened.map_or(ROOT, |(open, _)| open.ino);
        if !path.starts_with(b"/") {
            if from.as_raw_fd() < 0 {
                // AT_FDCWD.
                let directory = std::env::current_dir().map_err(|_gone| Errno::NOENT)?;
                let mut all = parts(&directory.into_os_string().into_vec());
                all.append(&mut left);
                left = all;
            } else {
                here = self.of(from)?.ino;
            }
        } else if is_below {
            return Err(Errno::XDEV.into());
        }
        let wants_directory = path.ends_with(b"/");
        let no_links = resolve.contains(ResolveFlags::NO_SYMLINKS);
        let start = here;
        let mut walk = Walk { state: self, start, here, left, links: 0, is_below };
        let found = walk.run(follow || wants_directory, no_links)?;
        if resolve.contains(ResolveFlags::NO_XDEV)
            && let Some(ino) = found.ino
            && self.node(ino)?.stat.st_dev != self.node(start)?.stat.st_dev
        {
            return Err(Errno::XDEV.into());
        }
        Ok(found)
    }

    /// Returns the open file that `/proc/self/fd/N` names, with the rest of the path. The present name of the
    /// file does not matter.
    fn through_proc<'p>(&self, path: &'p [u8]) -> Option<(&Open, &'p [u8])> {
        let rest = path.strip_prefix(b"/proc/self/fd/")?;
        let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let (number, below) = rest.split_at_checked(end)?;
        let number = std::str::from_utf8(number).ok()?.parse::<i32>().ok()?;
        Some((self.open.get(&number)?, below.strip_prefix(b"/").unwrap_or(below)))
    }
}

struct Walk<'a> {
    state: &'a State,
    start: Ino,
    here: Ino,
    left: VecDeque<Vec<u8>>,
    links: usize,
    is_below: bool,
}

impl Walk<'_> {
    fn run(&mut self, follow: bool, no_links: bool) -> Result<Found> {
        let mut last = None;
        while let Some(name) = self.left.pop_front() {
            if !self.state.is_directory(self.here) {
                return Err(Errno::NOTDIR.into());
            }
            if name.len() > 255 {
                return Err(Errno::NAMETOOLONG.into());
            }
            if name == b"." || name == b".." {
                self.step(&name)?;
                last = None;
                continue;
            }
            let is_last = self.left.is_empty();
            let Some(ino) = self.state.lookup(self.here, &name)? else {
                let place = Some((self.here, name));
                return if is_last {
                    Ok(Found { place, ino: None })
                } else {
                    Err(Errno::NOENT.into())
                };
            };
            if let What::Link(target) = &self.state.node(ino)?.what
                && (!is_last || follow)
            {
                self.links += 1;
                if no_links || self.links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                self.turn(target)?;
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

    fn step(&mut self, name: &[u8]) -> Result<()> {
        if name == b".." {
            if self.is_below && self.here == self.start {
                return Err(Errno::XDEV.into());
            }
            self.here = self.state.node(self.here)?.above;
        }
        Ok(())
    }

    /// Continues the walk at the target of a link.
    fn turn(&mut self, target: &[u8]) -> Result<()> {
        if target.starts_with(b"/") {
            if self.is_below {
                return Err(Errno::XDEV.into());
            }
            self.here = ROOT;
        }
        for part in parts(target).into_iter().rev() {
            self.left.push_front(part);
        }
        Ok(())
    }
}

fn parts(path: &[u8]) -> VecDeque<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
}
