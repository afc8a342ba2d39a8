//! `steadfast show`, `why` and `report`: one resource, its blockers, and the daemon's workers.

use super::status::line;
use super::{PATIENCE, answer, ask_for, asking, now, pieces, shaped, span, words};
use crate::api::{
    Event, Inspection, Inspections, Ownership, Phase, Report, Request, ResourceDetails,
    ResourceStatus, WorkerReport,
};
use crate::cli::args;
use crate::cli::exit::Exit;
use crate::cli::history_list::{after_in_words, output_lines, time_of};
use crate::cli::output::{count, difference, out_json, plain, print};
use crate::cli::{settings, state_dir};
use crate::config::declared_lines;
use crate::control::Unanswered;
use crate::history::Reader;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steadfast_resources::ResourceId;

/// The number of events shown for one resource.
const LAST: usize = 5;

/// Prints all data about one resource.
pub(in crate::cli) fn show(args: &args::OfResource) -> Exit {
    asking(async {
        let ask = Request::Show { resource: args.resource.clone() };
        let details: ResourceDetails = ask_for(&args.socket, &ask).await?;
        // The selector may be short; the reply has the identity.
        let resource = details.status.resource.clone();
        let is_inactive = details.status.phase == Phase::Inactive;
        let look = Request::Diff { resources: vec![resource.clone()], resume: false };
        let found: Result<Inspections, _> = if is_inactive {
            Ok(Inspections::default())
        } else {
            answer(&args.socket, &look, PATIENCE).await.and_then(shaped)
        };
        let lately = Request::lately(Some(resource), LAST);
        let events: Vec<Event> = pieces(&args.socket, &lately).await;
        if args.json {
            out_json(&in_full(&details, found, &events));
            return Ok(Exit::Well);
        }
        for line in describe(&details) {
            print(line);
        }
        declaration(&details).into_iter().for_each(print);
        last_output(args, &details.status.resource).into_iter().for_each(print);
        match &found {
            Ok(found) => {
                for line in found.items.iter().flat_map(differences).skip(1) {
                    print(format!("  differs:{line}"));
                }
            }
            Err(why) => print(format!("  differs: unknown: {}", plain(&why.to_string()))),
        }
        for event in &events {
            print(words(event, now()));
        }
        Ok(Exit::Well)
    })
}

/// Returns the declaration as written in the graph file, if this user may read the file; without secrets.
fn declaration(details: &ResourceDetails) -> Vec<String> {
    let Some((file, line)) = &details.declared_at else { return Vec::new() };
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let lines = declared_lines(&text, usize::try_from(*line).unwrap_or_default());
    let identity = &details.status.resource;
    let name = ResourceId::parse(identity).map_or(identity.as_str(), |id| id.name);
    // A name with an expression differs from its declaration.
    let is_declared = |line: &String| line.contains(name) || line.contains("${");
    if !lines.iter().any(is_declared) {
        return vec!["  the file has changed since it was loaded".to_owned()];
    }
    lines.iter().map(|line| format!("    {}", plain(line))).collect()
}

/// Returns the end and the output of the last command that the history has recorded, if this user may read it.
fn last_output(args: &args::OfResource, resource: &str) -> Vec<String> {
    let said = args.socket.state_dir.clone().or_else(|| settings::of_daemon().1);
    let reader = Reader::open(&state_dir::directory(said.as_deref())).ok().flatten();
    let last = reader.and_then(|reader| reader.last_produced(resource).ok().flatten());
    let Some(entry) = last else { return Vec::new() };
    let ended = entry.values.iter().find(|value| value.field == "ended").map(after_in_words);
    let mut lines =
        vec![format!("  last run: {} ({})", ended.unwrap_or_default(), time_of(&entry))];
    let output = output_lines(&entry, usize::MAX);
    lines.extend(output.into_iter().map(|line| format!("    {line}")));
    lines
}

