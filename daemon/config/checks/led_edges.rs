//! Edges through inactive resources: such a resource runs nothing, and the order holds through it.

use super::Validator;
use super::edges::DraftEdge;
use super::inactive::FIRST;
use crate::config::ast::Relation;
use crate::config::problem::code::Code;
use crate::config::problem::location::Location;
use crate::config::problem::{Problem, quoted};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The number of edges through one inactive resource up to which they need no vertex. Between active resources only,
/// twice its own edges are allowed besides.
const MOST_PAIRS: usize = 16;

/// The edges that begin or end at an inactive resource.
#[derive(Default)]
struct InnerEdges {
    /// The edges to each inactive resource, by their beginning.
    to: HashMap<usize, BTreeMap<usize, DraftEdge>>,
    /// The edges from each inactive resource, by their end.
    from: HashMap<usize, BTreeMap<usize, DraftEdge>>,
}

impl InnerEdges {
    fn insert(&mut self, tie: DraftEdge, led: &BTreeSet<usize>) {
        if led.contains(&tie.to) {
            self.to.entry(tie.to).or_default().insert(tie.from, tie);
        }
        if led.contains(&tie.from) {
            self.from.entry(tie.from).or_default().insert(tie.to, tie);
        }
    }

    /// Removes an inactive resource; returns its edges: those to it and those from it.
    fn take(&mut self, number: usize) -> (BTreeMap<usize, DraftEdge>, BTreeMap<usize, DraftEdge>) {
        let mut before = self.to.remove(&number).unwrap_or_default();
        let mut after = self.from.remove(&number).unwrap_or_default();
        before.remove(&number);
        after.remove(&number);
        for from in before.keys() {
            if let Some(ends) = self.from.get_mut(from) {
                ends.remove(&number);
            }
        }
        for to in after.keys() {
            if let Some(ends) = self.to.get_mut(to) {
                ends.remove(&number);
            }
        }
        (before, after)
    }
}

impl Validator<'_> {
    /// Replaces the edges of inactive resources by edges between those before and those after: an inactive resource
    /// runs nothing, and the order holds through it. A vertex replaces a resource between many others.
    pub(super) fn lead_through_inactive(&mut self) {
        let numbers = (FIRST..).take(self.inactive.len());
        let (waiting, others): (BTreeSet<usize>, BTreeSet<usize>) =
            numbers.partition(|number| self.waiting_reason(*number).is_some());
        self.lead_through(&others);
        if !waiting.is_empty() {
            self.refuse_waiting_cycles(&waiting);
            self.lead_through(&waiting);
        }
    }

    /// Replaces the edges of some inactive resources.
    fn lead_through(&mut self, led: &BTreeSet<usize>) {
        if led.is_empty() {
            return;
        }
        let is_led = |tie: &DraftEdge| led.contains(&tie.from) || led.contains(&tie.to);
        let (through, ties): (Vec<DraftEdge>, Vec<DraftEdge>) =
            std::mem::take(&mut self.ties).into_iter().partition(is_led);
        self.ties = ties;
        let mut inner = InnerEdges::default();
        for tie in through {
            inner.insert(tie, led);
        }
        for inactive in led.iter().copied() {
            let (before, after) = inner.take(inactive);
            let pairs = before.len().saturating_mul(after.len());
            let edge = |from, to, tie: &DraftEdge| DraftEdge { from, to, notify: false, ..*tie };
            let mut made = Vec::new();
            // The edges of inactive neighbours are looked at again.
            let is_last = before.keys().chain(after.keys()).all(|number| !led.contains(number));
            let of_ends = if is_last { 2 * (before.len() + after.len()) } else { 0 };
            if pairs <= MOST_PAIRS + of_ends {
                for (from, into) in &before {
                    // What follows a user of an answer waits for the probe no more than the user does.
                    let is_users = into.key == Relation::After.key() && self.is_probe(*from);
                    let of_probe = is_users.then_some(into.key);
                    // Two inactive resources that wait for each other are no cycle of vertices.
                    let others = after.iter().filter(|(to, _)| *to != from);
                    made.extend(others.map(|(to, tie)| DraftEdge {
                        key: of_probe.unwrap_or(tie.key),
                        ..edge(*from, *to, tie)
                    }));
                }
            } else if before.keys().any(|from| after.contains_key(from)) {
                self.report_wide(inactive, before.len(), after.len());
            } else if let Some(between) =
                self.place_of(inactive).and_then(|at| self.add_barrier(at))
            {
                made.extend(before.iter().map(|(from, tie)| edge(*from, between, tie)));
                made.extend(after.iter().map(|(to, tie)| edge(between, *to, tie)));
            }
            for tie in made {
                if is_led(&tie) {
                    inner.insert(tie, led);
                } else {
                    self.ties.push(tie);
                }
            }
        }
    }

    /// Returns the place of an inactive resource.
    fn place_of(&self, number: usize) -> Option<Location> {
        self.inactive.get(number.checked_sub(FIRST)?).map(|inactive| inactive.named().1)
    }

    fn report_wide(&mut self, number: usize, before: usize, after: usize) {
        let Some(inactive) = self.inactive.get(number - FIRST) else { return };
        let name = quoted(inactive.identity());
        let what = format!("the inactive `{name}` stands between {before} and {after} resources");
        let hint = "some of them stand before and after it: remove one of the edges";
        let place = self.atlas.place(inactive.named().1);
        self.problems.push(Problem::new(Code::Limit, what).hint(hint).at(place));
    }
}
