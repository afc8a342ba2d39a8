//! The settings of a running daemon: a reload reads them again, applies what a running daemon can change, and names the rest.

use super::{GraphSource, Shared, recorders};
use crate::config::{Recorder, Text};
use crate::driver::{DriverEvent, LoadOutcome, Settings, Tuning};
use crate::events::{Level, NewEvent};
use crate::history::Limits;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The time in which old recorders end whose destinations answer; the others end later.
const PROMPT: Duration = Duration::from_millis(500);

/// The settings file and the command line, joined.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The graph.
    pub graph: GraphSource,
    /// The settings of the driver.
    pub driver: Settings,
    /// The bounds of the history.
    pub history: Limits,
    /// The recorders of events.
    pub recorders: Vec<Recorder>,
    /// The time that runs may take after a stop.
    pub grace: Duration,
    /// The amount that is logged; none where the environment says it.
    pub log_level: Option<String>,
    /// The settings that only a start applies, each with its value.
    pub fixed: Vec<(&'static str, String)>,
    /// The text of the settings file, if there is one.
    pub text: Option<Text>,
}

/// Reads the settings again. The error says why they are rejected, with the place.
pub type ReadSettings = Arc<dyn Fn() -> Result<HostSettings, String> + Send + Sync>;

/// The settings that a reload has found to differ, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// They hold from now on.
    pub applied: Vec<String>,
    /// They hold after a restart.
    pub restart: Vec<String>,
}

/// The answer to a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The graph.
    #[serde(flatten)]
    pub taken: LoadOutcome,
    /// The settings.
    #[serde(default)]
    pub settings: SettingsChange,
}

impl SettingsChange {
    /// Tells whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.restart.is_empty()
    }

    /// A line for what was applied, and one for what needs a restart.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.applied.is_empty() {
            lines.push(format!("settings applied: {}", self.applied.join(", ")));
        }
        if !self.restart.is_empty() {
            let names = self.restart.join(", ");
            lines.push(format!("settings that need a restart of steadfast: {names}"));
        }
        lines
    }
}

/// Applies settings that were read again, and returns the names of those that differ.
pub(super) async fn apply_settings(shared: &Arc<Shared>, new: HostSettings) -> SettingsChange {
    let old = shared.host();
    let mut change = SettingsChange::default();
    let mut differs = |name: &str, differs: bool| {
        if differs {
            change.applied.push(name.to_owned());
        }
        differs
    };
    differs("graph", old.graph.paths != new.graph.paths);
    differs("watch", old.graph.watch != new.graph.watch);
    let (before, now) = (&old.graph.options, &new.graph.options);
    differs("noop", before.noop != now.noop);
    differs("sema", before.semaphore != now.semaphore);
    differs("defaults", before.defaults != now.defaults);
    differs("grace", old.grace != new.grace);
    let (before, now) = (&old.driver, &new.driver);
    let tuned = [
        differs("sweep", before.sweep != now.sweep),
        differs("pause_limit", before.pause_limit != now.pause_limit),
        differs("max_repairs_per_minute", before.brake != now.brake),
    ];
    if tuned.contains(&true) {
        let tuning = Tuning { sweep: now.sweep, pause_limit: now.pause_limit, brake: now.brake };
        shared.requests.put(DriverEvent::Tune(tuning));
    }
    if differs("history", old.history != new.history) {
        shared.history.set_limits(new.history);
    }
    let is_other_level = old.log_level != new.log_level;
    if differs("log_level", is_other_level)
        && let Err(why) = (shared.set_log)(new.log_level.as_deref().unwrap_or("info"))
    {
        tracing::warn!(event = "warning", "the log level was not changed: {why}");
    }
    if differs("recorders", old.recorders != new.recorders) {
        let own = Arc::clone(shared);
        let (old, new) = (old.recorders.clone(), new.recorders.clone());
        let exchange = tokio::spawn(async move { exchange_recorders(&own, (old, new)).await });
        // The reload does not wait for a recorder whose destination does not answer.
        drop(timeout(PROMPT, exchange).await);
    }
    let at_start = &shared.fixed;
    let restart = new.fixed.iter().filter(|one| !at_start.contains(one));
    change.restart = restart.map(|(name, _)| (*name).to_owned()).collect();
    *shared.host.lock().unwrap_or_else(PoisonError::into_inner) = new;
    let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
    let is_news = !change.applied.is_empty() || *pending != change.restart;
    pending.clone_from(&change.restart);
    drop(pending);
    if is_news {
        for line in change.lines() {
            tracing::info!(event = "settings", "{line}");
            shared.teller.tell(NewEvent::new("settings", line, Level::Info));
        }
    }
    change
}

/// Ends the recorders that are no longer declared, or declared otherwise, and starts the new ones. The others go on. A new recorder
/// waits for an old one of its name only; the exchange of one reload ends before that of the next begins.
async fn exchange_recorders(shared: &Arc<Shared>, (old, new): (Vec<Recorder>, Vec<Recorder>)) {
    let _one_at_a_time = shared.exchange.lock().await;
    let supervisor = &shared.ending.supervisor;
    let gone = old.iter().filter(|one| !new.contains(one)).map(recorders::worker_name);
    let gone: Vec<String> = gone.collect();
    let added = new.into_iter().filter(|one| !old.contains(one));
    let (later, now): (Vec<_>, Vec<_>) =
        added.partition(|one| gone.contains(&recorders::worker_name(one)));
    install_recorders(shared, now).await;
    let removals = gone.iter().map(|name| async move {
        if let Err(why) = supervisor.remove(name).await {
            tracing::warn!(event = "recorder", "{name}: could not be removed: {why}");
        }
    });
    futures_util::future::join_all(removals).await;
    install_recorders(shared, later).await;
}

async fn install_recorders(shared: &Arc<Shared>, declared: Vec<Recorder>) {
    for added in declared {
        let name = added.name();
        let worker = recorders::recorder(shared, added);
        if let Err(why) = shared.ending.supervisor.install(vec![worker]).await {
            tracing::warn!(event = "recorder", "{name}: could not be installed: {why}");
        }
    }
}
