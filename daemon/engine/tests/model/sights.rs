//! What was seen on the way: a model in which nothing happens proves nothing.

use super::explorer::State;
use crate::world::Watch;
use std::collections::BTreeSet;
use steadfast_engine::{Holding, Mode, Standing};

/// What has been seen, each as its sentence.
pub(super) type Sights = BTreeSet<&'static str>;

pub(super) const CONVERGED: &str = "all is as declared";
pub(super) const REFRESHED: &str = "a run is told of a refresh";
pub(super) const FAILED: &str = "a vertex has failed for good";
pub(super) const DELAYED: &str = "a retry is due later";
pub(super) const WAITS_FOR_PARENT: &str = "a vertex waits for an ancestor";
pub(super) const LIMITED: &str = "a vertex waits for its limiter";
pub(super) const NO_SEMAPHORE: &str = "a vertex waits for a semaphore";
pub(super) const NO_SLOT: &str = "a vertex waits for a slot";
pub(super) const NO_WATCH: &str = "a vertex waits for its watch";
pub(super) const WOULD_CHANGE: &str = "a vertex in noop would change";
pub(super) const WOULD_REFRESH: &str = "a vertex in noop would be refreshed";
pub(super) const UNKNOWN: &str = "a vertex in noop cannot tell before an ancestor changes";
pub(super) const STUCK: &str = "a run does not return";
pub(super) const SUSPENDED: &str = "a vertex waits for the swap that replaces it";
pub(super) const CANCELLED: &str = "a run is cancelled";
pub(super) const LOOKED: &str = "a look is in progress";
pub(super) const DRAINING: &str = "a drain lets something end";
pub(super) const PAUSED: &str = "paused, and something is dirty";
pub(super) const STOPPED: &str = "stopped";
pub(super) const SWAP_WAITS: &str = "a swap waits";
pub(super) const SWAPPED: &str = "the second graph runs";
pub(super) const OWING: &str = "a crash leaves a refresh owed";
pub(super) const AT_ONCE: &str = "two runs are in progress at once";
pub(super) const UNSAVED: &str = "an end is not durable while something else runs";
pub(super) const ABSENT: &str = "a watch is declared absent";

/// Adds what this state shows.
pub(super) fn note(state: &State, swapped: bool, seen: &mut Sights) {
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
    for id in &books.order {
        if let Some(standing) = world.engine.standing(*id)
            && let Some(what) = of_standing(&standing)
        {
            see(true, what);
        }
    }
}

fn of_standing(standing: &Standing) -> Option<&'static str> {
    match standing {
        Standing::Settled | Standing::Running(..) => None,
        Standing::WaitingForWatch => Some(NO_WATCH),
        Standing::WaitingFor(_) => Some(WAITS_FOR_PARENT),
        Standing::WaitingForLimit(_) => Some(LIMITED),
        Standing::WaitingForSemaphore => Some(NO_SEMAPHORE),
        Standing::WaitingForSlot => Some(NO_SLOT),
        Standing::Delayed(_) => Some(DELAYED),
        Standing::Failed => Some(FAILED),
        Standing::Held(Holding::WouldChange) => Some(WOULD_CHANGE),
        Standing::Held(Holding::WouldRefresh) => Some(WOULD_REFRESH),
        Standing::Held(Holding::UnknownUntil(_)) => Some(UNKNOWN),
        // Fights, windows, the brake and what is parked are explored by random schedules.
        Standing::Held(Holding::Operator | Holding::Window(_))
        | Standing::WaitingForBrake(_)
        | Standing::Parked
        | Standing::Contended { .. } => None,
        Standing::Stuck(..) => Some(STUCK),
        Standing::Suspended => Some(SUSPENDED),
    }
}
