//! Rare events of single vertices: a suspicion, a lost watch, a request of the operator, the pause of one vertex, a
//! begin that cannot be stored, and a pause of all that ends by itself (E-1, E-4, E-10, E-15).

use crate::environment::{Watch, World};
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, HAPPENING, HOLDING, configurations, graphs,
};
use crate::model::exploration::explorer::State;
use crate::model::exploration::sights::Sights;
use crate::model::{EVENT, SETTLED, explore, explore_in_ci, remaking};
use crate::step::Step;
use crate::store::Entry;
use std::time::Duration;
use steadfast_engine::{Mode, VertexId, VertexStatus};

/// The length of a pause that ends by itself.
pub(super) const SHORT: Duration = Duration::from_secs(1);

pub(super) const SUSPECTED: &str = "a suspicion is looked into";
pub(super) const SUSPECTED_IN_RUN: &str = "a suspicion comes while the vertex runs";
pub(super) const SUSPECTED_BLOCKED: &str = "a suspicion comes while an ancestor blocks";
pub(super) const LOST: &str = "a watch is lost while the vertex runs";
pub(super) const REGAINED: &str = "a watch stands again, and what it covers is checked";
pub(super) const REDONE: &str = "the operator runs what is as declared";
pub(super) const REDONE_FAILED: &str = "the operator tries what has failed for good";
pub(super) const REDONE_IN_RUN: &str = "the operator asks while the vertex runs";
pub(super) const VERTEX_PAUSED: &str = "a paused vertex is dirty";
pub(super) const VERTEX_PAUSED_IN_RUN: &str = "a vertex is paused while it runs";
pub(super) const BELOW_PAUSED_VERTEX: &str = "a vertex waits for one that is paused";
pub(super) const VERTEX_PAUSED_OVER_CRASH: &str = "a vertex stays paused over a crash";
pub(super) const VERTEX_RESUMED: &str = "what was paused goes on";
pub(super) const REFUSED: &str = "a begin is refused, and it has failed";
pub(super) const REFUSED_AGAIN: &str = "a begin is refused, and tried again";
pub(super) const REFUSED_CANCELLED: &str = "a begin is refused whose run is cancelled";
pub(super) const LAPSED: &str = "a pause ends by itself, and what was dirty runs";
pub(super) const LAPSED_IN_RUN: &str = "a pause ends by itself before what runs has ended";
pub(super) const LAPSED_IN_DRAIN: &str = "a drain is over because its pause ends";
pub(super) const LAPSED_OVER_CRASH: &str = "a pause ends by itself after a restart";

/// The situations that these events must show.
pub(super) const ALL: [&str; 20] = [
    SUSPECTED,
    SUSPECTED_IN_RUN,
    SUSPECTED_BLOCKED,
    LOST,
    REGAINED,
    REDONE,
    REDONE_FAILED,
    REDONE_IN_RUN,
    VERTEX_PAUSED,
    VERTEX_PAUSED_IN_RUN,
    BELOW_PAUSED_VERTEX,
    VERTEX_PAUSED_OVER_CRASH,
    VERTEX_RESUMED,
    REFUSED,
    REFUSED_AGAIN,
    REFUSED_CANCELLED,
    LAPSED,
    LAPSED_IN_RUN,
    LAPSED_IN_DRAIN,
    LAPSED_OVER_CRASH,
];

/// Offers the events that may happen now.
pub(super) fn offer(state: &State, actions: &mut Vec<Step>) {
    let (world, left) = (&state.world, &state.left);
    let books = &world.oracle.books;
    for id in books.order.iter().copied() {
        let watch = world.watches.get(&id);
        // Only an existing source can lose events.
        if left.suspects > 0 && watch == Some(&Watch::Open) {
            actions.push(Step::Suspect(id));
        }
        match watch {
            Some(Watch::Open) if left.losses > 0 => actions.push(Step::Unwatched(id)),
            Some(Watch::Absent) if left.losses > 0 => actions.push(Step::Watching(id)),
            _ => {}
        }
        if left.retries_now > 0 {
            actions.push(Step::RetryNow(id));
        }
        if left.vertex_pauses > 0 {
            actions.push(Step::PauseVertex {
                vertex: id,
                paused: !books.paused_vertices.contains(&id),
            });
        }
    }
    if left.refusals > 0 && matches!(world.store.written.front(), Some(Entry::Begin(_))) {
        actions.push(Step::Refuse);
    }
}

