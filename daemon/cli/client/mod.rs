//! The commands that use a running daemon.
//!
//! A client must never change the host or the state itself; it sends requests over the control socket. Without a
//! daemon, `events` and `unknown_resource` read the state directory. `drift` checks the host itself. Reading order:
//! this file (requests and their errors), `status`, `show`, `events`, `commands`, `drift`, `unknown_resource`.

mod commands;
pub(super) mod drift;
mod events;
mod show;
mod status;
mod unknown_resource;

pub(super) use commands::{
    check, log_level, mend, of_state, pause, reload, resume, retry, stop, undo, wait,
};
pub(super) use events::{events, now, words};
pub(super) use show::{describe, differences, show, why, workers};
pub(super) use status::{headline, line, newer, paused, status};
pub(super) use unknown_resource::stranger;

use super::args::Socket;
use super::exit::Exit;
use super::{on_runtime, output, settings, state_dir};
use crate::control::{Address, Client, Request, Unanswered};
use crate::driver::PUT_BACK;
use serde_json::Value;
use std::time::Duration;

/// The time limit of a reply that needs no long work.
const PATIENCE: Duration = Duration::from_secs(15);

/// Returns the address of the daemon.
pub(super) fn address(socket: &Socket) -> Address {
    match (&socket.socket, &socket.state_dir) {
        (Some(path), _) => Address::at(path.clone()),
        (None, Some(directory)) => Address::usual(Some(directory), directory),
        (None, None) => match settings::of_daemon() {
            (Some(path), _) => Address::at(path),
            (None, directory) => Address::usual(directory.as_deref(), &state_dir::directory(None)),
        },
    }
}

/// Sends a request and returns the first part of the reply; `None` if the reply has only an end. Reports an error.
async fn ask(socket: &Socket, what: &Request, within: Duration) -> Result<Option<Value>, Exit> {
    answer(socket, what, within).await.map_err(|why| refuse(&why))
}

/// Sends a request and returns the first part of the reply, without reporting an error.
async fn answer(
    socket: &Socket,
    what: &Request,
    within: Duration,
) -> Result<Option<Value>, Unanswered> {
    let mut client = Client::ask(&address(socket), what).await?;
    let first = client.next(Some(within)).await?;
    if first.is_some() {
        client.next(Some(within)).await?;
    }
    Ok(first)
}

/// Sends a request and returns the reply as a typed value. Reports an error.
async fn ask_for<T: serde::de::DeserializeOwned>(
    socket: &Socket,
    what: &Request,
) -> Result<T, Exit> {
    ask_for_within(socket, what, PATIENCE).await
}

/// Sends a request with its own time limit, and returns the reply as a typed value.
async fn ask_for_within<T: serde::de::DeserializeOwned>(
    socket: &Socket,
    what: &Request,
    within: Duration,
) -> Result<T, Exit> {
    let value = ask(socket, what, within).await?.unwrap_or_default();
    shaped(value).map_err(|why| refuse(&why))
}

fn shaped<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Unanswered> {
    serde_json::from_value(value).map_err(|why| Unanswered::Broken(why.to_string()))
}

/// Sends a request and returns all readable parts of the reply; none after an error.
async fn pieces<T: serde::de::DeserializeOwned>(socket: &Socket, what: &Request) -> Vec<T> {
    let mut pieces = Vec::new();
    let Ok(mut client) = Client::ask(&address(socket), what).await else { return pieces };
    while let Ok(Some(piece)) = client.next(Some(PATIENCE)).await {
        pieces.extend(serde_json::from_value(piece));
    }
    pieces
}

/// Runs a future on a runtime of its own, and returns its exit code.
pub(super) fn asking(work: impl Future<Output = Result<Exit, Exit>>) -> Exit {
    on_runtime(|runtime| runtime.block_on(work).unwrap_or_else(|exit| exit))
}

/// Reports the error of a request, and returns its exit code.
fn refuse(why: &Unanswered) -> Exit {
    let (exit, hint) = match why {
        Unanswered::NoDaemon(_) => (
            Exit::NoDaemon,
            "start a daemon (`steadfast run GRAPH`), or select one with --state-dir or --socket",
        ),
        Unanswered::Denied(_) => {
            (Exit::Permission, "run this command as root or as the daemon's user")
        }
        Unanswered::Unavailable(_) => {
            (Exit::Failed, "`steadfast workers` shows the workers of the daemon")
        }
        Unanswered::Refused(why) if why.contains(PUT_BACK) => {
            (Exit::Failed, "only the restored paths were changed")
        }
        Unanswered::Refused(_) => (Exit::Failed, "nothing was changed"),
        Unanswered::Rejected(_) => (Exit::Graph, "nothing was changed"),
        Unanswered::Unknown(_) => {
            (Exit::Usage, "`steadfast graph GRAPH` lists the resources: kind[name]")
        }
        Unanswered::Broken(_) => (Exit::Failed, "see the log of the daemon"),
    };
    output::error(why.to_string(), Some(hint));
    exit
}

/// Formats a time span of whole seconds for people.
pub(super) fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
