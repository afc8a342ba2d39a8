//! Metaparams, which declare the treatment of a vertex.

use crate::interface::ids::{SemaphoreId, WindowId};
use std::time::Duration;

/// The metaparams of one vertex, as the engine applies them (DESIGN.md 2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a metaparam of its own")]
pub struct Meta {
    /// Check only, never apply (E-11).
    pub noop: bool,
    /// Noop for a plan: changes found count as made for later vertices, and other reasons to hold a vertex (a window)
    /// stay valid.
    pub planned: bool,
    /// The number of retries after a failure; `None` is unlimited (E-10).
    pub retry: Option<u32>,
    /// A success refills the budget of retries.
    pub retryreset: bool,
    /// The first wait before a retry, at least 100 ms. The wait doubles up to `delay_max`.
    pub delay: Duration,
    /// The longest wait before a retry.
    pub delay_max: Duration,
    /// The deadline of one run; `None` uses [`Traits::timeout`](steadfast_traits::Traits::timeout).
    pub timeout: Option<Duration>,
    /// The polling of the vertex (E-13).
    pub poll: Poll,
    /// The limit on starts (E-12); `None` is no limit.
    pub pace: Option<Pace>,
    /// The semaphores of the vertex (E-14): ascending, each once. [`crate::Graph::new`] rejects any other list.
    pub semaphores: Vec<SemaphoreId>,
    /// A changed definition resets the back-off and the budget of retries.
    pub reset: bool,
    /// The behaviour of the vertex in a contention (E-20).
    pub on_conflict: Conflict,
    /// The maintenance window in which changes are made; outside of it they are held. `None` allows changes at any
    /// time.
    pub window: Option<WindowId>,
    /// A swap that removes the vertex waits until the vertex has converged once, within the grace of the swap.
    pub realize: bool,
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            noop: false,
            planned: false,
            retry: Some(0),
            retryreset: true,
            delay: Self::SHORTEST_DELAY,
            delay_max: Duration::from_mins(1),
            timeout: None,
            poll: Poll::Never,
            pace: None,
            semaphores: Vec::new(),
            reset: false,
            on_conflict: Conflict::Backoff,
            window: None,
            realize: false,
        }
    }
}

impl Meta {
    /// The shortest wait before a retry.
    pub const SHORTEST_DELAY: Duration = Duration::from_millis(100);
    /// The number of repairs within [`Meta::REVERSAL_WINDOW`] that make a contention (E-20).
    pub const REVERSALS: usize = 5;
    /// The window of [`Meta::REVERSALS`], and the shortest quiet time after which a contention is over.
    pub const REVERSAL_WINDOW: Duration = Duration::from_mins(1);
    /// The first wait in a contention, from the end of a repair; doubles up to [`Meta::LONGEST_BACKOFF`]. Up to a
    /// quarter of each wait is subtracted as jitter, so that vertices that began together do not stay together.
    pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
    /// The longest wait in a contention, and the shortest time for which a vertex yields.
    pub const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
    /// The wait before each repair of a vertex with [`Conflict::Win`].
    pub const SHORTEST_BACKOFF: Duration = Duration::from_millis(250);
}

/// The behaviour of a vertex that others undo again and again (E-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// Repairs continue, [`Meta::SHORTEST_BACKOFF`] apart.
    Win,
    /// Each repair waits twice as long as the one before.
    #[default]
    Backoff,
    /// Repairs stop until nobody changes the vertex any more, its definition changes, or the operator asks.
    Yield,
}

/// The polling of a vertex; a polled vertex is not watched (E-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Poll {
    /// The vertex is watched and not polled.
    Never,
    /// `poll: -1`: processed once for each load, then neither polled nor watched.
    Once,
    /// The vertex is processed at this interval.
    Every(Duration),
}

/// A token bucket on starts (E-12): one token each `period_ns`, at most `burst` saved. The bucket starts full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pace {
    /// Nanoseconds for one token: at least 1, and `period_ns * burst` below 2^62.
    pub period_ns: u64,
    /// The largest number of starts in a row; at least 1.
    pub burst: u32,
}
