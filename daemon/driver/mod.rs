//! The driver: an event loop around the engine, with the runs, the watches, the timers and the store.
//!
//! Purpose: each turn takes all events from the [`Inbox`], passes them to the engine one by one, and performs the
//! actions that the engine returns, in their order. Threads, children, watches, the journal and signals put their
//! events into the inbox.
//!
//! [`Driver`] consists of components, one for each subject: `RunManager`, `WatchManager`, `SessionJournal` and others.
//! A component owns its data. Its methods take an event, and return engine events, entries of the journal or an answer.
//!
//! Invariants: only this folder calls the engine, at one place (`event_loop.rs`); the loop never blocks; no change
//! starts before the journal has received its begin.
//!
//! Reading order: `api.rs` (events in, results out), this file (the components), `event_loop.rs` (the loop), `mode.rs`
//! (start, normal, read-only and broken operation), `runtime.rs` and `inbox.rs` (threads, clocks and inputs, replaced
//! in tests), `permission.rs` (with `begin_needs_lease.rs`, `maintenance_windows.rs`, `world_permits.rs`,
//! `temp_cleanup.rs`), `graph/` (a new graph), `runs/`, `groups/`, `values/` (send/recv), `removal/` (ownership),
//! `watches/`, `journal/`, `commands/` and `queries/` (the operator; `api` defines the answers), `notify/`
//! (notifications), `one_shot.rs` and `plan/` (one-shot commands), `undo_values.rs`, `shutdown.rs`.

mod api;
mod begin_needs_lease;
pub mod commands;
mod event_loop;
mod graph;
mod groups;
mod journal;
mod maintenance_windows;
mod mode;
mod notify;
mod one_shot;
mod permission;
mod plan;
mod queries;
mod removal;
mod runs;
mod runtime;
mod shutdown;
mod temp_cleanup;
pub mod values;
mod watches;
mod world_permits;

mod inbox;
mod undo_values;

pub use self::notify::notification::{ConflictCause, Notification, Observer, Progress, RunRef};
pub use self::runs::failures::AttemptedChange;
pub use crate::watch::Signal;
pub use api::{
    Caveat, DriverDeps, DriverEvent, DriverExit, DriverHealth, END_RECORD_PATIENCE, FinalStatus,
    Guard, PingReply, Settings, Tuning,
};
pub use begin_needs_lease::{Clock, LeaseLoss, LeaseValidity};
pub use commands::undo::{PUT_BACK, UndoError, Undone, to_undo, undo, undo_audit_entry};
pub use graph::load_error::LoadError;
pub use inbox::Inbox;
pub use maintenance_windows::{LocalMinute, local_minute};
pub use queries::Query;
pub use queries::list::ListRequest;
pub use removal::plan::removals;
pub use runtime::{EventSink, Executor, Job, Runtime};

use commands::OperatorCommands;
use graph::registry::GraphRegistry;
use journal::session::SessionJournal;
use mode::DriverMode;
use notify::notifier::Notifier;
use one_shot::OneShotWork;
use permission::ChangePermission;
use removal::ownership::OwnershipRecords;
use runs::RunManager;
use runtime::SessionRuntime;
use std::collections::VecDeque;
use std::sync::Weak;
use steadfast_engine::{Engine, Event, Stamp};
use values::ValueStore;
use watches::manager::WatchManager;

/// The event loop around the engine. [`Driver::run`] consumes the driver.
pub struct Driver {
    /// The decisions: what runs next, and when.
    engine: Engine,
    /// Events that the current actions caused; the engine gets them before any other input.
    next_events: VecDeque<Event>,
    settings: Settings,
    mode: DriverMode,
    runtime: SessionRuntime,
    permission: ChangePermission,
    graph: GraphRegistry,
    runs: RunManager,
    values: ValueStore,
    ownership: OwnershipRecords,
    watches: WatchManager,
    journal: SessionJournal,
    commands: OperatorCommands,
    notifier: Notifier,
    one_shot: OneShotWork,
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
        let most = settings.slots.threads.saturating_add(settings.slots.replaceable) as usize;
        let runtime = SessionRuntime::new(machinery, most, parts.host);
        let hub = (!settings.one_shot).then(|| runtime.hub());
        Self {
            engine: Engine::new(settings.slots, settings.one_shot)
                .with_repair_limit(settings.repair_limit)
                .counting_from(Stamp(parts.recalled.stamp)),
            next_events: VecDeque::new(),
            permission: ChangePermission::new(parts.key, parts.history, settings.clock),
            graph: GraphRegistry::new(parts.kinds),
            runs: RunManager::new(),
            values: ValueStore::new(&parts.recalled, &runtime.host),
            ownership: OwnershipRecords::new(&parts.recalled),
            watches: WatchManager::new(hub, settings.sweep),
            journal: SessionJournal::new(parts.journal, runtime.inbox()),
            commands: OperatorCommands::new(),
            notifier: Notifier::new(parts.observer),
            one_shot: OneShotWork::default(),
            mode: DriverMode::new(parts.recalled, parts.read_only),
            settings,
            runtime,
        }
    }

    /// Returns a handle to the inbox of this driver.
    #[must_use]
    pub fn inbox(&self) -> Inbox<DriverEvent> {
        self.runtime.inbox()
    }

    /// Returns a weak token; an upgrade succeeds as long as this driver or any run that it has started is alive.
    #[must_use]
    pub fn presence(&self) -> Weak<()> {
        self.runtime.weak_presence()
    }
}
