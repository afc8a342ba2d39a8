//! Performs the actions of the engine, and turns signals of the watches into events.

use super::queries::statistics::Moment;
use super::values::senders;
use super::{Driver, Notification};
use crate::config::Vertex;
use crate::store::{Ended, Entry, PauseRecord, Verb};
use crate::watch::{Signal, WatchHub};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Action, Actions, Event, Intent, Mode, Notice, Outcome, Record, RestoredState, Tick, VertexId,
};
use steadfast_resources::{Failure, RunPolicy, WatchSource};
use tokio::time::Instant;

/// The time that active runs get after the event source has ended.
const LAST: Duration = Duration::from_secs(30);

impl Driver {
    pub(super) fn perform(&mut self, actions: Actions) {
        let loads = actions.iter().any(|a| matches!(a, Action::Tell(Notice::Loaded { .. })));
        if loads && self.table.install_groups() {
            self.tell_parked(false);
        } else if loads {
            let installed = self.table.install();
            self.settle_ownership(&installed);
            self.graph_change = Some(installed.change);
            for id in installed.dropped {
                self.forget(id, &RestoredState::default());
            }
            self.values.index(&self.table);
            self.read_secrets_of_all();
            self.tell_parked(false);
            self.discard_replaced();
        }
        for action in actions {
            match action {
                Action::Watch(id) => self.watch(id),
                Action::Unwatch(id) => {
                    self.arm();
                    self.watches.close(id);
                    self.settling.forget(id);
                    self.rotated.settling.forget(id);
                    if let Some(hub) = &self.hub {
                        hub.disarm(id);
                    }
                }
                Action::Deafen(id) => {
                    if let Some(hub) = &self.hub {
                        hub.mute(id);
                    }
                }
                Action::Listen(id) => {
                    if let Some(hub) = &self.hub {
                        hub.unmute(id);
                    }
                }
                Action::Start(start) => {
                    self.start(start);
                    if !start.look {
                        self.tell_started(start.vertex);
                    }
                }
                Action::Begin(intent) => self.begin(&intent),
                Action::Apply(run, id) => {
                    self.applies.note(id, Instant::now());
                    self.apply(run, id);
                }
                Action::End(record) => self.end(&record),
                Action::Cancel(run, _) => {
                    if let Some(live) = self.runs.0.get(&run) {
                        live.cancel.cancel();
                    }
                }
                Action::Forget(id, recall) => self.forget(id, &recall),
                Action::SavePause(until) => self.save_pause(until),
                Action::Tell(notice) => self.notify(notice),
            }
        }
        self.arm();
    }

    /// Frees replaced graphs on another thread.
    pub(super) fn discard_replaced(&mut self) {
        for replaced in self.table.take_replaced() {
            self.machinery.discard(Box::new(replaced));
        }
    }

    /// Arms the collected watches in one call.
    fn arm(&mut self) {
        if let Some(hub) = self.hub.as_ref().filter(|_| !self.arming.is_empty()) {
            hub.arm_all(std::mem::take(&mut self.arming));
        }
    }

    fn watch(&mut self, id: VertexId) {
        let mut sources = self.table.sources(id);
        if let Some(entry) = self.table.get(id).filter(|entry| !entry.removes) {
            sources.extend(entry.recipe.iter().flat_map(|recipe| recipe.watch()));
        }
        let all = sources.len();
        sources.retain(|source| !matches!(source, WatchSource::Polled(_)));
        if sources.len() < all {
            self.watches.poll_too(id);
        }
        match &self.hub {
            Some(_) if !sources.is_empty() => {
                self.watches.ask(id);
                self.arming.push((id, sources));
            }
            // Nothing outside can change the resource, so no watch is needed.
            Some(_) | None => self.next.push_back(Event::Watching(id)),
        }
    }

    pub(super) fn identity(&self, id: VertexId) -> Arc<str> {
        self.table.get(id).map_or_else(|| "?".into(), |entry| Arc::clone(&entry.identity))
    }

    /// Returns the identities of these engine vertices, including all group members.
    fn identities(&self, ids: &[VertexId]) -> Vec<Arc<str>> {
        let groups = self.table.groups();
        ids.iter().flat_map(|id| groups.members(id)).map(|id| self.identity(*id)).collect()
    }

    /// Returns the definition of a member of a group; the engine knows only that of the group.
    fn definition(&self, vertex: VertexId, member: VertexId, whole: u64) -> u64 {
        let own = self.table.get(member).filter(|_| self.table.groups().get(vertex).is_some());
        own.map_or(whole, |entry| entry.definition)
    }

    /// Returns true if a check cannot see the effect of a run, as with a command: its begin and end must be durable, as
    /// must refreshes owed or paid. A check finds everything else again.
    pub(super) fn is_deed(&self, id: VertexId) -> bool {
        self.table.get(id).is_some_and(|entry| entry.resource.traits().repeat != RunPolicy::State)
    }

