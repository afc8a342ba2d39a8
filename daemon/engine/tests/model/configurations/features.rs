//! The parts of a configuration: a graph up to isomorphism, its features, and the events that may happen.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::grouping::{Grouping, regroupings};
use crate::shape::{Shape, ms};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_engine::{Conflict, Meta, Pace, Poll, RunPolicy, WindowId};

/// The only window of the model.
pub(in crate::model) const WINDOW: WindowId = WindowId(0);
/// The number of repairs after which one more makes a contention.
#[expect(clippy::cast_possible_truncation, reason = "five")]
const BEFORE_A_CONTENTION: u8 = Meta::REVERSALS as u8 - 1;
/// The number of repairs of a vertex after which one more waits under the repair limit.
const BEFORE_THE_SUSPENSION: u8 = 2;

/// A feature of a graph, or an event that can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::model) enum Feature {
    Notify,
    /// All vertices use one semaphore with this count.
    Semaphore(u32),
    Limit,
    Retry,
    Noop,
    Poll,
    /// A poll so rare that everything else that is due comes before a tick: no vertex may need a tick to continue.
    Rare,
    /// An operation that runs once for each definition.
    Once,
    /// An operation that runs for events only.
    Timer,
    /// A deadline, and a run that may not return from its cancel.
    Timeout,
    /// A run that may not be cancelled.
    Fixed,
    /// One slot for all.
    Slot,
    Look,
    Swap,
    Crash,
    /// Each vertex was repaired so often that the next repair makes a contention (E-20), with this behaviour.
    Contention(Conflict),
    /// The next repeated repair exceeds the limit of the repair limit.
    RepairLimiter,
    /// Changes are allowed only while a window is open (`when_allowed`).
    Window,
    /// The vertex must converge once before a swap removes it.
    Realize,
    /// A swap groups the vertices that can be one transaction, or separates them.
    Group,
    /// The vertex receives a value.
    Value,
    /// The inputs of a run differ from those of the last good run.
    Remade,
    /// The history is a plan, with findings that become uncertain.
    Plan,
    /// A source has lost events.
    Suspect,
    /// A watch is lost after it was established, and established again.
    Loss,
    /// The operator requests a run.
    RetryNow,
    /// One vertex is paused, and resumed.
    PauseVertex,
    /// A begin cannot be stored.
    Refusal,
    /// Pauses are short: they end by themselves.
    Lapse,
}

/// All features, in the order in which they are combined.
pub(in crate::model) const FEATURES: [Feature; 16] = [
    Feature::Notify,
    Feature::Semaphore(1),
    Feature::Semaphore(2),
    Feature::Limit,
    Feature::Retry,
    Feature::Noop,
    Feature::Poll,
    Feature::Rare,
    Feature::Once,
    Feature::Timer,
    Feature::Timeout,
    Feature::Fixed,
    Feature::Slot,
    Feature::Look,
    Feature::Swap,
    Feature::Crash,
];

/// Features that delay changes, allow one more, or come from other vertices: combined with all others, and with each
/// other.
pub(in crate::model) const HOLDING: [Feature; 8] = [
    Feature::Contention(Conflict::Backoff),
    Feature::Contention(Conflict::Win),
    Feature::Contention(Conflict::Yield),
    Feature::RepairLimiter,
    Feature::Window,
    Feature::Realize,
    Feature::Group,
    Feature::Value,
];

/// Events of single vertices that others cause or that are rare (`happening.rs`, `remaking.rs`).
pub(in crate::model) const HAPPENING: [Feature; 7] = [
    Feature::Suspect,
    Feature::Loss,
    Feature::RetryNow,
    Feature::PauseVertex,
    Feature::Refusal,
    Feature::Lapse,
    Feature::Remade,
];

/// One exploration: the first graph, the graphs of its swap if any, and the budget.
#[derive(Clone, Debug)]
pub(in crate::model) struct Configuration {
    pub(in crate::model) shapes: Vec<Shape>,
    pub(in crate::model) budget: Budget,
    /// The relation of the graphs if one is the other with its groups made.
    pub(in crate::model) grouping: Option<Grouping>,
}

/// Returns the acyclic graphs of `count` unlabelled vertices: 1, 2, 6, 31.
pub(in crate::model) fn graphs(count: u32) -> Vec<Shape> {
    let pairs: Vec<(u32, u32)> =
        (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to))).collect();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for set in 0..1_u32 << pairs.len() {
        let edges: Vec<(u32, u32)> =
            pairs.iter().zip(0..).filter(|(_, n)| set >> n & 1 == 1).map(|(e, _)| *e).collect();
        if seen.insert(canonical(count, &edges)) {
            all.push(edges.iter().fold(Shape::of(count), |shape, (a, b)| shape.edge(*a, *b)));
        }
    }
    all
}

/// Returns the smallest form of a graph over all numberings.
fn canonical(count: u32, edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let renamed = |order: Vec<u32>| {
        let mut edges: Vec<(u32, u32)> =
            edges.iter().map(|(a, b)| (order[*a as usize], order[*b as usize])).collect();
        edges.sort_unstable();
        edges
    };
    permutations(count).into_iter().map(renamed).min().unwrap_or_default()
}