/// Adds the situations that this step shows.
pub(super) fn see(before: &World, step: &Step, after: &World, seen: &mut Sights) {
    let was = |id: VertexId| before.engine.vertex_status(id);
    let starts = |id: VertexId| {
        let runs = matches!(after.engine.vertex_status(id), Some(VertexStatus::Running(..)));
        runs && !matches!(was(id), Some(VertexStatus::Running(..)))
    };
    let in_run = |id: VertexId| matches!(was(id), Some(VertexStatus::Running(..)));
    let all = match *step {
        Step::Suspect(id) => {
            let blocked =
                matches!(after.engine.vertex_status(id), Some(VertexStatus::WaitingFor(_)));
            vec![
                (starts(id), SUSPECTED),
                (in_run(id), SUSPECTED_IN_RUN),
                (blocked && was(id) == Some(VertexStatus::Settled), SUSPECTED_BLOCKED),
            ]
        }
        Step::Unwatched(id) => {
            let stood = before.watches.get(&id) == Some(&Watch::Open);
            vec![(stood && in_run(id), LOST)]
        }
        Step::Watching(id) => {
            let lost = before.watches.get(&id) == Some(&Watch::Absent);
            vec![(lost && starts(id), REGAINED)]
        }
        Step::RetryNow(id) => vec![
            (starts(id) && was(id) == Some(VertexStatus::Settled), REDONE),
            (starts(id) && was(id) == Some(VertexStatus::Failed), REDONE_FAILED),
            (in_run(id), REDONE_IN_RUN),
        ],
        Step::PauseVertex { vertex, paused: true } => vec![(in_run(vertex), VERTEX_PAUSED_IN_RUN)],
        Step::PauseVertex { vertex, paused: false } => {
            let rested = was(vertex) == Some(VertexStatus::Paused);
            vec![(rested && starts(vertex), VERTEX_RESUMED)]
        }
        Step::Crash { .. } => {
            vec![(!after.oracle.books.paused_vertices.is_empty(), VERTEX_PAUSED_OVER_CRASH)]
        }
        Step::Refuse => refused(before, after),
        Step::Wake => lapsed(before, after),
        _ => Vec::new(),
    };
    seen.extend(all.into_iter().filter_map(|(was, what)| was.then_some(what)));
    let paused = |above: &Vec<VertexId>| {
        above.iter().any(|id| after.engine.vertex_status(*id) == Some(VertexStatus::Paused))
    };
    let waits = |id: &VertexId| matches!(after.engine.vertex_status(*id), Some(VertexStatus::WaitingFor(above)) if paused(&above));
    if after.oracle.books.order.iter().any(waits) {
        seen.insert(BELOW_PAUSED_VERTEX);
    }
}

