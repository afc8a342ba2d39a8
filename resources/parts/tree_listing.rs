//! Lists everything below a directory.

use crate::failure::Failure;
use crate::host::files::{DirWalk, Entered, EntryStat, Fault, Files, said};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// An object in a tree.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The path below the top of the tree.
    pub(crate) path: PathBuf,
    pub(crate) seen: EntryStat,
    /// The target of a link; empty for other objects.
    pub(crate) target: Vec<u8>,
}

/// Returns everything below a directory, each directory before its entries.
///
/// # Errors
///
/// Fails if the path is no directory, has a mount point below, or cannot be read.
pub(crate) fn list_tree(files: &Files, top: &Path) -> Result<Vec<Listed>, Failure> {
    let list = || -> Result<Vec<Listed>, Fault> {
        let Some(spot) = files.open_entry(top)? else { return Err(Fault::moved()) };
        let Some(seen) = spot.look()? else { return Err(Fault::moved()) };
        if seen.kind != FileType::Directory {
            return Err(Fault::refused(said("list", top, "not a directory")));
        }
        let mut all = Vec::new();
        list_directory(&spot.branch(&seen, false)?, Path::new(""), &mut all)?;
        Ok(all)
    };
    list().map_err(|fault| files.failure(fault, top))
}

fn list_directory(directory: &DirWalk, below: &Path, all: &mut Vec<Listed>) -> Result<(), Fault> {
    for name in directory.names()? {
        let path = directory.path().join(&name);
        let spot = directory.open_entry(&path);
        let Some(seen) = spot.look()? else { return Err(Fault::moved()) };
        let target = if seen.kind == FileType::Symlink { spot.target()? } else { Vec::new() };
        let below = below.join(&name);
        all.push(Listed { path: below.clone(), seen, target });
        if seen.kind == FileType::Directory {
            match directory.enter(&spot, &seen)? {
                Entered::Branch(inner) => list_directory(&inner, &below, all)?,
                Entered::Mounted => {
                    let why = "another file system is mounted in the tree";
                    return Err(Fault::refused(said("list", &path, why)));
                }
            }
        }
    }
    Ok(())
}
