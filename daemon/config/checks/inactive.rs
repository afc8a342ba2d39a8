//! Inactive resources: declarations whose condition is false. Each keeps its name and its place in the order, and has
//! no vertex.

use super::Validator;
use super::edges::DraftEdge;
use crate::config::ast;
use crate::config::document::{Inactivity, Note};
use crate::config::problem::code::Code;
use crate::config::problem::location::Location;
use crate::config::problem::{Problem, quoted};
use crate::config::{Inactive, ast::Reference};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The first number of inactive resources. They are numbered apart from the vertices, in the same table of names.
pub(super) const FIRST: usize = usize::MAX / 2;

/// The maximum number of edges that lead through one inactive resource.
const MOST_THROUGH: usize = 100_000;

/// An inactive resource.
#[derive(Debug)]
pub(in crate::config) struct DraftInactive {
    identity: Arc<str>,
    at: Location,
    line: u32,
    reason: Arc<Inactivity>,
}

/// Makes each receiver of a value of an inactive resource inactive too, until nothing changes.
pub(super) fn defer_receivers(files: &mut [ast::GraphFile], prefixes: &[String]) {
    let mut inactive: HashSet<String> = HashSet::new();
    let mut active: HashSet<String> = HashSet::new();
    for (file, prefix) in files.iter().zip(prefixes) {
        for resource in &file.resources {
            let identity = format!("{prefix}{}[{}]", resource.spec.kind, resource.name);
            let is_inactive = resource.note.as_ref().is_some_and(|note| note.inactive.is_some());
            if is_inactive {
                inactive.insert(identity)
            } else {
                active.insert(identity)
            };
        }
    }
    inactive.retain(|identity| !active.contains(identity));
    while !inactive.is_empty() {
        let mut more = HashSet::new();
        for (file, prefix) in files.iter_mut().zip(prefixes) {
            for resource in &mut file.resources {
                let of = |receive: &ast::Receive| {
                    receive.values.iter().find_map(|(_, reference)| match reference {
                        Reference::Sent(from, _) if inactive.contains(from) => Some(from.clone()),
                        _ => None,
                    })
                };
                let Some(sender) = resource.receives.iter().find_map(of) else { continue };
                let note = resource.note.get_or_insert_default();
                if note.inactive.is_none() {
                    more.insert(format!("{prefix}{}[{}]", resource.spec.kind, resource.name));
                    let unknown_until = Some(format!("{sender} is active"));
                    let reason = Inactivity { unknown_until, ..Inactivity::default() };
                    note.inactive = Some(Arc::new(reason));
                }
            }
        }
        inactive = more;
    }
}

impl Validator<'_> {
    /// Registers an inactive resource, and returns its number.
    pub(super) fn add_inactive(
        &mut self,
        identity: &Arc<str>,
        (at, line): (Location, u32),
        note: &Note,
    ) -> usize {
        let number = FIRST + self.inactive.len();
        let reason = note.inactive.clone().unwrap_or_default();
        self.inactive.push(DraftInactive { identity: Arc::clone(identity), at, line, reason });
        self.numbers.entry(Arc::clone(identity)).or_insert(number);
        number
    }

    /// Replaces the edges of inactive resources by edges between those before and those after: an inactive resource
    /// runs nothing, and the order holds through it.
    pub(super) fn lead_through_inactive(&mut self) {
        if self.inactive.is_empty() {
            return;
        }
        let (mut through, ties): (Vec<DraftEdge>, Vec<DraftEdge>) = std::mem::take(&mut self.ties)
            .into_iter()
            .partition(|tie| tie.from >= FIRST || tie.to >= FIRST);
        self.ties = ties;
        let numbers: std::collections::BTreeSet<usize> = through
            .iter()
            .flat_map(|tie| [tie.from, tie.to])
            .filter(|number| *number >= FIRST)
            .collect();
        for inactive in numbers {
            let (ends, rest): (Vec<_>, Vec<_>) =
                through.into_iter().partition(|tie| tie.from == inactive || tie.to == inactive);
            through = rest;
            let before: BTreeMap<usize, DraftEdge> =
                ends.iter().filter(|tie| tie.to == inactive).map(|tie| (tie.from, *tie)).collect();
            let after: BTreeMap<usize, DraftEdge> =
                ends.iter().filter(|tie| tie.from == inactive).map(|tie| (tie.to, *tie)).collect();
            if before.len().saturating_mul(after.len()) > MOST_THROUGH {
                self.report_wide(inactive, before.len(), after.len());
                continue;
            }
            for from in before.keys() {
                // Two inactive resources that wait for each other are no cycle of vertices.
                let others = after.iter().filter(|(to, _)| *to != from);
                through.extend(others.map(|(to, tie)| DraftEdge {
                    from: *from,
                    to: *to,
                    notify: false,
                    ..*tie
                }));
            }
        }
        self.ties.extend(through);
    }

    fn report_wide(&mut self, number: usize, before: usize, after: usize) {
        let Some(inactive) = self.inactive.get(number - FIRST) else { return };
        let name = quoted(&inactive.identity);
        let what = format!("the inactive `{name}` stands between {before} and {after} resources");
        let hint = format!("at most {MOST_THROUGH} pairs are ordered through it: put a noop there");
        let place = self.atlas.place(inactive.at);
        self.problems.push(Problem::new(Code::Limit, what).hint(hint).at(place));
    }

    /// Returns the inactive resources that no active declaration replaces.
    pub(super) fn list_inactive(
        inactive: Vec<DraftInactive>,
        numbers: &HashMap<Arc<str>, usize>,
        sources: &dyn Fn(usize) -> usize,
    ) -> Vec<Inactive> {
        let is_listed =
            |it: &DraftInactive| numbers.get(&it.identity).is_some_and(|number| *number >= FIRST);
        let listed = inactive.into_iter().filter(is_listed).map(|it| Inactive {
            identity: it.identity,
            condition: it.reason.condition.clone(),
            values: it.reason.values.clone(),
            unknown_until: it.reason.unknown_until.clone(),
            place: (sources(it.at.file), it.line),
        });
        let mut listed: Vec<Inactive> = listed.collect();
        listed.sort_by(|one, other| one.identity.cmp(&other.identity));
        listed.dedup_by(|one, other| one.identity == other.identity);
        listed
    }
}
