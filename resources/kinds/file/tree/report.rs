//! The differences below a directory, by name and bounded.

use crate::change::Difference;
use crate::host::files::{Files, printable};
use crate::kinds::file::check::copy_digest::Sum;
use crate::kinds::file::check::plan::Below;
use crate::kinds::file::tree::faults::TreeFaults;
use std::path::Path;

/// The number of objects that are named; the others are counted.
const NAMED: usize = 100;

/// The total size limit in bytes of shown contents.
const SHOWN: usize = 64 * 1024;

/// The differences below a directory.
#[derive(Debug, Default)]
pub(in crate::kinds::file) struct Report {
    held: Vec<Difference>,
    removed: Vec<Difference>,
    counts: [usize; 3],
    shown: usize,
    pub(in crate::kinds::file) destructive: bool,
    /// The failures of single entries.
    pub(in crate::kinds::file) faults: TreeFaults,
    /// The entries that differ or have failed.
    pub(in crate::kinds::file) below: Below,
    /// The state of the sources.
    pub(in crate::kinds::file) origins: Sum,
}

/// The change of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) enum TreeChange {
    Added,
    Changed,
    Removed,
}

impl TreeChange {
    const ALL: [Self; 3] = [Self::Added, Self::Changed, Self::Removed];

    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl Report {
    /// Returns true if nothing differs; there may still be failures.
    pub(in crate::kinds::file) fn is_empty(&self) -> bool {
        self.counts == [0; 3]
    }

    /// Records the change of an object by its path below the directory.
    pub(in crate::kinds::file) fn note(
        &mut self,
        deed: TreeChange,
        below: &Path,
        differences: Vec<Difference>,
    ) {
        self.counts[deed as usize] += 1;
        self.below.note(below);
        if self.held.len() + self.removed.len() >= NAMED {
            return;
        }
        let name = printable(below);
        let plain =
            |from: String, to: String| Difference { aspect: deed.word(), from, to, diff: None };
        match deed {
            TreeChange::Removed => {
                // The difference says that no history stores the content.
                let words = differences.iter().find(|one| one.aspect == "content");
                let name =
                    words.map_or_else(|| name.clone(), |words| format!("{name}: {}", words.from));
                self.removed.push(plain(name, String::new()));
            }
            TreeChange::Added => self.held.push(plain(String::new(), name)),
            TreeChange::Changed => {
                for mut difference in differences {
                    difference.from = match difference.from.as_str() {
                        "" => name.clone(),
                        from => format!("{name}: {from}"),
                    };
                    let size = difference.diff.as_ref().map_or(0, String::len);
                    if self.shown + size > SHOWN {
                        difference.diff = None;
                    } else {
                        self.shown += size;
                    }
                    self.held.push(difference);
                }
            }
        }
    }

    fn more(&self) -> Option<String> {
        let all: usize = self.counts.iter().sum();
        (all > NAMED).then(|| format!("{NAMED} of {all} shown: {}", self.counted()))
    }

    fn counted(&self) -> String {
        let counts = TreeChange::ALL.iter().zip(self.counts).filter(|(_, count)| *count > 0);
        let words: Vec<String> =
            counts.map(|(deed, count)| format!("{count} {}", deed.word())).collect();
        words.join(", ")
    }

    /// Returns the differences for display, with removals last.
    pub(in crate::kinds::file) fn differences(self, files: &Files) -> Vec<Difference> {
        let more = self.more().map(|to| Difference {
            aspect: "below",
            from: String::new(),
            to,
            diff: None,
        });
        let below = |to| Difference { aspect: "below", from: String::new(), to, diff: None };
        let failed = self.faults.lines(files).into_iter().map(below);
        self.held.into_iter().chain(self.removed).chain(more).chain(failed).collect()
    }

    /// Returns the notes of the changes, for the log.
    pub(in crate::kinds::file) fn notes(self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        let counted = format!("below: {}", self.counted());
        let name = |difference: &Difference| match (&*difference.from, &*difference.to) {
            ("", to) => format!("{} {to}", difference.aspect),
            (from, _) => format!("{} {from}", difference.aspect),
        };
        let names = self.held.iter().chain(&self.removed).take(NOTED).map(name);
        std::iter::once(counted).chain(names).collect()
    }
}

/// The number of objects that the log names.
const NOTED: usize = 10;
