//! The settings of a running daemon: a reload reads them again, applies those that a running daemon can change, and
//! names the others.

use crate::api::Level;
use crate::api::{EventKind, SettingsChange};
use crate::config::{Recorder, Text, WorldSettings};
use crate::driver::{DriverEvent, Settings, Tuning};
use crate::events::NewEvent;
use crate::events::render::settings_change;
use crate::history::Limits;
use crate::workers::GraphSource;
use crate::workers::Shared;
use crate::workers::errors::SettingsRejected;
use crate::workers::reporting::metrics::MetricsSettings;
use crate::workers::reporting::recorders;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The time in which recorders end whose destinations answer; other recorders end later.
const PROMPT: Duration = Duration::from_millis(500);

/// The settings file and the command line, joined.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The graph.
    pub graph: GraphSource,
    /// The settings of the driver.
    pub driver: Settings,
    /// The limits of the history.
    pub history: Limits,
    /// The recorders of events.
    pub recorders: Vec<Recorder>,
    /// The settings of metrics.
    pub metrics: MetricsSettings,
    /// The time that runs may take after a stop.
    pub grace: Duration,
    /// The level of the log; `None` if the environment determines it.
    pub log_level: Option<String>,
    /// The settings that only a start applies, each with its value.
    pub fixed: Vec<(&'static str, String)>,
    /// The world; `None` without the setting.
    pub world: Option<WorldSettings>,
    /// The text of the settings file, if there is one.
    pub text: Option<Text>,
}

/// A function that reads the settings again.
pub type ReadSettings = Arc<dyn Fn() -> Result<HostSettings, SettingsRejected> + Send + Sync>;

impl SettingsChange {
    /// Returns true if no setting differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.restart.is_empty()
    }
}

/// Applies new settings, and returns the names of those that differ.
pub(in crate::workers) async fn apply_settings(
    shared: &Arc<Shared>,
    new: HostSettings,
) -> SettingsChange {
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
        differs("max_repairs_per_minute", before.repair_limit != now.repair_limit),
    ];
    if tuned.contains(&true) {
        let tuning = Tuning {
            sweep: now.sweep,
            pause_limit: now.pause_limit,
            repair_limit: now.repair_limit,
        };
        shared.requests.put(DriverEvent::Settings(tuning));
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
        for line in settings_change(&change) {
            tracing::info!(event = "settings", "{line}");
        }
        shared.publisher.publish(NewEvent::new(EventKind::Settings(change.clone()), Level::Info));
    }
    change
}

/// Ends the recorders that are no longer declared, or declared differently, and starts the new ones. A new recorder
/// waits only for an old one of the same name. Exchanges of two reloads do not overlap.
async fn exchange_recorders(shared: &Arc<Shared>, (old, new): (Vec<Recorder>, Vec<Recorder>)) {
    let _one_at_a_time = shared.exchange.lock().await;
    let supervisor = &shared.shutdown.supervisor;
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
        if let Err(why) = shared.shutdown.supervisor.install(vec![worker]).await {
            tracing::warn!(event = "recorder", "{name}: could not be installed: {why}");
        }
    }
}
