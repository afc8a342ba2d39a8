//! The situations that an exploration has seen: a model in which nothing happens proves nothing.

use crate::environment::{Watch, World};
use crate::model::exploration::explorer::State;
use crate::oracle_log::Need;
use crate::step::Step;
use std::collections::BTreeSet;
use steadfast_engine::{HeldReason, Mode, VertexId, VertexStatus};

/// The situations seen, each by its sentence.
pub(in crate::model) type Sights = BTreeSet<&'static str>;

pub(in crate::model) const CONVERGED: &str = "all is as declared";
pub(in crate::model) const REFRESHED: &str = "a run is told of a refresh";
pub(in crate::model) const FAILED: &str = "a vertex has failed for good";
pub(in crate::model) const ASKING: &str = "a failed vertex asks its ancestors";
pub(in crate::model) const DELAYED: &str = "a retry is due later";
pub(in crate::model) const WAITS_FOR_PARENT: &str = "a vertex waits for an ancestor";
pub(in crate::model) const LIMITED: &str = "a vertex waits for its limiter";
pub(in crate::model) const NO_SEMAPHORE: &str = "a vertex waits for a semaphore";
pub(in crate::model) const NO_SLOT: &str = "a vertex waits for a slot";
pub(in crate::model) const NO_WATCH: &str = "a vertex waits for its watch";
pub(in crate::model) const WOULD_CHANGE: &str = "a vertex in noop would change";
pub(in crate::model) const WOULD_REFRESH: &str = "a vertex in noop would be refreshed";
pub(in crate::model) const UNKNOWN: &str =
    "a vertex in noop cannot tell before an ancestor changes";
pub(in crate::model) const STUCK: &str = "a run does not return";
pub(in crate::model) const SUSPENDED: &str = "a vertex waits for the swap that replaces it";
pub(in crate::model) const CANCELLED: &str = "a run is cancelled";
pub(in crate::model) const LOOKED: &str = "a look is in progress";
pub(in crate::model) const DRAINING: &str = "a drain lets something end";
pub(in crate::model) const PAUSED: &str = "paused, and something is dirty";
pub(in crate::model) const STOPPED: &str = "stopped";
pub(in crate::model) const SWAP_WAITS: &str = "a swap waits";
pub(in crate::model) const SWAPPED: &str = "the second graph runs";
pub(in crate::model) const OWING: &str = "a crash leaves a refresh owed";
pub(in crate::model) const AT_ONCE: &str = "two runs are in progress at once";
pub(in crate::model) const UNSAVED: &str = "an end is not durable while something else runs";
pub(in crate::model) const ABSENT: &str = "a watch is declared absent";

pub(in crate::model) const CONTENDED: &str = "a vertex is put off in a contention";
pub(in crate::model) const CONTENDED_AT_REST: &str = "a vertex that is contended is as declared";
pub(in crate::model) const CALM: &str = "a contention is over by itself";
pub(in crate::model) const REPAIRED: &str = "what is contended is repaired after its wait";
pub(in crate::model) const MUTED: &str = "events of what is put off are not delivered";
pub(in crate::model) const PASSED: &str = "a child runs while its parent is put off";
pub(in crate::model) const REPAIRS_SUSPENDED: &str = "the repair limit holds a vertex back";
pub(in crate::model) const RELEASED: &str = "what the repair limit held back is started";
pub(in crate::model) const SHUT: &str = "a vertex is held by its window";
pub(in crate::model) const LET_IN: &str = "a window opens, and what it held is processed";
pub(in crate::model) const CUT: &str = "a window closes while a change is made";
pub(in crate::model) const TO_REALIZE: &str = "a swap waits for what was never right";
pub(in crate::model) const REALIZED: &str =
    "what a swap removes was right once, just before it went";
pub(in crate::model) const UNREALIZED: &str =
    "what was never right is removed when the swap has waited enough";
pub(in crate::model) const RECEIVED: &str = "a value comes while the vertex runs";

