//! The event as it is published, and as subscribers receive it.

use super::render::message;
use crate::api::event_data::{Gap, Text};
use crate::api::{Event, EventKind, Level};
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// An event of the stream, with its JSON text for all subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedEvent {
    event: Event,
    json: Json,
}

impl Deref for PublishedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl From<Event> for PublishedEvent {
    fn from(event: Event) -> Self {
        Self { event, json: Json::default() }
    }
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

impl PublishedEvent {
    /// Creates an event from a new one and its number.
    #[must_use]
    pub fn new(number: Option<u64>, at: u64, happening: NewEvent) -> Self {
        let NewEvent { resource, level, kind, message } = happening;
        Event { number, at, resource, level, message, kind }.into()
    }

    /// Returns the event as a JSON object. The text is created once.
    #[must_use]
    pub fn json(&self) -> &str {
        // An event without valid JSON is reported as an error, so that no other event is lost (C-17).
        let broken = |error: serde_json::Error| {
            let text = format!("the event cannot be written as JSON: {error}");
            let (number, at) = (self.number, self.at);
            serde_json::json!({"number": number, "at": at, "event": "internal_error", "resource": null,
                "message": text, "level": Level::Error, "data": {"text": text}})
            .to_string()
        };
        let json = || serde_json::to_string(&self.event).unwrap_or_else(broken).into_boxed_str();
        self.json.0.get_or_init(json)
    }
}

/// An event to publish: it has no number yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// See [`Event::resource`].
    pub resource: Option<String>,
    /// See [`Event::level`].
    pub level: Level,
    /// See [`Event::kind`].
    pub kind: EventKind,
    /// See [`Event::message`].
    pub message: String,
}

impl NewEvent {
    /// Creates an event about the whole host. Its message is the rendered data.
    #[must_use]
    pub fn new(kind: EventKind, level: Level) -> Self {
        let message = message(&kind);
        Self { resource: None, level, kind, message }
    }

    /// Creates an event about a resource.
    #[must_use]
    pub fn of(resource: impl Into<String>, kind: EventKind, level: Level) -> Self {
        Self { resource: Some(resource.into()), ..Self::new(kind, level) }
    }

    /// Creates the event of a fault of the program.
    #[must_use]
    pub fn internal_error(text: impl Into<String>) -> Self {
        Self::new(EventKind::InternalError(Text { text: text.into() }), Level::Error)
    }

    /// Creates an event that represents missing events.
    pub(super) fn gap(count: Option<u64>, reason: String, level: Level) -> Self {
        Self::new(EventKind::Gap(Gap { count, reason }), level)
    }
}

/// Returns true for an event that only details explain: a debug event, or the usual start or end of a worker.
#[must_use]
pub fn is_detail(event: &Event) -> bool {
    event.level == Level::Debug
        || event.level == Level::Info && DETAILS.contains(&event.kind.name())
}

/// The names of the events that are details at level info.
pub(super) const DETAILS: [&str; 2] = ["worker_started", "worker_stopped"];

/// Returns the present time in milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
