//! One vertex as the engine keeps it: what was declared, what it is doing, and why it must be processed.

use crate::action::{Class as ChangeClass, HeldReason};
use crate::graph::VertexSpec;
use crate::ids::{RunId, Stamp, Tick, VertexId};
use crate::meta::{Check, Meta, Nature, Poll, SlotClass};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a vertex must be processed: a set, kept until a run starts (E-4, E-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Causes(u16);

impl Causes {
    /// Newly loaded, or with a new definition.
    pub(crate) const LOAD: Self = Self(1);
    /// Its source reported a change, or lost track.
    pub(crate) const EVENT: Self = Self(1 << 1);
    /// A poll tick: does not end convergence by itself (E-18).
    pub(crate) const POLL: Self = Self(1 << 2);
    /// A refresh is owed.
    pub(crate) const OWED: Self = Self(1 << 3);
    /// The operator asks.
    pub(crate) const OPERATOR: Self = Self(1 << 4);
    /// An earlier run failed or was cut off.
    pub(crate) const AGAIN: Self = Self(1 << 5);
    /// A look found a difference.
    pub(crate) const LOOK: Self = Self(1 << 6);
    /// In noop: a parent that would change would refresh it.
    pub(crate) const SUPPOSED: Self = Self(1 << 7);
    /// It receives another value: what was right is so no more, and nobody undid it.
    pub(crate) const VALUE: Self = Self(1 << 8);

    /// Both sets.
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

    /// Whether it takes its turn among what was loaded: drift, the operator's requests and what was cut off go before (E-6).
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

/// What a vertex is doing. Waiting is not a phase of its own: it is derived (see [`Place`] and the gate).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Nothing; settled if there is no cause to process it.
    Resting,
    /// A run is in progress. Apart, so that the many that rest stay small.
    Running(Box<Run>),
    /// It failed; a retry follows.
    Delayed(Tick),
    /// It failed, and no retries are left. `until` is when a look may try it once more.
    Failed { until: Tick },
    /// Its run failed, and the failure does not count before its ancestors have answered.
    Asking(Box<Asking>),
    /// It rests although it is not as declared.
    Held(HeldReason),
}

/// A failed run whose ancestors are asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asking {
    pub(crate) run: Run,
    /// The ancestors whose checks are awaited.
    pub(crate) awaited: Vec<VertexId>,
}

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) since: Tick,
    /// The definition of its vertex when it started: a swap may give that another one while the run is stuck.
    pub(crate) definition: u64,
    pub(crate) stamp: Stamp,
    /// What was owed when it started: that, and no more, is paid if it ends well.
    pub(crate) pays: Stamp,
    pub(crate) station: Station,
    pub(crate) kind: RunKind,
    /// It was started to check only: no apply follows, whatever a swap says meanwhile.
    pub(crate) noop: bool,
    /// Only a poll tick caused it, and it has found nothing so far.
    pub(crate) quiet: bool,
    /// Why it was started.
    pub(crate) causes: Causes,
    /// What sort of change it makes, as recorded with its intent.
    pub(crate) class: ChangeClass,
    pub(crate) refresh: bool,
    pub(crate) cancelled: Option<Cancelled>,
    /// When it is called stuck if it has not returned from its cancel.
    pub(crate) returns: Option<Tick>,
    pub(crate) stuck: bool,
    /// Its slot was written off: another one takes its place until it returns.
    pub(crate) written_off: bool,
    /// Its vertex was changed or removed while it was stuck: what it answers counts for nothing.
    pub(crate) obsolete: bool,
    pub(crate) deadline: Option<Tick>,
    /// The stamp of its intent, if that was recorded.
    pub(crate) begun: Option<Stamp>,
    /// What it occupies: its vertex may get another nature while it is stuck.
    pub(crate) slot: SlotClass,
    /// It is made of something else than the last good one.
    pub(crate) remade: bool,
    /// Others have changed what it copies: its change undoes nothing.
    pub(crate) supplied: bool,
    /// Whether it may be cancelled: that, too, is of the kind that it was started for.
    pub(crate) cancellable: bool,
    /// The children that its intent names: they are owed even if the edge goes meanwhile (E-9).
    pub(crate) owes: Vec<VertexId>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Station {
    Checking,
    Beginning,
    Applying,
}

/// What sort of run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RunKind {
    Process,
    /// A look keeps the vertex settled, or as it was held.
    Look(Option<HeldReason>),
}

/// Why a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cancelled {
    /// Its deadline was over: it has failed.
    Deadline,
    /// A stop or a swap: it is neither good nor bad, and is done again.
    Withdrawn,
}

/// Where a vertex that could start is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Nowhere,
    /// Set aside until the engine runs again.
    Shelf,
    /// Its limiter lets it start then.
    Limit(Tick),
    /// A fight or the brake holds it back until then (E-20).
    Backoff(Tick),
    /// In the queues of its semaphores.
    Semaphores,
    /// In the queue for a slot; the number tells a live entry from a withdrawn one.
    Slot(u64),
    /// The same, for a look.
    Look(u64),
}

/// Whether events of a vertex reach us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watch {
    /// None is wanted (polled, or a one-shot command).
    None,
    /// Asked for: nothing starts before the answer (E-1).
    Asked,
    Established,
    Absent,
}

