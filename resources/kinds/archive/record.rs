//! The record of an unpacked archive: the archive's checksum, and a list of all entries as they were unpacked.
//!
//! The record is a file in the directory that only its writer may read, because it has the checksums of private files.

use crate::failure::Failure;
use crate::host::files::{Content, Draft, Entry, EntryStat, Fault, Files, said};
use crate::parts::tree_listing::{Listed, list_tree};
use crate::permit::Permit;
use rustix::fs::FileType;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The name of the record in the directory.
pub(super) const RECORD: &str = ".steadfast-archive";

/// The size limit of a record in bytes, for about 500 000 entries. The entries of a larger archive are not recorded.
const LARGEST: usize = 64 << 20;

/// The record of an unpacked archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The words that name the archive.
    pub(super) stamp: String,
    /// The directory itself with an empty path, and everything below it, each directory before its entries. Empty in
    /// the record of a program that stored no entries.
    pub(super) entries: Vec<Unpacked>,
    /// Another user can have written the record, or put another object in its place; its entries are not read.
    pub(super) is_foreign: bool,
}

/// An entry of an archive, as it was unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// The path below the directory.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) shape: Shape,
}

/// The type of an entry, with its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Directory,
    /// A regular file. A file with the size and the time of its last change is not read again.
    File {
        size: u64,
        changed: (i64, i64),
        sha256: String,
    },
    /// A link with this target.
    Link(Vec<u8>),
}

impl Record {
    /// Makes the record of a tree in a private folder, in which nothing changes meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the tree cannot be read, or if `cancel` is cancelled.
    pub(super) fn of_tree(
        files: &Files,
        (top, stamp): (&Path, String),
        cancel: &CancellationToken,
    ) -> Result<Self, Failure> {
        let listed = list_tree(files, top)?;
        let unpacked = || -> Result<Vec<Unpacked>, Fault> {
            let Some(spot) = files.open_entry(top)? else { return Err(Fault::moved()) };
            let Some(seen) = spot.look()? else { return Err(Fault::moved()) };
            let own = Listed { path: PathBuf::new(), seen, target: Vec::new() };
            std::iter::once(own)
                .chain(listed)
                .map(|entry| Unpacked::of(files, top, entry, cancel))
                .collect()
        };
        let entries = unpacked().map_err(|fault| files.failure(fault, top))?;
        Ok(Self { stamp, entries, is_foreign: false })
    }

    /// Returns true if only root and this process's user can put objects into the directories.
    pub(super) fn is_closed(&self, files: &Files) -> bool {
        let mut directories = self.entries.iter().filter(|it| it.shape == Shape::Directory);
        directories.all(|it| (it.uid == 0 || it.uid == files.own_uid()) && it.mode & 0o022 == 0)
    }

    /// Reads the record of a directory; none if there is no record.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be read or is damaged.
    pub(super) fn read(files: &Files, directory: &Path) -> Result<Option<Self>, Failure> {
        let path = directory.join(RECORD);
        let read = || -> Result<Option<(Vec<u8>, EntryStat)>, Fault> {
            let Some(spot) = files.open_entry(&path)? else { return Ok(None) };
            let Some(seen) = spot.look()? else { return Ok(None) };
            if seen.kind != FileType::RegularFile {
                return Ok(Some((Vec::new(), seen)));
            }
            let too_large = || Fault::refused(said("read", &path, "the file exceeds 64 MiB"));
            let bytes = spot.content(&seen, LARGEST)?.ok_or_else(too_large)?;
            Ok(Some((bytes, seen)))
        };
        let read = read().map_err(|fault| files.failure(fault, &path))?;
        let Some((bytes, seen)) = read else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        if !files.owns(&seen) || seen.links != 1 || seen.kind != FileType::RegularFile {
            let stamp = text.lines().next().unwrap_or_default().trim().to_owned();
            return Ok(Some(Self { stamp, entries: Vec::new(), is_foreign: true }));
        }
        let record = Self::parse(&text).ok_or_else(|| {
            let hint = "remove the directory to unpack the archive again";
            said("read", &path, "the record of the unpacked archive is damaged").hint(hint)
        });
        record.map(Some)
    }

