//! The commands that change a running daemon.

use super::{
    PATIENCE, address, answer, ask, ask_for, ask_for_within, asking, differences, refuse, shaped,
    span,
};
use crate::api::{Data, HostStatus, Inspections, LogLevelSet, Reloaded, Request, Status, Undone};
use crate::cli::args;
use crate::cli::args::Socket;
use crate::cli::exit::Exit;
use crate::cli::output::render::list;
use crate::cli::output::{count, eprint, error, plain, print};
use crate::control::{Client, Unanswered};
use crate::events::render::{graph_change, settings_change};
use crate::store::{Maintenance, StateCommand};
use std::time::Duration;

/// The time limit of a wait for a daemon that is starting.
const START: Duration = Duration::from_secs(5);

/// The interval of looks at a daemon that is starting.
const AGAIN: Duration = Duration::from_millis(100);

/// The time limit of a reload, and of a check of resources.
const RELOAD: Duration = Duration::from_secs(90);

/// The time limit of an undo, which may wait for the end of a run.
const UNDO: Duration = Duration::from_secs(200);

/// Sends a command and prints a message when the daemon has carried it out.
fn order(socket: &Socket, what: &Request, done: impl AsRef<str>) -> Exit {
    asking(async {
        ask(socket, what, PATIENCE).await?;
        print(done);
        Ok(Exit::Well)
    })
}

/// `steadfast pause`.
pub(in crate::cli) fn pause(args: &args::Pause) -> Exit {
    let seconds = args.limit;
    let reason = args.reason.clone().unwrap_or_else(|| "by command".to_owned());
    let words = match seconds {
        Some(seconds) => format!("pausing; resumes automatically in {}", span(seconds)),
        None => "pausing; resumes automatically, see `steadfast status`".to_owned(),
    };
    let resources = args.selection.texts();
    let drain = args.drain;
    let names_resources = !resources.is_empty();
    let request = Request::Pause { seconds, reason, resources, drain };
    asking(async {
        if names_resources {
            status_after_start(&args.socket).await?;
        }
        let warnings = ask(&args.socket, &request, PATIENCE).await?;
        print(words);
        if let Some(Data::Lines(lines)) = warnings {
            for line in lines {
                eprint(format!("warning: {}", plain(&line)));
            }
        }
        Ok(Exit::Well)
    })
}

/// Carries out `steadfast resume`: shows the pending changes, and then resumes.
pub(in crate::cli) fn resume(args: &args::Resume) -> Exit {
    asking(async {
        let resources = args.selection.texts();
        let status = status_after_start(&args.socket).await?;
        let is_known = status.verdict != HostStatus::Starting;
        if resources.is_empty() && status.pause.is_none() && is_known {
            let single: Vec<_> = status.paused.iter().map(|one| plain(&one.resource)).collect();
            print("nothing to do: the daemon is not paused");
            if !single.is_empty() {
                print(format!("individually paused: {}; resume them by name", single.join(", ")));
            }
            return Ok(Exit::Well);
        }
        if !resources.is_empty() && status.pause.is_some() {
            print("0 resources will be changed: the daemon is paused");
            if args.plan {
                return Ok(Exit::Well);
            }
            ask(&args.socket, &Request::Resume { resources }, PATIENCE).await?;
            print("the individual pauses ended; `steadfast resume` ends the pause of the daemon");
            return Ok(Exit::Well);
        }
        let look = Request::Diff { resources: resources.clone(), resume: !resources.is_empty() };
        let found = answer(&args.socket, &look, RELOAD).await;
        match found.and_then(shaped) {
            Ok(found) => plan(&found),
            // A failed preview does not prevent the resume.
            Err(why) if !args.plan => eprint(format!("the pending changes are unknown: {why}")),
            Err(why) => return Err(refuse(&why)),
        }
        if args.plan {
            return Ok(Exit::Well);
        }
        ask(&args.socket, &Request::Resume { resources }, PATIENCE).await?;
        print("resumed");
        Ok(Exit::Well)
    })
}

