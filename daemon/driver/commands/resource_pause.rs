//! Pauses of single resources, with reason and end. The engine is notified of the begin and the end; each pause ends by
//! itself.
//!
//! A paused member is split from its group, which rests until then.

use super::state_commands::CommandResult;
use crate::api::{PauseStatus, SinglePause};
use crate::driver::journal::client::PendingReply;
use crate::driver::{Driver, Notification, Query};
use crate::store::{Entry, PauseRecord, StoredState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, VertexId, VertexStatus};
use steadfast_resources::LONGEST_SPAN;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// All resources that are paused on their own.
#[derive(Debug, Default)]
pub(in crate::driver) struct ResourcePauses {
    each: BTreeMap<VertexId, PausedResource>,
    /// The paused vertices that the engine knows of.
    known_to_engine: BTreeSet<VertexId>,
}

#[derive(Debug)]
struct PausedResource {
    until: Instant,
    reason: String,
}

impl ResourcePauses {
    /// Returns the end of the pause that ends first.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.each.values().map(|paused| paused.until).min()
    }

    /// Notes that the engine has forgotten this vertex.
    pub(in crate::driver) fn forget_vertex(&mut self, id: VertexId) {
        self.known_to_engine.remove(&id);
    }

    /// Forgets the pause of a resource that is in no graph any more.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.each.remove(&id);
    }

    /// Drops the pauses of resources that do not run.
    pub(in crate::driver) fn only(&mut self, runs: impl Fn(VertexId) -> bool) {
        self.each.retain(|id, _| runs(*id));
    }

    /// Returns the record to store for the pause of one resource.
    pub(in crate::driver) fn record(&self, id: VertexId, wall: Duration) -> Option<PauseRecord> {
        let paused = self.each.get(&id)?;
        let left = paused.until.saturating_duration_since(Instant::now());
        let until_unix = wall.saturating_add(left).as_secs();
        let lasts = Some(left.as_secs());
        Some(PauseRecord { reason: paused.reason.clone(), until_unix, lasts })
    }

    /// Returns the number of paused resources.
    pub(in crate::driver) fn count(&self) -> usize {
        self.each.len()
    }

    /// Returns the paused resources.
    pub(in crate::driver) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.each.keys().copied()
    }

    fn holds(&self, id: VertexId) -> bool {
        self.each.contains_key(&id)
    }

    /// Returns the status of the pause of one resource.
    pub(in crate::driver) fn status(
        &self,
        id: VertexId,
        standing: &VertexStatus,
    ) -> Option<PauseStatus> {
        self.each.get(&id).map(|paused| PauseStatus {
            reason: paused.reason.clone(),
            ends_in: Some(paused.until.saturating_duration_since(Instant::now()).as_secs()),
            at_rest: !matches!(standing, VertexStatus::Running(..) | VertexStatus::Stuck(..)),
        })
    }
}

impl Driver {
    /// Begins or ends pauses of single resources.
    pub(in crate::driver) fn answer_pause_query(&mut self, query: Query) {
        match query {
            Query::PauseResources { names, limit, reason, to } => {
                let limit = limit.unwrap_or(self.settings.pause_limit);
                match self.pause_resources(&names, limit, &reason) {
                    Ok(entries) => self.record_pauses(entries, Some(to)),
                    Err(strangers) => drop(to.send(strangers)),
                }
            }
            Query::ResumeResources(names, to) => match self.resume_resources(&names) {
                Ok(entries) => self.record_pauses(entries, Some(to)),
                Err(strangers) => drop(to.send(strangers)),
            },
            _ => {}
        }
    }

    /// Returns true if the resource is paused on its own.
    pub(in crate::driver) fn is_resource_paused(&self, id: VertexId) -> bool {
        self.commands.pauses.holds(id)
    }

    /// Pauses resources; returns the entries to record.
    ///
    /// # Errors
    ///
    /// The unknown identities.
    fn pause_resources(
        &mut self,
        names: &[String],
        limit: Duration,
        reason: &str,
    ) -> Result<Vec<Entry>, Vec<String>> {
        let strangers = self.strangers(names);
        if !strangers.is_empty() {
            return Err(strangers);
        }
        let mut entries = Vec::new();
        let until = Instant::now() + limit;
        let until_unix = self.runtime.wall().as_secs().saturating_add(limit.as_secs());
        for id in self.ids_of(names) {
            let reason = reason.to_owned();
            let lasts = Some(limit.as_secs());
            let pause = Some(PauseRecord { reason: reason.clone(), until_unix, lasts });
            entries.push(Entry::ResourcePause { identity: self.graph.identity(id), pause });
            let identity = self.graph.name(id);
            self.notifier.notify(&Notification::ResourcePaused {
                identity,
                reason: &reason,
                limit,
            });
            self.commands.pauses.each.insert(id, PausedResource { until, reason });
        }
        self.pass_pauses_to_engine(false);
        Ok(entries)
    }

