//! The detection of misspelt resource names in queries about the past.

use super::{PATIENCE, answer};
use crate::api::Request;
use crate::cli::args::Socket;
use crate::cli::state;
use crate::control::Unanswered;
use crate::nearest_name::with_nearest;
use crate::store::SqliteStore;

/// Returns an error message if a resource is unknown to the daemon, or to the state if no daemon runs. Returns `None`
/// if the resource is known, or if that cannot be determined.
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
