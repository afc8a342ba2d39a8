//! Audit events of state commands: the same events for a daemon and for an offline command.

use super::event::NewEvent;
use crate::api::event_data::Text;
use crate::api::{EventKind, Level};
use crate::store::{AuditEntry, LEFT_ALONE, Maintenance, REPAIRED, UNSOUND};

/// Returns the event of a state command on one resource.
#[must_use]
pub fn done(deed: &AuditEntry) -> NewEvent {
    let text = Text { text: deed.message.clone() };
    let kind = match deed.what {
        "protected" => EventKind::Protected(text),
        "unprotected" => EventKind::Unprotected(text),
        "forgotten" => EventKind::Forgotten(text),
        "retried" => EventKind::Retried(text),
        "undone" => EventKind::Undone(text),
        // The store and the driver name no other event; a test of the driver covers each.
        _ => EventKind::InternalError(text),
    };
    NewEvent::of(&*deed.resource, kind, Level::Info)
}

/// Returns the event of maintenance of the whole state; `None` if nothing was done.
#[must_use]
pub fn maintenance_event(what: Maintenance, lines: &[String]) -> Option<NewEvent> {
    let text = Text { text: lines.join("; ") };
    let kind = match what {
        Maintenance::Import => EventKind::Imported(text),
        Maintenance::Repair => EventKind::Repaired(text),
    };
    (!lines.is_empty()).then(|| NewEvent::new(kind, Level::Info))
}

/// Returns the event of a report by the state's integrity checks; `name` is the name that the store gives the report.
#[must_use]
pub fn integrity(name: &str, line: &str) -> NewEvent {
    let text = Text { text: line.to_owned() };
    let kind = match name {
        REPAIRED => EventKind::StateRepaired(text),
        UNSOUND => EventKind::StateUnsound(text),
        LEFT_ALONE => EventKind::StateLeftAlone(text),
        _ => EventKind::InternalError(text),
    };
    NewEvent::new(kind, Level::Warn)
}
