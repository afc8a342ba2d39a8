//! The declared content of a file: a text, or other files of the host in the order of joining.

use crate::host::files::{Content, Fault, Files, Origin, said};
use crate::host::input_trust::Reader;
use crate::kinds::file::File;
use crate::secrets::secret_text::{KeyedHashOf, Secret};
use rustix::fs::FileType;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The mode of a new file with a secret content, if no mode is declared.
pub(in crate::kinds::file) const SECRET: u32 = 0o600;

/// The limit of fragments: each is opened at each check.
const FRAGMENTS_AT_MOST: usize = 10_000;

/// The content as declared.
#[derive(Clone)]
pub(in crate::kinds::file) enum Body {
    /// Any content; a new file is empty.
    Any,
    /// This text.
    Text(String),
    /// This secret text, which is never shown.
    Secret(Secret),
    /// A secret that is only known by its hash, so it can be compared and not written.
    Sealed(KeyedHashOf),
    /// The content of another file.
    Source(PathBuf),
    /// The contents of other files, joined.
    Fragments(Vec<PathBuf>),
}

impl Body {
    /// Returns the content in its present state; none if any content will do.
    pub(in crate::kinds::file) fn content(
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

/// Opens the files of a directory in the order of their names, without hidden files and other objects.
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
        let spot = branch.open_entry(&path);
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

/// Opens the source directory of a tree.
pub(in crate::kinds::file) fn tree_source(
    files: &Files,
    path: &Path,
    reader: Reader,
) -> Result<Origin, Fault> {
    let origin = there(files, path, reader)?;
    if origin.seen().kind == FileType::Directory {
        return Ok(origin);
    }
    Err(Fault::refused(said("copy", path, "expected a directory, found a file")))
}

/// Returns the mode of a copy without a declared mode: never wider than the mode of its source, and writable
/// by the owner.
pub(in crate::kinds::file) fn creation_mode(origin_mode: u32) -> u32 {
    (origin_mode & 0o755) | 0o600
}

impl File {
    /// Returns the permission bits of a new file before the declared changes: sensitive content is for the owner
    /// alone.
    pub(in crate::kinds::file) fn creation_mode(&self, content: Option<&Content<'_>>) -> u32 {
        let modes = content.into_iter().flat_map(Content::origins).map(|origin| origin.seen().mode);
        // A joined file is readable only where every source is.
        let joined = modes.reduce(|all, mode| all & mode);
        let mode = joined.map_or(0o644, creation_mode);
        if self.sensitive { mode & 0o700 } else { mode }
    }
}
