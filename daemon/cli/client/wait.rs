//! `steadfast wait`: waits for a state of the host, or of selected resources.

use super::status::newer;
use super::{PATIENCE, answer, asking, refuse, shaped, span};
use crate::api::{Changes, HostStatus, Request, ResourceStatus, SelectedResources, Status};
use crate::cli::args::{self, Awaited};
use crate::cli::exit::Exit;
use crate::cli::output::{count, eprint, error, plain, print};
use crate::control::Unanswered;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The interval of the requests.
const AGAIN: Duration = Duration::from_millis(200);

/// The time after which a daemon that has not answered counts as silent at the end of the time-out.
const SILENT: Duration = Duration::from_secs(2);

/// The result of one look at the daemon.
enum Look {
    /// The awaited state is reached; the text describes it.
    Reached(String),
    /// The state is not reached yet.
    NotYet,
    /// The state cannot be reached.
    Never(Exit),
}

/// The memory of the looks before.
#[derive(Default)]
struct Earlier {
    /// The number of changes at the start of the command, of the host or of the selection.
    changes: Cell<Option<u64>>,
    /// A failure without retries was reported.
    is_failure_told: Cell<bool>,
    /// A pause was reported.
    is_pause_told: Cell<bool>,
}

/// Carries out `steadfast wait` for the running graph. The command also waits for a daemon that is starting or
/// recovering; for a missing one only with a time limit.
pub(in crate::cli) fn wait(args: &args::Wait) -> Exit {
    let (last, asked, earlier) = (Cell::new(None), Cell::new(None), Earlier::default());
    let waiting = async {
        loop {
            asked.set(Some(Instant::now()));
            let found = match args.selection.texts() {
                all if all.is_empty() => look_at_host(args, &earlier).await,
                selection => look_at_selection(args, selection, &earlier).await,
            };
            asked.set(None);
            match found {
                Ok(Look::Reached(words)) => {
                    print(words);
                    return Ok(Exit::Well);
                }
                Ok(Look::Never(exit)) => return Ok(exit),
                Ok(Look::NotYet) => last.set(None),
                Err(why) if is_passing(&why, args.timeout) => last.set(Some(why)),
                Err(why) => return Err(refuse(&why)),
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    asking(async {
        let Some(seconds) = args.timeout else { return waiting.await };
        let limit = Duration::from_secs(seconds);
        if let Ok(ended) = tokio::time::timeout(limit, waiting).await {
            return ended;
        }
        if let Some(why) = last.take() {
            return Err(refuse(&why));
        }
        if asked.get().is_some_and(|asked| asked.elapsed() > SILENT) {
            let why = "no response within the time-out".to_owned();
            return Err(refuse(&Unanswered::Broken(why)));
        }
        let hint = "`steadfast status` shows the blockers";
        error(format!("not {} after {}", awaited(args.what), span(seconds)), Some(hint));
        Ok(Exit::Failed)
    })
}

const fn awaited(what: Awaited) -> &'static str {
    match what {
        Awaited::Converged => "converged",
        Awaited::Changed => "changed",
        Awaited::Failed => "failed",
        Awaited::Paused => "paused",
    }
}

async fn look_at_host(args: &args::Wait, earlier: &Earlier) -> Result<Look, Unanswered> {
    let found = answer(&args.socket, &Request::Status { limit: 1 }, PATIENCE).await?;
    let status: Status = shaped(found)?;
    let graph = plain(&status.graph);
    let is_reached = match args.what {
        Awaited::Converged => {
            if let Some(exit) = reject_waiting(&status) {
                return Ok(Look::Never(exit));
            }
            note_failure(&status, earlier);
            note_pause(&status, earlier);
            let is_converged = status.verdict == HostStatus::Converged;
            if is_converged {
                newer(&status).into_iter().for_each(eprint);
            }
            let counts = status.counts;
            let settled_or_noop = counts.settled.saturating_add(counts.noop);
            if status.verdict == HostStatus::Held && settled_or_noop == counts.total {
                return Ok(Look::Never(only_noop(counts.noop as usize, &status.unhealthy)));
            }
            is_converged
        }
        Awaited::Changed => has_changed(&earlier.changes, all_changes(&status.changes)),
        Awaited::Failed => status.counts.failed > 0,
        Awaited::Paused => status.pause.as_ref().is_some_and(|pause| pause.at_rest),
    };
    Ok(if is_reached {
        Look::Reached(format!("{}: {graph}", awaited(args.what)))
    } else {
        Look::NotYet
    })
}

/// Says once that a resource has failed without retries: the wait may last until its time-out.
fn note_failure(status: &Status, earlier: &Earlier) {
    let Some(worst) = status.unhealthy.first() else { return };
    if status.verdict == HostStatus::Failed && !earlier.is_failure_told.replace(true) {
        let name = plain(&worst.resource);
        eprint(format!("{name} has failed and has no retries left; still waiting for a change"));
    }
}

/// Says once that the daemon is paused or changes nothing: the wait may last until its time-out.
fn note_pause(status: &Status, earlier: &Earlier) {
    let why = match (&status.read_only, &status.pause) {
        (Some(why), _) => format!("the daemon changes nothing: {}", plain(why)),
        (None, Some(_)) => "the daemon is paused; `steadfast resume` ends the pause".to_owned(),
        (None, None) => return,
    };
    if !earlier.is_pause_told.replace(true) {
        eprint(format!("{why}; still waiting"));
    }
}

/// Reports a rejected graph, and returns its exit code: the host would converge to another graph than the file's.
fn reject_waiting(status: &Status) -> Option<Exit> {
    let refused = status.rejected.as_ref().map(|refused| refused.reason.as_str());
    let why = refused.or(status.fallback_reason.as_deref())?;
    let why = why.lines().map(plain).collect::<Vec<_>>().join("\n  ");
    let hint = "correct the graph, then `steadfast reload`";
    error(format!("the graph is rejected: {why}"), Some(hint));
    Some(Exit::Graph)
}

/// Reports that all other resources are converged, and returns the exit code: no time ends a hold by `noop`.
fn only_noop(count_of_noop: usize, worst: &[ResourceStatus]) -> Exit {
    let first = worst.first().map(|first| plain(&first.resource)).unwrap_or_default();
    let all =
        if count_of_noop == 1 { first } else { format!("{first} and {} more", count_of_noop - 1) };
    let hint = "`noop` never changes them: `steadfast drift` shows the differences";
    error(format!("all but {all} converged; held by `noop`"), Some(hint));
    Exit::Changes
}

async fn look_at_selection(
    args: &args::Wait,
    resources: Vec<String>,
    earlier: &Earlier,
) -> Result<Look, Unanswered> {
    let found = answer(&args.socket, &Request::Select { resources, limit: 1 }, PATIENCE).await?;
    let found: SelectedResources = shaped(found)?;
    let is_reached = match args.what {
        Awaited::Converged if found.noop > 0 && found.converged + found.noop == found.total => {
            return Ok(Look::Never(only_noop(found.noop, &found.rows)));
        }
        Awaited::Converged => found.converged == found.total,
        Awaited::Changed => has_changed(&earlier.changes, found.changes),
        Awaited::Failed => found.failed > 0,
        Awaited::Paused => found.paused == found.total,
    };
    let words = format!("{}: {}", awaited(args.what), count(found.total, "resource"));
    Ok(if is_reached { Look::Reached(words) } else { Look::NotYet })
}

/// Returns true if the number of changes has grown since the first look. A restarted daemon counts from zero again.
fn has_changed(before: &Cell<Option<u64>>, now: u64) -> bool {
    match before.get() {
        Some(first) if now >= first => now > first,
        _ => {
            before.set(Some(now));
            false
        }
    }
}

fn all_changes(changes: &Changes) -> u64 {
    let Changes { intentional, corrective, not_idempotent, contended } = *changes;
    [intentional, corrective, not_idempotent, contended].into_iter().map(u64::from).sum()
}

/// Returns true if a later attempt may succeed.
fn is_passing(why: &Unanswered, timeout: Option<u64>) -> bool {
    match why {
        Unanswered::Unavailable(_) => true,
        Unanswered::NoDaemon(_) | Unanswered::Broken(_) => timeout.is_some(),
        Unanswered::Denied(_)
        | Unanswered::Refused(_)
        | Unanswered::Rejected(_)
        | Unanswered::Unknown(_)
        | Unanswered::Ambiguous(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::has_changed;
    use std::cell::Cell;

    #[test]
    fn only_changes_after_the_first_look_count() {
        let before = Cell::new(None);
        assert!(!has_changed(&before, 4) && !has_changed(&before, 4));
        assert!(has_changed(&before, 5));
        // The daemon was started again.
        assert!(!has_changed(&before, 1) && has_changed(&before, 2));
    }
}
