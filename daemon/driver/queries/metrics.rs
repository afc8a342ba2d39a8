//! The values of the driver for metrics: counters and durations since the start, and the states of all resources.

use crate::api::Phase;
use crate::driver::Driver;
use crate::driver::queries::phase;
use crate::metrics::{Classes, DriverValues, Histogram, ResourceCounts, ResourceState};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use steadfast_engine::{Class, VertexId, VertexStatus};
use steadfast_resources::ResourceId;
use tokio::time::Instant;

/// A vertex whose kind is not in the table yet.
const UNKNOWN: u16 = u16::MAX;

/// The counters and durations of one driver.
#[derive(Debug, Default)]
pub(in crate::driver) struct RunMetrics {
    kinds: KindTable,
    changes: BTreeMap<Arc<str>, Classes>,
    failures: BTreeMap<Arc<str>, u64>,
    /// The times from the start of a run to the end of its check.
    pub(in crate::driver) checks: Histogram,
    /// The times from the start of a run to the end of its apply.
    pub(in crate::driver) repairs: Histogram,
    reactions: Histogram,
    /// The first event of each vertex since its last run.
    events: HashMap<VertexId, Instant>,
    last_convergence: Option<Duration>,
}

/// The kind of each vertex, so that a scrape reads no identities.
#[derive(Debug, Default)]
struct KindTable {
    names: Vec<Arc<str>>,
    kinds: Vec<u16>,
    /// The number of all resources at the last pass, and the converged ones by kind if all were converged: a scrape of
    /// a converged host then needs no pass.
    converged: Option<(u32, Vec<ResourceCounts>)>,
}

impl KindTable {
    /// Returns the number of a kind.
    fn intern(&mut self, kind: &str) -> u16 {
        let known = self.names.iter().position(|name| &**name == kind);
        let at = known.unwrap_or_else(|| {
            self.names.push(kind.into());
            self.names.len() - 1
        });
        u16::try_from(at).unwrap_or(UNKNOWN)
    }

    /// Returns the number of the kind of a vertex; `identity` is called once per vertex.
    fn kind<'i>(&mut self, id: VertexId, identity: impl FnOnce() -> &'i str) -> usize {
        let at = id.0 as usize;
        if at >= self.kinds.len() {
            self.kinds.resize(at + 1, UNKNOWN);
        }
        if self.kinds[at] == UNKNOWN {
            self.kinds[at] = self.intern(kind_of(identity()));
        }
        usize::from(self.kinds[at])
    }
}

/// Returns the kind of an identity: `file` of `file[motd]`, of `shop/file[vhost]` and of `@web1/file[key]`. Modules and
/// hosts would make a series for each instance.
fn kind_of(identity: &str) -> &str {
    ResourceId::parse(identity).map_or(identity, |id| id.kind)
}

impl RunMetrics {
    /// Counts a change.
    pub(in crate::driver) fn note_change(&mut self, identity: &str, class: Class) {
        let kind = kind_of(identity);
        if !self.changes.contains_key(kind) {
            self.changes.insert(kind.into(), Classes::default());
        }
        if let Some(classes) = self.changes.get_mut(kind) {
            classes.0[class as usize] += 1;
        }
    }

    /// Counts a failed run.
    pub(in crate::driver) fn note_failure(&mut self, identity: &str) {
        let kind = kind_of(identity);
        match self.failures.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.failures.insert(kind.into(), 1)),
        }
    }

    /// Notes an event of a watch; the first one since the last run counts.
    pub(in crate::driver) fn note_event(&mut self, id: VertexId) {
        self.events.entry(id).or_insert_with(Instant::now);
    }

    /// Notes the start of a run.
    pub(in crate::driver) fn note_start(&mut self, id: VertexId) {
        if let Some(event) = self.events.remove(&id) {
            self.reactions.observe(event.elapsed());
        }
    }

    /// Notes that all resources are converged now.
    pub(in crate::driver) fn note_convergence(&mut self) {
        self.last_convergence = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    }

    /// Forgets a vertex that has left the graph: another resource may get its number.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.events.remove(&id);
        self.kinds.converged = None;
        if let Some(kind) = self.kinds.kinds.get_mut(id.0 as usize) {
            *kind = UNKNOWN;
        }
    }

    /// Forgets the kinds of all vertices: an alias may rename a resource.
    pub(in crate::driver) fn forget_kinds(&mut self) {
        self.kinds.converged = None;
        self.kinds.kinds.clear();
    }
}

/// Returns the state of a resource, as metrics show it.
fn metric_state(standing: &VertexStatus) -> ResourceState {
    if *standing == VertexStatus::Paused {
        return ResourceState::Paused;
    }
    match phase(standing) {
        Phase::Settled | Phase::Inactive => ResourceState::Converged,
        Phase::Running => ResourceState::Running,
        Phase::Waiting => ResourceState::Waiting,
        Phase::Held => ResourceState::Held,
        Phase::Contended => ResourceState::Contended,
        Phase::Delayed => ResourceState::Retrying,
        Phase::Failed => ResourceState::Failed,
        Phase::Stuck => ResourceState::Stuck,
    }
}

