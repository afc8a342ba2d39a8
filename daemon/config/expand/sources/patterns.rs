//! The files that patterns with `*` and `?` name. Each folder is listed once, and each pattern is searched once.

use crate::selection::matches_glob;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of paths that are stored for later patterns.
const MOST_STORED: usize = 100_000;

/// The lists of files so far.
#[derive(Debug, Default)]
pub(super) struct PatternFiles {
    folders: HashMap<PathBuf, Arc<[PathBuf]>>,
    patterns: HashMap<PathBuf, Arc<[PathBuf]>>,
    /// The number of paths in both.
    stored: usize,
}

impl PatternFiles {
    /// Returns the files of a pattern that was searched before.
    pub(super) fn find(&self, pattern: &Path) -> Option<Arc<[PathBuf]>> {
        self.patterns.get(pattern).map(Arc::clone)
    }

    /// Returns the files of a folder that was listed before.
    pub(super) fn folder(&self, folder: &Path) -> Option<Arc<[PathBuf]>> {
        self.folders.get(folder).map(Arc::clone)
    }

    /// Stores the files of a folder, which are sorted.
    pub(super) fn add_folder(&mut self, folder: &Path, files: Arc<[PathBuf]>) -> Arc<[PathBuf]> {
        self.make_room(files.len());
        self.folders.insert(folder.to_owned(), Arc::clone(&files));
        files
    }

    /// Returns the files of a folder whose names fit the pattern, and the work of the search: four units for a name,
    /// and one for 64 comparisons of letters.
    pub(super) fn search(&mut self, pattern: &Path, files: &[PathBuf]) -> (Arc<[PathBuf]>, u64) {
        let name = pattern.file_name().unwrap_or_default().to_string_lossy();
        let letters = name.chars().count();
        let mut work = 1;
        let is_meant = |path: &&PathBuf| {
            let Some(own) = path.file_name().map(|own| own.to_string_lossy()) else { return false };
            work += 4 + (letters * own.len()) as u64 / 64;
            !own.starts_with('.') && matches_glob(&name, &own)
        };
        let found: Arc<[PathBuf]> = files.iter().filter(is_meant).cloned().collect();
        self.make_room(found.len());
        self.patterns.insert(pattern.to_owned(), Arc::clone(&found));
        (found, work)
    }

    /// Counts stored paths; forgets all of them if they are too many.
    fn make_room(&mut self, paths: usize) {
        self.stored += paths + 1;
        if self.stored > MOST_STORED {
            self.folders.clear();
            self.patterns.clear();
            self.stored = paths + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_searched_once() {
        let mut known = PatternFiles::default();
        let files: Vec<PathBuf> = ["/a/.x", "/a/b.yaml", "/a/c"].map(PathBuf::from).into();
        let (found, work) = known.search(Path::new("/a/*.yaml"), &files);
        assert_eq!((&*found, work), (&[PathBuf::from("/a/b.yaml")][..], 13));
        assert_eq!(known.find(Path::new("/a/*.yaml")), Some(found));
        for number in 0..MOST_STORED {
            known.search(&PathBuf::from(format!("/a/{number}*")), &files);
        }
        assert!(known.stored <= MOST_STORED && known.patterns.len() <= MOST_STORED);
    }
}
