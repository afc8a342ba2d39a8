//! The new content of a file: texts and other files in sequence, read in pieces and never loaded whole.

use crate::host::files::Files;
use crate::host::files::content::read::{READ, read_some, seen};
use crate::host::files::fault::{Fault, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::paths::safe_path::open_followed;
use crate::host::input_trust::Reader;
use crate::host::kernel::{openat, statat};
use crate::permit::Revoked;
use crate::secrets::hex::to_hex;
use ring::digest::{Context, SHA256};
use rustix::fs::{AtFlags, FileType, Mode};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The size of a piece in bytes.
const PIECE: usize = 256 * 1024;

/// The new content of a file.
#[derive(Debug, Default)]
pub struct Content<'a> {
    parts: Vec<Part<'a>>,
    size: u64,
}

enum Part<'a> {
    Text(&'a [u8]),
    File(Origin),
}

impl fmt::Debug for Part<'_> {
    /// Prints the length alone: contents may be secrets and are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{} bytes", text.len()),
            Self::File(origin) => origin.fmt(f),
        }
    }
}

/// A regular file to copy from, with its state when it was found: in any other state the file is not read.
#[derive(Clone, Debug)]
pub struct Origin {
    path: PathBuf,
    directory: Arc<OwnedFd>,
    name: OsString,
    seen: EntryStat,
}

/// The size limit in bytes of files that another user can change.
pub const LARGEST_OF_OTHERS: u64 = 1 << 30;

impl Files {
    /// Finds the object at a path to copy from. Links are followed where no other user can change them (S-1).
    /// Returns `None` if the path does not exist.
    pub fn origin(&self, path: &Path) -> Result<Option<Origin>, Fault> {
        let Some(spot) = self.open_entry(path)? else { return Ok(None) };
        let found = match spot.look()? {
            None => return Ok(None),
            Some(found) if found.kind == FileType::Symlink => {
                let (directory, name, seen) = followed(path, self.uid)?;
                let Some(seen) = seen else { return Ok(None) };
                let (path, directory) = (path.to_owned(), Arc::new(directory));
                return self.guard_source(Origin { path, directory, name, seen }).map(Some);
            }
            Some(found) => found,
        };
        self.origin_at(&spot, &found).map(Some)
    }

    /// Finds the object at a path that only trusted users of the reader may have written (S-11). For root, an
    /// object that others could change is an error; for other users, loading the graph has produced a warning.
    ///
    /// # Errors
    ///
    /// Fails if root would trust an object that an untrusted user can change, would read a large file of another user,
    /// or would copy a private file of root for another user.
    pub fn source(&self, path: &Path, reader: Reader) -> Result<Option<Origin>, Fault> {
        let found = self.origin(path)?;
        let doubt = found.as_ref().filter(|_| reader.is_strict()).and_then(|origin| {
            let way = reader.untrusted_on_the_way(path);
            way.or_else(|| reader.doubts_seen(path, origin.seen()))
        });
        if let Some(doubt) = doubt {
            return Err(doubtful(path, &doubt));
        }
        if let Some(origin) = &found {
            Self::guard_size(path, &origin.seen)?;
            self.guard_lent(origin, reader)?;
        }
        Ok(found)
    }

    /// Rejects the copy of a private file of root for another user who can have moved it to its name.
    ///
    /// # Errors
    ///
    /// Fails for such a file.
    pub fn guard_lent(&self, origin: &Origin, reader: Reader) -> Result<(), Fault> {
        self.guard_loan(&origin.directory, (&origin.path, &origin.seen), reader)
    }

    /// Rejects a file of more than [`LARGEST_OF_OTHERS`] bytes that another user can change, also for that user: a
    /// sparse file could take hours.
    ///
    /// # Errors
    ///
    /// Fails for such a file, if the reader is root.
    pub fn guard_size(path: &Path, seen: &EntryStat) -> Result<(), Fault> {
        let reader = Reader::here();
        if seen.size <= LARGEST_OF_OTHERS || !reader.is_strict() {
            return Ok(());
        }
        let doubt = reader.untrusted_on_the_way(path).or_else(|| reader.doubts_seen(path, seen));
        if doubt.is_none() {
            return Ok(());
        }
        let why = "another user can change the file, and it is larger than 1 GiB";
        let hint = "make root the owner of the file and all parent directories";
        Err(Fault::refused(said("read", path, why).hint(hint)))
    }

    /// Rejects an object of a source directory that an untrusted user could change, if the reader is strict
    /// (S-11).
    ///
    /// # Errors
    ///
    /// Fails for such an object and for a large file of another user; the message names the owner or the mode.
    pub fn guard_trust(path: &Path, seen: &EntryStat, reader: Reader) -> Result<(), Fault> {
        let doubt = reader.doubts_seen(path, seen).filter(|_| reader.is_strict());
        doubt.map_or_else(|| Self::guard_size(path, seen), |doubt| Err(doubtful(path, &doubt)))
    }

