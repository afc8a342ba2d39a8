//! The tests of the event log and its stream through their public interface: numbers, sessions, retention, damage,
//! data, and no waiting for readers.
//!
//! Nothing here starts a daemon. Reading order: `storage` (the log on disk), `streaming` (the stream and its writer),
//! `samples` (an event of each name), `data` (typed events, their words, and the migration of older logs).

mod data;
mod samples;
mod storage;
mod streaming;

use std::path::PathBuf;
use steadfast::api::event_data::{Changed, RunInfo};
use steadfast::api::{ChangeClass, EventKind, Level};
use steadfast::events::{NewEvent, session_start};

/// Creates a `changed` event of the file resource with this name.
fn changed(name: &str) -> NewEvent {
    let changed = Changed {
        class: ChangeClass::Intentional,
        differences: Vec::new(),
        omitted: 0,
        notes: vec!["content".to_owned()],
        took: 1,
        run: RunInfo::default(),
    };
    NewEvent::of(format!("file[{name}]"), EventKind::Changed(changed), Level::Info)
}

/// Creates the start event of a session.
fn start() -> NewEvent {
    session_start("run", &[PathBuf::from("/etc/steadfast/graph.yaml")])
}