    /// Returns true if the vertex receives sent values. These values are recorded before its begin: a lost value would
    /// be generated again (a password) while somebody uses the first.
    fn is_given_something(&self, id: VertexId) -> bool {
        let recipe = self.table.get(id).and_then(|entry| entry.recipe.as_ref());
        recipe.is_some_and(|recipe| senders(recipe).next().is_some())
    }

    fn is_deed_for_files(&self, id: VertexId) -> bool {
        let of_file = |source: &WatchSource| {
            matches!(source, WatchSource::Path { .. } | WatchSource::Tree(_))
        };
        let watches = |entry: &Vertex| entry.resource.footprint().watch.iter().any(of_file);
        self.is_deed(id) && self.table.get(id).is_some_and(watches)
    }

    /// Returns the verb for one member in the record of a begin.
    fn verb(&self, intent: &Intent, id: VertexId) -> Verb {
        let live = self.runs.0.get(&intent.run);
        if self.table.get(id).is_some_and(|entry| entry.removes) {
            Verb::Delete
        } else if self.is_deed(id) {
            Verb::Run
        } else if live.is_some_and(|live| live.creates(id)) {
            Verb::Create
        } else if live.is_some_and(|live| live.differences.is_empty() && live.parts.is_empty()) {
            Verb::Refresh
        } else {
            Verb::Update
        }
    }

    fn begin(&mut self, intent: &Intent) {
        self.apart.begins(intent.vertex);
        let in_fight = self.engine.is_contended(intent.vertex);
        let class = self.class_by_culprit(intent.vertex, intent.class);
        if let Some(live) = self.runs.0.get_mut(&intent.run) {
            live.begun = true;
            (live.class, live.in_fight) = (class, in_fight);
        }
        let unheld = self.without_lease();
        let (created, is_lost) = match (&self.keeper, &unheld) {
            (Some(_), None) if self.observing.is_none() => self.mark_created(intent),
            _ => (Vec::new(), false),
        };
        let urgent = is_lost
            || !intent.owes.is_empty()
            || self.is_deed(intent.vertex)
            // A restart must finish an interrupted removal: a directory may be half gone.
            || self.table.get(intent.vertex).is_some_and(|entry| entry.removes)
            || self.is_given_something(intent.vertex);
        let owes = self.identities(&intent.owes);
        let entry = |id: &VertexId| Entry::Begin {
            identity: self.identity(*id),
            definition: self.definition(intent.vertex, *id, intent.definition),
            stamp: intent.stamp.0,
            verb: self.verb(intent, *id),
            owes: owes.clone(),
        };
        let begins = self.table.groups().members(&intent.vertex).iter().map(entry);
        let entries = created.into_iter().chain(begins).collect();
        let trouble = match (&self.keeper, &unheld) {
            _ if self.observing.is_some() => {
                Some(Failure::new("no changes are made: the daemon is read-only"))
            }
            (None, _) => Some(Failure::new("no changes are made without a state directory")),
            (_, Some(why)) => Some(
                Failure::new(format!("no changes are started without the lease: {why}"))
                    .hint("the resource is retried when the lease is acquired again"),
            ),
            _ => self.held_by_plan(intent),
        };
        let Some(keeper) = self.keeper.as_mut().filter(|_| trouble.is_none()) else {
            for id in self.table.groups().members(&intent.vertex) {
                self.troubles.extend(trouble.clone().map(|trouble| (*id, trouble)));
            }
            self.next.push_back(Event::Refused(intent.run));
            return;
        };
        self.next.extend(keeper.begin(intent.run, entries, urgent));
    }

    fn end(&mut self, record: &Record) {
        if let Some(live) = self.runs.0.get_mut(&record.run) {
            live.closing = true;
        }
        let urgent =
            record.paid.is_some() || !record.owes.is_empty() || self.is_deed(record.vertex);
        if record.begun.is_some() {
            for id in self.table.groups().members(&record.vertex).to_vec() {
                self.note_end(record.run, id, record.outcome);
            }
        }
        let is_group = self.table.groups().get(record.vertex).is_some();
        let owes = self.identities(&record.owes);
        let entry = |id: &VertexId| Entry::End {
            identity: self.identity(*id),
            definition: self.definition(record.vertex, *id, record.definition),
            outcome: match record.outcome {
                Outcome::Unchanged | Outcome::Changed => Ended::Well,
                // Members that did not fail have ended well.
                Outcome::Failed { .. } if is_group && self.is_fine(*id) => Ended::Well,
                Outcome::Failed { .. } => Ended::Failed,
                Outcome::Interrupted => Ended::Interrupted,
            },
            begun: record.begun.map(|stamp| stamp.0),
            stamp: record.stamp.0,
            owes: owes.clone(),
            paid: record.paid.map(|stamp| stamp.0),
        };
        let members = self.table.groups().members(&record.vertex).to_vec();
        let mut entries: Vec<Entry> = members.iter().map(entry).collect();
        for (id, at) in members.into_iter().zip(0..) {
            let well = matches!(entries.get(at), Some(Entry::End { outcome: Ended::Well, .. }));
            if well && self.table.get(id).is_some_and(|entry| entry.removes) {
                // Last: a repeated removal does no harm, while an object that is forgotten too early is never removed.
                entries.push(Entry::Forget(self.identity(id)));
                self.mark_removed(id);
            }
        }
        match &mut self.keeper {
            Some(keeper) => keeper.end(record.run, entries, urgent),
            None => self.next.push_back(Event::Durable(record.run)),
        }
    }

