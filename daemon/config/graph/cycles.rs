//! The search for cycles, without recursion: one cycle for each strongly connected component, the shortest through its
//! first vertex.

use crate::config::checks::Validator;
use crate::config::checks::edges::DraftEdge;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, shorten};
use std::collections::{BTreeSet, HashSet, VecDeque};

/// The maximum number of edges shown of one cycle.
const SHOWN: usize = 200;

impl Validator<'_> {
    /// Reports each cycle with the positions of its edges; returns true if there is none.
    pub(in crate::config) fn refuse_cycles(&mut self, ties: &[DraftEdge]) -> bool {
        let cycles = cycles(self.vertices.len(), ties);
        for cycle in &cycles {
            let problem = self.cycle(ties, cycle);
            self.problems.push(problem);
        }
        cycles.is_empty()
    }

    /// Creates the problem of one cycle. `cycle` holds the indexes of its edges, each leading to the next.
    pub(in crate::config) fn cycle(&self, ties: &[DraftEdge], cycle: &[usize]) -> Problem {
        let name = |vertex: usize| {
            self.identity_of(vertex).map_or_else(String::new, |identity| shorten(identity, 60))
        };
        let edges: Vec<DraftEdge> =
            cycle.iter().filter_map(|number| ties.get(*number).copied()).collect();
        let mut path: Vec<String> = edges.iter().take(SHOWN).map(|tie| name(tie.from)).collect();
        if edges.len() > SHOWN {
            path.push(format!("… {} more …", edges.len() - SHOWN));
        }
        path.extend(edges.first().map(|tie| name(tie.from)));
        let what = format!("dependency cycle of {} resources", edges.len());
        let hint = format!("{}; remove one of these edges", path.join(" → "));
        let mut problem = Problem::new(Code::Cycle, what).hint(hint);
        for tie in edges.iter().take(SHOWN) {
            let label = format!("{} waits for {}", name(tie.to), name(tie.from));
            problem = problem.at(self.atlas.labelled(tie.at, label));
        }
        problem
    }
}

/// The edges by the vertex they leave; the edges are sorted by it.
struct Outgoing<'a> {
    ties: &'a [DraftEdge],
    starts: Vec<usize>,
}

