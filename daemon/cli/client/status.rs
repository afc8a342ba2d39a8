//! `steadfast status`: the state of the host, and the resources that are not converged.

use super::{ask_for, asking, span};
use crate::api::{
    ChangeClass, Changes, Checkout, HostStatus, PauseStatus, Request, ResourceStatus,
    SelectedResources, Status,
};
use crate::cli::args;
use crate::cli::exit::Exit;
use crate::cli::output::{count, is_unread, out_json, plain, print};
use std::io::IsTerminal as _;
use std::time::Duration;

/// The interval of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// The sequence that clears a terminal and moves the cursor to the first line.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Prints the status, once or until the user interrupts.
pub(in crate::cli) fn status(args: &args::Status) -> Exit {
    asking(async {
        if !args.watch {
            return once(args).await;
        }
        let clears = !args.json && std::io::stdout().is_terminal();
        loop {
            if clears {
                print(CLEAR);
            }
            // An error is no reason to stop watching: a stopped daemon may come back.
            let _watched = once(args).await;
            if is_unread() {
                return Ok(Exit::Well);
            }
            tokio::time::sleep(EVERY).await;
        }
    })
}

async fn once(args: &args::Status) -> Result<Exit, Exit> {
    let resources = args.selection.texts();
    if !resources.is_empty() {
        let ask = Request::Select { resources, limit: args.limit };
        let found: SelectedResources = ask_for(&args.socket, &ask).await?;
        if args.json {
            out_json(&found);
        } else {
            show_selection(&found);
        }
        return Ok(exit_of_selection(&found));
    }
    let status: Status = ask_for(&args.socket, &Request::Status { limit: args.limit }).await?;
    if args.json {
        out_json(&status);
    } else {
        show(&status);
    }
    Ok(exit(&status))
}

/// Returns the exit code for selected resources: that of a failure first, then of the convergence.
fn exit_of_selection(found: &SelectedResources) -> Exit {
    match found {
        SelectedResources { failed: 1.., .. } | SelectedResources { retrying: 1.., .. } => {
            Exit::Failed
        }
        _ if found.converged == found.total => Exit::Well,
        _ => Exit::Changes,
    }
}

/// Prints the status of selected resources, worst first.
fn show_selection(found: &SelectedResources) {
    let counts = [(found.failed, "failed"), (found.retrying, "retrying"), (found.paused, "paused")];
    let more = counts.iter().filter(|(number, _)| *number > 0);
    let more: Vec<String> = more.map(|(number, words)| format!(", {number} {words}")).collect();
    let more = more.concat();
    print(format!("{} of {} converged{more}", found.converged, count(found.total, "resource")));
    for resource in &found.rows {
        print(line(resource));
    }
    let omitted = found.total.saturating_sub(found.rows.len());
    if omitted > 0 {
        print(format!("  … and {omitted} more (--limit N)"));
    }
}

/// Returns the exit code for monitoring: that of a failure first, then of a rejected graph, then of the convergence.
fn exit(status: &Status) -> Exit {
    let is_refused = status.rejected.is_some() || status.fallback_reason.is_some();
    match status.verdict {
        HostStatus::ReadOnly => Exit::State,
        HostStatus::Stuck | HostStatus::Failed | HostStatus::Failing | HostStatus::Contended => {
            Exit::Failed
        }
        _ if is_refused => Exit::Graph,
        HostStatus::Converged if status.swap.is_none() => Exit::Well,
        HostStatus::Converged
        | HostStatus::Held
        | HostStatus::Stopping
        | HostStatus::Paused
        | HostStatus::Starting
        | HostStatus::Converging => Exit::Changes,
    }
}

