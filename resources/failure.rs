//! What went wrong on the host: data, shown and retried, never a reason to end the daemon.

use std::fmt;

/// Something that could not be done or told, in words for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was expected and what was found; the first line has at most 100 characters.
    pub what: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    /// It may pass without an event: the resource is looked at now and then until it has passed.
    pub passes: bool,
}

impl Failure {
    /// A trouble without a hint.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, passes: false }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks it as one that may pass without an event.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.passes = true;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}
