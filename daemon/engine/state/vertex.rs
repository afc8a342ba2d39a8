//! The engine's state of one vertex: its declaration, its phase, and the causes to process it.

use crate::interface::action::{Class as ChangeClass, HeldReason};
use crate::interface::graph::VertexSpec;
use crate::interface::ids::{RunId, Stamp, Tick, VertexId};
use crate::interface::metaparams::{Meta, Poll};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_traits::{ExecutorKind, RunPolicy, Traits};

/// The causes to process a vertex: a set that lasts until a run starts (E-4, E-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Causes(u16);

impl Causes {
    /// Newly loaded, or with a new definition.
    pub(crate) const LOAD: Self = Self(1);
    /// The source reported a change, or lost track.
    pub(crate) const EVENT: Self = Self(1 << 1);
    /// A poll tick, which does not end convergence by itself (E-18).
    pub(crate) const POLL: Self = Self(1 << 2);
    /// A refresh is owed.
    pub(crate) const OWED: Self = Self(1 << 3);
    /// The operator asked.
    pub(crate) const OPERATOR: Self = Self(1 << 4);
    /// An earlier run failed or was cut off.
    pub(crate) const AGAIN: Self = Self(1 << 5);
    /// A look found a difference.
    pub(crate) const LOOK: Self = Self(1 << 6);
    /// In noop: a parent that would change would refresh the vertex.
    pub(crate) const SUPPOSED: Self = Self(1 << 7);
    /// The vertex receives another value: it is no longer converged, and nobody undid anything.
    pub(crate) const VALUE: Self = Self(1 << 8);

    /// Returns the union of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn only(self, other: Self) -> bool {
        self.0 == other.0
    }

    /// Returns true if the vertex has the priority of loaded vertices: drift, the operator's requests and interrupted
    /// runs come first (E-6).
    pub(crate) fn can_wait(self) -> bool {
        let first = Self(Self::EVENT.0 | Self::VALUE.0 | Self::OPERATOR.0 | Self::AGAIN.0);
        self.has(Self::LOAD) && !self.has(first)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn forget(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The phase of a vertex. Waiting is not a phase: it is derived (see [`Place`] and the gate).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Nothing is in progress. The vertex is settled if there is no cause to process it.
    Resting,
    /// A run is in progress. Boxed, so that the many resting vertices stay small.
    Running(Box<Run>),
    /// The last run failed; a retry follows at this time.
    Delayed(Tick),
    /// The last run failed, and no retries are left. A look may try the vertex once more after `until`.
    Failed { until: Tick },
    /// The last run failed, and the failure does not count before the ancestors are checked.
    Asking(Box<Asking>),
    /// The vertex rests although it is not as declared.
    Held(HeldReason),
}

/// A failed run whose ancestors are being checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    pub(crate) run: Run,
    /// The ancestors whose checks are awaited.
    pub(crate) awaited: Vec<VertexId>,
    /// The failed apply counts for a contention: it may have changed something, or an event has caused it.
    pub(crate) counts: bool,
}

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) since: Tick,
    /// The definition of the vertex at the start: a swap may change it while the run is stuck.
    pub(crate) definition: u64,
    pub(crate) stamp: Stamp,
    /// The stamp of the refresh owed at the start: a good run completes refreshes up to it, and no later ones.
    pub(crate) pays: Stamp,
    pub(crate) station: Station,
    pub(crate) kind: RunKind,
    /// The run was started to check only: no apply follows, even if a swap ends the noop meanwhile.
    pub(crate) noop: bool,
    /// Only a poll tick caused the run, and the run has found nothing so far.
    pub(crate) quiet: bool,
    /// The causes of the start.
    pub(crate) causes: Causes,
    /// The class of the change, as recorded with the intent.
    pub(crate) class: ChangeClass,
    pub(crate) refresh: bool,
    pub(crate) cancelled: Option<Cancelled>,
    /// The time at which a cancelled run counts as stuck.
    pub(crate) returns: Option<Tick>,
    pub(crate) stuck: bool,
    /// The slot of the run was written off: another slot replaces it until the run returns.
    pub(crate) written_off: bool,
    /// The vertex was changed or removed while the run was stuck: the result does not count.
    pub(crate) obsolete: bool,
    pub(crate) deadline: Option<Tick>,
    /// The stamp of the intent, if one was recorded.
    pub(crate) begun: Option<Stamp>,
    /// The slot class that the run occupies: the vertex may get another one while the run is stuck.
    pub(crate) executor: ExecutorKind,
    /// The inputs of the run differ from those of the last good one.
    pub(crate) remade: bool,
    /// Others have changed the source that the run copies: its change undoes nothing.
    pub(crate) supplied: bool,
    /// True if the kind at the start allows a cancel.
    pub(crate) cancellable: bool,
    /// The children in the intent: they are owed a refresh even if the edge is removed meanwhile (E-9).
    pub(crate) owes: Vec<VertexId>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Station {
    Checking,
    Beginning,
    Applying,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RunKind {
    Process,
    /// A look: the vertex stays settled, or held for this reason.
    Look(Option<HeldReason>),
}

/// The reason for which a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cancelled {
    /// The deadline was over: the run has failed.
    Deadline,
    /// A stop or a swap: the run neither succeeded nor failed, and is repeated.
    Withdrawn,
}

