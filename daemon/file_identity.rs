//! The identity of a file in use: a file that is removed or replaced at its path is noticed.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file or directory at a path. The file stays open, so that no other file gets its inode number.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    /// Opened with `O_PATH`, or a second descriptor of an open file: closing it releases no lock of the process.
    file: File,
}

/// The reason for which a path does not lead to its file any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing is at the path.
    Removed,
    /// Another file is at the path.
    Replaced,
}

impl Change {
    /// Returns the change as a word: `removed` or `replaced`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Replaced => "replaced",
        }
    }
}

impl FileIdentity {
    /// Records the file that a path leads to now.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if there is no file, or if it cannot be reached.
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.to_owned(), file: file.into() })
    }

    /// Records an open file as the one at a path.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the process has too many descriptors.
    pub(crate) fn of_open(file: &File, path: &Path) -> std::io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: file.try_clone()? })
    }

    /// Returns the change at the path; none if the path still leads to the recorded file. A path that cannot be reached
    /// is no evidence of a change.
    pub(crate) fn change(&self) -> Option<Change> {
        let own = self.file.metadata().ok()?;
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (own.dev(), own.ino()) => None,
            Ok(_) => Some(Change::Replaced),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Some(Change::Removed)
            }
            Err(_) => None,
        }
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_and_a_replaced_file_are_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        assert_eq!(FileIdentity::of(&path).expect_err("no file").kind(), ErrorKind::NotFound);
        std::fs::write(&path, "1").expect("written");
        let file = FileIdentity::of(&path).expect("a file");
        std::fs::write(&path, "2").expect("written");
        assert_eq!(file.change(), None, "another content is the same file");
        std::fs::write(&other, "2").expect("written");
        std::fs::rename(&other, &path).expect("replaced");
        assert_eq!(file.change(), Some(Change::Replaced));
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(file.change(), Some(Change::Removed));
    }

    #[test]
    fn a_directory_that_was_made_again_is_another_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a");
        std::fs::create_dir(&path).expect("made");
        let first = FileIdentity::of(&path).expect("a directory");
        std::fs::remove_dir(&path).expect("removed");
        std::fs::create_dir(&path).expect("made");
        assert_eq!(first.change(), Some(Change::Replaced));
    }
}