/// The resources of a graph, counted in one pass.
#[derive(Default)]
struct Tally {
    /// By the number of the kind.
    kinds: Vec<ResourceCounts>,
    refreshes_owed: u32,
    listed: Vec<(String, ResourceState)>,
    omitted: usize,
}

impl Driver {
    /// Returns the values of the driver, with at most `limit` resources that are not converged.
    pub(in crate::driver) fn metric_values(&mut self, limit: usize) -> DriverValues {
        let mut kinds = std::mem::take(&mut self.runs.metrics.kinds);
        let tally = self.tally_resources(&mut kinds, limit);
        let resources = kinds.names.iter().cloned().zip(tally.kinds);
        let resources = resources.filter(|(_, counts)| *counts != ResourceCounts::default());
        let resources = resources.collect();
        self.runs.metrics.kinds = kinds;
        let metrics = &self.runs.metrics;
        let (journal_queue, commits) = self.journal.load();
        DriverValues {
            graph: self.graph.graph().to_owned(),
            converged: self.engine.is_converged() && !self.is_starting(),
            last_convergence: metrics.last_convergence,
            read_only: self.mode.read_only().is_some(),
            paused: self.engine.mode() == steadfast_engine::Mode::Paused,
            graph_rejected: self.graph.loads.is_rejected(),
            resources,
            contended: self.counts().contended,
            refreshes_owed: tally.refreshes_owed,
            paused_resources: self.commands.pauses.count(),
            unwatched: self.watches.states.polled.unwatched().len(),
            polled: self.watches.states.polled.without_events(),
            changes: metrics.changes.iter().map(|(kind, it)| (Arc::clone(kind), *it)).collect(),
            failures: metrics.failures.iter().map(|(kind, it)| (Arc::clone(kind), *it)).collect(),
            checks: metrics.checks.clone(),
            repairs: metrics.repairs.clone(),
            reactions: metrics.reactions.clone(),
            commits,
            journal_queue,
            inbox: self.inbox().count(),
            runs: self.runs.active.len(),
            watches: self.watches.counts(),
            listed: tally.listed,
            omitted: tally.omitted,
        }
    }

    /// Counts all resources by kind and state. A converged host has the counts of its last pass.
    fn tally_resources(&self, kinds: &mut KindTable, limit: usize) -> Tally {
        let mut tally = Tally::default();
        let counts = self.counts();
        let is_running = self.engine.mode() == steadfast_engine::Mode::Running;
        let is_converged = is_running && counts.settled == counts.total;
        if is_converged
            && let Some((total, converged)) = &kinds.converged
            && *total == counts.total
        {
            tally.kinds.clone_from(converged);
            return tally;
        }
        for id in self.graph.ids() {
            let Some(standing) = self.current_status(id) else { continue };
            let (state, kind) = (metric_state(&standing), kinds.kind(id, || self.graph.name(id)));
            if kind >= tally.kinds.len() {
                tally.kinds.resize(kind + 1, ResourceCounts::default());
            }
            tally.kinds[kind].add(state, 1);
            if state == ResourceState::Converged {
                continue;
            }
            tally.refreshes_owed += u32::from(self.engine.owes_refresh(id));
            if tally.listed.len() < limit {
                tally.listed.push((self.graph.name(id).to_owned(), state));
            } else {
                tally.omitted += 1;
            }
        }
        kinds.converged = is_converged.then(|| (counts.total, tally.kinds.clone()));
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::{KindTable, RunMetrics, kind_of};
    use steadfast_engine::{Class, VertexId};

    #[test]
    fn a_kind_is_read_once_per_vertex() {
        let mut kinds = KindTable::default();
        assert_eq!(kinds.kind(VertexId(2), || "file[/a]"), 0);
        assert_eq!(kinds.kind(VertexId(0), || "svc[b]"), 1);
        assert_eq!(kinds.kind(VertexId(2), || panic!("read twice")), 0);
        assert_eq!(kind_of("shop/file[x[y]]"), "file");
        assert_eq!(kind_of("@web1/shop/ssh:authorized_key[k]"), "ssh:authorized_key");
    }

    #[test]
    fn changes_and_failures_are_counted_by_kind() {
        let mut metrics = RunMetrics::default();
        metrics.note_change("file[/a]", Class::Corrective);
        metrics.note_change("file[/b]", Class::Corrective);
        metrics.note_failure("svc[c]");
        metrics.note_failure("svc[d]");
        assert_eq!(metrics.changes["file"].0, [0, 2, 0, 0]);
        assert_eq!(metrics.failures["svc"], 2);
        metrics.note_event(VertexId(1));
        metrics.note_start(VertexId(1));
        metrics.note_start(VertexId(1));
        assert_eq!(metrics.reactions.count(), 1);
    }
}
