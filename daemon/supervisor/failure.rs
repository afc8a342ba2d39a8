//! The failures of workers.

use super::outputs::Missing;
use std::sync::Arc;

/// The consequence of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The worker is started again after a growing delay.
    Again,
    /// A dependency is missing: the worker rests until one of its inputs starts or stops.
    Missing,
    /// The worker is restarted at once, with all workers that need it.
    Bounce,
    /// The worker is removed for good.
    Uninstall,
    /// All workers stop. The failure of the highest rank is reported.
    Fatal(u8),
}

/// The failure of a worker, with its consequence.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The consequence.
    pub kind: Kind,
    /// The reason.
    pub error: Arc<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    /// Returns a failure of this kind.
    pub fn new(kind: Kind, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind, error: error.into().into() }
    }

    /// Returns a failure after which the worker is started again.
    pub fn again(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(Kind::Again, error)
    }

    /// Returns a failure after which all workers stop.
    pub fn fatal(rank: u8, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(Kind::Fatal(rank), error)
    }
}

impl From<Missing> for Failure {
    fn from(missing: Missing) -> Self {
        Self::new(Kind::Missing, missing)
    }
}

impl std::fmt::Display for Failure {
    /// Writes the error with all its causes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.error)?;
        let mut cause = self.error.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
