//! The check of the running daemon: its reply and its version.

use super::super::args::Socket;
use super::{Finding, PATIENCE};
use crate::api::{Request, Status};
use crate::cli::client::address;
use crate::cli::output::plain;
use crate::control::{Client, Unanswered};
use std::time::Instant;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the findings, and the process id of the daemon if one runs.
pub(super) async fn look(socket: &Socket) -> (Vec<Finding>, Option<i32>) {
    let began = Instant::now();
    let asked = tokio::time::timeout(PATIENCE, async {
        let mut client = Client::ask(&address(socket), &Request::Status { limit: 0 }).await?;
        let pid = client.listener();
        Ok((pid, client.next(None).await))
    });
    let (pid, answer) = match asked.await {
        Ok(Ok((pid, answer))) => (pid, answer),
        Ok(Err(why)) => return (vec![unreachable(&why)], None),
        Err(_elapsed) => {
            let why = format!("no answer within {} s", PATIENCE.as_secs());
            return (vec![unreachable(&Unanswered::Broken(why))], None);
        }
    };
    let status: Option<Status> = match answer {
        Ok(Some(data)) => data.try_into().ok(),
        Ok(None) => None,
        Err(why) => return (vec![unreachable(&why)], pid),
    };
    let took = began.elapsed().as_secs_f64() * 1000.0;
    let Some(status) = status else {
        let says = "the daemon speaks the protocol of another release";
        return (vec![Finding::problem("version", says, RESTART)], pid);
    };
    let graph = plain(&status.graph);
    let answers = Finding::ok("daemon", format!("responds in {took:.1} ms, runs graph {graph}"));
    let mut found = vec![answers, version(&status, pid)];
    found.extend(status.read_only.as_deref().map(read_only));
    (found, pid)
}

const RESTART: &str = "restart the daemon: `systemctl restart steadfast`";

/// Reports a daemon that only observes.
fn read_only(why: &str) -> Finding {
    let says = format!("the daemon changes nothing: {}", plain(why));
    let advice = "`steadfast state verify` shows the damage and its remedy";
    Finding::problem("changes", says, advice)
}

fn unreachable(why: &Unanswered) -> Finding {
    match why {
        Unanswered::NoDaemon(_) => {
            let advice = "start a daemon: `systemctl start steadfast`, or `steadfast run GRAPH`";
            Finding::warning("daemon", why.to_string(), advice)
        }
        Unanswered::Denied(_) => {
            let advice = "run it as root: `sudo steadfast doctor`";
            Finding::warning("daemon", why.to_string(), advice)
        }
        Unanswered::Unavailable(_)
        | Unanswered::Refused(_)
        | Unanswered::Rejected(_)
        | Unanswered::Unknown(_)
        | Unanswered::Ambiguous(_)
        | Unanswered::Broken(_) => Finding::problem(
            "daemon",
            why.to_string(),
            "see its log: `journalctl -u steadfast -n 50`",
        ),
    }
}

fn version(status: &Status, pid: Option<i32>) -> Finding {
    let theirs = plain(&status.version);
    if theirs != VERSION {
        let says = format!("the daemon is {theirs}, this program is {VERSION}");
        return Finding::warning("version", says, RESTART);
    }
    let program = pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok());
    if program.is_some_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        let says = "the program file was replaced after the daemon started";
        return Finding::warning("version", says, RESTART);
    }
    Finding::ok("version", format!("{VERSION}, same as this program"))
}
