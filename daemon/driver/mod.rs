//! The driver: an event loop around the engine, with the runs, the watches, the timers and the store.
//!
//! Purpose: each turn takes all events from the [`Inbox`], passes them to the engine one by one, and performs the
//! actions that the engine returns, in their order. Threads, children, watches, the journal and signals put their
//! events into the inbox.
//!
//! Invariants: only this folder calls the engine; the loop never blocks; no change starts before the journal has
//! received its begin.
//!
//! Reading order: `api.rs` (events in, results out), `inbox.rs`, this file (the loop), `engine_actions.rs` (engine
//! actions to effects), `runs/`, `groups/`, `journal/`, `watches/`, `graph/` and `removal/` (a new graph), `values/`
//! (send/recv), `commands/` and `queries/` (the operator), `notify/` (notifications), `status.rs` (wire types),
//! `plan/`, `maintenance_windows.rs`, `lease_validity.rs`, `temp_cleanup.rs`, `undo_values.rs`, `shutdown.rs`, and
//! `runtime.rs` (the threads and clocks that tests replace).

mod api;
pub mod commands;
mod engine_actions;
mod graph;
mod groups;
mod journal;
mod lease_validity;
mod maintenance_windows;
mod notify;
mod plan;
mod queries;
mod removal;
mod runs;
mod runtime;
mod shutdown;
mod temp_cleanup;
pub mod values;
mod watches;

mod inbox;
pub mod status;
mod undo_values;

pub use self::notify::notification::{ConflictCause, Notification, Observer, Progress, RunRef};
pub use crate::watch::Signal;
pub use api::{
    Caveat, DriverDeps, DriverEvent, DriverExit, DriverHealth, FinalStatus, Guard, PingReply,
    Settings, Tuning, UNKEPT,
};
pub use commands::undo::{PUT_BACK, UndoError, Undone, deed, to_undo, undo};
pub use graph::load_report::{GraphDiff, LoadOutcome, NameSample};
use inbox::Batch;
pub use inbox::Inbox;
pub use lease_validity::{Clock, LeaseValidity};
pub use maintenance_windows::{LocalMinute, local_minute};
pub use queries::Query;
pub use removal::plan::removals;
pub use runtime::{EventSink, Executor, Job, Runtime};
use tokio::time::Instant;

use crate::config::LoadedGraph;
use crate::history::History;
use crate::store::StoredState;
use crate::watch::WatchHub;
use commands::resource_pause::ResourcePauses;
use commands::undo::ActiveUndos;
use graph::registry::GraphRegistry;
use groups::run::MemberStates;
use groups::split::SplitMembers;
use journal::client::JournalClient;
use maintenance_windows::MaintenanceWindows;
use plan::overlaps::PlanOverlaps;
use queries::statistics::ResourceStatistics;
use removal::ownership::OwnershipRecords;
use removal::undeclared::UndeclaredRecords;
use runs::ActiveRuns;
use runs::echo_filter::EchoFilter;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_engine::{Engine, Event, Stamp, Swap, Tick, VertexId};
use steadfast_resources::{Difference, Failure, Host, MintKey, WatchSource};
use values::ValueStore;
use values::secret_rotation::SecretRotation;
use values::source_changes::RecentApplies;
use watches::debounce::Debounce;
use watches::state::WatchStates;
use watches::sweep::Sweep;

/// The interval between two progress notifications.
const PROGRESS: Duration = Duration::from_millis(100);