    /// Makes an origin of an examined object, if copying is safe.
    pub fn origin_at(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<Origin, Fault> {
        self.guard_source(Origin::at(spot, found))
    }
}

fn doubtful(path: &Path, doubt: &str) -> Fault {
    let mut failure = said("copy", path, "another user could change the file");
    failure.what.push_str(&format!("\n{doubt}"));
    Fault::refused(
        failure.hint(
            "make root the owner of the file and all parent directories, writable only by root",
        ),
    )
}

fn followed(path: &Path, uid: u32) -> Result<(OwnedFd, OsString, Option<EntryStat>), Fault> {
    let (directory, name) = open_followed(path, uid)?;
    let seen = match statat(&directory, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(EntryStat::of(&stat)),
        Err(rustix::io::Errno::NOENT) => None,
        Err(errno) => return Err(Fault::os("look at")(errno)),
    };
    Ok((directory, name, seen))
}

impl Origin {
    /// Makes an origin of an examined object, for a copy that only the user of the daemon may read.
    #[must_use]
    pub(in crate::host::files) fn at(spot: &Entry<'_>, found: &EntryStat) -> Self {
        Self {
            path: spot.path.to_owned(),
            directory: Arc::clone(&spot.directory),
            name: spot.name.to_owned(),
            seen: *found,
        }
    }

    /// Returns the state in which the file was found.
    #[must_use]
    pub fn seen(&self) -> &EntryStat {
        &self.seen
    }

    /// Returns the path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::host::files) fn place(&self) -> (&Arc<OwnedFd>, &OsStr) {
        (&self.directory, &self.name)
    }

    /// Reads the file in pieces; returns false if `take` stops before the end.
    fn feed(
        &self,
        go_on: &dyn Fn() -> Result<(), Revoked>,
        take: &mut dyn FnMut(&[u8]) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let named = |fault: Fault| fault.named(&self.path);
        let file = openat(&self.directory, self.name.as_os_str(), READ, Mode::empty());
        let file = file.map_err(Fault::os("read")).map_err(named)?;
        if seen(&file).map_err(named)? != self.seen {
            return Err(Fault::moved());
        }
        let room = usize::try_from(self.seen.size).map_or(PIECE, |size| PIECE.min(size + 1));
        let mut buffer = Vec::with_capacity(room);
        let mut total = 0;
        loop {
            go_on()?;
            read_some(&file, &mut buffer).map_err(named)?;
            if buffer.is_empty() {
                break;
            }
            total += buffer.len() as u64;
            if total > self.seen.size {
                return Err(Fault::moved());
            }
            if !take(&buffer)? {
                return Ok(false);
            }
        }
        // A file that was written during the reading may be a mix of both states.
        let still = total == self.seen.size && seen(&file).map_err(named)? == self.seen;
        if still { Ok(true) } else { Err(Fault::moved()) }
    }
}

impl<'a> Content<'a> {
    /// Makes a content of a text.
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self::of(text.as_bytes())
    }

    /// Makes a content of bytes.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { parts: vec![Part::Text(bytes)], size: bytes.len() as u64 }
    }

    /// Appends a file.
    pub fn push(&mut self, origin: Origin) {
        self.size += origin.seen.size;
        self.parts.push(Part::File(origin));
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns true if no part is a text.
    #[must_use]
    pub fn is_all_files(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::File(_)))
    }

    /// Returns the files that the content is copied from.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.parts.iter().filter_map(|part| match part {
            Part::File(origin) => Some(origin),
            Part::Text(_) => None,
        })
    }

    /// Returns the whole content; none if it exceeds `at_most` bytes.
    ///
    /// # Errors
    ///
    /// Fails if a file has changed since it was found or cannot be read.
    pub fn bytes(&self, at_most: usize) -> Result<Option<Vec<u8>>, Fault> {
        if self.size > at_most as u64 {
            return Ok(None);
        }
        let mut all = Vec::new();
        self.feed(&|| Ok(()), &mut |piece| {
            all.extend_from_slice(piece);
            Ok(true)
        })?;
        Ok(Some(all))
    }

    /// Returns a hash of all bytes that is equal in every process.
    ///
    /// # Errors
    ///
    /// Fails if a file has changed since it was found or cannot be read, or if `cancel` is cancelled.
    pub fn hash(&self, cancel: &CancellationToken) -> Result<u64, Fault> {
        let mut hasher = DefaultHasher::new();
        let go_on = || if cancel.is_cancelled() { Err(Revoked) } else { Ok(()) };
        self.feed(&go_on, &mut |piece| {
            hasher.write(piece);
            Ok(true)
        })?;
        Ok(hasher.finish())
    }

    /// Returns the SHA-256 of all bytes in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// Fails if a file has changed since it was found or cannot be read, or if `cancel` is cancelled.
    pub fn sha256(&self, cancel: &CancellationToken) -> Result<String, Fault> {
        let mut hasher = Context::new(&SHA256);
        let go_on = || if cancel.is_cancelled() { Err(Revoked) } else { Ok(()) };
        self.feed(&go_on, &mut |piece| {
            hasher.update(piece);
            Ok(true)
        })?;
        Ok(to_hex(hasher.finish().as_ref()))
    }

    /// Passes the content on in pieces; returns false if `take` stops before the end.
    pub(in crate::host::files) fn feed(
        &self,
        go_on: &dyn Fn() -> Result<(), Revoked>,
        take: &mut dyn FnMut(&[u8]) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        for part in &self.parts {
            let all = match part {
                Part::Text(text) => feed_text(text, go_on, take)?,
                Part::File(origin) => origin.feed(go_on, take)?,
            };
            if !all {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn feed_text(
    text: &[u8],
    go_on: &dyn Fn() -> Result<(), Revoked>,
    take: &mut dyn FnMut(&[u8]) -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    for piece in text.chunks(PIECE) {
        go_on()?;
        if !take(piece)? {
            return Ok(false);
        }
    }
    Ok(true)
}
