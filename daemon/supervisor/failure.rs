//! Why a worker ended.

use super::outputs::Missing;
use std::sync::Arc;

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is tried again after a delay that grows.
    Again,
    /// Something that it needs is not there: it rests until one of its inputs comes or goes.
    Missing,
    /// It wants to be started anew at once, with whoever needs it.
    Bounce,
    /// It is done for good, and forgotten.
    Uninstall,
    /// Everything stops. Of several the highest rank is told.
    Fatal(u8),
}

/// Why a worker ended, and what follows.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What follows.
    pub kind: Kind,
    /// The reason.
    pub error: Arc<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: Kind, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind, error: error.into().into() }
    }

    /// A failure after which it is tried again.
    pub fn again(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(Kind::Again, error)
    }

    /// A failure after which everything stops.
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
    /// With all that caused it.
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