/// Returns all data about one resource as JSON. If the check failed, `differences` is null instead of an empty list.
fn in_full(
    details: &ResourceDetails,
    found: Result<Inspections, Unanswered>,
    events: &[Event],
) -> Value {
    let mut all = serde_json::to_value(details).unwrap_or_default();
    let unknown = found.as_ref().err().map(ToString::to_string);
    // A converged resource has no inspection.
    let found = found.ok().map(|found| found.items.into_iter().next().unwrap_or_default());
    let diff_error = found.as_ref().and_then(|found| found.error.clone());
    all["diff_error"] = json!(diff_error.or(unknown));
    all["destructive"] = json!(found.as_ref().map(|found| found.destructive));
    all["differences"] =
        json!(found.filter(|found| found.error.is_none()).map(|it| it.differences));
    all["events"] = json!(events);
    all
}

/// Describes one resource, line by line.
pub(in crate::cli) fn describe(details: &ResourceDetails) -> Vec<String> {
    let names = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        names => names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
    };
    if details.status.phase == Phase::Inactive {
        return describe_inactive(details);
    }
    let mut lines = vec![
        line(&details.status).trim_start().to_owned(),
        format!("  needs: {}", names(&details.needs)),
        format!("  needed by: {}", names(&details.needed_by)),
        format!("  events: {}", plain(&details.watch)),
    ];
    if !details.waited_for_by.is_empty() {
        lines.push(format!("  dependents waiting: {}", names(&details.waited_for_by)));
    }
    if let Some((file, line)) = &details.declared_at {
        lines.push(format!("  declared at: {}:{line}", plain(file)));
    }
    lines.extend(details.owned.as_ref().map(owned));
    let ages = details.status.ages;
    for (what, age) in
        [("checked", ages.check), ("changed", ages.repair), ("last event", ages.event)]
    {
        // The counts begin with the daemon and with each activation; the history may know an earlier change.
        let none = if what == "changed" { "not since it became active" } else { "never" };
        let age = age.map_or_else(|| none.to_owned(), |age| format!("{} ago", span(age)));
        let class = details.status.last_change.filter(|_| what == "changed");
        let class = class.map_or_else(String::new, |class| format!(", {}", class.words()));
        lines.push(format!("  {what}: {age}{class}"));
    }
    lines
}

/// Describes an inactive resource, line by line.
fn describe_inactive(details: &ResourceDetails) -> Vec<String> {
    let mut lines = vec![line(&details.status).trim_start().to_owned()];
    if let Some((file, line)) = &details.declared_at {
        lines.push(format!("  declared at: {}:{line}", plain(file)));
    }
    lines.extend(details.condition_at.as_ref().map(|at| format!("  condition at: {}", plain(at))));
    lines.push("  not checked; its records and its ownership stay".to_owned());
    lines
}

/// Describes the ownership of an object.
fn owned(owned: &Ownership) -> String {
    let mut words = match owned.created {
        Some(true) => "created by steadfast".to_owned(),
        Some(false) => "adopted (existed before)".to_owned(),
        None => "no removable object".to_owned(),
    };
    if owned.on_remove_delete && owned.created == Some(true) {
        words.push_str(", deleted when undeclared");
    }
    if owned.protected {
        words.push_str(", protected");
    }
    format!("  ownership: {words}")
}

/// Describes the differences of a resource, line by line: a diff for texts, else the present and the declared value.
pub(in crate::cli) fn differences(found: &Inspection) -> Vec<String> {
    let mut lines = vec![plain(&found.resource)];
    for one in &found.differences {
        let both = (one.from.as_str(), one.to.as_str());
        let each = difference(&one.aspect, both, one.diff.as_deref());
        lines.extend(each.into_iter().map(|line| format!("  {line}")));
    }
    if found.destructive {
        lines.push("  an existing object will be removed".to_owned());
    }
    if let Some(problem) = &found.error {
        lines.push(format!("  the differences are unknown: {}", plain(problem)));
    }
    lines
}