impl<'a> Outgoing<'a> {
    fn new(vertices: usize, ties: &'a [DraftEdge]) -> Self {
        let mut starts = vec![0; vertices + 1];
        for tie in ties {
            starts[tie.from + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        Self { ties, starts }
    }

    /// Returns the range of a vertex's edges.
    fn range(&self, vertex: usize) -> std::ops::Range<usize> {
        self.starts[vertex]..self.starts[vertex + 1]
    }
}

/// Returns the number of the strongly connected component of each vertex; `None` if there is no cycle.
pub(in crate::config) fn strongly_connected(
    vertices: usize,
    ties: &[DraftEdge],
) -> Option<Vec<usize>> {
    let outgoing = Outgoing::new(vertices, ties);
    (!is_acyclic(vertices, &outgoing)).then(|| parts(vertices, &outgoing))
}

/// Returns one cycle, as indexes of edges, for each strongly connected component with more than one vertex.
fn cycles(vertices: usize, ties: &[DraftEdge]) -> Vec<Vec<usize>> {
    let outgoing = Outgoing::new(vertices, ties);
    if is_acyclic(vertices, &outgoing) {
        return Vec::new();
    }
    let part = parts(vertices, &outgoing);
    let mut sizes = vec![0_usize; vertices];
    for of in &part {
        sizes[*of] += 1;
    }
    let mut done = vec![false; vertices];
    let mut found = Vec::new();
    for vertex in 0..vertices {
        if sizes[part[vertex]] > 1 && !done[part[vertex]] {
            done[part[vertex]] = true;
            found.push(shortest(vertex, &part, &outgoing));
        }
    }
    found
}

/// Returns the shortest cycle through each of some vertices, one for each strongly connected component. The edges are
/// sorted.
pub(in crate::config) fn cycles_through(
    vertices: usize,
    ties: &[DraftEdge],
    through: &BTreeSet<usize>,
) -> Vec<Vec<usize>> {
    let Some(part) = strongly_connected(vertices, ties) else { return Vec::new() };
    let outgoing = Outgoing::new(vertices, ties);
    let mut sizes = vec![0_usize; vertices];
    for of in &part {
        sizes[*of] += 1;
    }
    let mut done = HashSet::new();
    let in_cycle = through.iter().filter(|vertex| sizes[part[**vertex]] > 1);
    let first = in_cycle.filter(|vertex| done.insert(part[**vertex]));
    first.map(|vertex| shortest(*vertex, &part, &outgoing)).collect()
}

fn is_acyclic(vertices: usize, outgoing: &Outgoing<'_>) -> bool {
    let mut needs = vec![0_u32; vertices];
    for tie in outgoing.ties {
        needs[tie.to] += 1;
    }
    let mut free: Vec<usize> = (0..vertices).filter(|vertex| needs[*vertex] == 0).collect();
    let mut freed = 0;
    while let Some(vertex) = free.pop() {
        freed += 1;
        for tie in &outgoing.ties[outgoing.range(vertex)] {
            needs[tie.to] -= 1;
            if needs[tie.to] == 0 {
                free.push(tie.to);
            }
        }
    }
    freed == vertices
}

/// Returns the strongly connected component of each vertex, by number (Tarjan, with an explicit stack).
fn parts(vertices: usize, outgoing: &Outgoing<'_>) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let mut order = vec![NEW; vertices];
    let mut low = vec![0; vertices];
    let mut part = vec![NEW; vertices];
    let (mut counter, mut count) = (0, 0);
    let (mut waiting, mut walk) = (Vec::new(), Vec::new());
    for start in 0..vertices {
        if order[start] != NEW {
            continue;
        }
        walk.push((start, outgoing.range(start)));
        (order[start], low[start]) = (counter, counter);
        counter += 1;
        waiting.push(start);
        while let Some((vertex, rest)) = walk.last_mut() {
            let vertex = *vertex;
            if let Some(tie) = rest.next() {
                let next = outgoing.ties[tie].to;
                if order[next] == NEW {
                    (order[next], low[next]) = (counter, counter);
                    counter += 1;
                    waiting.push(next);
                    walk.push((next, outgoing.range(next)));
                } else if part[next] == NEW {
                    low[vertex] = low[vertex].min(order[next]);
                }
                continue;
            }
            walk.pop();
            if let Some((parent, _)) = walk.last() {
                low[*parent] = low[*parent].min(low[vertex]);
            }
            if low[vertex] == order[vertex] {
                let from = waiting.iter().rposition(|member| *member == vertex).unwrap_or_default();
                for member in waiting.drain(from..) {
                    part[member] = count;
                }
                count += 1;
            }
        }
    }
    part
}

/// Returns the shortest cycle through a vertex within its component.
fn shortest(start: usize, part: &[usize], outgoing: &Outgoing<'_>) -> Vec<usize> {
    let mut came: Vec<Option<usize>> = vec![None; part.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(vertex) = queue.pop_front() {
        for number in outgoing.range(vertex) {
            let to = outgoing.ties[number].to;
            if to == start {
                let mut path = vec![number];
                let mut at = vertex;
                while let Some(before) = came[at].filter(|_| at != start) {
                    path.push(before);
                    at = outgoing.ties[before].from;
                }
                path.reverse();
                return path;
            }
            if part[to] == part[start] && came[to].is_none() {
                came[to] = Some(number);
                queue.push_back(to);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::{DraftEdge, cycles};
    use crate::config::problem::location::{Element, Location};
    use proptest::prelude::*;

    fn ties(edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<DraftEdge> {
        let at = Location { file: 0, part: Element::Graph };
        let tie =
            |(from, to)| DraftEdge { from, to, notify: false, key: "after", because: None, at };
        let mut ties: Vec<DraftEdge> = edges.into_iter().map(tie).collect();
        ties.sort_by_key(|tie| (tie.from, tie.to));
        ties
    }

    /// F-13: a cycle of 10^6 vertices is found without recursion.
    #[test]
    fn a_ring_of_a_million() {
        let length = 1_000_000;
        let ties = ties((0..length).map(|at| (at, (at + 1) % length)));
        let found = cycles(length, &ties);
        assert_eq!((found.len(), found[0].len()), (1, length));
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        /// Each result is a cycle, one for each component; without a result the graph has an order.
        #[test]
        fn cycles_are_cycles(edges in prop::collection::vec((0..12_usize, 0..12_usize), 0..30)) {
            let ties = ties(edges.into_iter().filter(|(from, to)| from != to));
            let found = cycles(12, &ties);
            for cycle in &found {
                prop_assert!(cycle.len() > 1);
                for (number, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                    prop_assert_eq!(ties[*number].to, ties[*next].from);
                }
            }
            let mut left = ties;
            let mut before = usize::MAX;
            while left.len() < before {
                before = left.len();
                let has_need: Vec<bool> = (0..12).map(|v| left.iter().any(|t| t.to == v)).collect();
                left.retain(|tie| has_need[tie.from]);
            }
            prop_assert_eq!(found.is_empty(), left.is_empty());
        }
    }
}
