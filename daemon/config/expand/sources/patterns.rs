//! The files that patterns with `*` and `?` name. Each folder is listed once, and each pattern is searched once.

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
        let letters: Vec<char> = name.chars().collect();
        let mut work = 1;
        let is_meant = |path: &&PathBuf| {
            let Some(own) = path.file_name().map(|own| own.to_string_lossy()) else { return false };
            work += 4 + (letters.len() * own.len()) as u64 / 64;
            !own.starts_with('.') && fits_pattern(&letters, &own)
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

/// Returns true if a name fits a pattern with `*` and `?`.
fn fits_pattern(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(one) if *one == '?' || Some(one) == name.get(from) => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((star_at, start)) => {
                    star = Some((star_at, start + 1));
                    at = star_at + 1;
                    from = start + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fits) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a.yml", false),
            ("a?c*", "abcd", true),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("a", "a", true),
        ] {
            let letters: Vec<char> = pattern.chars().collect();
            assert_eq!(fits_pattern(&letters, name), fits, "{pattern} {name}");
        }
    }

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
