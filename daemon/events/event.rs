//! The event: one change of state, as published, recorded and read.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// A change of state.
    Info,
    /// A problem that may end by itself.
    Warn,
    /// A problem that lasts.
    Error,
}

/// A recorded or live event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The number in the event log, one more than that of the previous event. `None` if the event is not recorded: a
    /// debug event, a repeated event, or an event while the log cannot be written.
    pub number: Option<u64>,
    /// The time of the event, in milliseconds since 1970.
    pub at: u64,
    /// The type of the event: `changed`, `failed`, `converged`, …
    #[serde(rename = "event")]
    pub what: String,
    /// The resource; `None` for the whole host.
    pub resource: Option<String>,
    /// The sort of a change, or the result of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The number of events that this one represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// For the end of a session: the number of its start event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// A description in printable text.
    pub message: String,
    /// The severity.
    pub level: Level,
    /// The event as JSON, created once for all subscribers.
    #[serde(skip)]
    json: Json,
}

/// A cache of the JSON of an event; equality of events ignores the cache.
#[derive(Clone, Debug, Default)]
struct Json(OnceLock<Box<str>>);

impl PartialEq for Json {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Json {}

impl Event {
    /// Creates an event from a published one and its number.
    #[must_use]
    pub fn new(number: Option<u64>, at: u64, happening: NewEvent) -> Self {
        let NewEvent { what, resource, class, count, run, message: says, level } = happening;
        let (what, class) = (what.into(), class.map(Into::into));
        Self {
            number,
            at,
            what,
            resource,
            class,
            count,
            run,
            message: says,
            level,
            json: Json::default(),
        }
    }

    /// Returns the event as a JSON object. The text is created once.
    #[must_use]
    pub fn json(&self) -> &str {
        // An event without valid JSON is reported as an error, so that no other event is lost (C-17).
        let broken = |error: serde_json::Error| {
            let (number, at) = (self.number, self.at);
            let says = format!("the event cannot be written as JSON: {error}");
            let (event, level) = (what::INTERNAL_ERROR, Level::Error);
            serde_json::json!({"number": number, "at": at, "event": event, "resource": null,
                "message": says, "level": level})
            .to_string()
        };
        let json = || serde_json::to_string(self).unwrap_or_else(broken).into_boxed_str();
        self.json.0.get_or_init(json)
    }
}

/// An event to publish: it has no number yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// See [`Event::what`].
    pub what: &'static str,
    /// See [`Event::resource`].
    pub resource: Option<String>,
    /// See [`Event::class`].
    pub class: Option<&'static str>,
    /// See [`Event::count`].
    pub count: Option<u64>,
    /// See [`Event::run`].
    pub run: Option<u64>,
    /// See [`Event::message`].
    pub message: String,
    /// See [`Event::level`].
    pub level: Level,
}

impl NewEvent {
    /// Creates an event about the whole host.
    #[must_use]
    pub fn new(what: &'static str, says: impl Into<String>, level: Level) -> Self {
        let says = says.into();
        Self { what, resource: None, class: None, count: None, run: None, message: says, level }
    }
}

/// The types of events about the session and the log.
pub mod what {
    /// The session has begun.
    pub const RUN_START: &str = "run_start";
    /// The session has ended, or was found to have been killed.
    pub const RUN_END: &str = "run_end";
    /// Events are missing here.
    pub const GAP: &str = "gap";
    /// Repeated events were counted.
    pub const REPEATED: &str = "repeated";
    /// A recorder's server rejected events for good.
    pub const DEAD_LETTERED: &str = "dead_lettered";
    /// The program has an internal error.
    pub const INTERNAL_ERROR: &str = "internal_error";
    /// A worker of the daemon has started.
    pub const WORKER_STARTED: &str = "worker_started";
    /// A worker of the daemon has stopped.
    pub const WORKER_STOPPED: &str = "worker_stopped";
}

/// Returns the present time in milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