/// The event loop around the engine. [`Driver::run`] consumes the driver.
pub struct Driver {
    engine: Engine,
    settings: Settings,
    began: Instant,
    table: GraphRegistry,
    host: Host,
    key: Arc<MintKey>,
    machinery: Box<dyn Runtime>,
    hands: Box<dyn Executor>,
    /// The deadline for the cleanup of temporary files that killed runs left; `None` once the cleanup is done. The
    /// driver does not end before either.
    swept_by: Option<Instant>,
    undoing: ActiveUndos,
    values: ValueStore,
    ownership: OwnershipRecords,
    hub: Option<WatchHub>,
    keeper: Option<JournalClient>,
    history: Option<Arc<History>>,
    inbox: Inbox<DriverEvent>,
    runs: ActiveRuns,
    echo: EchoFilter,
    sweep: Sweep,
    watches: WatchStates,
    /// File events that are collected for a moment, so that one write causes one run of a command.
    settling: Debounce,
    /// Recent applies that may have changed a source that other resources copy.
    applies: RecentApplies,
    rotated: SecretRotation,
    windows: MaintenanceWindows,
    /// Vertices with their watch sources; the watches are requested after the current actions.
    arming: Vec<(VertexId, Vec<WatchSource>)>,
    audience: Box<dyn Observer>,
    /// The stored state, read at the start; the engine receives it with the first graph, and the field is then `None`.
    recalled: Option<StoredState>,
    /// Events that the current actions caused; the engine gets them before any other input.
    next: VecDeque<Event>,
    troubles: HashMap<VertexId, Failure>,
    /// The status of each group member at its last check.
    member_states: HashMap<VertexId, MemberStates>,
    /// Resources that are temporarily split from their groups.
    apart: SplitMembers,
    /// Vertices that this driver has changed (one-shot only).
    changed: BTreeSet<VertexId>,
    /// True after the final check of all changed resources has begun; its differences are only reported (one-shot
    /// only).
    looks_back: bool,
    /// Steps of a plan that affect each other.
    foresight: PlanOverlaps,
    /// Differences that the final check found on changed resources, by identity.
    moved: Vec<(String, Vec<Difference>)>,
    /// The result of the last load, or the reason for its rejection.
    load_outcome: Result<LoadOutcome, String>,
    /// The time of the first rejection since the last accepted graph; `None` if the last graph was accepted.
    refused_since: Option<Instant>,
    /// The time at which the last graph was accepted.
    taken_at: Instant,
    /// Identities whose runs delayed the swap to the last graph, at the time of the load.
    swap_waits: Vec<String>,
    /// The difference between the new graph and its predecessor; reported and cleared when the new graph runs.
    graph_change: Option<GraphDiff>,
    /// True if the first drift since convergence was found on a contended resource.
    skirmish: bool,
    pause_reason: String,
    /// The time at which the pause of the daemon ends without a resume.
    pause_until: Tick,
    /// Resources that are paused on their own.
    parking: ResourcePauses,
    /// Resources that are undeclared and still have records.
    departed: UndeclaredRecords,
    times: ResourceStatistics,
    progress_at: Instant,
    /// The right to begin changes, or the reason for its absence.
    lease: Result<LeaseValidity, String>,
    /// The time since which the state cannot be written, and the reason; `None` while the state can be written.
    unkept: Option<(Instant, String)>,
    /// True if a one-shot command gave up because the state could not be written.
    given_up: bool,
    /// The reason for the read-only mode: no run gets a permit, whatever the graph declares.
    observing: Option<Arc<str>>,
    /// The reason for which the event source has ended. The driver then stops, and another driver replaces it.
    broken: Option<String>,
    /// Events that arrived after the event source had ended; the next driver gets them.
    left: Vec<DriverEvent>,
    /// The reason for the rejection of the last graph (one-shot only).
    refused: Option<String>,
    /// A token held by this driver and by each run that it has started.
    presence: Arc<()>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("counts", &self.engine.counts()).finish_non_exhaustive()
    }
}