    fn forget(&mut self, id: VertexId, recall: &RestoredState) {
        self.parking.forget_vertex(id);
        // The vertex has joined a group: the engine no longer knows it, and the resource stays.
        if self.table.groups().leader(id) != id {
            return;
        }
        let remembered = self.remembered(id, recall);
        self.member_states.remove(&id);
        self.apart.forget(id);
        self.table.apart.remove(&id);
        self.troubles.remove(&id);
        self.watches.forget(id);
        self.times.forget(id);
        self.parking.forget(id);
        self.settling.forget(id);
        self.rotated.forget(id);
        let buried = self.table.is_removed(id);
        let Some(identity) = self.table.forget(id) else { return };
        if !buried {
            self.keep_if_made_since(&identity);
        }
        if !buried && !self.ownership.forgets() {
            self.ownership.forget_vertex(id);
            self.departed.note(&identity, &remembered);
            return;
        }
        self.values.forget(&identity);
        if !buried {
            self.forget_owned(id, &identity);
        }
    }

    fn save_pause(&mut self, until: Option<Tick>) {
        let left = until.map(|at| at.0.saturating_sub(self.now().0) / 1_000_000_000);
        let record = left.map(|seconds| PauseRecord {
            reason: self.pause_reason.clone(),
            until_unix: self.machinery.wall().as_secs().saturating_add(seconds),
            lasts: Some(seconds),
        });
        match &mut self.keeper {
            Some(keeper) => keeper.pause(Entry::Pause(record)),
            None => self.next.push_back(Event::PauseSaved),
        }
    }

    /// Handles a vertex without a working watch: its sweeps become frequent, and the watch is tried again unless its
    /// graph forbids it.
    fn unwatched(&mut self, id: VertexId, why: &str) -> Event {
        if self.watches.fails(id, Instant::now()) {
            let identity = self.table.name(id);
            self.audience.hear(&Notification::Unwatched { identity, why });
        }
        let rewatch = self.table.get(id).is_none_or(|entry| entry.rewatch);
        if let Some(hub) = self.hub.as_ref().filter(|_| !rewatch) {
            hub.disarm(id);
        }
        Event::Unwatched(id)
    }

    /// E-6, F-12: gives up watches that do not reply in time, as on a hanging file system.
    pub(super) fn give_up_watches(&mut self, now: Instant) {
        let Some(progress) = self.hub.as_ref().map(WatchHub::progress) else { return };
        for id in self.watches.late(now, progress) {
            let event = self.unwatched(id, "the watched path does not respond");
            self.turn(event);
        }
    }

    /// Stops the driver after its event source has ended; active runs may end, and then another driver checks
    /// everything.
    fn breaks(&mut self, why: String) -> Event {
        tracing::error!(event = "broken", "{why}: the driver restarts");
        self.broken.get_or_insert(why);
        if self.engine.mode() == Mode::Stopping {
            // The driver is already stopping, with its own grace period.
            return Event::Wake;
        }
        Event::Stop { grace: LAST }
    }

    /// Processes signals of the watches.
    pub(super) fn watched(&mut self, mut signals: Vec<Signal>) {
        // Parents come first within a batch. A broken source comes last.
        signals.sort_by_key(|signal| {
            signal.vertex().map_or(usize::MAX, |id| self.engine.position(id))
        });
        for signal in signals {
            if let Signal::Changed(id) | Signal::Supplied(id) | Signal::Suspect(id) = signal {
                for id in self.table.groups().members(&id) {
                    self.times.note(*id, Moment::Heard);
                }
            }
            let event = match signal {
                Signal::Established(id) => {
                    // A run that started before the watch was established (or an earlier watch was answered) is checked
                    // again: the object may have changed in between.
                    let late = self.watches.stands(id);
                    self.suspect_secrets(id);
                    self.turn(Event::Watching(id));
                    if !late {
                        continue;
                    }
                    Event::Suspect(id)
                }
                Signal::Absent(id, why) => self.unwatched(id, &why),
                // An event that may be an echo of the daemon's own write causes a check only, if a check can see the
                // effect.
                Signal::Changed(id) if self.echo.covers(id) && !self.is_deed(id) => Event::Look(id),
                // A change of a received input is never an echo of the daemon's own write.
                Signal::Changed(id) if self.is_deed_for_files(id) => {
                    self.settling.put(id, Instant::now());
                    continue;
                }
                Signal::Supplied(id) => {
                    self.rotated.settling.put(id, Instant::now());
                    continue;
                }
                Signal::Broken(why) => self.breaks(why),
                Signal::Changed(id) => Event::Changed(id),
                Signal::Suspect(id) => {
                    self.suspect_secrets(id);
                    Event::Suspect(id)
                }
            };
            self.turn(event);
        }
    }
}
