//! Cycles through resources that wait for a probe: such a resource is no vertex before the answer, and closes a cycle
//! after it.

use super::Validator;
use super::edges::DraftEdge;
use super::inactive::{DraftInactive, FIRST};
use crate::config::document::Inactivity;
use crate::config::graph::cycles::{cycles_through, strongly_connected};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use steadfast_resources::ResourceId;

/// The longest chain of received values that is followed to the resource that waits.
const LONGEST_CHAIN: usize = 100;

/// The edges between vertices and resources that wait, sorted.
struct Ties {
    ties: Vec<DraftEdge>,
    /// The edges by numbers that begin at 0: inactive resources are numbered after the vertices.
    numbered: Vec<DraftEdge>,
}

impl Validator<'_> {
    /// Reports the cycles that an answer of a probe can close. The edges of a reported cycle are removed, so that the
    /// check of the vertices does not report it again.
    pub(super) fn refuse_waiting_cycles(&mut self, waiting: &BTreeSet<usize>) {
        self.refuse_edges_to_itself(waiting);
        let mut all = self.numbered_ties();
        let to_waiting = all.ties.iter().filter(|tie| tie.to >= FIRST && self.is_probe(tie.from));
        let probes: BTreeSet<usize> = to_waiting.map(|tie| self.node(tie.from)).collect();
        if self.refuse_cycles_through(&all, &probes) {
            all = self.numbered_ties();
        }
        let closing = self.closing_nodes(&all);
        self.refuse_cycles_through(&all, &closing);
    }

    /// Reports the edges of a waiting resource to itself.
    fn refuse_edges_to_itself(&mut self, waiting: &BTreeSet<usize>) {
        let ties = std::mem::take(&mut self.ties);
        let is_own = |tie: &DraftEdge| tie.from == tie.to && waiting.contains(&tie.from);
        let (own, ties): (Vec<DraftEdge>, Vec<DraftEdge>) = ties.into_iter().partition(is_own);
        self.ties = ties;
        for tie in own {
            self.refuse_self_edge(&tie);
        }
    }

    /// Reports an edge of a resource to itself.
    pub(super) fn refuse_self_edge(&mut self, tie: &DraftEdge) {
        let name = self.identity_of(tie.from).map(quoted).unwrap_or_default();
        let what = format!("`{name}` would wait for itself");
        let problem = Problem::new(Code::SelfEdge, what).hint("remove this edge");
        self.problems.push(problem.at(self.atlas.place(tie.at)));
    }

    /// Returns the number of a vertex or of an inactive resource, which follow the vertices.
    fn node(&self, number: usize) -> usize {
        number.checked_sub(FIRST).map_or(number, |own| self.vertices.len() + own)
    }

    fn numbered_ties(&self) -> Ties {
        let mut ties: Vec<DraftEdge> =
            self.ties.iter().filter(|tie| tie.from != tie.to).copied().collect();
        ties.sort_by_key(|tie| (self.node(tie.from), self.node(tie.to)));
        let numbered = ties
            .iter()
            .map(|tie| DraftEdge { from: self.node(tie.from), to: self.node(tie.to), ..*tie })
            .collect();
        Ties { ties, numbered }
    }

    /// Reports a cycle of each strongly connected component through one of some nodes, unless it has vertices alone.
    /// Returns true after a report.
    fn refuse_cycles_through(&mut self, all: &Ties, through: &BTreeSet<usize>) -> bool {
        let mut reported = HashSet::new();
        let nodes = self.vertices.len() + self.inactive.len();
        for cycle in cycles_through(nodes, &all.numbered, through) {
            let edges = || cycle.iter().filter_map(|number| all.ties.get(*number));
            if edges().all(|tie| tie.from < FIRST) {
                continue;
            }
            reported.extend(edges().map(|tie| (tie.from, tie.to)));
            let problem = self.cycle(&all.ties, &cycle);
            self.problems.push(problem);
        }
        self.ties.retain(|tie| !reported.contains(&(tie.from, tie.to)));
        !reported.is_empty()
    }

    /// Returns nodes that are active together with another one of their cycle: a vertex, a resource that waits for a
    /// value alone, and two resources with the same conditions. Different conditions may exclude each other.
    fn closing_nodes(&self, all: &Ties) -> BTreeSet<usize> {
        let (base, count) = (self.vertices.len(), self.vertices.len() + self.inactive.len());
        let Some(part) = strongly_connected(count, &all.numbered) else { return BTreeSet::new() };
        let mut members: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let inner = all.numbered.iter().filter(|tie| part.get(tie.from) == part.get(tie.to));
        for tie in inner {
            if let Some(of) = part.get(tie.from) {
                members.entry(*of).or_default().extend([tie.from, tie.to]);
            }
        }
        let mut closing = BTreeSet::new();
        for members in members.values() {
            let conditions = |node: &usize| match node.checked_sub(base) {
                Some(own) => self.conditions_of(FIRST + own),
                None => Vec::new(),
            };
            let all: Vec<(usize, Vec<u64>)> =
                members.iter().map(|node| (*node, conditions(node))).collect();
            let mut users: HashMap<&[u64], usize> = HashMap::new();
            for (_, of_node) in &all {
                *users.entry(of_node).or_default() += 1;
            }
            let is_closing = |of_node: &[u64]| {
                // An outer condition holds whenever an inner one does.
                let mut outer = (0..of_node.len()).filter_map(|end| of_node.get(..end));
                users.get(of_node).is_some_and(|users| *users > 1)
                    || of_node.is_empty()
                    || outer.any(|outer| users.contains_key(outer))
            };
            // A waiting resource comes first: a cycle through it is none of vertices alone.
            let found = all.iter().filter(|(_, of_node)| is_closing(of_node));
            let found: Vec<usize> = found.map(|(node, _)| *node).collect();
            let waiting = found.iter().find(|node| **node >= base);
            closing.extend(waiting.or_else(|| found.first()));
        }
        closing
    }

    /// Returns the sums of the conditions that an inactive resource waits with; none if only a value waits.
    fn conditions_of(&self, number: usize) -> Vec<u64> {
        match self.waiting_reason(number) {
            Some(reason) if reason.waits_for_probe() => Vec::new(),
            Some(reason) if !reason.waiting.is_empty() => reason.waiting.to_vec(),
            // The conditions of a printed expansion have no sums: each is one of its own.
            _ => {
                let mut sum = DefaultHasher::new();
                number.hash(&mut sum);
                vec![sum.finish()]
            }
        }
    }

    /// Returns the reason of a resource that waits for a probe: its own one, or that of the resource that sends it a
    /// value.
    pub(super) fn waiting_reason(&self, number: usize) -> Option<&Inactivity> {
        let mut number = number;
        for _ in 0..LONGEST_CHAIN {
            let reason = self.inactive.get(number.checked_sub(FIRST)?)?.reason();
            let until = reason.unknown_until.as_deref()?;
            match until.strip_suffix(" is active") {
                Some(sender) => number = *self.numbers.get(sender)?,
                None => return until.contains("probe[").then_some(reason),
            }
        }
        None
    }

    pub(super) fn is_probe(&self, number: usize) -> bool {
        let id = self.identity_of(number).and_then(ResourceId::parse);
        id.is_some_and(|id| id.kind == "probe")
    }

    /// Returns the identity of a vertex or of an inactive resource.
    pub(in crate::config) fn identity_of(&self, number: usize) -> Option<&str> {
        match number.checked_sub(FIRST) {
            None => self.vertices.get(number).map(|vertex| vertex.identity.as_ref()),
            Some(own) => self.inactive.get(own).map(DraftInactive::identity),
        }
    }
}