/// The situations of every feature in combination.
pub(in crate::model) const WITH_EACH: [&str; 14] = [
    CONVERGED,
    FAILED,
    DELAYED,
    WAITS_FOR_PARENT,
    LIMITED,
    WOULD_CHANGE,
    STUCK,
    CANCELLED,
    LOOKED,
    SWAP_WAITS,
    SWAPPED,
    AT_ONCE,
    UNSAVED,
    RECEIVED,
];
/// The additional situations if a vertex occupies a resource that others wait for.
pub(in crate::model) const QUEUES: [&str; 3] = [NO_SEMAPHORE, NO_SLOT, SUSPENDED];
pub(in crate::model) const CONTENTIONS: [&str; 6] =
    [CONTENDED, CONTENDED_AT_REST, CALM, REPAIRED, MUTED, PASSED];
pub(in crate::model) const REPAIR_LIMIT: [&str; 2] = [REPAIRS_SUSPENDED, RELEASED];
pub(in crate::model) const WINDOW: [&str; 3] = [SHUT, LET_IN, CUT];
pub(in crate::model) const REALIZE: [&str; 3] = [TO_REALIZE, REALIZED, UNREALIZED];

pub(in crate::model) const CRASH_IN_SWAP: &str = "a crash while a swap waits";
pub(in crate::model) const CRASH_AFTER_SWAP: &str = "a crash after a swap was taken";
pub(in crate::model) const CRASH_IN_PAUSE: &str = "a crash in a pause";
pub(in crate::model) const CRASH_IN_STOP: &str = "a crash in a stop";
pub(in crate::model) const SWAP_IN_PAUSE: &str = "a swap in a pause";
pub(in crate::model) const SWAP_IN_RESTART: &str = "a swap while a restart has not ended";
pub(in crate::model) const PAUSE_IN_SWAP: &str = "a pause while a swap waits";
pub(in crate::model) const PAUSE_IN_RESTART: &str = "a pause while a restart has not ended";
pub(in crate::model) const STOP_IN_SWAP: &str = "a stop while a swap waits";

/// Adds the situations of a turn within another one.
pub(in crate::model) fn turn(before: &World, step: &Step, restarted: bool, seen: &mut Sights) {
    let books = &before.oracle.books;
    let mode = before.engine.mode();
    let waits = books.pending.is_some() && books.loaded;
    let paused = matches!(mode, Mode::Draining | Mode::Pausing | Mode::Paused);
    let restarts = restarted && !before.engine.is_converged();
    let second = before.graphs.get(1).map(|(graph, _)| graph);
    let swapped = second.is_some() && before.running.as_ref() == second;
    let all = match step {
        Step::Crash { .. } => vec![
            (waits, CRASH_IN_SWAP),
            (swapped, CRASH_AFTER_SWAP),
            (paused, CRASH_IN_PAUSE),
            (mode == Mode::Stopping, CRASH_IN_STOP),
        ],
        Step::Swap { .. } => vec![(paused, SWAP_IN_PAUSE), (restarts, SWAP_IN_RESTART)],
        Step::Pause { .. } => vec![(waits, PAUSE_IN_SWAP), (restarts, PAUSE_IN_RESTART)],
        Step::Stop { .. } => vec![(waits, STOP_IN_SWAP)],
        _ => Vec::new(),
    };
    seen.extend(all.into_iter().filter_map(|(was, what)| was.then_some(what)));
}

/// Adds the situations that the step between two worlds shows.
pub(in crate::model) fn between(before: &World, after: &World, seen: &mut Sights) {
    let mut see = |was: bool, what: &'static str| {
        if was {
            seen.insert(what);
        }
    };
    let (old, new) = (&before.oracle.books, &after.oracle.books);
    let swapped = old.pending.is_some() && new.pending.is_none() && before.now <= after.now;
    for (id, vertex) in &old.vertices {
        let was = before.engine.vertex_status(*id);
        let is = after.engine.vertex_status(*id);
        let runs = matches!(is, Some(VertexStatus::Running(..)));
        let contended = matches!(was, Some(VertexStatus::Contended { next: None, .. }));
        let waited = matches!(was, Some(VertexStatus::Contended { next: Some(_), .. }));
        let shut = matches!(was, Some(VertexStatus::Held(HeldReason::Window(_))));
        let closed = !before.open.is_empty() && after.open.is_empty();
        see(contended && is == Some(VertexStatus::Settled) && !swapped, CALM);
        see(waited && runs, REPAIRED);
        see(matches!(was, Some(VertexStatus::WaitingForRepairLimit(_))) && runs, RELEASED);
        see(shut && runs && before.open != after.open, LET_IN);
        let applies = vertex.running.as_ref().is_some_and(|run| run.applying);
        see(closed && applies && vertex.declared.meta.window.is_some(), CUT);
        let gone = swapped && vertex.declared.meta.realize && !new.vertices.contains_key(id);
        let waited = old.pending.as_ref().is_some_and(|(_, since)| after.now > *since);
        see(gone && vertex.running.is_some() && !vertex.done && !waited, REALIZED);
        see(gone && !vertex.done && waited, UNREALIZED);
    }
}

