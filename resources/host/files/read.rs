//! Reading: no more than is needed to tell.

use super::content::Content;
use super::entry::{Entry, EntryStat};
use super::fault::Fault;
use super::takeover_mark::has_open_mark;
use crate::host::kernel::{Entries, fstat, openat, read, readlinkat};
use crate::permit::Revoked;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// One read, and most files are told.
const CHUNK: usize = 16 * 1024;

/// Large files are read in larger pieces.
const LARGE: usize = 256 * 1024;

/// A fifo must not block us, and no terminal may become ours.
pub(super) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The result of a comparison of a file with a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The content differs.
    Different,
    /// The content is equal.
    Equal,
    /// The content is equal; the file has the mark of a file that others may have open.
    EqualInMarkedFile,
}

impl Entry<'_> {
    /// Tells whether the regular file that was seen here holds just this. The caller has compared the size.
    ///
    /// # Errors
    /// Another file is here by now, or the system refuses.
    pub fn holds(
        &self,
        found: &EntryStat,
        content: &Content<'_>,
        cancel: &CancellationToken,
    ) -> Result<bool, Fault> {
        Ok(self.compare(found, content, cancel)? != Comparison::Different)
    }

    /// Compares the regular file that was seen here with a content of the same size.
    ///
    /// # Errors
    /// Another file is here by now, or the system refuses.
    pub fn compare(
        &self,
        found: &EntryStat,
        content: &Content<'_>,
        cancel: &CancellationToken,
    ) -> Result<Comparison, Fault> {
        let file = self.open_judged(found)?;
        let buffer = Vec::with_capacity(room_for(content.size()));
        let mut there = Reading { file, buffer, at: 0 };
        let go_on = || if cancel.is_cancelled() { Err(Revoked) } else { Ok(()) };
        let is_equal = content.feed(&go_on, &mut |piece| there.goes_on_with(piece))?
            && there.is_at_its_end()?;
        Ok(match is_equal {
            false => Comparison::Different,
            true if has_open_mark(&there.file) => Comparison::EqualInMarkedFile,
            true => Comparison::Equal,
        })
    }

    /// Opens the file that was seen here, to read. The name may lead to another file by now, one that may not be shown: that one
    /// is not read.
    fn open_judged(&self, found: &EntryStat) -> Result<OwnedFd, Fault> {
        let file =
            openat(&self.directory, self.name, READ, Mode::empty()).map_err(Fault::os("read"))?;
        if seen(&file)?.is_as_judged(found) { Ok(file) } else { Err(Fault::moved()) }
    }

    /// The content of the file that was seen here; none where it is longer than this.
    ///
    /// # Errors
    /// Another file is here by now, or the system refuses.
    pub fn content(&self, found: &EntryStat, at_most: usize) -> Result<Option<Vec<u8>>, Fault> {
        let file = self.open_judged(found)?;
        let mut content = Vec::new();
        let mut buffer = Vec::with_capacity(CHUNK);
        loop {
            read_some(&file, &mut buffer)?;
            if buffer.is_empty() {
                return Ok(Some(content));
            }
            content.extend_from_slice(&buffer);
            if content.len() > at_most {
                return Ok(None);
            }
        }
    }

    /// Where the link points.
    pub fn target(&self) -> Result<Vec<u8>, Fault> {
        match readlinkat(&self.directory, self.name, Vec::new()) {
            Ok(text) => Ok(text.into_bytes()),
            // No link any more.
            Err(Errno::INVAL | Errno::NOENT) => Err(Fault::moved()),
            Err(errno) => Err(Fault::os("read the link")(errno)),
        }
    }

    /// Whether the directory is empty.
    pub fn is_empty(&self) -> Result<bool, Fault> {
        let directory = open_listed(&self.directory, self.name.as_ref())?;
        is_empty(&directory)
    }
}

/// A file that is read on, and what the last read gave: from `at` on it was not compared yet.
struct Reading {
    file: OwnedFd,
    buffer: Vec<u8>,
    at: usize,
}

impl Reading {
    fn goes_on_with(&mut self, piece: &[u8]) -> Result<bool, Fault> {
        let mut left = piece;
        while !left.is_empty() {
            if self.at == self.buffer.len() && self.is_at_its_end()? {
                return Ok(false);
            }
            let here = self.buffer.get(self.at..).unwrap_or_default();
            let here = here.get(..left.len()).unwrap_or(here);
            let Some(rest) = left.strip_prefix(here) else { return Ok(false) };
            self.at += here.len();
            left = rest;
        }
        Ok(true)
    }

    /// Reads on where all was compared.
    fn is_at_its_end(&mut self) -> Result<bool, Fault> {
        if self.at < self.buffer.len() {
            return Ok(false);
        }
        read_some(&self.file, &mut self.buffer)?;
        self.at = 0;
        Ok(self.buffer.is_empty())
    }
}

/// One byte more than is expected tells of a file that has grown.
fn room_for(size: u64) -> usize {
    let most = if size > LARGE as u64 { LARGE } else { CHUNK };
    usize::try_from(size).map_or(most, |size| most.min(size + 1))
}

pub(super) fn open_listed(parent: &OwnedFd, name: &Path) -> Result<OwnedFd, Fault> {
    openat(parent, name, READ | OFlags::DIRECTORY, Mode::empty()).map_err(Fault::os("list"))
}

pub(super) fn is_empty(directory: &OwnedFd) -> Result<bool, Fault> {
    for entry in Entries::read_from(directory).map_err(Fault::os("list"))? {
        let entry = entry.map_err(Fault::os("list"))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a descriptor is of.
pub(super) fn seen(file: &OwnedFd) -> Result<EntryStat, Fault> {
    fstat(file).map(|stat| EntryStat::of(&stat)).map_err(Fault::os("look at"))
}

/// Reads as much as the buffer has room for, in the place of what it held.
pub(super) fn read_some(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    buffer.clear();
    retry_on_intr(|| read(file, buffer)).map(drop).map_err(Fault::os("read"))
}
