//! The identifiers of the engine: numbers only, so that they are small and always have the same order.

use std::fmt;
use std::time::Duration;

/// The number of a vertex. The driver gives each identity (`kind[name]`) one number for as long as the identity is
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// The number of a semaphore in [`crate::Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreId(pub u32);

/// A maintenance window, in which changes are allowed. The driver knows the times at which the window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowId(pub u32);

/// The number of one run of one vertex, from start to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// A value of the engine's own counter, which grows with every start and every new mark. It is not a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Earlier than every event: the stamp of a vertex that has never converged.
    pub const NEVER: Self = Self(0);
    /// Later than every event: the clearance of a vertex that blocks no other.
    pub const CLEAR: Self = Self(u64::MAX);
}

/// A moment of the monotonic clock, in nanoseconds since the driver began. The engine receives the time and reads no
/// clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// Returns the moment `wait` after this one, or the largest moment on overflow.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}