/// The parents' side of readiness (E-8): how many block, and the smallest clearance among those.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gate {
    pub(crate) blocking: u32,
    pub(crate) least: Stamp,
    /// Where there are many parents: how many of them have which clearance, so that no change scans them all.
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
    // What every event may touch comes first.
    pub(crate) gate: Gate,
    /// For whom this vertex and all its ancestors are out of the way: those that became dirty before this stamp.
    pub(crate) clearance: Stamp,
    pub(crate) dirty_since: Stamp,
    /// The start of its last good run under its present definition.
    pub(crate) right: Stamp,
    /// The start of the last check, looks included, that found it as declared or made it so.
    pub(crate) seen: Stamp,
    /// The last time at which a check found a difference, or could not tell.
    pub(crate) moved: Stamp,
    pub(crate) causes: Causes,
    /// A look is wanted.
    pub(crate) look: bool,
    /// It stands in the engine's list of vertices to be looked at again.
    pub(crate) stale: bool,
    /// A swap waits for it, or will replace it: it starts nothing.
    pub(crate) frozen: bool,
    /// It has left the graph, and goes when its stuck run returns.
    pub(crate) leaving: bool,
    /// Part of what a draining pause lets end.
    pub(crate) drains: bool,
    /// It has failed and has not been right since.
    pub(crate) failing: bool,
    /// Somebody below it is held as unknown until it is changed.
    pub(crate) awaited: bool,
    /// It is fought over (E-20).
    pub(crate) contended: bool,
    /// It has been right under its present definition, in this life of the daemon or before.
    pub(crate) done: bool,
    /// What it changed last, it changed because the graph had.
    pub(crate) intended: bool,
    /// It counts against convergence, as last counted.
    pub(crate) disturbs: bool,
    /// Its class in the counts, as last counted.
    pub(crate) class: Class,
    pub(crate) watch: Watch,
    pub(crate) place: Place,
    pub(crate) phase: Phase,
    /// Its ticket in the queues of its semaphores; 0 is none.
    pub(crate) ticket: u64,
    pub(crate) owed: Stamp,
    pub(crate) owed_by: Option<VertexId>,
    /// The one number of its limiter.
    pub(crate) pace: Option<u64>,
    /// Retries used of the budget.
    pub(crate) retries: u32,
    /// The failures in a row that ancestors have excused.
    pub(crate) excused: u8,
    /// How often the delay has doubled.
    pub(crate) doublings: u8,
    pub(crate) poll_at: Option<Tick>,
    pub(crate) definition: u64,
    pub(crate) meta: Arc<Meta>,
    pub(crate) nature: Nature,
}

/// How a vertex is counted.
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
            nature: declared.nature,
        }
    }

    /// Resting and not dirty.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.phase {
            Phase::Resting => !self.causes.any(),
            // A look leaves a settled vertex settled, unless something came meanwhile.
            Phase::Running(run) => run.kind == RunKind::Look(None) && !self.causes.any(),
            Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) | Phase::Held(_) => false,
        }
    }

    /// Held in a way that lets others go on (E-11).
    fn is_out_of_the_way(&self) -> bool {
        !self.causes.any()
            && match self.held_by() {
                Some(
                    HeldReason::WouldChange
                    | HeldReason::WouldRefresh
                    | HeldReason::UnknownUntil(_),
                ) => true,
                // Merely put off, as by a limiter.
                Some(HeldReason::Window(_)) => self.right > Stamp::NEVER,
                Some(HeldReason::Operator) | None => false,
            }
    }

    /// Why it rests although it is not as declared, also while it is looked at.
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

    /// For whom this vertex itself is out of the way: those that became dirty before this stamp.
    pub(crate) fn own_clearance(&self) -> Stamp {
        let put_off = matches!(self.place, Place::Limit(_) | Place::Backoff(_));
        let merely_limited = put_off && !self.failing;
        let limited = merely_limited && self.right > Stamp::NEVER;
        if limited || self.is_settled() || self.is_out_of_the_way() {
            Stamp::CLEAR
        } else {
            self.right
        }
    }

    /// The run in progress.
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

    /// The run in progress, to change it.
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

    /// It must be processed, or is.
    pub(crate) fn causes_or_runs(&self) -> bool {
        self.causes.any() || self.run().is_some() || matches!(self.phase, Phase::Asking(_))
    }

    /// It must be processed, and is neither in progress nor put off.
    pub(crate) fn wants_run(&self) -> bool {
        let rests = matches!(self.phase, Phase::Resting | Phase::Held(_));
        self.causes.any() && rests && !self.awaits_operator()
    }

    /// A run was cut off, and nothing but the operator's word starts the next one: no refresh and no event does.
    pub(crate) fn awaits_operator(&self) -> bool {
        self.phase == Phase::Held(HeldReason::Operator) && !self.causes.has(Causes::OPERATOR)
    }

    /// A look is wanted, and nothing better is due.
    pub(crate) fn wants_look(&self) -> bool {
        self.look && !self.causes.any() && matches!(self.phase, Phase::Resting | Phase::Held(_))
    }

    /// Whether it stands against convergence (E-18). A poll or a look in progress does not.
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

    /// Its fight holds it back.
    pub(crate) fn is_put_off(&self) -> bool {
        self.contended && matches!(self.place, Place::Backoff(_))
    }

    /// How it is counted.
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

    /// Whether a sweep, an overflow or a re-armed watch may run it: what is a deed is not repeated for these.
    pub(crate) fn is_checkable(&self) -> bool {
        self.nature.check == Check::State
    }

    /// Whether it is watched at all.
    pub(crate) fn wants_watch(&self) -> bool {
        self.meta.poll == Poll::Never
    }
}
