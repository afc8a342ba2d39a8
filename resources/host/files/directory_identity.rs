//! Which directory a path leads to, whatever it is called: links followed, as the kernel finds it.

use crate::host::kernel::statat;
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Device and inode of a directory: two paths with one lead to the same.
pub type Directory = (u64, u64);

/// As deep as a directory may lie for its way to be known.
const DEEPEST: usize = 256;

/// What was found of directories, each looked at once.
#[derive(Debug, Default)]
pub struct DirectoryIds {
    seen: HashMap<PathBuf, Option<Directory>>,
    ways: HashMap<PathBuf, Vec<Directory>>,
}

impl DirectoryIds {
    /// The directory that this path leads to; none where there is none, or it cannot be told.
    pub fn to(&mut self, path: &Path) -> Option<Directory> {
        if let Some(known) = self.seen.get(path) {
            return *known;
        }
        let found = look(path, AtFlags::empty());
        self.seen.insert(path.to_owned(), found);
        found
    }

    /// The same of what is itself a directory, and no link to one.
    #[must_use]
    pub fn itself(path: &Path) -> Option<Directory> {
        look(path, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// That directory and all that it lies in: those that its path names, and those above it where links and mounts have led.
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