    fn resume_resources(&mut self, names: &[String]) -> Result<Vec<Entry>, Vec<String>> {
        let strangers = self.strangers(names);
        if !strangers.is_empty() {
            return Err(strangers);
        }
        let ids = self.ids_of(names);
        Ok(self.let_go(ids))
    }

    /// Ends the pauses that are over.
    pub(in crate::driver) fn end_pauses(&mut self, now: Instant) {
        let over = self.commands.pauses.each.iter().filter(|(_, paused)| paused.until <= now);
        let over: Vec<VertexId> = over.map(|(id, _)| *id).collect();
        if !over.is_empty() {
            let entries = self.let_go(over);
            self.record_pauses(entries, None);
            self.turn(Event::Wake);
        }
    }

    fn let_go(&mut self, ids: Vec<VertexId>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for id in ids {
            if self.commands.pauses.each.remove(&id).is_some() {
                entries
                    .push(Entry::ResourcePause { identity: self.graph.identity(id), pause: None });
                self.notifier.notify(&Notification::ResourceResumed(self.graph.name(id)));
            }
        }
        self.pass_pauses_to_engine(false);
        entries
    }

    /// Records pauses. The reply comes when they are durable, or at once if the state cannot be written now: the pause
    /// is in effect in any case.
    fn record_pauses(&mut self, entries: Vec<Entry>, mut to: Option<oneshot::Sender<Vec<String>>>) {
        let answer = |to: Option<oneshot::Sender<_>>| drop(to.map(|to| to.send(Vec::new())));
        if !self.journal.exists() {
            return answer(to);
        }
        let now = if self.journal.is_sound() { None } else { to.take() };
        let to: Box<dyn FnOnce(CommandResult) + Send> = Box::new(move |_said| answer(to));
        let reply = PendingReply { to: Some(to), messages: Vec::new(), deeds: Vec::new() };
        self.journal.record_command(entries, reply);
        answer(now);
    }

    fn ids_of(&self, names: &[String]) -> Vec<VertexId> {
        let ids: BTreeSet<_> = names.iter().filter_map(|name| self.graph.number(name)).collect();
        ids.into_iter().collect()
    }

    /// Restores the stored pauses of the previous session before its graph is loaded.
    pub(in crate::driver) fn restore_pauses(&mut self, recalled: &StoredState) {
        if self.settings.one_shot {
            return;
        }
        let now = self.runtime.wall();
        for (identity, remembered) in &recalled.resources {
            let Some((record, id)) = remembered.pause.as_ref().zip(self.graph.number(identity))
            else {
                continue;
            };
            let left = record.remaining(now, self.settings.pause_limit, LONGEST_SPAN);
            if left.is_zero() {
                let identity = Arc::from(identity.as_str());
                self.journal.record_soon(Entry::ResourcePause { identity, pause: None });
                continue;
            }
            let until = Instant::now() + left;
            self.commands
                .pauses
                .each
                .insert(id, PausedResource { until, reason: record.reason.clone() });
        }
    }

    /// Sends changed pauses to the engine. `waiting` also pauses the group leaders of the waiting graph.
    pub(in crate::driver) fn pass_pauses_to_engine(&mut self, waiting: bool) {
        let leader = |id: &VertexId| self.graph.groups().leader(*id);
        let mut wanted: BTreeSet<VertexId> = self.commands.pauses.each.keys().map(leader).collect();
        if waiting {
            let leaders = self.commands.pauses.each.keys().map(|id| self.graph.waiting_leader(*id));
            wanted.extend(leaders);
        }
        let told = std::mem::replace(&mut self.commands.pauses.known_to_engine, wanted.clone());
        let ended = told.difference(&wanted).map(|vertex| (*vertex, false));
        let begun = wanted.difference(&told).map(|vertex| (*vertex, true));
        let changes: Vec<_> = ended.chain(begun).collect();
        for (vertex, paused) in changes {
            self.next_events.push_back(Event::PauseVertex { vertex, paused });
        }
    }

    /// Lists at most `limit` pauses of single resources in the order of vertex numbers.
    pub(in crate::driver) fn single_pauses(&self, limit: usize) -> Vec<SinglePause> {
        let each = self.commands.pauses.each.keys().take(limit).filter_map(|id| {
            let standing = self.current_status(*id)?;
            let pause = self.commands.pauses.status(*id, &standing)?;
            Some(SinglePause { resource: self.graph.name(*id).to_owned(), pause })
        });
        each.collect()
    }
}
