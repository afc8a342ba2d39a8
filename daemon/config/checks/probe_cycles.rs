//! Cycles through expressions with `probe.`: a resource that waits for a probe is no vertex before the answer, and
//! closes a cycle after it.

use super::Validator;
use super::edges::DraftEdge;
use super::inactive::FIRST;
use crate::config::graph::cycles::cycles_through;
use std::collections::{BTreeSet, HashSet};
use steadfast_resources::ResourceId;

impl Validator<'_> {
    /// Reports each cycle through a probe and a resource that waits for it. The edges of a reported cycle are removed,
    /// so that the check of the vertices does not report it again.
    pub(super) fn refuse_probe_cycles(&mut self) {
        let base = self.vertices.len();
        let node = |number: usize| number.checked_sub(FIRST).map_or(number, |own| base + own);
        let mut ties: Vec<DraftEdge> =
            self.ties.iter().filter(|tie| tie.from != tie.to).copied().collect();
        ties.sort_by_key(|tie| (node(tie.from), node(tie.to)));
        let numbered: Vec<DraftEdge> = ties
            .iter()
            .map(|tie| DraftEdge { from: node(tie.from), to: node(tie.to), ..*tie })
            .collect();
        let to_waiting = ties.iter().filter(|tie| tie.to >= FIRST && self.is_probe(tie.from));
        let probes: BTreeSet<usize> = to_waiting.map(|tie| node(tie.from)).collect();
        let mut reported = HashSet::new();
        for cycle in cycles_through(base + self.inactive.len(), &numbered, &probes) {
            let edges = || cycle.iter().filter_map(|number| ties.get(*number));
            if edges().all(|tie| tie.from < FIRST) {
                continue;
            }
            reported.extend(edges().map(|tie| (tie.from, tie.to)));
            let problem = self.cycle(&ties, &cycle);
            self.problems.push(problem);
        }
        self.ties.retain(|tie| !reported.contains(&(tie.from, tie.to)));
    }

    fn is_probe(&self, number: usize) -> bool {
        let id = self.identity_of(number).and_then(ResourceId::parse);
        id.is_some_and(|id| id.kind == "probe")
    }

    /// Returns the identity of a vertex or of an inactive resource.
    pub(in crate::config) fn identity_of(&self, number: usize) -> Option<&str> {
        match number.checked_sub(FIRST) {
            None => self.vertices.get(number).map(|vertex| vertex.identity.as_ref()),
            Some(own) => self.inactive.get(own).map(super::inactive::DraftInactive::identity),
        }
    }
}