impl Driver {
    /// Creates a driver with the empty graph. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(settings: Settings, parts: DriverDeps) -> Self {
        Self::on(Box::new(runtime::Threads), settings, parts)
    }

    /// Creates a driver with the empty graph on the given runtime; tests pass a simulated one.
    #[must_use]
    pub fn on(machinery: Box<dyn Runtime>, settings: Settings, parts: DriverDeps) -> Self {
        let inbox = Inbox::default();
        let hub = (!settings.one_shot).then(|| {
            let inbox = inbox.clone();
            let ear = move |signals| inbox.put(DriverEvent::Watched(signals));
            machinery.hub(&parts.host, Box::new(ear))
        });
        let keeper = parts.journal.map(|journal| {
            let inbox = inbox.clone();
            JournalClient::new(journal, move |tickets, refused| {
                inbox.put(DriverEvent::Kept(tickets, refused));
            })
        });
        let most = settings.slots.threads.saturating_add(settings.slots.replaceable) as usize;
        Self {
            engine: Engine::new(settings.slots, settings.one_shot)
                .with_brake(settings.brake)
                .counting_from(Stamp(parts.recalled.stamp)),
            sweep: Sweep::new(settings.sweep),
            watches: WatchStates::new(),
            settling: Debounce::default(),
            applies: RecentApplies::default(),
            rotated: SecretRotation::default(),
            windows: MaintenanceWindows::new(settings.clock),
            arming: Vec::new(),
            settings,
            began: Instant::now(),
            table: GraphRegistry::default(),
            key: parts.key,
            hands: machinery.hands(most, inbox.clone()),
            undoing: ActiveUndos::default(),
            swept_by: None,
            machinery,
            hub,
            keeper,
            history: parts.history,
            inbox,
            runs: ActiveRuns::default(),
            echo: EchoFilter::default(),
            audience: parts.audience,
            values: ValueStore::new(&parts.recalled, &parts.host),
            ownership: OwnershipRecords::new(&parts.recalled),
            host: parts.host,
            recalled: Some(parts.recalled),
            next: VecDeque::new(),
            troubles: HashMap::new(),
            member_states: HashMap::new(),
            apart: SplitMembers::default(),
            changed: BTreeSet::new(),
            looks_back: false,
            foresight: PlanOverlaps::default(),
            moved: Vec::new(),
            graph_change: None,
            load_outcome: Err("no graph has been loaded yet".to_owned()),
            refused_since: None,
            taken_at: Instant::now(),
            swap_waits: Vec::new(),
            skirmish: false,
            pause_reason: String::new(),
            pause_until: Tick(0),
            parking: ResourcePauses::default(),
            departed: UndeclaredRecords::default(),
            times: ResourceStatistics::new(Instant::now()),
            progress_at: Instant::now() + PROGRESS,
            lease: Ok(LeaseValidity::endless()),
            unkept: None,
            given_up: false,
            observing: parts.observing,
            broken: None,
            left: Vec::new(),
            refused: None,
            presence: Arc::default(),
        }
    }

    /// Returns a handle to the inbox of this driver.
    #[must_use]
    pub fn inbox(&self) -> Inbox<DriverEvent> {
        self.inbox.clone()
    }

    /// Returns a weak token; an upgrade succeeds as long as this driver or any run that it has started is alive.
    #[must_use]
    pub fn presence(&self) -> Weak<()> {
        Arc::downgrade(&self.presence)
    }

    /// Runs the loop until the driver is stopped; in one-shot mode, until all vertices are at rest.
    pub async fn run(mut self) -> DriverExit {
        let mut batch = Batch::of(&self.inbox);
        self.restore_pause();
        self.encrypt_what_was_in_clear();
        if let Some(why) = &self.observing {
            self.audience.hear(&Notification::Observing(why));
        }
        loop {
            if !batch.fill() {
                if self.is_over() && !self.find_overlaps() && !self.look_once_more() {
                    break;
                }
                if !self.is_over() {
                    self.wait().await;
                }
            }
            self.look_at_clock();
            for input in &mut batch {
                self.take(input);
            }
            self.keep_time();
        }
        self.finish()
    }

    /// Waits for input, or for the next time at which a timer is due.
    async fn wait(&self) {
        let due = [
            self.engine.next_wakeup().map(|at| self.began + Duration::from_nanos(at.0)),
            self.keeper.as_ref().and_then(JournalClient::retry_at),
            self.sweep.next(),
            self.watches.next_due(),
            self.settling.due(),
            self.rotated.due(),
            self.windows.due(),
            self.parking.due(),
            self.apart.due(),
            self.is_swept_by(),
            self.hands.is_waiting().then(|| Instant::now() + Duration::from_millis(5)),
        ];
        let progress = self.audience.wants_progress().then(|| Instant::now() + PROGRESS);
        let Some(at) = due.into_iter().flatten().chain(progress).min() else {
            self.inbox.filled().await;
            return;
        };
        // `biased` fixes the order of the branches: a simulated session must replay identically.
        tokio::select! {
            biased;
            () = self.inbox.filled() => {}
            () = tokio::time::sleep_until(at) => {}
        }
    }

    /// Performs all work that is due by time, without any input.
    fn keep_time(&mut self) {
        let now = Instant::now();
        if let Some(keeper) = &mut self.keeper {
            keeper.retry(now);
        }
        self.give_up_unkept(now);
        self.give_up_journal();
        self.hands.nudge();
        self.give_up_watches(now);
        self.sweep_some(now);
        self.end_parking(now);
        self.tell_settled(now);
        self.tend_rotated(now);
        self.tend_groups(now);
        if self.audience.wants_progress() && self.progress_at <= now {
            self.progress_at = now + PROGRESS;
            self.tell_progress();
        }
        if self.engine.next_wakeup().is_some_and(|at| at <= self.now()) {
            self.turn(Event::Wake);
        }
    }

    fn now(&self) -> Tick {
        Tick(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn take(&mut self, input: DriverEvent) {
        match input {
            DriverEvent::Graph { .. }
            | DriverEvent::Pause { .. }
            | DriverEvent::Resume
            | DriverEvent::Ask(Query::Taken(_))
                if self.broken.is_some() =>
            {
                self.left.push(input);
            }
            DriverEvent::Checked(run, verdict) => self.checked(run, verdict),
            DriverEvent::Ended(run, outcome) => self.ended(run, outcome),
            DriverEvent::CheckedParts(run, verdicts) => self.checked_parts(run, verdicts),
            DriverEvent::EndedParts(run, outcomes) => self.ended_parts(run, outcomes),
            DriverEvent::Kept(tickets, refused) => {
                self.handle_journal_replies(&tickets, refused.as_deref());
            }
            DriverEvent::Swept => self.swept_by = None,
            DriverEvent::Rotated(id, identity, made) => self.rotated(id, &identity, made),
            DriverEvent::Foreseen(met) => self.apply_overlaps(met),
            DriverEvent::Undone(resource, deed) => self.undone(&resource, deed.as_slice()),
            DriverEvent::Watched(signals) => self.watched(signals),
            DriverEvent::Graph { graph: Ok(graph), operator } => {
                self.load(*graph, operator);
            }
            DriverEvent::Graph { graph: Err(why), .. } => self.refuse(why),
            DriverEvent::Again(graph) => self.load_again(*graph),
            DriverEvent::Pause { reason, limit, drain } => {
                self.pause_reason = reason;
                let until = self.now().after(limit.unwrap_or(self.settings.pause_limit));
                self.pause_until = until;
                let pause = steadfast_engine::Pause { drain, until, recorded: false };
                self.turn(Event::Pause(pause));
            }
            DriverEvent::Resume => self.turn(Event::Resume),
            DriverEvent::Stop(grace) => self.turn(Event::Stop { grace }),
            DriverEvent::Ask(question) => self.answer(question),
            DriverEvent::Lease(lease) => self.note_lease(lease),
            DriverEvent::Tune(tuning) => self.tune(tuning),
            DriverEvent::Ping(answer) => {
                self.turn(Event::Wake);
                (answer.0)(DriverHealth {
                    counts: self.counts(),
                    mode: self.engine.mode(),
                    converged: self.engine.is_converged(),
                    caveat: self.caveat(),
                    unwatched: self.watches.without().len(),
                });
            }
        }
    }

    /// Passes one event to the engine, performs its actions, and handles the events that follow.
    fn turn(&mut self, event: Event) {
        self.next.push_back(event);
        while let Some(event) = self.next.pop_front() {
            if let Event::Refused(run) = event {
                self.note_refusal(run);
            }
            let actions = self.engine.handle(self.now(), event);
            self.perform(actions);
        }
    }

    fn load(&mut self, loaded: LoadedGraph, operator: bool) {
        // In read-only mode the vertices are checked, and none of them gets a permit.
        let mut loaded = if self.observing.is_some() { loaded.read_only() } else { loaded };
        let table = &self.table;
        self.parking.only(|id| table.get(id).is_some());
        let renamed = self.renamed(&loaded);
        let found = self.table.find(&loaded.vertices, &renamed);
        let is_apply = self.settings.one_shot && self.keeper.is_some();
        let prepared = self.plan_removals(&mut loaded, &found, operator).and_then(|leave| {
            let loaded = if is_apply { self.foresight.rehearse(loaded) } else { loaded };
            let graph = self.table.prepare(loaded, found).map_err(|error| error.to_string())?;
            Ok((graph, leave))
        });
        let graph = match prepared {
            Ok((graph, leave)) => {
                self.ownership.take(leave, renamed);
                graph
            }
            Err(why) => {
                self.discard_replaced();
                return self.refuse(why);
            }
        };
        let mut recall = self.recall_renamed();
        let silent = self.silent_senders();
        if let Some(mut recalled) = self.recalled.take() {
            self.rename_recalled(&mut recalled);
            self.forget_strangers(&recalled);
            self.recall_parked(&recalled);
            self.forget_removals(&recalled);
            self.sweep_strays();
            recall = self.table.recall(&recalled.resources);
            self.take_skipped_as_done(&recall, recalled.stamp);
            for id in silent.into_iter().chain(self.outdated_receivers()) {
                // A value was never sent, or another value was received: the run is repeated.
                recall.entry(id).and_modify(|recall| recall.done = None);
            }
        } else {
            self.recall_departed(&mut recall, &silent);
            self.ask_to_send(silent);
        }
        self.look_at_clock();
        self.tell_parked(true);
        (self.refused_since, self.taken_at) = (None, Instant::now());
        self.note_taken(&[]);
        self.turn(Event::Swap(Swap { graph: Arc::new(graph), recall, operator }));
        self.discard_replaced();
    }
}
