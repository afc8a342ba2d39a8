//! The tests of the event log and its stream through their public interface: numbers, sessions, retention, damage,
//! and no waiting for readers.
//!
//! Nothing here starts a daemon. Reading order: `storage` (the log on disk), `streaming` (the stream and its writer).

mod storage;
mod streaming;

use steadfast::events::{Level, NewEvent};

/// Creates a `changed` event of the file resource with this name.
fn changed(name: &str) -> NewEvent {
    let resource = Some(format!("file[{name}]"));
    NewEvent { resource, ..NewEvent::new("changed", "content (1 ms)", Level::Info) }
}
