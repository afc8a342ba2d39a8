//! The identity of a session, for its start and its end event.

use super::event::NewEvent;
use crate::api::event_data::{Session, SessionEnd, SessionUser};
use crate::api::{EventKind, Level};
use std::path::PathBuf;

/// Returns the start event of a session of this process.
#[must_use]
pub fn session_start(command: &str, graph: &[PathBuf]) -> NewEvent {
    let uid = nix::unistd::getuid();
    // An unknown user, or a user database that does not answer, leaves the number.
    let found = nix::unistd::User::from_uid(uid).ok().flatten();
    let session = Session {
        command: command.to_owned(),
        graph: graph.iter().map(|path| path.display().to_string()).collect(),
        user: SessionUser { uid: uid.as_raw(), name: found.map(|user| user.name) },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
    };
    NewEvent::new(EventKind::RunStart(session), Level::Info)
}

/// Returns the end event of a session with its result, in one word and in full.
pub(super) fn session_end(
    (run, session): (Option<u64>, Option<Session>),
    (result, text): (&str, String),
    level: Level,
) -> NewEvent {
    let end = SessionEnd { result: result.to_owned(), run, session, text };
    NewEvent::new(EventKind::RunEnd(end), level)
}