fn show(status: &Status) {
    print(headline(status));
    for why in [&status.read_only, &status.fallback_reason].into_iter().flatten() {
        why.lines().for_each(|line| print(format!("  {}", plain(line))));
    }
    newer(status).into_iter().for_each(print);
    if let Some(pause) = &status.pause {
        print(paused(pause));
    }
    let shown = |name: &str| status.unhealthy.iter().any(|resource| resource.resource == name);
    for one in status.paused.iter().filter(|one| !shown(&one.resource)) {
        print(format!("  {}: {}", plain(&one.resource), paused(&one.pause).trim_start()));
    }
    for resource in &status.unhealthy {
        print(line(resource));
    }
    if status.unhealthy_omitted > 0 {
        print(format!("  … and {} more (--limit N)", status.unhealthy_omitted));
    }
    for inactive in &status.inactive {
        print(format!("  {}: {}", plain(&inactive.resource), plain(&inactive.message)));
    }
    if status.inactive_omitted > 0 {
        print(format!("  … and {} more inactive (--limit N)", status.inactive_omitted));
    }
    status.input_reports.iter().for_each(|line| print(format!("  {}", plain(line))));
    for part in &status.daemon {
        print(format!("  daemon: {}: {}", plain(&part.part), plain(&part.message)));
    }
    if let Some(reboot) = &status.reboot {
        let packages: Vec<_> = reboot.packages.iter().map(|name| plain(name)).collect();
        let by =
            if packages.is_empty() { String::new() } else { format!(": {}", packages.join(", ")) };
        print(format!("  reboot required{by}"));
    }
    if let Some(Checkout { commit, branch }) = &status.checkout {
        let short: String = commit.chars().take(12).collect();
        let branch = branch.as_deref().map(|name| format!(" ({})", plain(name)));
        let branch = branch.unwrap_or_default();
        print(format!("  graph at commit {short}{branch}; uncommitted edits are not shown"));
    }
    let ages = status.ages;
    let ago = |what, age: Option<u64>| match age {
        Some(age) => format!("last {what} {} ago", span(age)),
        None => format!("no {what} yet"),
    };
    let words = [ago("check", ages.check), ago("repair", ages.repair), ago("event", ages.event)];
    print(format!("  {}; uptime {}", words.join(", "), span(status.uptime)));
    if let Some(changes) = changes(&status.changes) {
        print(changes);
    }
    if !status.pending_removals.is_empty() {
        let names: Vec<_> = status.pending_removals.iter().map(|name| plain(name)).collect();
        let names = names.join(", ");
        print(format!("  pending removal: {names} (`steadfast reload` removes them)"));
    }
    if status.unwatched > 0 {
        let number = count(status.unwatched, "resource");
        let names: Vec<_> = status.unwatched_names.iter().map(|name| plain(name)).collect();
        let more = if status.unwatched > names.len() { ", …" } else { "" };
        let names = names.join(", ");
        print(format!("  {number} not watched, polled every 30 seconds: {names}{more}"));
    }
}

/// Describes the newer graph that is rejected or waiting, if there is one.
pub(in crate::cli) fn newer(status: &Status) -> Vec<String> {
    let refused = status.rejected.as_ref().map(|refused| {
        let (since, why) = (span(refused.rejected_for), plain(&refused.reason));
        format!("  the current graph file was rejected {since} ago: {why}; the previous graph is still running")
    });
    let waits = status.swap.as_ref().map(|swap| {
        let names: Vec<_> = swap.waits_for.iter().map(|name| plain(name)).collect();
        let (graph, since) = (plain(&swap.graph), span(swap.waiting_for));
        let names =
            if names.is_empty() { "the resources to change".to_owned() } else { names.join(", ") };
        format!("  a newer graph, {graph}, has waited {since} for running resources: {names}")
    });
    refused.into_iter().chain(waits).collect()
}

/// Describes the number of changes by class; `None` without changes.
fn changes(changes: &Changes) -> Option<String> {
    let Changes { intentional, corrective, not_idempotent, contended } = *changes;
    let sorts = [
        (ChangeClass::Intentional, intentional),
        (ChangeClass::Corrective, corrective),
        (ChangeClass::NotIdempotent, not_idempotent),
        (ChangeClass::Contended, contended),
    ];
    let words: Vec<String> = sorts
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(class, number)| format!("{number} {}", class.words()))
        .collect();
    (!words.is_empty()).then(|| format!("  changes since the start: {}", words.join(", ")))
}

