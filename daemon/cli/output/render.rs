//! Notifications as log lines: one line for each change of state. `events::render` has the words.

pub(in crate::cli) use super::log_output::{Process, filter, set_up};
use super::plain;
use crate::api::Level;
use crate::cli::args::Log;
use crate::driver::{Notification, Observer, RunRef};
use crate::events::NewEvent;
use crate::events::render::{headline, join_names, span_words};
use std::collections::HashMap;
use std::time::Duration;
use steadfast_resources::printable_json;

/// An observer that writes notifications to the log.
#[derive(Debug)]
pub(in crate::cli) struct LogObserver {
    form: Log,
    /// The last report for each resource that is not converged: an equal report is no change of state.
    said: HashMap<String, (Unwell, String)>,
}

/// The failure of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unwell {
    Retrying,
    Failed,
    Held,
}

impl LogObserver {
    /// Creates an observer for a format.
    #[must_use]
    pub(in crate::cli) fn new(log: Log) -> Self {
        Self { form: log, said: HashMap::new() }
    }

    /// Logs a notification, which was converted to this event. A repeated report gets the level debug.
    pub(in crate::cli) fn log_event(&mut self, news: &Notification<'_>, event: &NewEvent) {
        let level = if self.was_said(news, event) { Level::Debug } else { event.level };
        self.write(event, level, news.run());
    }

    /// Returns true if the same was reported last: a repeated attempt with the same result is no change of state.
    fn was_said(&mut self, news: &Notification<'_>, event: &NewEvent) -> bool {
        let (identity, ill, words) = match news {
            Notification::Failed { identity, .. } => (*identity, Unwell::Failed, String::new()),
            Notification::Retrying { identity, .. } => (*identity, Unwell::Retrying, String::new()),
            Notification::Held { identity, .. } => (*identity, Unwell::Held, event.message.clone()),
            Notification::Recovered { identity, .. }
            | Notification::Unchanged(identity)
            | Notification::Changed { identity, .. } => {
                self.said.remove(*identity);
                return false;
            }
            Notification::Loaded { .. } => {
                self.said.clear();
                return false;
            }
            _ => return false,
        };
        match self.said.get(identity) {
            Some((Unwell::Failed, _)) if ill == Unwell::Retrying => true,
            Some((before, same)) if *before == ill && *same == words => true,
            _ => {
                self.said.insert(identity.to_owned(), (ill, words));
                false
            }
        }
    }

    fn write(&self, told: &NewEvent, level: Level, run: Option<RunRef>) {
        let (event, class) = (told.kind.name(), told.kind.class());
        let resource = told.resource.as_deref().map(plain);
        let resource = resource.as_deref();
        // JSON has these parts as fields; the journal needs them in the message for its readers too.
        let message = match self.form {
            Log::Json => told.message.clone(),
            Log::Human | Log::Journald => headline(event, told.resource.as_deref(), &told.message),
        };
        let (number, cause) = run.map_or((None, None), |run| (Some(run.number), Some(run.cause)));
        let data = match self.form {
            Log::Human => None,
            Log::Json | Log::Journald => {
                told.kind.data().map(|data| printable_json(&data.to_string()).to_string())
            }
        };
        let data = data.as_deref();
        // A field without a value is left out.
        macro_rules! log {
            ($level:ident) => {
                match self.form {
                    Log::Human => tracing::$level!("{message}"),
                    Log::Json | Log::Journald => tracing::$level!(
                        event,
                        resource,
                        class,
                        run = number,
                        cause,
                        data,
                        "{message}"
                    ),
                }
            };
        }
        match level {
            Level::Debug => log!(debug),
            Level::Info => log!(info),
            Level::Warn => log!(warn),
            Level::Error => log!(error),
        }
    }
}

impl Observer for LogObserver {
    fn hear(&mut self, news: &Notification<'_>) {
        if let Some(event) = news.to_event() {
            self.log_event(news, &event);
        }
    }
}

/// Joins names, up to a limit.
pub(in crate::cli) fn list(names: &[&str]) -> String {
    join_names(names, names.len())
}

/// Formats a time span for people.
pub(in crate::cli) fn seconds(span: Duration) -> String {
    span_words(span)
}
