//! The names the engine gives to things: numbers only, so that it stays small and its order is always the same.

use std::fmt;
use std::time::Duration;

/// A vertex of the graph. The driver gives each identity (`kind[name]`) one number for as long as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// A semaphore, by its number in [`crate::Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreId(pub u32);

/// A window of time in which changes are allowed. The driver knows when it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowId(pub u32);

/// One run of one vertex: from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// A reading of the engine's own counter, which grows with every start and every new mark; never a wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Before everything: a vertex that has never been right.
    pub const NEVER: Self = Self(0);
    /// After everything: a vertex that blocks nobody.
    pub const CLEAR: Self = Self(u64::MAX);
}

/// A moment of the monotonic clock, in nanoseconds since the driver began. The engine is told it, it never reads one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The moment that lies `wait` after this one; the end of time where that is too far.
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