/// Describes the state of the host.
pub(in crate::cli) fn headline(status: &Status) -> String {
    let all = count(status.counts.total as usize, "resource");
    let graph = plain(&status.graph);
    let counts = status.counts;
    let left = counts.total.saturating_sub(counts.settled);
    match status.verdict {
        HostStatus::Converged => {
            let since = status.converged_for.map(|age| format!(" for {}", span(age)));
            format!("{graph}: converged{}: {all}", since.unwrap_or_default())
        }
        HostStatus::ReadOnly => {
            format!("{graph}: read-only: {left} of {all} not converged, no changes are made")
        }
        HostStatus::Stuck => {
            format!("{graph}: stuck: runs of {} of {all} do not return", counts.stuck)
        }
        HostStatus::Failed => format!("{graph}: failed: {left} of {all} not converged"),
        HostStatus::Failing => {
            format!("{graph}: failing, retrying: {left} of {all} not converged")
        }
        HostStatus::Contended => {
            format!("{graph}: contended: {} of {all} repeatedly reverted", counts.contended)
        }
        HostStatus::Held => {
            format!("{graph}: paused or held: {} of {all}", counts.held)
        }
        HostStatus::Stopping => format!("{graph}: stopping: {} still running", counts.running),
        HostStatus::Paused if left == 0 => format!("{graph}: paused: no check is due, {all}"),
        HostStatus::Paused => format!("{graph}: paused: {left} of {all} to be checked"),
        HostStatus::Starting => "starting: no graph is loaded yet".to_owned(),
        HostStatus::Converging => {
            format!("{graph}: converging: {} of {all} converged", counts.settled)
        }
    }
}

/// Describes the pause of the daemon.
pub(in crate::cli) fn paused(pause: &PauseStatus) -> String {
    format!("  paused: {}", pause_words(pause))
}

/// Describes the reason and the end of a pause.
fn pause_words(pause: &PauseStatus) -> String {
    let end = pause.ends_in.map(|left| format!("; resumes automatically in {}", span(left)));
    let rest = if pause.at_rest { "" } else { "; waiting for running resources" };
    format!("{}{}{rest}", plain(&pause.reason), end.unwrap_or_default())
}

/// Describes one resource in one line, with its output below.
pub(in crate::cli) fn line(resource: &ResourceStatus) -> String {
    let leaves = if resource.pending_removal { "undeclared, pending removal; " } else { "" };
    let mut line = format!("  {}: {leaves}{}", plain(&resource.resource), plain(&resource.message));
    // The owner of a semaphore is named by the text already.
    let is_said = |name: &String| resource.message.contains(name.as_str());
    if !resource.waits_for.iter().all(is_said) {
        let names: Vec<_> = resource.waits_for.iter().take(3).map(|name| plain(name)).collect();
        line.push_str(&format!(": {}", names.join(", ")));
    }
    if let Some(wait) = resource.next_try_in {
        let lead = if resource.message.ends_with("retrying") { "" } else { "; next try" };
        line.push_str(&format!("{lead} in {}", span(wait)));
    }
    if let Some(time) = resource.running_for.or(resource.awaiting_operator_for) {
        line.push_str(&format!(", for {}", span(time)));
    }
    if let Some(pause) = &resource.pause {
        let lead = if resource.message.starts_with("paused") { ": " } else { "; paused: " };
        line.push_str(&format!("{lead}{}", pause_words(pause)));
    }
    if let Some(problem) = &resource.error {
        let mut lines = problem.lines().map(plain);
        line.push_str(&format!(": {}", lines.next().unwrap_or_default()));
        lines.for_each(|more| line.push_str(&format!("\n    {more}")));
    }
    line
}