    /// Writes the record into a directory.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub(super) fn write(
        &self,
        (files, permit): (&Files, &Permit),
        directory: &Path,
    ) -> Result<(), Failure> {
        let path = directory.join(RECORD);
        let text = self.text();
        // The entries of a huge archive are not compared.
        let text = if text.len() > LARGEST { format!("{}\n", self.stamp) } else { text };
        let write = || -> Result<(), Fault> {
            let Some(spot) = files.open_entry(&path)? else { return Err(Fault::moved()) };
            let (content, found) = (Content::text(&text), spot.look()?);
            let draft = Draft { instead_of: found.as_ref(), ..Draft::private(&content) };
            files.put(permit, &spot, &draft).map(drop)
        };
        write().map_err(|fault| files.failure(fault, &path))
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.stamp);
        for Unpacked { path, mode, uid, gid, shape } in &self.entries {
            let kind = match shape {
                Shape::Directory => "d",
                Shape::File { .. } => "f",
                Shape::Link(_) => "l",
            };
            let path = escaped(path.as_os_str().as_bytes());
            // Writing to a text cannot fail.
            let _infallible = write!(text, "{kind} {mode:o} {uid} {gid} ./{path}");
            let _infallible = match shape {
                Shape::Directory => writeln!(text),
                Shape::File { size, changed: (seconds, nanoseconds), sha256 } => {
                    writeln!(text, " {size} {seconds} {nanoseconds} {sha256}")
                }
                Shape::Link(target) => writeln!(text, " {}", escaped(target)),
            };
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let stamp = lines.next()?.trim().to_owned();
        let entries = lines.map(Unpacked::parse).collect::<Option<Vec<_>>>()?;
        Some(Self { stamp, entries, is_foreign: false })
    }

    /// Returns true if both records have the same entries, whenever they were changed last.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_like = |one: &Unpacked, other: &Unpacked| match (&one.shape, &other.shape) {
            (
                Shape::File { size, sha256, .. },
                Shape::File { size: other_size, sha256: other_sum, .. },
            ) => {
                let rest = |it: &Unpacked| (it.path.clone(), it.mode, it.uid, it.gid);
                size == other_size && sha256 == other_sum && rest(one) == rest(other)
            }
            _ => one == other,
        };
        self.is_foreign == other.is_foreign
            && self.stamp == other.stamp
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, other)| is_like(one, other))
    }
}

impl Unpacked {
    fn of(
        files: &Files,
        top: &Path,
        Listed { path, seen, target }: Listed,
        cancel: &CancellationToken,
    ) -> Result<Self, Fault> {
        let shape = match seen.kind {
            FileType::Directory => Shape::Directory,
            FileType::Symlink => Shape::Link(target),
            _ => {
                let whole = top.join(&path);
                let Some(spot) = files.open_entry(&whole)? else { return Err(Fault::moved()) };
                let sha256 = sum_of(files, &spot, &seen, cancel)?;
                Shape::File { size: seen.size, changed: seen.changed, sha256 }
            }
        };
        let EntryStat { mode, uid, gid, .. } = seen;
        Ok(Self { path, mode, uid, gid, shape })
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let (uid, gid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let path = unescaped(words.next()?.strip_prefix("./")?)?;
        let shape = match kind {
            "d" => Shape::Directory,
            "f" => Shape::File {
                size: words.next()?.parse().ok()?,
                changed: (words.next()?.parse().ok()?, words.next()?.parse().ok()?),
                sha256: words.next()?.to_owned(),
            },
            "l" => Shape::Link(unescaped(words.next()?)?),
            _ => return None,
        };
        let path = PathBuf::from(OsString::from_vec(path));
        path.components().all(|part| matches!(part, Component::Normal(_))).then_some(())?;
        Some(Self { path, mode, uid, gid, shape })
    }
}

/// Returns the checksum of an examined regular file.
pub(super) fn sum_of(
    files: &Files,
    spot: &Entry<'_>,
    seen: &EntryStat,
    cancel: &CancellationToken,
) -> Result<String, Fault> {
    let mut content = Content::default();
    content.push(files.origin_at(spot, seen)?);
    content.sha256(cancel)
}

/// Writes bytes as one word of printable characters.
fn escaped(bytes: &[u8]) -> String {
    let mut word = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && *byte != b'%' {
            word.push(char::from(*byte));
        } else {
            // Writing to a text cannot fail.
            let _infallible = write!(word, "%{byte:02x}");
        }
    }
    word
}

fn unescaped(word: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(word.len()), word.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (code, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?);
        rest = after;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Record, Shape, Unpacked};
    use std::path::PathBuf;

    #[test]
    fn a_record_is_read_as_written() {
        let entry = |path: &str, shape| Unpacked {
            path: PathBuf::from(path),
            mode: 0o755,
            uid: 0,
            gid: 7,
            shape,
        };
        let sha256 = "ab".repeat(32);
        let record = Record {
            stamp: "sha256:00 strip:1".to_owned(),
            entries: vec![
                entry("", Shape::Directory),
                entry("a b%\nc", Shape::Directory),
                entry("a b%\nc/é", Shape::File { size: 0, changed: (-1, 5), sha256 }),
                entry("link", Shape::Link(b"a b\xff".to_vec())),
                entry("no target", Shape::Link(Vec::new())),
            ],
            is_foreign: false,
        };
        assert_eq!(Record::parse(&record.text()).as_ref(), Some(&record));
        let old = Record::parse("sha256:00 strip:1\n").unwrap();
        assert!(old.entries.is_empty() && old.stamp == record.stamp);
        for damaged in [
            "",
            "x\nf 755 0 0 ./a 1",
            "x\nd 999 0 0 ./a",
            "x\nd 755 0 0 ./%f",
            "x\nd 755 0 0 ./../a",
        ] {
            assert_eq!(Record::parse(damaged), None, "{damaged}");
        }
    }
}
