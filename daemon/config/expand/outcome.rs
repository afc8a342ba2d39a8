//! The result of an evaluation: a value, a value that waits for a resource, or a reported problem.

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome<T> {
    /// A value.
    Known(T),
    /// The value is not known until this resource has run, such as `probe[old_tls]`.
    Unknown(String),
    /// A problem, already reported.
    Failed,
}

impl<T> Outcome<T> {
    /// Changes a known value.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Known(value) => Outcome::Known(change(value)),
            Self::Unknown(until) => Outcome::Unknown(until),
            Self::Failed => Outcome::Failed,
        }
    }
}

/// The results of the parts of a value. All parts are evaluated, so that all problems are reported in one run.
#[derive(Debug)]
pub(super) struct AllOutcomes<T> {
    known: Vec<T>,
    unknown: Option<String>,
    has_failed: bool,
}

impl<T> Default for AllOutcomes<T> {
    fn default() -> Self {
        Self { known: Vec::new(), unknown: None, has_failed: false }
    }
}

impl<T> AllOutcomes<T> {
    /// Adds the result of the next part.
    pub(super) fn add(&mut self, outcome: Outcome<T>) {
        match outcome {
            Outcome::Known(value) => self.known.push(value),
            Outcome::Unknown(until) => self.unknown = Some(until),
            Outcome::Failed => self.has_failed = true,
        }
    }

    /// Returns the values of all parts.
    pub(super) fn finish(self) -> Outcome<Vec<T>> {
        match self.unknown {
            _ if self.has_failed => Outcome::Failed,
            Some(until) => Outcome::Unknown(until),
            None => Outcome::Known(self.known),
        }
    }
}
