//! The commands that tell a daemon to do something.

use super::super::args::{self, Socket};
use super::super::exit::Exit;
use super::super::text::{error, out, plain};
use super::{PATIENCE, ask, ask_for, asking, span};
use crate::control::Ask;
use crate::driver::status::{Status, Verdict};
use crate::events::Event;
use std::time::Duration;

/// What a reload may take.
const RELOAD: Duration = Duration::from_secs(90);

/// How soon `wait` asks again.
const AGAIN: Duration = Duration::from_millis(200);

/// An order that is answered by being done.
fn order(socket: &Socket, what: &Ask, done: impl AsRef<str>) -> Exit {
    asking(async {
        ask(socket, what, PATIENCE).await?;
        out(done);
        Ok(Exit::Well)
    })
}

/// `steadfast pause`.
pub(in crate::cli) fn pause(args: &args::Pause) -> Exit {
    let seconds = args.limit;
    let reason = args.reason.clone().unwrap_or_else(|| "by command".to_owned());
    let words = match seconds {
        Some(seconds) => format!("pausing; it ends by itself in {}", span(seconds)),
        None => "pausing; it ends by itself, see `steadfast status`".to_owned(),
    };
    order(&args.socket, &Ask::Pause { seconds, reason }, words)
}

/// `steadfast resume`.
pub(in crate::cli) fn resume(args: &args::Bare) -> Exit {
    order(&args.socket, &Ask::Resume, "going on")
}

/// `steadfast retry`.
pub(in crate::cli) fn retry(args: &args::Resources) -> Exit {
    let resources = args.resources.clone();
    order(&args.socket, &Ask::Retry { resources }, "tried again")
}

/// `steadfast check` with resources.
pub(in crate::cli) fn check(socket: &Socket, resources: Vec<String>) -> Exit {
    order(socket, &Ask::Check { resources }, "looked at again")
}

/// `steadfast stop`.
pub(in crate::cli) fn stop(args: &args::Stop) -> Exit {
    order(&args.socket, &Ask::Stop { now: args.now }, "stopping")
}

/// `steadfast log-level`.
pub(in crate::cli) fn log_level(args: &args::LogLevel) -> Exit {
    let filter = args.filter.clone();
    order(&args.socket, &Ask::LogLevel { filter }, "the log is filtered so from now on")
}

/// `steadfast reload`.
pub(in crate::cli) fn reload(args: &args::Bare) -> Exit {
    asking(async {
        let value = ask(&args.socket, &Ask::Reload, RELOAD).await?.unwrap_or_default();
        let event: Result<Event, _> = serde_json::from_value(value);
        out(event.map_or_else(
            |_| "taken".to_owned(),
            |event| format!("{}: {}", event.what, event.says),
        ));
        Ok(Exit::Well)
    })
}

/// `steadfast wait --for converged`.
pub(in crate::cli) fn wait(args: &args::Wait) -> Exit {
    let waiting = async {
        loop {
            let status: Status = ask_for(&args.socket, &Ask::Status { most: 1 }).await?;
            if status.verdict == Verdict::Converged {
                out(format!("as declared: {}", plain(&status.graph)));
                return Ok(Exit::Well);
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    asking(async {
        match args.timeout {
            None => waiting.await,
            Some(seconds) => {
                let limit = Duration::from_secs(seconds);
                tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_elapsed| {
                    let hint = "`steadfast status` says what stands in the way";
                    error(format!("not as declared after {}", span(seconds)), Some(hint));
                    Ok(Exit::Failed)
                })
            }
        }
    })
}
