//! One-shot commands: `apply`, which changes the host, and `plan` and `drift`, which must change nothing.
//!
//! Reading order: this file (the driver for one pass), `plan_report`, `plan`, `apply`.

pub(super) mod apply;
pub(super) mod plan;
pub(super) mod plan_report;

use super::args;
use crate::config::LoadedGraph;
use crate::driver::{
    Driver, DriverDeps, DriverEvent, DriverExit, Guard, Inbox, Notification, Observer, Settings,
    local_minute,
};
use crate::signals::{Signal, Signals};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::Slots;

/// The time that active runs have after the first interrupt.
const GRACE: Duration = Duration::from_secs(30);

/// Turns stop signals into stops of the driver; other signals have no meaning for a one-shot command.
pub(super) async fn obey(mut signals: Signals, inbox: Inbox<DriverEvent>) {
    let mut stops = 0;
    while let Ok(signal) = signals.next().await {
        match signal {
            Signal::Stop => {
                stops += 1;
                inbox.put(DriverEvent::Stop(if stops > 1 { Duration::ZERO } else { GRACE }));
            }
            Signal::Reload | Signal::Pause | Signal::Resume => {}
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
        removes: graph.only.is_empty() && graph.skip.is_empty(),
        brake: None,
        clock: local_minute,
        guard,
    }
}

/// Runs a graph once.
pub(super) async fn drive(
    parts: DriverDeps,
    (loaded, graph): (LoadedGraph, &args::Graph),
    guard: Option<Arc<dyn Guard>>,
    signals: Option<Signals>,
) -> DriverExit {
    let driver = Driver::new(settings(graph, guard), parts);
    let inbox = driver.inbox();
    inbox.put(DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true });
    if let Some(signals) = signals {
        tokio::spawn(obey(signals, inbox));
    }
    driver.run().await
}
