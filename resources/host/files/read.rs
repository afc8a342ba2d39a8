//! Reading: no more than is needed to tell.

use super::fault::Fault;
use super::spot::{Seen, Spot};
use rustix::buffer::spare_capacity;
use rustix::fs::{Dir, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::{Errno, read, retry_on_intr};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// One read, and most files are told.
const CHUNK: usize = 16 * 1024;

/// A fifo must not block us, and no terminal may become ours.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl Spot<'_> {
    /// Whether the regular file holds just this. The caller has compared the size.
    pub fn holds(&self, content: &[u8], cancel: &CancellationToken) -> Result<bool, Fault> {
        let file =
            openat(&self.directory, self.name, READ, Mode::empty()).map_err(Fault::os("read"))?;
        let mut left = content;
        // One byte more than is expected tells of a file that has grown.
        let mut buffer = Vec::with_capacity(CHUNK.min(content.len() + 1));
        loop {
            read_some(&file, &mut buffer)?;
            let Some(rest) = left.strip_prefix(buffer.as_slice()) else { return Ok(false) };
            left = rest;
            // A regular file gives less than was asked for only at its end.
            if buffer.len() < buffer.capacity() {
                return Ok(left.is_empty());
            }
            if cancel.is_cancelled() {
                return Err(crate::permit::Revoked.into());
            }
        }
    }

    /// The content of a file that is not longer than this.
    pub fn content(&self, at_most: usize) -> Result<Option<Vec<u8>>, Fault> {
        let file =
            openat(&self.directory, self.name, READ, Mode::empty()).map_err(Fault::os("read"))?;
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

pub(super) fn open_listed(parent: &OwnedFd, name: &Path) -> Result<OwnedFd, Fault> {
    openat(parent, name, READ | OFlags::DIRECTORY, Mode::empty()).map_err(Fault::os("list"))
}

pub(super) fn is_empty(directory: &OwnedFd) -> Result<bool, Fault> {
    for entry in Dir::read_from(directory).map_err(Fault::os("list"))? {
        let entry = entry.map_err(Fault::os("list"))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a descriptor is of.
pub(super) fn seen(file: &OwnedFd) -> Result<Seen, Fault> {
    fstat(file).map(|stat| Seen::of(&stat)).map_err(Fault::os("look at"))
}

/// Reads as much as the buffer has room for, in the place of what it held.
fn read_some(file: &OwnedFd, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    buffer.clear();
    retry_on_intr(|| read(file, spare_capacity(buffer))).map(drop).map_err(Fault::os("read"))
}
