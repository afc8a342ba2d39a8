//! The event log and its stream by their public face: numbers, runs, retention, damage, and that nobody waits.

mod storage;
mod streaming;

use steadfast::events::{Level, NewEvent};

/// Something that happened to a resource of this name.
fn changed(name: &str) -> NewEvent {
    let resource = Some(format!("file[{name}]"));
    NewEvent { resource, ..NewEvent::new("changed", "content (1 ms)", Level::Info) }
}
