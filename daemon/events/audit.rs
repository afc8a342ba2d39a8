//! Audit events of state commands: the same events for a daemon and for an offline command.

use super::event::{Level, NewEvent};
use crate::store::{AuditEntry, Maintenance};

/// Returns the event of a state command on one resource.
#[must_use]
pub fn done(deed: &AuditEntry) -> NewEvent {
    let resource = Some(deed.resource.to_string());
    NewEvent { resource, ..NewEvent::new(deed.what, deed.message.clone(), Level::Info) }
}

/// Returns the event of maintenance of the whole state; `None` if nothing was done.
#[must_use]
pub fn mended(what: Maintenance, lines: &[String]) -> Option<NewEvent> {
    let what = match what {
        Maintenance::Import => "imported",
        Maintenance::Repair => "repaired",
    };
    (!lines.is_empty()).then(|| NewEvent::new(what, lines.join("; "), Level::Info))
}