fn permutations(count: u32) -> Vec<Vec<u32>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let insert = |order: &Vec<u32>, at: usize| {
        let mut longer = order.clone();
        longer.insert(at, count - 1);
        longer
    };
    shorter.iter().flat_map(|order| (0..=order.len()).map(move |at| insert(order, at))).collect()
}

impl Feature {
    /// Returns true if the feature belongs to one vertex.
    fn is_placed(self) -> bool {
        match self {
            Self::Limit | Self::Retry | Self::Noop | Self::Poll | Self::Rare => true,
            Self::Once | Self::Timer | Self::Timeout | Self::Fixed => true,
            Self::Notify | Self::Semaphore(_) | Self::Slot => false,
            Self::Look | Self::Swap | Self::Crash => false,
            Self::Contention(conflict) => conflict != Conflict::default(),
            Self::Window | Self::Realize => true,
            Self::RepairLimiter | Self::Group | Self::Value => false,
            Self::Suspect | Self::Loss | Self::RetryNow => false,
            Self::PauseVertex | Self::Refusal | Self::Lapse | Self::Remade | Self::Plan => false,
        }
    }

    /// Returns the places of the feature in a graph of `count` vertices: on each, and on all.
    fn places(self, count: u32) -> Vec<Option<u32>> {
        if self.is_placed() && count > 1 {
            // Two polled vertices tick independently, and show nothing that one does not.
            let all = (!matches!(self, Self::Poll | Self::Rare)).then_some(None);
            (0..count).map(Some).chain(all).collect()
        } else {
            vec![None]
        }
    }

    fn put(self, shape: Shape, place: Option<u32>) -> Shape {
        let count = u32::try_from(shape.vertices.len()).expect("small");
        match (self.is_placed(), place) {
            (true, Some(number)) => self.on(shape, number),
            (true, None) => (0..count).fold(shape, |shape, number| self.on(shape, number)),
            (false, _) => self.over(shape, count),
        }
    }

    fn on(self, shape: Shape, number: u32) -> Shape {
        match self {
            Self::Limit => shape.meta(number, |meta| {
                meta.pace = Some(Pace { period_ns: 1_000_000_000, burst: 1 });
            }),
            Self::Retry => shape.meta(number, |meta| meta.retry = Some(1)),
            Self::Noop => shape.meta(number, |meta| meta.noop = true),
            Self::Poll => shape.meta(number, |meta| meta.poll = Poll::Every(ms(1000))),
            Self::Rare => {
                shape.meta(number, |meta| meta.poll = Poll::Every(Duration::from_hours(24)))
            }
            Self::Once => shape.traits(number, |traits| traits.repeat = RunPolicy::Once),
            Self::Timer => shape.traits(number, |traits| traits.repeat = RunPolicy::Events),
            Self::Timeout => shape.meta(number, |meta| meta.timeout = Some(ms(1000))),
            Self::Fixed => shape.traits(number, |traits| traits.cancellable = false),
            Self::Notify | Self::Semaphore(_) | Self::Slot => shape,
            Self::Look | Self::Swap | Self::Crash => shape,
            Self::Contention(conflict) => shape.meta(number, |meta| meta.on_conflict = conflict),
            Self::Window => shape.meta(number, |meta| meta.window = Some(WINDOW)),
            Self::Realize => shape.meta(number, |meta| meta.realize = true),
            Self::RepairLimiter | Self::Group | Self::Value => shape,
            Self::Suspect | Self::Loss | Self::RetryNow => shape,
            Self::PauseVertex | Self::Refusal | Self::Lapse | Self::Remade | Self::Plan => shape,
        }
    }

    fn over(self, mut shape: Shape, count: u32) -> Shape {
        match self {
            Self::Notify => {
                for edge in &mut shape.edges {
                    edge.notify = true;
                }
                shape
            }
            Self::Plan => shape.all(|meta| (meta.noop, meta.planned) = (true, true)),
            Self::Semaphore(size) => {
                let number = u32::try_from(shape.semaphores.len()).expect("small");
                let shape = shape.semaphore(size);
                (0..count).fold(shape, |shape, vertex| shape.uses(vertex, number))
            }
            _ => shape,
        }
    }

