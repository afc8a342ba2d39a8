//! What a configuration is made of: a graph up to isomorphism, features on it, and what may happen to it.

use super::budget::Budget;
use crate::shape::{Shape, ms};
use std::collections::BTreeSet;
use steadfast_engine::{Check, Pace, Poll};

/// One thing that a graph can have, or that can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Feature {
    Notify,
    /// All under one semaphore of that count.
    Semaphore(u32),
    Limit,
    Retry,
    Noop,
    Poll,
    /// A deed that is done once for each definition.
    Once,
    /// A deed that is done for events only.
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
}

/// All, in the order in which they are combined.
pub(super) const FEATURES: [Feature; 15] = [
    Feature::Notify,
    Feature::Semaphore(1),
    Feature::Semaphore(2),
    Feature::Limit,
    Feature::Retry,
    Feature::Noop,
    Feature::Poll,
    Feature::Once,
    Feature::Timer,
    Feature::Timeout,
    Feature::Fixed,
    Feature::Slot,
    Feature::Look,
    Feature::Swap,
    Feature::Crash,
];

/// What is explored in one go: the first graph, and the one that a swap gives, if any.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) shapes: Vec<Shape>,
    pub(super) budget: Budget,
}

/// The acyclic graphs of that many vertices without labels: 1, 2, 6, 31.
pub(super) fn graphs(count: u32) -> Vec<Shape> {
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

/// The least of all ways to number it.
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
    /// Whether it belongs to one vertex.
    fn is_placed(self) -> bool {
        match self {
            Self::Limit | Self::Retry | Self::Noop | Self::Poll => true,
            Self::Once | Self::Timer | Self::Timeout | Self::Fixed => true,
            Self::Notify | Self::Semaphore(_) | Self::Slot => false,
            Self::Look | Self::Swap | Self::Crash => false,
        }
    }

    /// Where it can be put in a graph of so many vertices: on each, and on all.
    fn places(self, count: u32) -> Vec<Option<u32>> {
        if self.is_placed() && count > 1 {
            // Two that are polled tick side by side, and show nothing that one does not.
            let all = (self != Self::Poll).then_some(None);
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
            Self::Once => shape.nature(number, |nature| nature.check = Check::Once),
            Self::Timer => shape.nature(number, |nature| nature.check = Check::Events),
            Self::Timeout => shape.meta(number, |meta| meta.timeout = Some(ms(1000))),
            Self::Fixed => shape.nature(number, |nature| nature.cancellable = false),
            Self::Notify | Self::Semaphore(_) | Self::Slot => shape,
            Self::Look | Self::Swap | Self::Crash => shape,
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
            Self::Notify | Self::Semaphore(_) | Self::Noop => budget,
            Self::Once | Self::Timer | Self::Fixed => budget,
        }
    }
}

/// Every place of every one of these features together on that graph.
pub(super) fn configurations(
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
    if !features.contains(&Feature::Swap) {
        return shapes.into_iter().map(|s| Configuration { shapes: vec![s], budget }).collect();
    }
    let with = |shape: &Shape| {
        let swapped = swaps(graph, shape).into_iter();
        swapped.map(|shapes| Configuration { shapes, budget }).collect::<Vec<_>>()
    };
    shapes.iter().flat_map(with).collect()
}

/// The swaps of one graph: a vertex redefined, removed, added; edges that go or come; and, where it has features, all of them
/// gone or come, and its semaphores with other counts.
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
            // What a kind says of itself follows from the definition: another nature is another definition.
            if old.nature != new.nature {
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
