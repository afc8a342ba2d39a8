//! The loop: one event in, actions out; runs, watches, timers and the store around it.
//!
//! Only the driver calls the engine. What happens elsewhere (threads, children, watches, the journal, signals) is put into its
//! [`Inbox`]; each turn takes all there is, hands it to the engine one by one, and performs what the engine answers, in order.

mod actions;
mod api;
pub mod commands;
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

pub use self::notify::notification::{ConflictCause, Notification, Observer, Progress, RunRef};
pub use crate::watch::Signal;
pub use api::{
    Caveat, DriverDeps, DriverEvent, DriverExit, DriverHealth, FinalStatus, Guard, PingReply,
    Settings, Tuning, UNKEPT,
};
pub use commands::undo::{PUT_BACK, UndoError, Undone, deed, to_undo, undo};
pub use graph::diff::{GraphDiff, LoadOutcome, NameSample};
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

/// How often progress is told to those who want it.
const PROGRESS: Duration = Duration::from_millis(100);

/// The driver.
pub struct Driver {
    engine: Engine,
    settings: Settings,
    began: Instant,
    table: GraphRegistry,
    host: Host,
    key: Arc<MintKey>,
    machinery: Box<dyn Runtime>,
    hands: Box<dyn Executor>,
    /// What was left by whom was cut off is seen to; an end waits for it until then.
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
    /// Events of files that commands run for.
    settling: Debounce,
    /// The applies that may have changed what others copy.
    applies: RecentApplies,
    rotated: SecretRotation,
    windows: MaintenanceWindows,
    /// Watches that are asked for when the actions at hand have been performed.
    arming: Vec<(VertexId, Vec<WatchSource>)>,
    audience: Box<dyn Observer>,
    /// What the store told back at the start; given to the engine with the first graph.
    recalled: Option<StoredState>,
    /// Events that follow from performing actions, before anything else is taken.
    next: VecDeque<Event>,
    troubles: HashMap<VertexId, Failure>,
    /// How members of groups stood when they were last looked at.
    member_states: HashMap<VertexId, MemberStates>,
    /// Members of groups that are none for now.
    apart: SplitMembers,
    /// What was changed (one-shot only).
    changed: BTreeSet<VertexId>,
    /// All is done, and what was changed is looked at once more: what differs is only told (one-shot only).
    looks_back: bool,
    /// What a plan is to say of changes that meet.
    foresight: PlanOverlaps,
    /// What that found.
    moved: Vec<(String, Vec<Difference>)>,
    /// What became of the last graph: taken, or why not.
    load_outcome: Result<LoadOutcome, String>,
    /// Since when no graph was taken, where the last one was refused.
    refused_since: Option<Instant>,
    /// When one was.
    taken_at: Instant,
    /// What that waited for to begin with.
    swap_waits: Vec<String>,
    /// What the last load means for the graph before it, until it is told.
    graph_change: Option<GraphDiff>,
    /// What is not as declared was first seen at something that is fought over.
    skirmish: bool,
    pause_reason: String,
    /// When the pause ends by itself.
    pause_until: Tick,
    /// What is paused by itself.
    parking: ResourcePauses,
    /// Who has left and is not forgotten.
    departed: UndeclaredRecords,
    times: ResourceStatistics,
    progress_at: Instant,
    /// Whether anything may be begun, or why not.
    lease: Result<LeaseValidity, String>,
    /// Since when state cannot be kept, and why.
    unkept: Option<(Instant, String)>,
    /// It was given up for that.
    given_up: bool,
    /// Why nothing is changed, whatever the graph says.
    observing: Option<Arc<str>>,
    /// What brings the events has ended: it stops, and another driver takes its place. Why.
    broken: Option<String>,
    /// What was asked since then, for that one.
    left: Vec<DriverEvent>,
    /// Why the last graph was not taken.
    refused: Option<String>,
    /// Held by this driver and by each run that it has started.
    presence: Arc<()>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("counts", &self.engine.counts()).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver with the empty graph. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(settings: Settings, parts: DriverDeps) -> Self {
        Self::on(Box::new(runtime::Threads), settings, parts)
    }

    /// The same on another machinery.
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
                inbox.put(DriverEvent::Kept(tickets, refused))
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

    /// Where to put things for it.
    #[must_use]
    pub fn inbox(&self) -> Inbox<DriverEvent> {
        self.inbox.clone()
    }

    /// Alive as long as this driver or anything that it has started is.
    #[must_use]
    pub fn presence(&self) -> Weak<()> {
        Arc::downgrade(&self.presence)
    }

    /// Runs until it is stopped, or in one-shot until all is at rest.
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

    /// Waits for input or for the next moment at which something is due.
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
        // In this order: a test that replays a run must find the same one.
        tokio::select! {
            biased;
            () = self.inbox.filled() => {}
            () = tokio::time::sleep_until(at) => {}
        }
    }

    /// What is due without any input.
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
                self.handle_journal_replies(&tickets, refused.as_deref())
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

    /// One event for the engine, and all that follows.
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
        // Its runs check, and none of them is ever given a permit.
        let mut loaded = if self.observing.is_some() { loaded.observed() } else { loaded };
        let table = &self.table;
        self.parking.only(|id| table.get(id).is_some());
        let renamed = self.renamed(&loaded);
        let found = self.table.find(&loaded.vertices, &renamed);
        let prepared = self.plan_removals(&mut loaded, &found, operator).and_then(|leave| {
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
                // What is to be received was never sent, or something else was received: it is done again.
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