/// Adds the situations that a state shows.
pub(in crate::model) fn note(state: &State, swapped: bool, seen: &mut Sights) {
    let world = &state.world;
    let books = &world.oracle.books;
    let mut see = |was: bool, what: &'static str| {
        if was {
            seen.insert(what);
        }
    };
    let mode = world.engine.mode();
    let runs = &world.runs;
    see(world.engine.is_converged() && !books.vertices.is_empty(), CONVERGED);
    see(runs.values().any(|run| run.start.refresh), REFRESHED);
    see(runs.values().any(|run| run.start.look), LOOKED);
    see(runs.values().any(|run| run.cancelled), CANCELLED);
    see(runs.len() > 1, AT_ONCE);
    see(!runs.is_empty() && !books.undurable.is_empty(), UNSAVED);
    see(mode == Mode::Draining && !runs.is_empty(), DRAINING);
    see(mode == Mode::Paused && world.engine.counts().waiting > 0, PAUSED);
    see(world.stopped, STOPPED);
    see(books.pending.is_some() && books.loaded, SWAP_WAITS);
    see(swapped && books.pending.is_none(), SWAPPED);
    see(world.watches.values().any(|watch| *watch == Watch::Absent), ABSENT);
    see(!world.muted.is_empty(), MUTED);
    let put_off = |id: &VertexId| {
        matches!(
            world.engine.vertex_status(*id),
            Some(VertexStatus::Contended { next: Some(_), .. })
        )
    };
    for (id, vertex) in &books.vertices {
        see(vertex.is_running() && vertex.ancestors.iter().any(put_off), PASSED);
        see(vertex.is_running() && vertex.received.is_some(), RECEIVED);
        see(books.loaded && books.may_realize(*id) && vertex.need != Need::No, TO_REALIZE);
    }
    for id in &books.order {
        if let Some(standing) = world.engine.vertex_status(*id)
            && let Some(what) = of_standing(&standing)
        {
            see(true, what);
        }
    }
}

fn of_standing(standing: &VertexStatus) -> Option<&'static str> {
    match standing {
        VertexStatus::Settled | VertexStatus::Running(..) => None,
        VertexStatus::WaitingForWatch => Some(NO_WATCH),
        VertexStatus::WaitingFor(_) => Some(WAITS_FOR_PARENT),
        VertexStatus::WaitingForLimit(_) => Some(LIMITED),
        VertexStatus::WaitingForSemaphore => Some(NO_SEMAPHORE),
        VertexStatus::WaitingForSlot => Some(NO_SLOT),
        VertexStatus::Delayed(_) => Some(DELAYED),
        VertexStatus::Failed => Some(FAILED),
        VertexStatus::Held(HeldReason::WouldChange) => Some(WOULD_CHANGE),
        VertexStatus::Held(HeldReason::WouldRefresh) => Some(WOULD_REFRESH),
        VertexStatus::Held(HeldReason::UnknownUntil(_)) => Some(UNKNOWN),
        VertexStatus::Held(HeldReason::Window(_)) => Some(SHUT),
        VertexStatus::WaitingForRepairLimit(_) => Some(REPAIRS_SUSPENDED),
        VertexStatus::Contended { next: Some(_), .. } => Some(CONTENDED),
        VertexStatus::Contended { next: None, .. } => Some(CONTENDED_AT_REST),
        VertexStatus::Held(HeldReason::Operator) => None,
        VertexStatus::Paused => Some(crate::model::happening::VERTEX_PAUSED),
        VertexStatus::Stuck(..) => Some(STUCK),
        VertexStatus::Suspended => Some(SUSPENDED),
        VertexStatus::Asking(_) => Some(ASKING),
    }
}
