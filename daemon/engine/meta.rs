//! What a graph says of *how* a vertex is run (metaparams), and what a kind says of itself.

use crate::ids::{SemaphoreId, WindowId};
use std::time::Duration;

/// The metaparams of one vertex, as the engine obeys them (DESIGN.md 2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a metaparam of its own")]
pub struct Meta {
    /// Check only, never apply (E-11).
    pub noop: bool,
    /// `noop` for the sake of a plan alone: what it would change counts as changed for those that come after it, and what holds
    /// it otherwise (a window) holds it still.
    pub planned: bool,
    /// Retries after a failure; `None` is for ever (E-10).
    pub retry: Option<u32>,
    /// A success refills the budget of retries.
    pub retryreset: bool,
    /// The first wait before a retry; doubles up to `delay_max`. At least 100 ms is waited.
    pub delay: Duration,
    /// The longest wait before a retry.
    pub delay_max: Duration,
    /// Deadline of one run; `None` leaves it to [`Nature::timeout`].
    pub timeout: Option<Duration>,
    /// E-13.
    pub poll: Poll,
    /// E-12; `None` is without a limit.
    pub pace: Option<Pace>,
    /// E-14; ascending, each once ([`crate::Graph::new`] refuses others).
    pub semaphores: Vec<SemaphoreId>,
    /// A changed definition forgets the back-off and the budget of the old one.
    pub reset: bool,
    /// What it does in a fight (E-20).
    pub on_conflict: Conflict,
    /// Changes are made while this window is open, and otherwise held; none: always.
    pub window: Option<WindowId>,
    /// A swap that removes it waits until it has been right once, for as long as a swap waits.
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
    /// No retry comes sooner than this.
    pub const SHORTEST_DELAY: Duration = Duration::from_millis(100);
    /// So many repairs within [`Meta::REVERSAL_WINDOW`] are a fight (E-20).
    pub const REVERSALS: usize = 5;
    /// See [`Meta::REVERSALS`]. Also the shortest quiet after which a fight is over.
    pub const REVERSAL_WINDOW: Duration = Duration::from_mins(1);
    /// The first wait in a fight, from the end of a repair; doubles up to [`Meta::LONGEST_BACKOFF`]. Up to a quarter of
    /// each wait is left out, so that what began together does not stay together.
    pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
    /// The longest wait in a fight, and how long one gives way at least.
    pub const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
    /// Every wait of one that wants to win.
    pub const SHORTEST_BACKOFF: Duration = Duration::from_millis(250);
}

/// What a vertex does when others undo it again and again (E-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// Repairs go on, [`Meta::SHORTEST_BACKOFF`] apart.
    Win,
    /// Each repair waits twice as long as the one before.
    #[default]
    Backoff,
    /// It gives way until nobody touches it any more, it is defined anew, or the operator asks.
    Yield,
}

/// Whether a vertex is polled instead of watched (E-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Poll {
    /// It is watched.
    Never,
    /// `poll: -1`: processed once for each load, then neither polled nor watched.
    Once,
    /// Processed at this interval.
    Every(Duration),
}

/// A token bucket on starts (E-12): one token each `period_ns`, at most `burst` saved up; it starts full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pace {
    /// Nanoseconds for one token; at least 1, and `period_ns * burst` below 2^62.
    pub period_ns: u64,
    /// The most starts in a row; at least 1.
    pub burst: u32,
}

/// What the engine must know of the kind of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nature {
    /// What a run occupies.
    pub slot: SlotClass,
    /// What there is to check.
    pub check: Check,
    /// What follows when a run was cut off between its begin and its end.
    pub interrupted: Interrupted,
    /// Whether a run in progress may be cancelled (a package transaction may not).
    pub cancellable: bool,
    /// The kind's own deadline for one run.
    pub timeout: Option<Duration>,
    /// An apply changes nothing but what the resource claims, although it occupies the slot of a command (a timer).
    pub confined: bool,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            slot: SlotClass::Thread,
            check: Check::State,
            interrupted: Interrupted::Again,
            cancellable: true,
            timeout: None,
            confined: false,
        }
    }
}

/// What a run occupies while it is in progress. Each class has its own number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotClass {
    /// A thread: it makes system calls that may block.
    Thread,
    /// A child process: it holds no thread.
    Command,
}

/// What there is to check, and so who may cause a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// There is a state on the host that can be compared: every cause runs it.
    State,
    /// Nothing to compare (a command without guard): runs once per definition, and for events, refreshes and `redo`.
    Once,
    /// As [`Check::Once`], and once at each start of the daemon (`always: true`).
    EachStart,
    /// A deed done for events, refreshes and `redo` only (a timer): settled from the load on.
    Events,
}

/// What follows after a run that was cut off between its begin and its end, and whose check cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interrupted {
    /// Run again: at least once.
    Again,
    /// Take it as done: at most once.
    Skip,
    /// Wait for the operator (`redo`).
    Wait,
}
