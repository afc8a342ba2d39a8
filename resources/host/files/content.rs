//! What a file is to hold: texts and other files, one after the other, read a piece at a time and never loaded whole.

use super::Files;
use super::entry::{Entry, EntryStat};
use super::fault::{Fault, said};
use super::read::{READ, read_some, seen};
use super::safe_path::open_followed;
use crate::host::kernel::{openat, statat};
use crate::host::path_trust::Reader;
use crate::permit::Revoked;
use rustix::fs::{AtFlags, FileType, Mode};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// So much is held at a time.
const PIECE: usize = 256 * 1024;

/// What a file is to hold.
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
    /// Contents may be secrets, and are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{} bytes", text.len()),
            Self::File(origin) => origin.fmt(f),
        }
    }
}

/// A regular file that is copied from, in the state in which it was found: in any other state it is not read.
#[derive(Clone, Debug)]
pub struct Origin {
    path: PathBuf,
    directory: Arc<OwnedFd>,
    name: OsString,
    seen: EntryStat,
}

impl Files {
    /// What is at a path to copy from; links are followed where nobody else can turn them (S-1). `None` where nothing is.
    pub fn origin(&self, path: &Path) -> Result<Option<Origin>, Fault> {
        let Some(spot) = self.spot(path)? else { return Ok(None) };
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

    /// The same for what only a reader's believed users may have written (S-11): for root it is refused where others could change it.
    /// Who is not root was warned when the graph was loaded.
    pub fn source(&self, path: &Path, reader: Reader) -> Result<Option<Origin>, Fault> {
        let found = self.origin(path)?;
        let doubt = found.as_ref().filter(|_| reader.is_strict()).and_then(|origin| {
            let way = reader.doubts_on_the_way(path);
            way.or_else(|| reader.doubts_seen(path, origin.seen()))
        });
        if let Some(doubt) = doubt {
            return Err(doubtful(path, &doubt));
        }
        if let Some(origin) = &found {
            self.guard_loan(&origin.directory, (path, &origin.seen), reader)?;
        }
        Ok(found)
    }

    /// Refuses what was seen in a directory of a source, by the same rule.
    pub fn guard_trust(path: &Path, seen: &EntryStat, reader: Reader) -> Result<(), Fault> {
        let doubt = reader.doubts_seen(path, seen).filter(|_| reader.is_strict());
        doubt.map_or(Ok(()), |doubt| Err(doubtful(path, &doubt)))
    }

    /// What was seen at a spot, to copy from.
    pub fn origin_at(&self, spot: &Entry<'_>, found: &EntryStat) -> Result<Origin, Fault> {
        self.guard_source(Origin::at(spot, found))
    }
}

fn doubtful(path: &Path, doubt: &str) -> Fault {
    let mut trouble = said("copy", path, "another user could change the file");
    trouble.what.push_str(&format!("\n{doubt}"));
    Fault::refused(
        trouble.hint(
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
    /// What was seen at a spot, for a copy that only we may read.
    #[must_use]
    pub(super) fn at(spot: &Entry<'_>, found: &EntryStat) -> Self {
        Self {
            path: spot.path.to_owned(),
            directory: Arc::clone(&spot.directory),
            name: spot.name.to_owned(),
            seen: *found,
        }
    }

    /// The state in which it was found.
    #[must_use]
    pub fn seen(&self) -> &EntryStat {
        &self.seen
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn place(&self) -> (&Arc<OwnedFd>, &OsStr) {
        (&self.directory, &self.name)
    }

    /// Reads it, a piece at a time; false where `take` has had enough.
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
        // Written while it was read: what was read may be half of each.
        let still = total == self.seen.size && seen(&file).map_err(named)? == self.seen;
        if still { Ok(true) } else { Err(Fault::moved()) }
    }
}

impl<'a> Content<'a> {
    /// A text.
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self::of(text.as_bytes())
    }

    /// These bytes.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { parts: vec![Part::Text(bytes)], size: bytes.len() as u64 }
    }

    /// Adds a file at the end.
    pub fn push(&mut self, origin: Origin) {
        self.size += origin.seen.size;
        self.parts.push(Part::File(origin));
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether no part of it is a text.
    #[must_use]
    pub fn is_all_files(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::File(_)))
    }

    /// The files it is copied from.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.parts.iter().filter_map(|part| match part {
            Part::File(origin) => Some(origin),
            Part::Text(_) => None,
        })
    }

    /// All of it, unless it is longer than this.
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

    /// A hash of all its bytes, the same in each process.
    pub fn hash(&self, cancel: &CancellationToken) -> Result<u64, Fault> {
        let mut hasher = DefaultHasher::new();
        let go_on = || if cancel.is_cancelled() { Err(Revoked) } else { Ok(()) };
        self.feed(&go_on, &mut |piece| {
            hasher.write(piece);
            Ok(true)
        })?;
        Ok(hasher.finish())
    }

    /// Gives it out, a piece at a time; false where `take` had enough before its end.
    pub(super) fn feed(
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