    fn allow(self, budget: Budget) -> Budget {
        match self {
            Self::Limit => Budget { timed: true, ..budget },
            Self::Retry => Budget { timed: true, failures: budget.failures.max(2), ..budget },
            Self::Poll => Budget { timed: true, ticks: budget.ticks.max(1), ..budget },
            Self::Timeout => Budget { timed: true, ticks: 2, ..budget },
            Self::Slot => Budget { one_slot: true, ..budget },
            Self::Look => Budget { looks: 1, ..budget },
            Self::Swap => Budget { swaps: 1, ..budget },
            Self::Crash => Budget { crashes: 1, ..budget },
            Self::Notify | Self::Semaphore(_) | Self::Noop | Self::Rare => budget,
            Self::Once | Self::Timer | Self::Fixed => budget,
            Self::Contention(_) => Budget { repaired: BEFORE_A_CONTENTION, ..budget.with_drift() },
            Self::RepairLimiter => {
                let repaired = budget.repaired.max(BEFORE_THE_SUSPENSION);
                Budget { repaired, repairs_suspended: true, ..budget.with_drift() }
            }
            Self::Window => Budget { toggles: 2, ..budget },
            Self::Realize | Self::Group => Budget { swaps: 1, ..budget },
            Self::Value => Budget { values: 1, ..budget },
            Self::Remade => Budget { remakes: 1, ..budget },
            Self::Plan => Budget { plans: true, doubts_left: 2, ..budget },
            Self::Suspect => Budget { suspects: 1, ..budget },
            Self::Loss => Budget { losses: 2, ..budget },
            Self::RetryNow => Budget { retries_now: 1, ..budget },
            Self::PauseVertex => Budget { vertex_pauses: 2, ..budget },
            Self::Refusal => Budget { refusals: 1, timed: true, ..budget },
            Self::Lapse => {
                let (pauses, turns) = (budget.pauses.max(1), budget.turns.max(1));
                let ticks = budget.ticks.max(1);
                Budget { lapses: true, timed: true, pauses, turns, ticks, ..budget }
            }
        }
    }
}

/// Returns a configuration for every combination of places of these features on a graph.
pub(in crate::model) fn configurations(
    graph: &Shape,
    features: &[Feature],
    budget: Budget,
) -> Vec<Configuration> {
    let count = u32::try_from(graph.vertices.len()).expect("small");
    let budget = features.iter().fold(budget, |budget, feature| feature.allow(budget));
    let mut shapes = vec![graph.clone()];
    for feature in features {
        shapes = shapes
            .into_iter()
            .flat_map(|shape| {
                let put = move |place| feature.put(shape.clone(), place);
                feature.places(count).into_iter().map(put)
            })
            .collect();
    }
    if budget.swaps == 0 {
        let alone = |shape| Configuration { shapes: vec![shape], budget, grouping: None };
        return shapes.into_iter().map(alone).collect();
    }
    let has = |feature| features.contains(&feature);
    let with = |shape: &Shape| {
        let mut swapped = Vec::new();
        if has(Feature::Swap) {
            swapped.extend(swaps(graph, shape));
        }
        if has(Feature::Realize) {
            swapped.extend(removals(shape));
        }
        let plain = |shapes| Configuration { shapes, budget, grouping: None };
        let mut all: Vec<Configuration> = swapped.into_iter().map(plain).collect();
        if has(Feature::Group) {
            all.extend(regroupings(shape, budget));
        }
        all
    };
    shapes.iter().flat_map(with).collect()
}

/// Returns the swaps of one graph: a vertex redefined, removed, added; edges removed or added; and, if it has features,
/// all of them removed or added, and its semaphores with other counts.
fn swaps(plain: &Shape, shape: &Shape) -> Vec<Vec<Shape>> {
    let mut all = Vec::new();
    for vertex in &shape.vertices {
        let number = vertex.id.0;
        all.push(vec![shape.clone(), shape.clone().define(number, 2)]);
        if shape.vertices.len() > 1 {
            all.push(vec![shape.clone(), shape.clone().without(number)]);
            all.push(vec![shape.clone().without(number), shape.clone()]);
        }
    }
    let mut loose = shape.clone();
    loose.edges.clear();
    if loose != *shape {
        all.push(vec![shape.clone(), loose.clone()]);
        all.push(vec![loose, shape.clone()]);
    }
    if plain != shape {
        let mut bare = plain.clone();
        for (old, new) in shape.vertices.iter().zip(&mut bare.vertices) {
            // The traits follows from the definition: another traits is another definition.
            if old.traits != new.traits {
                new.definition = 2;
            }
        }
        all.push(vec![shape.clone(), bare.clone()]);
        all.push(vec![bare, shape.clone()]);
    }
    if !shape.semaphores.is_empty() {
        let mut other = shape.clone();
        for count in &mut other.semaphores {
            *count = 3 - *count;
        }
        all.push(vec![shape.clone(), other]);
    }
    all
}

/// Returns the swaps that remove a vertex with `realize`, alone and with all its ancestors.
fn removals(shape: &Shape) -> Vec<Vec<Shape>> {
    let marked = shape.vertices.iter().filter(|vertex| vertex.meta.realize);
    let numbers: BTreeSet<u32> = marked.map(|vertex| vertex.id.0).collect();
    let mut all = BTreeSet::new();
    for number in &numbers {
        all.insert(BTreeSet::from([*number]));
        let mut above = BTreeSet::from([*number]);
        // From the last to the first: edges lead from smaller numbers to larger ones.
        for from in (0..*number).rev() {
            let leads = |to: &u32| shape.edges.iter().any(|e| e.from.0 == from && e.to.0 == *to);
            if above.iter().any(leads) {
                above.insert(from);
            }
        }
        all.insert(above);
    }
    let without = |set: &BTreeSet<u32>| {
        set.iter().fold(shape.clone(), |shape, number| shape.without(*number))
    };
    all.iter().map(|set| vec![shape.clone(), without(set)]).collect()
}
