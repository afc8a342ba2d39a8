//! Whether anybody knows a resource: who asks what was of one that is misspelt is told so.

use super::{PATIENCE, answer};
use crate::cli::args::Socket;
use crate::cli::state;
use crate::config::with_nearest;
use crate::control::{Request, Unanswered};
use crate::store::SqliteStore;

/// Says that nobody knows a resource of which nothing is recorded: the daemon does not, or where none runs, nothing is kept of it. Where that
/// cannot be told it passes for known.
pub(in crate::cli) async fn stranger(socket: &Socket, resource: &str) -> Option<String> {
    match answer(socket, &Request::Show { resource: resource.to_owned() }, PATIENCE).await {
        Err(why @ Unanswered::Unknown(_)) => Some(why.to_string()),
        Err(Unanswered::NoDaemon(_)) => {
            let directory = state::directory(socket.state_dir.as_deref());
            let recalled = SqliteStore::peek(&directory).ok()?;
            let known = || recalled.resources.keys().map(String::as_str);
            let is_known = recalled.resources.contains_key(resource);
            (!is_known).then(|| format!("no such resource: {}", with_nearest(resource, known())))
        }
        Ok(_) | Err(_) => None,
    }
}