/// The queue that contains a vertex that could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Nowhere,
    /// Set aside until the engine runs again.
    Shelf,
    /// The limiter allows a start at this time.
    Limit(Tick),
    /// Contention or the repair limit delays the vertex until this time (E-20).
    Backoff(Tick),
    /// In the queues of its semaphores.
    Semaphores,
    /// In the queue for a slot; the number distinguishes a live entry from a withdrawn one.
    Slot(u64),
    /// In the queue for a slot of a look; the number distinguishes a live entry from a withdrawn one.
    Look(u64),
}

/// The state of a vertex's watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watch {
    /// No watch is needed (polled, or a one-shot command).
    None,
    /// A watch was requested: nothing starts before the reply (E-1).
    Asked,
    Established,
    Absent,
}

/// The readiness of a vertex's parents (E-8): the number of blocking ones, and the smallest clearance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gate {
    pub(crate) blocking: u32,
    pub(crate) least: Stamp,
    /// The number of parents per clearance, if there are many parents, so that no change scans them all.
    pub(crate) crowd: Option<BTreeMap<Stamp, u32>>,
}

impl Gate {
    pub(crate) fn open() -> Self {
        Self { blocking: 0, least: Stamp::CLEAR, crowd: None }
    }
}

/// One vertex.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Vertex {
    // Fields that every event may touch come first.
    pub(crate) gate: Gate,
    /// The clearance of this vertex and its ancestors: descendants that became dirty before this stamp are not blocked.
    pub(crate) clearance: Stamp,
    pub(crate) dirty_since: Stamp,
    /// The start of the last good run under the present definition.
    pub(crate) right: Stamp,
    /// The start of the last check, looks included, that found the vertex as declared or made it so.
    pub(crate) seen: Stamp,
    /// The stamp of the last check that found a difference, or could not decide.
    pub(crate) moved: Stamp,
    pub(crate) causes: Causes,
    /// A look is due.
    pub(crate) look: bool,
    /// The vertex is in the engine's list of vertices to be settled again.
    pub(crate) stale: bool,
    /// A swap waits for the vertex, or will replace it: no run is started.
    pub(crate) frozen: bool,
    /// The vertex has left the graph, and is removed when its stuck run returns.
    pub(crate) leaving: bool,
    /// A draining pause finishes the vertex.
    pub(crate) drains: bool,
    /// The vertex has failed and has not converged since.
    pub(crate) failing: bool,
    /// A descendant is held as unknown until this vertex is changed.
    pub(crate) awaited: bool,
    /// The vertex is contended (E-20).
    pub(crate) contended: bool,
    /// The vertex has converged under its present definition, in this session or an earlier one.
    pub(crate) done: bool,
    /// The last change of the vertex was intentional.
    pub(crate) intended: bool,
    /// The vertex counts against convergence, as last counted.
    pub(crate) disturbs: bool,
    /// The class of the vertex in the counts, as last counted.
    pub(crate) class: Class,
    pub(crate) watch: Watch,
    pub(crate) place: Place,
    pub(crate) phase: Phase,
    /// The ticket in the queues of the semaphores; 0 is none.
    pub(crate) ticket: u64,
    pub(crate) owed: Stamp,
    pub(crate) owed_by: Option<VertexId>,
    /// The state of the limiter.
    pub(crate) pace: Option<u64>,
    /// The number of retries used.
    pub(crate) retries: u32,
    /// The number of failures in a row that ancestors have excused.
    pub(crate) excused: u8,
    /// The number of times that the delay has doubled.
    pub(crate) doublings: u8,
    pub(crate) poll_at: Option<Tick>,
    pub(crate) definition: u64,
    pub(crate) meta: Arc<Meta>,
    pub(crate) traits: Traits,
}

/// The class of a vertex in the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Settled,
    Waiting,
    Running,
    Delayed,
    Failed,
    Held,
    Stuck,
    Contended,
}

impl Vertex {
    pub(crate) fn new(declared: &VertexSpec) -> Self {
        Self {
            gate: Gate::open(),
            clearance: Stamp::CLEAR,
            dirty_since: Stamp::NEVER,
            right: Stamp::NEVER,
            seen: Stamp::NEVER,
            moved: Stamp::NEVER,
            causes: Causes::default(),
            look: false,
            stale: false,
            frozen: false,
            leaving: false,
            drains: false,
            failing: false,
            awaited: false,
            contended: false,
            done: false,
            intended: false,
            disturbs: false,
            class: Class::Settled,
            watch: Watch::None,
            place: Place::Nowhere,
            phase: Phase::Resting,
            ticket: 0,
            owed: Stamp::NEVER,
            owed_by: None,
            pace: None,
            retries: 0,
            excused: 0,
            doublings: 0,
            poll_at: None,
            definition: declared.definition,
            meta: Arc::clone(&declared.meta),
            traits: declared.traits,
        }
    }

