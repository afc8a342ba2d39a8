//! What an operator has had done, as events: the same whether a daemon does it or a command alone.

use super::event::{Level, NewEvent};
use crate::store::{AuditEntry, Maintenance};

/// What was done to one resource, or to what is kept of it.
#[must_use]
pub fn done(deed: &AuditEntry) -> NewEvent {
    let resource = Some(deed.resource.to_string());
    NewEvent { resource, ..NewEvent::new(deed.what, deed.message.clone(), Level::Info) }
}

/// What was done to the state as a whole; nothing where nothing was to be done.
#[must_use]
pub fn mended(what: Maintenance, lines: &[String]) -> Option<NewEvent> {
    let what = match what {
        Maintenance::Import => "imported",
        Maintenance::Repair => "repaired",
    };
    (!lines.is_empty()).then(|| NewEvent::new(what, lines.join("; "), Level::Info))
}
