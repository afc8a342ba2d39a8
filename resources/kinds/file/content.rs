//! The content that a file is to have: its text, or other files of the host, in the order in which they are joined.

use super::File;
use crate::host::files::{Content, Fault, Files, Origin, said};
use crate::host::path_trust::Reader;
use crate::secret::{KeyedHashOf, Secret};
use rustix::fs::FileType;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What a new file has whose content is a secret, when no mode is declared.
pub(super) const SECRET: u32 = 0o600;

/// More are refused: each is opened at each check.
const FRAGMENTS_AT_MOST: usize = 10_000;

/// The content as declared.
#[derive(Clone)]
pub(super) enum Body {
    /// Whatever it is; empty when created.
    Any,
    /// This text.
    Text(String),
    /// This text, of which nothing is shown.
    Secret(Secret),
    /// A text of which only a hash is kept: whether it is there can be told, and no more.
    Sealed(KeyedHashOf),
    /// That of another file.
    Source(PathBuf),
    /// Those of other files, joined.
    Fragments(Vec<PathBuf>),
}

impl Body {
    /// The content as it would be now; none where any will do.
    pub(super) fn content(
        &self,
        files: &Files,
        reader: &dyn Fn() -> Reader,
    ) -> Result<Option<Content<'_>>, Fault> {
        let mut content = Content::default();
        match self {
            Self::Any | Self::Sealed(_) => return Ok(None),
            Self::Text(text) => return Ok(Some(Content::text(text))),
            Self::Secret(text) => return Ok(Some(Content::text(text.reveal()))),
            Self::Source(path) => content.push(regular(files, path, reader())?),
            Self::Fragments(paths) => {
                let reader = reader();
                for path in paths {
                    let origin = there(files, path, reader)?;
                    if origin.seen().kind == FileType::Directory {
                        join((files, reader), &origin, &mut content)?;
                    } else {
                        content.push(only_regular(origin)?);
                    }
                    if content.origins().count() > FRAGMENTS_AT_MOST {
                        let why = "there are more than 10000 fragments";
                        return Err(Fault::refused(said("join", path, why)));
                    }
                }
            }
        }
        Ok(Some(content))
    }
}

/// The files of a directory in the order of their names; hidden ones, and what is no file, are left out.
fn join(
    (files, reader): (&Files, Reader),
    directory: &Origin,
    content: &mut Content<'_>,
) -> Result<(), Fault> {
    let branch = directory.branch()?;
    for name in branch.names()? {
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        let path = branch.path().join(&name);
        let spot = branch.spot(&path);
        let Some(seen) = spot.look()? else { continue };
        match seen.kind {
            FileType::RegularFile => {
                Files::guard_trust(&path, &seen, reader)?;
                content.push(files.origin_at(&spot, &seen)?);
                files.guard_copied(&spot, &seen, reader)?;
            }
            FileType::Symlink => {
                let origin = there(files, &path, reader)?;
                if origin.seen().kind == FileType::RegularFile {
                    content.push(origin);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn regular(files: &Files, path: &Path, reader: Reader) -> Result<Origin, Fault> {
    only_regular(there(files, path, reader)?)
}

fn only_regular(origin: Origin) -> Result<Origin, Fault> {
    match origin.seen().kind {
        FileType::RegularFile => Ok(origin),
        FileType::Directory => Err(Fault::refused(
            said("copy", origin.path(), "expected a file, found a directory")
                .hint("to copy a directory, end the path in / and write recurse: true"),
        )),
        _ => Err(Fault::refused(said("copy", origin.path(), "the path is not a regular file"))),
    }
}

fn there(files: &Files, path: &Path, reader: Reader) -> Result<Origin, Fault> {
    let origin = files.source(path, reader).map_err(|fault| fault.named(path))?;
    origin.ok_or_else(|| {
        Fault::refused(
            said("copy", path, "the file does not exist")
                .hint("paths are relative to the graph file; declare the file: the graph then orders it first"),
        )
    })
}

/// The directory that a tree is copied from.
pub(super) fn tree_source(files: &Files, path: &Path, reader: Reader) -> Result<Origin, Fault> {
    let origin = there(files, path, reader)?;
    if origin.seen().kind == FileType::Directory {
        return Ok(origin);
    }
    Err(Fault::refused(said("copy", path, "expected a directory, found a file")))
}

/// What a copy has when no mode is declared: never wider than what it was copied from, and what we may write.
pub(super) fn born(origin_mode: u32) -> u32 {
    (origin_mode & 0o755) | 0o600
}

impl File {
    /// The permission bits of a new file, before those that are declared: what is not to be shown is its owner's alone.
    pub(super) fn born(&self, content: Option<&Content<'_>>) -> u32 {
        let modes = content.into_iter().flat_map(Content::origins).map(|origin| origin.seen().mode);
        // Of several, none may be shown to more people than it was.
        let joined = modes.reduce(|all, mode| all & mode);
        let mode = joined.map_or(0o644, born);
        if self.sensitive { mode & 0o700 } else { mode }
    }
}
