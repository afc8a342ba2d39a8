//! Failures on the host, as data: a failure is shown and retried, and never ends the daemon.

use std::fmt;

/// An action or a check that failed, described for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The expectation and the finding; the first line has at most 100 characters.
    pub what: String,
    /// The advice for the operator, where there is one.
    pub hint: Option<String>,
    /// The failure may pass without an event, so the resource is checked again from time to time.
    pub passes: bool,
}

impl Failure {
    /// Makes a failure without a hint.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, passes: false }
    }

    /// Adds a hint for the operator.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the failure as one that may pass without an event.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.passes = true;
        self
    }

    /// Marks the failure of a tool that names a read-only or full file system: it is tried again without an event.
    #[must_use]
    pub fn passing_if_named(self) -> Self {
        let passes = ["Read-only file system", "No space left on device"];
        let is_passing = passes.into_iter().any(|words| self.what.contains(words));
        if is_passing { self.passing() } else { self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}