/// Returns the status of the daemon. A daemon that is starting does not know its pauses yet: the command waits for it.
/// A daemon without a graph counts as starting, too, and gets the request after the wait.
async fn status_after_start(socket: &Socket) -> Result<Status, Exit> {
    let until = tokio::time::Instant::now() + START;
    loop {
        let status: Status = ask_for(socket, &Request::Status { limit: 20 }).await?;
        if status.verdict != HostStatus::Starting || tokio::time::Instant::now() >= until {
            return Ok(status);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Prints the changes that a resume would make.
fn plan(found: &Inspections) {
    let (held, items): (Vec<_>, Vec<_>) =
        found.items.iter().partition(|one| one.held && one.error.is_none());
    let changes = items.iter().filter(|one| one.error.is_none()).count();
    print(format!("{} will be changed", count(changes, "resource")));
    for line in items.into_iter().flat_map(differences) {
        print(format!("  {line}"));
    }
    if !held.is_empty() {
        let names: Vec<&str> = held.iter().map(|one| one.resource.as_str()).collect();
        print(format!("held by noop or a maintenance window: {}", list(&names)));
    }
    if found.skipped > 0 {
        print(format!("  {} more were not checked", found.skipped));
    }
    let rest =
        [("still individually paused", &found.paused), ("waiting for those", &found.waiting)];
    for (what, names) in rest.into_iter().filter(|(_, names)| !names.is_empty()) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        print(format!("{what}: {}", list(&names)));
    }
}

/// Sends `steadfast undo` to the daemon; returns `None` if no daemon runs.
pub(in crate::cli) fn undo(args: &args::Undo) -> Result<Option<Undone>, Exit> {
    let (resource, to, seconds) = (args.resource.clone(), args.to, args.limit);
    ask_any(&args.socket, &Request::Undo { resource, to, seconds, partial: args.partial }, UNDO)
}

/// Sends `steadfast protect`, `unprotect` or `forget` to the daemon and returns its reply; `None` if no daemon runs.
pub(in crate::cli) fn of_state(
    order: StateCommand,
    args: &args::Resources,
) -> Result<Option<Vec<String>>, Exit> {
    let resources = args.texts();
    ask_any(&args.socket, &Request::state_command(order, resources), PATIENCE)
}

/// Sends `steadfast state import` or `repair` to the daemon and returns the changes; `None` if no daemon runs.
pub(in crate::cli) fn maintain_state(
    what: Maintenance,
    socket: &Socket,
) -> Result<Option<Vec<String>>, Exit> {
    ask_any(socket, &Request::maintenance(what), UNDO)
}

/// Sends a request to the daemon, if one runs, and returns the first part of the reply.
fn ask_any<T: TryFrom<Data>>(
    socket: &Socket,
    what: &Request,
    within: Duration,
) -> Result<Option<T>, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| {
        error(format!("cannot start: {why}"), None);
        Exit::Failed
    })?;
    runtime.block_on(async {
        match Client::ask(&address(socket), what).await {
            Err(Unanswered::NoDaemon(_)) => Ok(None),
            Err(why) => Err(refuse(&why)),
            Ok(mut client) => {
                let first = client.next(Some(within)).await.map_err(|why| refuse(&why))?;
                shaped(first).map(Some).map_err(|why| refuse(&why))
            }
        }
    })
}

/// `steadfast retry`.
pub(in crate::cli) fn retry(args: &args::Resources) -> Exit {
    let resources = args.texts();
    let done =
        "checking again; what differs runs again, as far as its guards and refresh_only allow";
    let request = Request::Retry { resources, persist: false };
    asking(async {
        status_after_start(&args.socket).await?;
        ask(&args.socket, &request, PATIENCE).await?;
        print(done);
        Ok(Exit::Well)
    })
}

/// `steadfast check` with resources.
pub(in crate::cli) fn check(socket: &Socket, resources: Vec<String>) -> Exit {
    order(socket, &Request::Check { resources }, "checked again")
}

/// `steadfast stop`.
pub(in crate::cli) fn stop(args: &args::Stop) -> Exit {
    order(&args.socket, &Request::Stop { now: args.now }, "stopping")
}

/// `steadfast log-level`.
pub(in crate::cli) fn log_level(args: &args::LogLevel) -> Exit {
    asking(async {
        let ask = Request::LogLevel { filter: args.filter.clone() };
        let set: LogLevelSet = ask_for(&args.socket, &ask).await?;
        print(format!("log level: {}, until {}", plain(&set.level), plain(&set.until)));
        Ok(Exit::Well)
    })
}

/// `steadfast reload`.
pub(in crate::cli) fn reload(args: &args::Reload) -> Exit {
    asking(async {
        // A daemon that answers nothing at all, such as a stopped process, is reported before the long wait.
        let _alive: Status = ask_for(&args.socket, &Request::Status { limit: 0 }).await?;
        let ask = Request::Reload { allow_empty: args.allow_empty, yes: args.yes };
        let answer: Reloaded = ask_for_within(&args.socket, &ask, RELOAD).await?;
        let loaded = &answer.loaded;
        let (graph, change) = (plain(&loaded.graph), graph_change(&loaded.change));
        if loaded.waits.is_empty() {
            print(format!("loaded: graph {graph}: {change}"));
        } else {
            let waits: Vec<String> = loaded.waits.iter().map(|name| plain(name)).collect();
            print(format!("loading: waiting for {}: graph {graph}: {change}", waits.join(", ")));
        }
        settings_change(&answer.settings).into_iter().for_each(print);
        Ok(Exit::Well)
    })
}