/// Prints the chain from a resource to its blocker.
pub(in crate::cli) fn why(args: &args::OfResource) -> Exit {
    asking(async {
        let ask = Request::Why { resource: args.resource.clone() };
        let path: Vec<ResourceStatus> = ask_for(&args.socket, &ask).await?;
        if args.json {
            out_json(&path);
            return Ok(Exit::Well);
        }
        for (depth, resource) in path.iter().enumerate() {
            print(format!("{}{}", "  ".repeat(depth), line(resource).trim_start()));
        }
        Ok(Exit::Well)
    })
}

/// Describes the inputs of a worker, and marks the missing ones.
fn inputs(inputs: &BTreeMap<String, bool>) -> String {
    let each = |(name, is_there): (&String, &bool)| {
        let missing = if *is_there { "" } else { " (missing)" };
        format!("{}{missing}", plain(name))
    };
    let names: Vec<String> = inputs.iter().map(each).collect();
    if names.is_empty() { String::new() } else { format!(", inputs: {}", names.join(", ")) }
}

/// Prints the daemon's workers.
pub(in crate::cli) fn workers(args: &args::Workers) -> Exit {
    asking(async {
        let report: Report = ask_for(&args.socket, &Request::Workers).await?;
        if args.json {
            out_json(&report);
            return Ok(Exit::Well);
        }
        for line in worker_lines(&report) {
            print(line);
        }
        Ok(Exit::Well)
    })
}

/// Describes all workers and the missing inputs, line by line.
fn worker_lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> =
        report.workers.iter().map(|(name, worker)| of_worker(name, worker)).collect();
    let nobody = report.missing_inputs.iter();
    lines.extend(
        nobody.map(|name| format!("input {} is declared, but no such worker exists", plain(name))),
    );
    lines
}

fn of_worker(name: &str, worker: &WorkerReport) -> String {
    let state = format!("{:?}", worker.state).to_lowercase();
    let mut line = format!(
        "{}: {state}, {}",
        plain(name),
        count(usize::try_from(worker.starts).unwrap_or(usize::MAX), "start")
    );
    if let Some(long) = worker.hangs_for {
        line.push_str(&format!(", hangs for {}", span(long / 1000)));
    }
    if let Some(says) = &worker.message {
        line.push_str(&format!(", {}", plain(says)));
    }
    line.push_str(&inputs(&worker.inputs));
    if worker.failures > 0 {
        line.push_str(&format!(", failed {} times within an hour", worker.failures));
    }
    if let Some(error) = worker.last_error.as_ref().or(worker.last_failure.as_ref()) {
        line.push_str(&format!(", last error: {}", plain(error)));
    }
    if let Some(wait) = worker.next_attempt_in {
        line.push_str(&format!(", next try in {}", span(wait.div_ceil(1000))));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::worker_lines;
    use crate::api::{Report, State, WorkerReport};

    /// P-7: the report shows missing inputs, hanging workers, and the number of failures.
    #[test]
    fn the_report_shows_all_that_is_wrong() {
        let mut report = Report::default();
        let failed = WorkerReport {
            state: State::Waiting,
            starts: 4,
            failures: 3,
            last_error: Some("no\u{1b}[2J".to_owned()),
            next_attempt_in: Some(1200),
            ..WorkerReport::default()
        };
        let hung = WorkerReport { hangs_for: Some(31_000), starts: 1, ..WorkerReport::default() };
        report.workers.insert("a".to_owned(), failed);
        report.workers.insert("b".to_owned(), hung);
        report.missing_inputs.push("drvier".to_owned());
        let lines = worker_lines(&report);
        assert!(lines[0].starts_with("a: waiting, 4 starts, failed 3 times within an hour"));
        assert!(lines[0].ends_with("next try in 2 s") && !lines[0].contains('\u{1b}'));
        assert_eq!(lines[1], "b: running, 1 start, hangs for 31 s");
        assert_eq!(lines[2], "input drvier is declared, but no such worker exists");
    }
}
