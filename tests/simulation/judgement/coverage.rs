//! The list of situations that the runs together must reach. It guards against checks that never apply.

use std::collections::BTreeMap;

/// Every situation that at least one run must reach.
pub(crate) const ALL: &[&str] = &[
    "a file event came late",
    "a file event was lost, and the sweep found it",
    "the queue of file events ran over",
    "no watch is free",
    "somebody came in between two system calls",
    "a system call failed",
    "a command failed",
    "a thread hung",
    "a begin was refused",
    "an end was refused",
    "what was kept was not answered",
    "a crash between begin and end",
    "a crash within an apply",
    "a crash after the commit and before its answer",
    "a refresh that a crash left owed",
    "a refresh that came while it ran, and that a crash left owed",
    "a commit while more came to wait",
    "a batch refused while more waited behind it",
    "a swap while something ran",
    "a swap that waited",
    "a pause while something ran",
    "a pause that outlived a crash",
    "a stop while something ran",
    "a retry",
    "a failure for good that healed",
    "a contention",
    "a stuck run",
    "a vertex without events",
    "a value that changed",
    "would change",
    "all as declared",
    "moved when all was calm",
    "a window held a change",
    "a window let in",
    "the repair limit held",
    "the repair limit let go",
];

/// A situation too rare for each half of the runs; a test of its own requires it.
pub(crate) const MADE_FIRST: &str = "what a swap removes was made first";

/// The situations that runs have reached, with their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sights(BTreeMap<&'static str, u64>);

impl Sights {
    pub(crate) fn note(&mut self, what: &'static str) {
        debug_assert!(ALL.contains(&what) || what == MADE_FIRST, "{what:?} is not on the list");
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += u64::from(*count > 0);
        }
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.0.contains_key(what)
    }

    /// Returns the situations that no run has reached.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        ALL.iter().copied().filter(|what| !self.0.contains_key(what)).collect()
    }

    pub(crate) fn table(&self) -> String {
        let line = |what: &&str| format!("{:>7}  {what}\n", self.0.get(what).unwrap_or(&0));
        ALL.iter().chain([&MADE_FIRST]).map(line).collect()
    }
}
