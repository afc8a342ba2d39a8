//! The identity of directories: paths with different names may lead to one directory.

use crate::host::kernel::statat;
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The device and inode of a directory: equal numbers mean the same directory.
pub type Directory = (u64, u64);

/// The depth limit of directories whose ancestors are determined.
const DEEPEST: usize = 256;

/// A cache of directory identities; each path is examined once.
#[derive(Debug, Default)]
pub struct DirectoryIds {
    seen: HashMap<PathBuf, Option<Directory>>,
    ways: HashMap<PathBuf, Vec<Directory>>,
}

impl DirectoryIds {
    /// Returns the directory that a path leads to, with links followed; none if there is none or the host denies
    /// access.
    pub fn to(&mut self, path: &Path) -> Option<Directory> {
        if let Some(known) = self.seen.get(path) {
            return *known;
        }
        let found = look(path, AtFlags::empty());
        self.seen.insert(path.to_owned(), found);
        found
    }

    /// Returns the identity of a directory that is not reached through a link as its last part.
    #[must_use]
    pub fn itself(path: &Path) -> Option<Directory> {
        look(path, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns a directory and all its ancestors: those that the path names, and those behind links and mounts.
    pub fn above(&mut self, directory: &Path) -> &[Directory] {
        if !self.ways.contains_key(directory) {
            let mut way: Vec<Directory> =
                directory.ancestors().filter_map(|above| self.to(above)).collect();
            let (mut at, mut last) = (directory.to_owned(), self.to(directory));
            for _ in 0..DEEPEST {
                at.push("..");
                let next = look(&at, AtFlags::empty());
                if next.is_none() || next == last {
                    break;
                }
                way.extend(next);
                last = next;
            }
            way.sort_unstable();
            way.dedup();
            self.ways.insert(directory.to_owned(), way);
        }
        self.ways.get(directory).map_or(&[], Vec::as_slice)
    }
}

fn look(path: &Path, flags: AtFlags) -> Option<Directory> {
    let stat = statat(CWD, path, flags).ok()?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    is_directory.then_some((stat.st_dev, stat.st_ino))
}
