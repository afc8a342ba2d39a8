//! What an event is: one thing that happened, as it is told, kept and read.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// A change of state.
    Info,
    /// Something is not as it should be, and may become so by itself.
    Warn,
    /// Something is not as it should be, and stays so.
    Error,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in the event log: one more than that of the one before it. None where it is not recorded: it is for whoever
    /// looks for a fault, one of many alike, or the log cannot be written.
    pub number: Option<u64>,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What: `changed`, `failed`, `converged`, …
    #[serde(rename = "event")]
    pub what: String,
    /// To which resource; none where it is about the whole.
    pub resource: Option<String>,
    /// Of a change: what sort it was. Of the end of a run: how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// For so many it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of the end of a run: the number of its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// In words, printable.
    pub message: String,
    /// How much it matters.
    pub level: Level,
    /// Made once, for all who follow.
    #[serde(skip)]
    json: Json,
}

/// An event as JSON, once somebody has wanted it; no part of what the event is.
#[derive(Clone, Debug, Default)]
struct Json(OnceLock<Box<str>>);

impl PartialEq for Json {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Json {}

impl Event {
    /// What was handed over, with its number.
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

    /// As a JSON object. However many want it, it is made once.
    #[must_use]
    pub fn json(&self) -> &str {
        // What cannot be written is told as an error, and those beside it are not lost (C-17).
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

/// What is handed over: an event without a number.
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
    /// See [`Event::says`].
    pub message: String,
    /// See [`Event::level`].
    pub level: Level,
}

impl NewEvent {
    /// Something about the whole.
    #[must_use]
    pub fn new(what: &'static str, says: impl Into<String>, level: Level) -> Self {
        let says = says.into();
        Self { what, resource: None, class: None, count: None, run: None, message: says, level }
    }
}

/// What a run of the program begins and ends with, and what stands for events that are not there.
pub mod what {
    /// The program has begun its work.
    pub const RUN_START: &str = "run_start";
    /// It has ended it, or was found to have ended without a word.
    pub const RUN_END: &str = "run_end";
    /// Events are missing here.
    pub const GAP: &str = "gap";
    /// Many alike happened.
    pub const REPEATED: &str = "repeated";
    /// Events were refused by whom a recorder takes them to, and are not offered again.
    pub const DEAD_LETTERED: &str = "dead_lettered";
    /// Something is wrong with the program itself.
    pub const INTERNAL_ERROR: &str = "internal_error";
    /// A worker of the daemon runs.
    pub const WORKER_STARTED: &str = "worker_started";
    /// It runs no more.
    pub const WORKER_STOPPED: &str = "worker_stopped";
}

/// The time of this moment, in milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