    /// Returns true if the vertex rests and is not dirty.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.phase {
            Phase::Resting => !self.causes.any(),
            // A look leaves a settled vertex settled, unless a cause was added meanwhile.
            Phase::Running(run) => run.kind == RunKind::Look(None) && !self.causes.any(),
            Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) | Phase::Held(_) => false,
        }
    }

    /// Returns true if the vertex is held in a way that does not block others (E-11).
    pub(crate) fn is_out_of_the_way(&self) -> bool {
        !self.causes.any()
            && match self.held_by() {
                Some(
                    HeldReason::WouldChange
                    | HeldReason::WouldRefresh
                    | HeldReason::UnknownUntil(_),
                ) => true,
                // The vertex is only delayed, as by a limiter.
                Some(HeldReason::Window(_)) => self.right > Stamp::NEVER,
                Some(HeldReason::Operator) | None => false,
            }
    }

    /// Returns the reason for which the vertex is held, also during a look.
    pub(crate) fn held_by(&self) -> Option<HeldReason> {
        match &self.phase {
            Phase::Held(holding) => Some(*holding),
            Phase::Running(run) => match run.kind {
                RunKind::Look(holding) => holding,
                RunKind::Process => None,
            },
            Phase::Resting | Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) => None,
        }
    }

    /// Returns the run in progress.
    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Running(run) => Some(run),
            Phase::Resting
            | Phase::Delayed(_)
            | Phase::Failed { .. }
            | Phase::Asking(_)
            | Phase::Held(_) => None,
        }
    }

    /// Returns the run in progress, mutably.
    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.phase {
            Phase::Running(run) => Some(run),
            Phase::Resting
            | Phase::Delayed(_)
            | Phase::Failed { .. }
            | Phase::Asking(_)
            | Phase::Held(_) => None,
        }
    }

    /// Returns true if the vertex must be processed, or is in progress.
    pub(crate) fn causes_or_runs(&self) -> bool {
        self.causes.any() || self.run().is_some() || matches!(self.phase, Phase::Asking(_))
    }

    /// Returns true if the vertex must be processed, and is neither in progress nor delayed.
    pub(crate) fn wants_run(&self) -> bool {
        let rests = matches!(self.phase, Phase::Resting | Phase::Held(_));
        self.causes.any() && rests && !self.awaits_operator()
    }

    /// Returns true if a run was cut off and only the operator's request starts the next one; refreshes and events do
    /// not.
    pub(crate) fn awaits_operator(&self) -> bool {
        self.phase == Phase::Held(HeldReason::Operator) && !self.causes.has(Causes::OPERATOR)
    }

    /// Returns true if a look is due, and nothing of higher priority.
    pub(crate) fn wants_look(&self) -> bool {
        self.look && !self.causes.any() && matches!(self.phase, Phase::Resting | Phase::Held(_))
    }

    /// Returns true if the vertex counts against convergence (E-18). A poll or a look in progress does not.
    pub(crate) fn is_disturbing(&self) -> bool {
        if self.leaving {
            return false;
        }
        let dirty = self.causes.any() && !self.causes.only(Causes::POLL);
        dirty
            || self.owed > Stamp::NEVER
            || match &self.phase {
                Phase::Resting => false,
                Phase::Running(run) => match run.kind {
                    RunKind::Process => !run.quiet || run.stuck,
                    RunKind::Look(holding) => run.stuck || holding.is_some(),
                },
                Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) | Phase::Held(_) => {
                    true
                }
            }
    }

    /// Returns true if contention delays the vertex.
    pub(crate) fn is_put_off(&self) -> bool {
        self.contended && matches!(self.place, Place::Backoff(_))
    }

    /// Returns the class of the vertex in the counts.
    pub(crate) fn classify(&self) -> Class {
        match &self.phase {
            Phase::Running(run) if run.stuck => Class::Stuck,
            Phase::Running(run) => match run.kind {
                RunKind::Process => Class::Running,
                RunKind::Look(Some(_)) => Class::Held,
                RunKind::Look(None) if self.causes.any() => Class::Waiting,
                RunKind::Look(None) if self.contended => Class::Contended,
                RunKind::Look(None) => Class::Settled,
            },
            Phase::Delayed(_) => Class::Delayed,
            Phase::Failed { .. } => Class::Failed,
            Phase::Asking(_) => Class::Waiting,
            Phase::Held(_) if self.awaits_operator() => Class::Held,
            Phase::Resting | Phase::Held(_) if self.is_put_off() => Class::Contended,
            Phase::Resting | Phase::Held(_) if self.causes.any() => Class::Waiting,
            Phase::Held(_) => Class::Held,
            Phase::Resting if self.contended => Class::Contended,
            Phase::Resting => Class::Settled,
        }
    }

    /// Returns true if a sweep, an overflow or a re-armed watch may run the vertex. Operations without a state to check
    /// are not repeated for these.
    pub(crate) fn is_checkable(&self) -> bool {
        self.traits.repeat == RunPolicy::State
    }

    /// Returns true if the vertex is watched at all.
    pub(crate) fn wants_watch(&self) -> bool {
        self.meta.poll == Poll::Never
    }
}
