//! The properties of a resource that decide its runs: a kind declares them, and the engine schedules by them.
//!
//! The crate is pure data. The engine and the resources both depend on it, so that neither depends on the other.
#![forbid(unsafe_code)]

use std::time::Duration;

/// The properties of a kind, or of one resource, that the engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Traits {
    /// The executor that a run occupies.
    pub executor: ExecutorKind,
    /// The occasions for a run.
    pub repeat: RunPolicy,
    /// The reaction after a run that was cut off and whose progress the check cannot determine.
    pub on_interrupt: OnInterrupt,
    /// A run in progress may be cancelled (a package transaction may not).
    pub cancellable: bool,
    /// The resource's own deadline for one run.
    pub timeout: Option<Duration>,
    /// An apply changes nothing on the host except the claimed objects, although its executor is
    /// [`ExecutorKind::Command`] (a timer).
    pub confined: bool,
    /// A failure blocks the dependents until the resource succeeds. If false, the dependents may start after a failed
    /// run: they may need only what other resources provide (a package may come from any repository).
    pub failure_blocks: bool,
}

impl Traits {
    /// Returns the traits of a resource that asks commands and other programs, and changes only its own objects.
    #[must_use]
    pub fn confined_command() -> Self {
        Self { executor: ExecutorKind::Command, confined: true, ..Self::default() }
    }
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            executor: ExecutorKind::Thread,
            repeat: RunPolicy::State,
            on_interrupt: OnInterrupt::Again,
            cancellable: true,
            timeout: None,
            confined: false,
            failure_blocks: true,
        }
    }
}

/// The executor that a run occupies while it is in progress. Each executor has its own number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecutorKind {
    /// A thread: the run makes system calls that may block.
    Thread,
    /// No thread: the run waits for a child process or a timer.
    Command,
}

/// The occasions for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunPolicy {
    /// There is a state to compare: checking again has no effects, and every cause starts a run.
    State,
    /// An action (a command without guard) that runs once for each definition, and for events, refreshes and
    /// `retry`.
    Once,
    /// As [`RunPolicy::Once`], and once at each start of the daemon (`always: true`).
    EachStart,
    /// An action that runs for events, refreshes and `retry` alone, and never because of a new definition or a
    /// start of the daemon (a timer does not tick on load). Until then the resource counts as converged.
    Events,
}

/// The reaction after a run that was cut off between its begin and its end, if a check cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnInterrupt {
    /// Runs again: at least once.
    Again,
    /// Takes the run as done: at most once.
    Skip,
    /// Waits for the operator (`retry`).
    Wait,
}
