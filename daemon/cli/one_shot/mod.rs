//! One pass over a graph: for `apply`, which changes, and for `plan` and `drift`, which only look.

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

/// How long runs may still take when ^C is pressed once.
const GRACE: Duration = Duration::from_secs(30);

/// Turns signals into stops: a command that runs once has nothing to reload and nothing to pause.
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

/// The audience of an apply that changes nothing: it is told of each step what an apply would find.
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

/// A driver set up for one pass.
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
