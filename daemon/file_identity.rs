//! The identity of an open file at its path, by which a removed or replaced file is noticed while it is in use.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A path with the identity of its file at the time of opening.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    /// Device and inode; none if the file could not be looked at.
    identity: Option<(u64, u64)>,
}

impl FileIdentity {
    /// Notes the present file at a path.
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity_of(path) }
    }

    /// Returns true if the path still leads to the noted file.
    pub(crate) fn is_in_place(&self) -> bool {
        self.identity.is_some() && identity_of(&self.path) == self.identity
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_and_a_replaced_file_are_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&path, "1").expect("written");
        let noted = FileIdentity::of(&path);
        std::fs::write(&path, "2").expect("written");
        assert!(noted.is_in_place(), "another content is the same file");
        std::fs::write(&other, "2").expect("written");
        std::fs::rename(&other, &path).expect("replaced");
        assert!(!noted.is_in_place());
        std::fs::remove_file(&path).expect("removed");
        assert!(!noted.is_in_place());
        assert!(!FileIdentity::of(&path).is_in_place(), "no file was there");
    }
}