type Shown = Vec<(bool, &'static str)>;

fn refused(before: &World, after: &World) -> Shown {
    let Some(Entry::Begin(intent)) = before.store.written.front() else { return Vec::new() };
    let run = before.oracle.books.vertices.get(&intent.vertex).and_then(|v| v.running.as_ref());
    let cancelled = run.is_some_and(|run| run.run == intent.run && run.cancelled.is_some());
    let standing = after.engine.vertex_status(intent.vertex);
    vec![
        (standing == Some(VertexStatus::Failed), REFUSED),
        (matches!(standing, Some(VertexStatus::Delayed(_))), REFUSED_AGAIN),
        (cancelled, REFUSED_CANCELLED),
    ]
}

fn lapsed(before: &World, after: &World) -> Shown {
    let mode = before.engine.mode();
    let rested = matches!(mode, Mode::Draining | Mode::Pausing | Mode::Paused);
    if !rested || after.engine.mode() != Mode::Running {
        return Vec::new();
    }
    // Nothing has run in this session, so the session began with the pause.
    let restarted = before.oracle.books.last_run.is_none();
    let begun = after.runs.len() > before.runs.len();
    vec![
        (mode == Mode::Paused && begun, LAPSED),
        (mode == Mode::Pausing && !before.runs.is_empty(), LAPSED_IN_RUN),
        (mode == Mode::Draining, LAPSED_IN_DRAIN),
        (restarted, LAPSED_OVER_CRASH),
    ]
}

/// Returns each of these features with each of the others, on each graph of a number of vertices.
fn with_each(
    features: &[Feature],
    others: &[&[Feature]],
    all: (u32, Budget),
) -> Vec<Configuration> {
    let (count, budget) = all;
    let mut found = Vec::new();
    for graph in graphs(count) {
        for feature in features {
            for other in others {
                let set = [std::slice::from_ref(feature), other].concat();
                found.extend(configurations(&graph, &set, budget));
            }
        }
    }
    found
}

/// Returns each two of these events on each graph of `count` vertices.
fn each_two(count: u32, budget: Budget) -> Vec<Configuration> {
    let mut found = Vec::new();
    for (at, one) in HAPPENING.iter().enumerate() {
        let others: Vec<&[Feature]> =
            HAPPENING[at + 1..].iter().map(std::slice::from_ref).collect();
        found.extend(with_each(std::slice::from_ref(one), &others, (count, budget)));
    }
    found
}

/// One event, one failure, and one turn.
const ONE: Budget = Budget { events: 1, total_events: 1, ..SETTLED };
/// One event and one turn without pauses and stops.
const CALM: Budget = Budget { turns: 1, ..EVENT };
/// A pause and a crash, without failures.
const CRASHED: Budget = Budget { turns: 2, failures: 0, ..EVENT };

fn each(features: &[Feature]) -> Vec<&[Feature]> {
    features.iter().map(std::slice::from_ref).collect()
}

/// E-1, E-4, E-10, E-15: one vertex, with each of the other features, and each two of these.
#[test]
fn model_what_happens_to_one_vertex() {
    let mut all = with_each(&HAPPENING, &[&[]], (1, ONE));
    all.extend(with_each(&HAPPENING, &each(&FEATURES), (1, CALM)));
    all.extend(each_two(1, CALM));
    all.extend(with_each(
        &[Feature::Lapse, Feature::PauseVertex],
        &[&[Feature::Crash]],
        (1, CRASHED),
    ));
    let wanted = [
        SUSPECTED,
        SUSPECTED_IN_RUN,
        LOST,
        REGAINED,
        REDONE,
        REDONE_FAILED,
        REDONE_IN_RUN,
        VERTEX_PAUSED,
        VERTEX_PAUSED_IN_RUN,
        VERTEX_PAUSED_OVER_CRASH,
        VERTEX_RESUMED,
        REFUSED,
        REFUSED_AGAIN,
        REFUSED_CANCELLED,
        LAPSED,
        LAPSED_IN_RUN,
        LAPSED_OVER_CRASH,
    ];
    let wanted = [&wanted[..], &remaking::SEEN].concat();
    explore_in_ci(
        "1 vertex, what happens to it: alone, with each feature, each two; a pause that ends, or one that is paused, with a crash",
        all,
        &wanted,
    );
}

/// E-1, E-3, E-4, E-10, E-15: two vertices, plain and notifying.
#[test]
fn model_what_happens_to_two_vertices() {
    let two = Budget { total_events: 2, ..CALM };
    let all = with_each(&HAPPENING, &[&[], &[Feature::Notify]], (2, two));
    let wanted = [
        SUSPECTED_BLOCKED,
        LOST,
        REGAINED,
        REDONE_FAILED,
        BELOW_PAUSED_VERTEX,
        VERTEX_RESUMED,
        REFUSED,
        LAPSED,
        LAPSED_IN_DRAIN,
        remaking::REMADE,
        remaking::REFRESHED,
    ];
    explore_in_ci("2 vertices, plain and notifying, what happens to them, 2 events", all, &wanted);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_what_happens_to_one_vertex_that_is_held() {
    let held = with_each(&HAPPENING, &each(&HOLDING), (1, CALM));
    explore("1 vertex, what happens to it, with each that holds", held, &[VERTEX_PAUSED, LAPSED]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_what_happens_to_two_vertices_with_every_feature() {
    let calm = Budget { failures: 0, ..CALM };
    let features = with_each(&HAPPENING, &each(&FEATURES), (2, calm));
    explore(
        "2 vertices, what happens to them, with each",
        features,
        &[BELOW_PAUSED_VERTEX, REDONE],
    );
    let two = each_two(2, calm);
    explore("2 vertices, each two that happen to them", two, &[REFUSED, VERTEX_RESUMED]);
}
