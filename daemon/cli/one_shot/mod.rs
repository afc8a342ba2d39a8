//! One-shot commands: `apply`, which changes the host, and `plan` and `drift`, which must change nothing.
//!
//! Reading order: this file (the driver for one pass), `plan_report`, `plan_text`, `plan_unknowns`, `plan_dependents`,
//! `plan`, `rounds`, `confirm` (the question before a destruction), `apply`.

pub(super) mod apply;
mod confirm;
pub(super) mod plan;
mod plan_dependents;
pub(super) mod plan_report;
pub(super) mod plan_text;
mod plan_unknowns;
mod rounds;

use super::args;
use crate::config::LoadedGraph;
use crate::driver::{
    Driver, DriverDeps, DriverEvent, DriverExit, Guard, Inbox, Notification, Observer, Settings,
    local_minute,
};
use crate::signals::{Signal, Signals};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steadfast_engine::Slots;

/// The time that active runs have after the first interrupt.
const GRACE: Duration = Duration::from_secs(30);

/// Passes stop signals to the driver of the present round; other signals have no meaning for a one-shot command.
#[derive(Clone, Default)]
pub(super) struct StopRelay(Arc<Mutex<Relayed>>);

#[derive(Default)]
struct Relayed {
    inbox: Option<Inbox<DriverEvent>>,
    stops: u32,
}

impl StopRelay {
    fn lock(&self) -> MutexGuard<'_, Relayed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a stop was requested.
    fn is_stopped(&self) -> bool {
        self.lock().stops > 0
    }

    /// Passes the stops to another driver from now on.
    fn follow(&self, inbox: Inbox<DriverEvent>) {
        self.lock().inbox = Some(inbox);
    }

    async fn pass_signals(self, mut signals: Signals, inbox: Inbox<DriverEvent>) {
        self.follow(inbox);
        while let Ok(signal) = signals.next().await {
            match signal {
                Signal::Stop => {
                    let mut relayed = self.lock();
                    relayed.stops += 1;
                    let grace = if relayed.stops > 1 { Duration::ZERO } else { GRACE };
                    if let Some(inbox) = &relayed.inbox {
                        inbox.put(DriverEvent::Stop(grace));
                    }
                }
                Signal::Reload | Signal::Pause | Signal::Resume => {}
            }
        }
    }
}

/// A wrapper of the observer of `apply --noop`: it also requests the changes that an apply would find at each step.
pub(super) struct Foreseeing(pub(super) Box<dyn Observer>);

impl Observer for Foreseeing {
    fn hear(&mut self, news: &Notification<'_>) {
        self.0.hear(news);
    }

    fn wants_progress(&self) -> bool {
        self.0.wants_progress()
    }

    fn wants_foresight(&self) -> bool {
        true
    }
}

/// Returns the settings of a driver for one pass.
fn settings(graph: &args::Graph, guard: Option<Arc<dyn Guard>>) -> Settings {
    Settings {
        one_shot: true,
        slots: Slots::default(),
        sweep: None,
        pause_limit: Duration::from_hours(8),
        whole: false,
        removes: !graph.is_selected(),
        repair_limit: None,
        clock: local_minute,
        guard,
    }
}

/// Runs a graph once.
pub(super) async fn drive(
    parts: DriverDeps,
    (loaded, graph): (LoadedGraph, &args::Graph),
    guard: Option<Arc<dyn Guard>>,
    signals: Option<(&StopRelay, Option<Signals>)>,
) -> DriverExit {
    let driver = Driver::new(settings(graph, guard), parts);
    let inbox = driver.inbox();
    inbox.put(DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true });
    match signals {
        Some((relay, Some(signals))) => {
            tokio::spawn(relay.clone().pass_signals(signals, inbox));
        }
        Some((relay, None)) => relay.follow(inbox),
        None => {}
    }
    driver.run().await
}
