//! The settings of a running daemon: a reload reads them again, applies those that a running daemon can change, and
//! names the others.

use crate::api::Level;
use crate::api::{EventKind, SettingsChange};
use crate::config::{Recorder, Text, WorldSettings};
use crate::driver::{DriverEvent, Settings, Tuning};
use crate::events::render::settings_change;
use crate::events::{NewEvent, Publisher};
use crate::history::{History, Limits};
use crate::workers::GraphSource;
use crate::workers::errors::{LogLevelError, SettingsRejected};
use crate::workers::reporting::metrics::MetricsSettings;
use crate::workers::reporting::recorders::RecorderWorkers;
use crate::workers::requests::handler::SetLog;
use crate::workers::requests::queue::Requests;
use std::sync::{Arc, Mutex, PoisonError};
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

/// The settings that apply, and those that wait for a restart.
pub(in crate::workers) struct LiveSettings {
    current: Mutex<HostSettings>,
    /// The settings that only a start applies, as they were at the start.
    fixed: Vec<(&'static str, String)>,
    /// The names of settings that a restart would change.
    pending: Mutex<Vec<String>>,
    set_log: SetLog,
}

impl LiveSettings {
    pub(in crate::workers) fn new(settings: HostSettings, set_log: SetLog) -> Self {
        let (fixed, pending) = (settings.fixed.clone(), Mutex::default());
        Self { current: Mutex::new(settings), fixed, pending, set_log }
    }

    /// Returns the settings that apply.
    pub(in crate::workers) fn current(&self) -> HostSettings {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names of the settings that a restart would change.
    pub(in crate::workers) fn pending(&self) -> Vec<String> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the level of the log.
    pub(in crate::workers) fn set_log(&self, level: &str) -> Result<(), LogLevelError> {
        (self.set_log)(level)
    }

    /// Takes new settings over. Returns the names of those that need a restart, and true if these names are news.
    fn replace(&self, new: HostSettings) -> (Vec<String>, bool) {
        let restart = new.fixed.iter().filter(|one| !self.fixed.contains(one));
        let restart: Vec<String> = restart.map(|(name, _)| (*name).to_owned()).collect();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new;
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *pending != restart;
        pending.clone_from(&restart);
        (restart, is_news)
    }
}

/// The parts that take new settings.
pub(in crate::workers) struct SettingsChanger {
    pub(in crate::workers) settings: Arc<LiveSettings>,
    pub(in crate::workers) requests: Requests,
    pub(in crate::workers) history: Arc<History>,
    pub(in crate::workers) publisher: Publisher,
    pub(in crate::workers) recorders: Arc<RecorderWorkers>,
}

/// Applies new settings, and returns the names of those that differ.
pub(in crate::workers) async fn apply_settings(
    to: &SettingsChanger,
    new: HostSettings,
) -> SettingsChange {
    let old = to.settings.current();
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
        to.requests.put(DriverEvent::Settings(tuning));
    }
    if differs("history", old.history != new.history) {
        to.history.set_limits(new.history);
    }
    let is_other_level = old.log_level != new.log_level;
    if differs("log_level", is_other_level)
        && let Err(why) = to.settings.set_log(new.log_level.as_deref().unwrap_or("info"))
    {
        tracing::warn!(event = "warning", "the log level was not changed: {why}");
    }
    if differs("recorders", old.recorders != new.recorders) {
        let recorders = Arc::clone(&to.recorders);
        let (old, new) = (old.recorders.clone(), new.recorders.clone());
        let exchange = tokio::spawn(async move { recorders.exchange(old, new).await });
        // The reload does not wait for a recorder whose destination does not answer.
        drop(timeout(PROMPT, exchange).await);
    }
    let (restart, is_other_restart) = to.settings.replace(new);
    change.restart = restart;
    let is_news = !change.applied.is_empty() || is_other_restart;
    if is_news {
        for line in settings_change(&change) {
            tracing::info!(event = "settings", "{line}");
        }
        to.publisher.publish(NewEvent::new(EventKind::Settings(change.clone()), Level::Info));
    }
    change
}
