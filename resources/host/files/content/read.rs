//! Reads files and links, with as few reads as a comparison needs.

use crate::host::files::content::new_content::Content;
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::takeover::marks::has_open_mark;
use crate::host::kernel::{Entries, fstat, openat, read, readlinkat};
use crate::permit::Revoked;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The buffer size in bytes of a file that is read to its end: the kernel fills one buffer of its tables consistently.
const WHOLE: usize = 64 * 1024;

/// The buffer size in bytes: one read is enough for most files.
const CHUNK: usize = 16 * 1024;

/// The buffer size in bytes for large files.
const LARGE: usize = 256 * 1024;

/// The flags of reading: a fifo must not block, and a terminal must not become the controlling one.
pub(in crate::host::files) const READ: OFlags = OFlags::RDONLY
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
    /// Returns true if the examined regular file has exactly this content. The caller has compared the size.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced or the kernel returned an error.
    pub fn holds(
        &self,
        found: &EntryStat,
        content: &Content<'_>,
        cancel: &CancellationToken,
    ) -> Result<bool, Fault> {
        Ok(self.compare(found, content, cancel)? != Comparison::Different)
    }

    /// Compares the examined regular file with a content of the same size.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced or the kernel returned an error.
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

    /// Opens the examined file for reading. If another file has the name by now, that file is not read, because
    /// showing its content may be forbidden.
    pub(in crate::host::files) fn open_judged(&self, found: &EntryStat) -> Result<OwnedFd, Fault> {
        let file =
            openat(&self.directory, self.name, READ, Mode::empty()).map_err(Fault::os("read"))?;
        if seen(&file)?.is_as_judged(found) { Ok(file) } else { Err(Fault::moved()) }
    }

    /// Returns the content of the examined file; none if it exceeds `at_most` bytes.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced or the kernel returned an error.
    pub fn content(&self, found: &EntryStat, at_most: usize) -> Result<Option<Vec<u8>>, Fault> {
        read_whole(&self.open_judged(found)?, at_most)
    }

    /// Returns the first bytes of the examined file: as many as asked for, fewer in a shorter file.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced or the kernel returned an error.
    pub fn first_bytes(&self, found: &EntryStat, count: usize) -> Result<Vec<u8>, Fault> {
        let file = self.open_judged(found)?;
        let (mut bytes, mut buffer) = (Vec::with_capacity(count), Vec::with_capacity(WHOLE));
        while bytes.len() < count {
            read_some(&file, &mut buffer)?;
            if buffer.is_empty() {
                break;
            }
            bytes.extend_from_slice(&buffer);
        }
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Returns the target of the link.
    pub fn target(&self) -> Result<Vec<u8>, Fault> {
        match readlinkat(&self.directory, self.name, Vec::new()) {
            Ok(text) => Ok(text.into_bytes()),
            // The object is no link any more.
            Err(Errno::INVAL | Errno::NOENT) => Err(Fault::moved()),
            Err(errno) => Err(Fault::os("read the link")(errno)),
        }
    }

    /// Returns true if the directory is empty.
    pub fn is_empty(&self) -> Result<bool, Fault> {
        let directory = open_listed(&self.directory, self.name.as_ref())?;
        is_empty(&directory)
    }
}

/// A file in the process of a comparison: the bytes of the buffer from `at` on are not compared yet.
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

    /// Reads the next piece after the buffer is compared; returns true at the end of the file.
    fn is_at_its_end(&mut self) -> Result<bool, Fault> {
        if self.at < self.buffer.len() {
            return Ok(false);
        }
        read_some(&self.file, &mut self.buffer)?;
        self.at = 0;
        Ok(self.buffer.is_empty())
    }
}

/// Returns the buffer size for a file: one extra byte detects a file that has grown.
fn room_for(size: u64) -> usize {
    let most = if size > LARGE as u64 { LARGE } else { CHUNK };
    usize::try_from(size).map_or(most, |size| most.min(size + 1))
}

pub(in crate::host::files) fn open_listed(parent: &OwnedFd, name: &Path) -> Result<OwnedFd, Fault> {
    openat(parent, name, READ | OFlags::DIRECTORY, Mode::empty()).map_err(Fault::os("list"))
}

pub(in crate::host::files) fn is_empty(directory: &OwnedFd) -> Result<bool, Fault> {
    for entry in Entries::read_from(directory).map_err(Fault::os("list"))? {
        let entry = entry.map_err(Fault::os("list"))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the state of an open file.
pub(in crate::host::files) fn seen(file: &OwnedFd) -> Result<EntryStat, Fault> {
    fstat(file).map(|stat| EntryStat::of(&stat)).map_err(Fault::os("look at"))
}

/// Reads an open file to its end; none if it exceeds `at_most` bytes.
pub(in crate::host::files) fn read_whole(
    file: &OwnedFd,
    at_most: usize,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut content = Vec::new();
    let mut buffer = Vec::with_capacity(WHOLE);
    loop {
        read_some(file, &mut buffer)?;
        if buffer.is_empty() {
            return Ok(Some(content));
        }
        content.extend_from_slice(&buffer);
        if content.len() > at_most {
            return Ok(None);
        }
    }
}

/// Fills the buffer with the next bytes of a file.
pub(in crate::host::files) fn read_some(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    buffer.clear();
    retry_on_intr(|| read(file, buffer)).map(drop).map_err(Fault::os("read"))
}
