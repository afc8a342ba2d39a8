//! A number above all entries of the history, stored beside its directory: a history that is lost between two sessions
//! is reported, and no number is used again.

use crate::store::database::{private, with_suffix};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The count of numbers that are reserved at once, so that few entries write the file.
const BLOCK: u64 = 1000;

/// The stored number.
#[derive(Debug)]
pub(super) struct LastNumber {
    path: PathBuf,
    stored: Option<Stored>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    /// Every entry has a smaller number.
    bound: u64,
    /// The history was closed: its next entry has exactly this number.
    is_exact: bool,
}

impl LastNumber {
    /// Reads the number of a state directory.
    pub(super) fn of(state_directory: &Path) -> Self {
        let path = path(state_directory);
        let stored = std::fs::read_to_string(&path).ok().as_deref().and_then(Stored::parse);
        Self { path, stored }
    }

    /// Returns the number at which a history goes on that has lost entries since; none if it has lost none as far as
    /// known. `next` is the number of its next entry, and `is_new` a history that was just made.
    pub(super) fn after_loss(&self, next: u64, is_new: bool) -> Option<u64> {
        let Stored { bound, is_exact } = self.stored?;
        // A killed process has used some of the reserved numbers only.
        let unused = if is_exact || is_new { 0 } else { BLOCK };
        (next.saturating_add(unused) < bound).then_some(bound)
    }

    /// Reserves numbers from `next` on, before an entry uses them.
    pub(super) fn reserve(&mut self, next: u64) {
        let is_reserved =
            self.stored.is_some_and(|stored| !stored.is_exact && next <= stored.bound);
        if !is_reserved {
            self.store(Stored { bound: next.saturating_add(BLOCK), is_exact: false });
        }
    }

    /// Records the number of the next entry when the history is closed.
    pub(super) fn close(&mut self, next: u64) {
        if self.stored.is_some_and(|stored| !stored.is_exact) {
            self.store(Stored { bound: next, is_exact: true });
        }
    }

    /// Writes the number. A failure is harmless: a loss may then not be noticed. So nothing is synced.
    fn store(&mut self, stored: Stored) {
        let new = with_suffix(&self.path, ".new");
        let written = private(&new)
            .and_then(|mut file: File| {
                file.set_len(0)?;
                file.write_all(stored.text().as_bytes())
            })
            .and_then(|()| std::fs::rename(&new, &self.path));
        match written {
            Ok(()) => self.stored = Some(stored),
            Err(error) => tracing::debug!(%error, "the last number of the history is not stored"),
        }
    }
}

impl Stored {
    fn text(self) -> String {
        format!("{} {}\n", self.bound, if self.is_exact { "exact" } else { "bound" })
    }

    fn parse(text: &str) -> Option<Self> {
        let (bound, word) = text.trim_end().split_once(' ')?;
        Some(Self { bound: bound.parse().ok()?, is_exact: word == "exact" })
    }
}

/// Returns the path of the stored number.
pub(super) fn path(state_directory: &Path) -> PathBuf {
    state_directory.join("history.numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_history_goes_on_above_its_numbers() {
        let directory = tempfile::tempdir().expect("a directory");
        let again = || LastNumber::of(directory.path());
        assert_eq!(again().after_loss(1, true), None, "there was none");
        let mut open = again();
        open.reserve(5);
        assert_eq!(again().after_loss(5, false), None, "a killed process used few numbers");
        assert_eq!(again().after_loss(1, true), Some(1005));
        open.reserve(900);
        assert_eq!(again().after_loss(900, false), None);
        open.close(900);
        assert_eq!(again().after_loss(900, false), None);
        assert_eq!(again().after_loss(899, false), Some(900), "an older history");
        assert_eq!(again().after_loss(1, true), Some(900));
    }
}
