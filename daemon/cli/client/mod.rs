//! The commands that use a running daemon.
//!
//! A client must never change the host or the state itself; it sends requests over the control socket. Without a
//! daemon, `events` and `unknown_resource` read the state directory. `drift` checks the host itself. Reading order:
//! this file (requests and their errors), `status`, `show`, `events`, `commands`, `wait`, `drift`, `unknown_resource`.

mod commands;
pub(super) mod drift;
mod events;
mod show;
mod status;
mod unknown_resource;
mod wait;

pub(super) use commands::{
    check, log_level, maintain_state, of_state, pause, reload, resume, retry, stop, undo,
};
pub(super) use events::{events, now, words};
pub(super) use show::{describe, differences, show, why, workers};
pub(super) use status::{headline, line, newer, paused, status};
pub(super) use unknown_resource::stranger;
pub(super) use wait::wait;

use super::args::Socket;
use super::exit::Exit;
use super::{on_runtime, output, settings, state_dir};
use crate::api::{Data, Request};
use crate::control::{Address, Client, Unanswered};
use crate::driver::PUT_BACK;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit of a reply that needs no long work.
const PATIENCE: Duration = Duration::from_secs(15);

/// The runtime directory of root's daemon.
const SHARED_DIRECTORY: &str = "/run/steadfast";

/// The control socket of root's daemon.
pub(super) const SHARED_SOCKET: &str = "/run/steadfast/control.socket";

/// The advice for a user who may not use the daemon of root.
const ASK_FOR_ACCESS: &str = "a daemon of root runs on this host: use sudo, or ask root to add you to its socket group (setting `socket_group`)";

/// Returns true if this user is not root and a daemon of root seems to run.
pub(super) fn is_beside_root() -> bool {
    !rustix::process::geteuid().is_root() && Path::new(SHARED_DIRECTORY).exists()
}

/// Returns the address of the daemon.
pub(super) fn address(socket: &Socket) -> Address {
    match (&socket.socket, &socket.state_dir) {
        (Some(path), _) => Address::at(path.clone()),
        (None, Some(directory)) => Address::usual(Some(directory), directory),
        (None, None) => match settings::of_daemon() {
            (Some(path), _) => Address::at(path),
            (None, directory) => {
                let own = Address::usual(directory.as_deref(), &state_dir::directory(None));
                // Members of the socket group reach the daemon of root, unless they run one themselves.
                let is_free = directory.is_none() && !own.path().exists();
                let shared = Address::at(PathBuf::from(SHARED_SOCKET));
                if is_free && shared.path().exists() { shared } else { own }
            }
        },
    }
}

/// Sends a request and returns the first part of the reply; `None` if the reply has only an end. Reports an error.
async fn ask(socket: &Socket, what: &Request, within: Duration) -> Result<Option<Data>, Exit> {
    answer(socket, what, within).await.map_err(|why| refuse(&why))
}

/// Sends a request and returns the first part of the reply, without reporting an error.
async fn answer(
    socket: &Socket,
    what: &Request,
    within: Duration,
) -> Result<Option<Data>, Unanswered> {
    let mut client = Client::ask(&address(socket), what).await?;
    let first = client.next(Some(within)).await?;
    if first.is_some() {
        client.next(Some(within)).await?;
    }
    Ok(first)
}

/// Sends a request and returns the reply as a typed value. Reports an error.
async fn ask_for<T: TryFrom<Data>>(socket: &Socket, what: &Request) -> Result<T, Exit> {
    ask_for_within(socket, what, PATIENCE).await
}

/// Sends a request with its own time limit, and returns the reply as a typed value.
async fn ask_for_within<T: TryFrom<Data>>(
    socket: &Socket,
    what: &Request,
    within: Duration,
) -> Result<T, Exit> {
    let data = ask(socket, what, within).await?;
    shaped(data).map_err(|why| refuse(&why))
}

/// Converts the data of a reply to the type that answers the request.
fn shaped<T: TryFrom<Data>>(data: Option<Data>) -> Result<T, Unanswered> {
    let other = || Unanswered::Broken("the reply does not answer the request".to_owned());
    T::try_from(data.ok_or_else(other)?).map_err(|_mismatch| other())
}

/// Sends a request and returns all readable parts of the reply; none after an error.
async fn pieces<T: TryFrom<Data>>(socket: &Socket, what: &Request) -> Vec<T> {
    let mut pieces = Vec::new();
    let Ok(mut client) = Client::ask(&address(socket), what).await else { return pieces };
    while let Ok(Some(piece)) = client.next(Some(PATIENCE)).await {
        pieces.extend(T::try_from(piece));
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
        Unanswered::NoDaemon(_) if is_beside_root() => (Exit::NoDaemon, ASK_FOR_ACCESS),
        Unanswered::Denied(why) if why.contains(SHARED_DIRECTORY) && is_beside_root() => {
            (Exit::Permission, ASK_FOR_ACCESS)
        }
        Unanswered::NoDaemon(_) => (
            Exit::NoDaemon,
            "start a daemon (`systemctl start steadfast`, or `steadfast run GRAPH`), or select one with --state-dir or --socket",
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
        Unanswered::Ambiguous(_) => (Exit::Usage, "name one of them: kind[name]"),
        Unanswered::Broken(_) => (Exit::NoDaemon, "see the log of the daemon"),
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
