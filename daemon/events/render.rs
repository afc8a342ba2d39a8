//! The words of events: the one place that turns the data of an event into text, for the log, the journal, `events`,
//! `top` and the recorders.

use crate::api::event_data::{
    AspectChange, Changed, Contended, Culprit, Failed, FailedChange, Held, HoldReason, Retrying,
    RunError, Session, SessionEnd, Worker,
};
use crate::api::{ChangeClass, EventKind, GraphDiff, NameSample, SettingsChange};
use std::time::Duration;
use steadfast_resources::printable;

/// The longest value of an aspect in a message, in characters.
const SHOWN: usize = 60;

/// The maximum number of names in a message.
const NAMED: usize = 5;

/// Returns the event as one text: its name, its resource, and its message.
#[must_use]
pub fn headline(name: &str, resource: Option<&str>, message: &str) -> String {
    let resource = resource.map(|resource| format!(" {}", plain(resource))).unwrap_or_default();
    let colon = match message {
        "" => "",
        message if name == "retrying" && message.starts_with("in ") => " ",
        _ => ": ",
    };
    format!("{}{resource}{colon}{message}", plain(name))
}

/// Returns the message of an event: its data in words, without the name of the event.
#[must_use]
pub fn message(kind: &EventKind) -> String {
    match kind {
        EventKind::Started
        | EventKind::Unchanged
        | EventKind::Recovered
        | EventKind::Diverged
        | EventKind::Interrupted(_)
        | EventKind::Resumed
        | EventKind::Old(_) => String::new(),
        EventKind::Changed(changed) => change(changed),
        EventKind::Error(failed) => error(&failed.error),
        EventKind::Asking(asking) => {
            "checking the dependencies before counting this as a failure".to_owned()
                + &some(": ", &asking.parents)
        }
        EventKind::Excused => {
            "not counted as failed: a dependency has drifted and is repaired first".to_owned()
        }
        EventKind::Retrying(retrying) => retry(retrying),
        EventKind::Failed(failed) => failure(failed),
        EventKind::Held(held) => hold(held),
        EventKind::Stuck => {
            "the run does not return; the resource is not retried until it does".to_owned()
        }
        EventKind::Unwatched(why) => {
            format!("cannot be watched ({}); polling every 30 s", plain(&why.reason))
        }
        EventKind::Paused(pause) => {
            format!("{}; resumes automatically in {}", plain(&pause.reason), span(pause.ends_in))
        }
        EventKind::Contended(contended) => contention(contended),
        EventKind::ContentionEnded => "contention ended; repair delay reset".to_owned(),
        EventKind::GroupSplit(why) => {
            format!("{}; applied separately from its group until it is stable", plain(&why.reason))
        }
        EventKind::GroupJoined => "stable again; applied with its group".to_owned(),
        EventKind::Undeclared(text)
        | EventKind::Removed(text)
        | EventKind::Protected(text)
        | EventKind::Unprotected(text)
        | EventKind::Forgotten(text)
        | EventKind::Retried(text)
        | EventKind::Undone(text)
        | EventKind::Imported(text)
        | EventKind::Repaired(text)
        | EventKind::StateRepaired(text)
        | EventKind::StateUnsound(text)
        | EventKind::StateLeftAlone(text)
        | EventKind::InternalError(text) => lines(&text.text),
        host => host_message(host),
    }
}

/// Returns the message of an event about the whole host.
fn host_message(kind: &EventKind) -> String {
    match kind {
        EventKind::RunStart(session) => start(session),
        EventKind::RunEnd(end) => ended(end),
        EventKind::Loaded(loaded) => {
            format!("graph {}: {}", plain(&loaded.graph), graph_change(&loaded.change))
        }
        EventKind::Loading(loading) => {
            format!("waiting for {}: {}", names(&loading.waits), graph_change(&loading.change))
        }
        EventKind::Rejected(why) => {
            format!("the previous graph is still running\n{}", lines(why.reason.trim_end()))
        }
        EventKind::LastGoodGraphUsed(used) => format!(
            "running the last-good graph `{}`, accepted at {}; the current graph file is rejected:\n{}",
            plain(&used.graph),
            local_time(&used.accepted_at),
            lines(used.reason.trim_end())
        ),
        EventKind::Bundle(why) => {
            format!("the bundle was rejected: {}", lines(why.reason.trim_end()))
        }
        EventKind::LastGoodSettings(why) | EventKind::ReadOnly(why) | EventKind::World(why) => {
            lines(why.reason.trim_end())
        }
        EventKind::Settings(change) => settings_change(change).join("; "),
        EventKind::Converged(converged) => {
            format!("{} converged", count(converged.total as usize, "resource"))
        }
        EventKind::Pausing(waiting) => format!("waiting for {}", names(&waiting.resources)),
        EventKind::PauseEnds(left) => format!("the pause ends in {}", span(left.ends_in)),
        EventKind::RepairsSuspended(repair_limit) => format!(
            "{} repairs were reverted within a minute; repeated repairs are suspended for {}",
            repair_limit.repairs,
            span(repair_limit.lasts)
        ),
        EventKind::RepairsResumed => "drift found meanwhile is repaired now".to_owned(),
        EventKind::StateWriteFailed(why) => {
            format!("no changes are made until the state can be written: {}", plain(&why.reason))
        }
        EventKind::Stopping(waiting) => some("waiting for ", &waiting.resources),
        EventKind::Stopped(waiting) => some("interrupted: ", &waiting.resources),
        EventKind::WorkerStarted(worker) | EventKind::WorkerStopped(worker) => of_worker(worker),
        EventKind::Gap(gap) => lines(&gap.reason),
        EventKind::Repeated(repeated) => {
            format!("{} more `{}` events within ten minutes", repeated.count, plain(&repeated.of))
        }
        EventKind::DeadLettered(dead) => format!(
            "{}: events {} to {} were rejected and dead-lettered: {}",
            plain(&dead.recorder),
            dead.first,
            dead.last,
            plain(&dead.reason)
        ),
        _ => String::new(),
    }
}

/// Escapes foreign text for one line, so that it can neither forge nor hide anything (S-13).
fn plain(text: &str) -> String {
    printable(text).into_owned()
}

/// Escapes each line of a text.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// Formats a change: `content, mode (3 ms)`. A repair has its class and, for each aspect, the states before and after:
/// `mode: 0600 -> 0644 (3 ms, corrective)`.
fn change(changed: &Changed) -> String {
    let is_repair = changed.class != ChangeClass::Intentional;
    let differences = &changed.differences;
    // A note such as `mode 0640` says the same as the difference of its aspect.
    let is_difference = |note: &str| {
        let word = note.split(' ').next().unwrap_or_default();
        differences.iter().any(|one| one.aspect == note || one.aspect == word)
    };
    let mut items: Vec<String> = if is_repair && !differences.is_empty() {
        let notes = changed.notes.iter().filter(|note| !is_difference(note));
        differences.iter().map(aspect).chain(notes.map(|note| plain(note))).collect()
    } else if changed.notes.is_empty() {
        differences.iter().map(|one| plain(&one.aspect)).collect()
    } else {
        changed.notes.iter().map(|note| plain(note)).collect()
    };
    if changed.omitted > 0 && (is_repair || changed.notes.is_empty()) {
        items.push(format!("{} more", changed.omitted));
    }
    let class = if is_repair { format!(", {}", changed.class.words()) } else { String::new() };
    format!("{} ({}{class})", items.join(", "), span(changed.took))
}

/// Formats an aspect with the states before and after: `mode: 0600 -> 0644`.
fn aspect(one: &AspectChange) -> String {
    let name = plain(&one.aspect);
    let value = |text: &str| {
        let text = plain(text);
        let is_long = text.chars().count() > SHOWN;
        if is_long { text.chars().take(SHOWN).chain(['…']).collect() } else { text }
    };
    match (value(&one.from), value(&one.to)) {
        (from, to) if from == to => name,
        (from, to) if from.is_empty() => format!("{name}: {to}"),
        (from, to) if to.is_empty() => format!("{name}: {from} -> none"),
        (from, to) => format!("{name}: {from} -> {to}"),
    }
}

/// Formats a failure: `what went wrong (hint: advice)`.
fn error(error: &RunError) -> String {
    let mut words = error.reason.trim_end().lines().map(plain).collect::<Vec<_>>().join("; ");
    if let Some(hint) = &error.hint {
        words.push_str(&format!(" (hint: {})", plain(hint)));
    }
    words
}

/// Formats a retry: `in 200 ms: what went wrong`.
fn retry(retrying: &Retrying) -> String {
    let why = retrying.error.as_ref().map(|why| format!(": {}", error(why))).unwrap_or_default();
    let drift = retrying.change.as_ref().and_then(drift);
    let drift = drift.map(|drift| format!("; {drift}")).unwrap_or_default();
    format!("in {}{why}{drift}", span(retrying.after))
}

/// Describes the drift that a failed repair leaves; none for the failure of an intentional change.
fn drift(change: &FailedChange) -> Option<String> {
    if change.class == ChangeClass::Intentional {
        return None;
    }
    Some(format!("drift: {}", aspects(&change.differences, change.omitted)))
}

/// Formats differences: `mode: 0600 -> 0644, 2 more`.
fn aspects(differences: &[AspectChange], omitted: usize) -> String {
    let mut all: Vec<String> = differences.iter().map(aspect).collect();
    if omitted > 0 {
        all.push(format!("{omitted} more"));
    }
    all.join(", ")
}

fn failure(failed: &Failed) -> String {
    let mut parts: Vec<String> = failed.error.iter().map(error).collect();
    parts.extend(failed.change.as_ref().and_then(drift));
    if failed.waiting.count > 0 {
        let waiting = &failed.waiting;
        let dependents = count(waiting.count, "dependent");
        parts.push(format!("{dependents} waiting: {}", names(waiting)));
    }
    parts.join("; ")
}

/// Describes the reason why a resource is held.
fn hold(held: &Held) -> String {
    let aspects = || aspects(&held.differences, held.omitted);
    let until = |usual: &str| plain(held.until.as_deref().unwrap_or(usual));
    match held.reason {
        HoldReason::WouldChange => format!("would change: {}", aspects()),
        HoldReason::WouldRefresh => "would refresh".to_owned(),
        HoldReason::Unknown => format!("unknown until {} is changed", until("another")),
        HoldReason::Window => {
            format!("changes are allowed {}; would change: {}", until("its window"), aspects())
        }
        HoldReason::Operator => {
            "the run was interrupted and `on_interrupt` is `ask`; waiting for the operator"
                .to_owned()
        }
    }
}

/// Describes a contention: its culprit and its consequence, or its present state.
fn contention(contended: &Contended) -> String {
    let repairs = contended.repairs;
    let Some(by) = &contended.by else {
        let next = contended.next.map(|next| format!("; next repair in {}", span(next)));
        let lasts = span(contended.lasts.unwrap_or_default());
        let next = next.unwrap_or_default();
        return format!("still reverted after {repairs} repairs in {lasts}{next}");
    };
    let who = match by {
        Culprit::Another => "by another party".to_owned(),
        Culprit::Itself => "not idempotent: by the resource's own run".to_owned(),
        Culprit::Resource(other) => format!("not idempotent: by {}", plain(other)),
        Culprit::Unknown => "the cause is unknown".to_owned(),
    };
    format!(
        "repeatedly reverted ({repairs} repairs), {who}; further repairs are delayed as set by `on_conflict`"
    )
}

/// Describes a session: `apply of /etc/steadfast/graph.yaml by root, steadfast 0.1.0, process 17`.
fn start(session: &Session) -> String {
    let version = &session.version;
    format!("{}, steadfast {}, process {}", identity(session), plain(version), session.process)
}

/// Describes the identity of a session: `apply of /etc/steadfast/graph.yaml by root`.
fn identity(session: &Session) -> String {
    let graph: Vec<String> = session.graph.iter().map(|path| plain(path)).collect();
    let graph = if graph.is_empty() { String::new() } else { format!(" of {}", graph.join(", ")) };
    let user = session.user.name.as_deref().map(plain);
    let user = user.unwrap_or_else(|| format!("user {}", session.user.uid));
    format!("{}{graph} by {user}", plain(&session.command))
}

fn ended(end: &SessionEnd) -> String {
    let session = end.session.as_ref().map(|session| format!("{}: ", identity(session)));
    let result = plain(&end.result);
    let text = if end.text.is_empty() { String::new() } else { format!(": {}", lines(&end.text)) };
    format!("{}{result}{text}", session.unwrap_or_default())
}

fn of_worker(worker: &Worker) -> String {
    let reason = worker.reason.as_deref().map(|why| format!(": {}", lines(why)));
    format!("{}{}", plain(&worker.worker), reason.unwrap_or_default())
}

/// Joins a text and names; empty without names.
fn some(words: &str, sample: &NameSample) -> String {
    if sample.count == 0 { String::new() } else { format!("{words}{}", names(sample)) }
}

/// Joins names, up to a limit.
fn names(sample: &NameSample) -> String {
    let names: Vec<&str> = sample.names.iter().map(String::as_str).collect();
    join_names(&names, sample.count)
}

/// Joins names, up to a limit; `total` is the number of all names, also those that are not given.
#[must_use]
pub fn join_names(names: &[&str], total: usize) -> String {
    let mut row = names.iter().take(NAMED).map(|name| plain(name)).collect::<Vec<_>>().join(", ");
    let more = total.saturating_sub(names.len().min(NAMED));
    if more > 0 {
        row.push_str(&format!(" and {more} more"));
    }
    row
}

/// Returns a recorded time in the time zone of the reader.
fn local_time(text: &str) -> String {
    let time: Result<jiff::Timestamp, _> = text.parse();
    time.map_or_else(
        |_not_a_time| plain(text),
        |time| {
            let local = time.to_zoned(jiff::tz::TimeZone::system());
            local.strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}

/// Formats milliseconds for people.
fn span(milliseconds: u64) -> String {
    span_words(Duration::from_millis(milliseconds))
}

/// Formats a time span for people.
#[must_use]
pub fn span_words(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        format!("{:.0} ms", span.as_secs_f64() * 1000.0)
    } else if span < Duration::from_mins(2) {
        // A whole number needs no fraction.
        let tenths = (span.as_secs_f64() * 10.0).round() / 10.0;
        if tenths.fract() == 0.0 { format!("{tenths:.0} s") } else { format!("{tenths:.1} s") }
    } else {
        let (days, hours, minutes) =
            (span.as_secs() / 86_400, span.as_secs() / 3600 % 24, span.as_secs() / 60 % 60);
        match (days, hours) {
            (0, 0) => format!("{minutes} min"),
            (0, hours) => format!("{hours} h {minutes} min"),
            (days, hours) => format!("{days} d {hours} h"),
        }
    }
}

/// Formats a number with its noun: `1 resource`, `2 resources`.
fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Describes the difference between two graphs: counts, and names below unless all is new.
#[must_use]
pub fn graph_change(change: &GraphDiff) -> String {
    let GraphDiff { added, changed, removed, retained, deactivated, unchanged, inactive, again } =
        change;
    let gone = removed.count + retained.count;
    let mut text = format!(
        "{} added, {} changed, {gone} removed, {unchanged} unchanged",
        added.count, changed.count
    );
    if *inactive > 0 {
        text.push_str(&format!(", {inactive} inactive"));
    }
    if !again {
        return text;
    }
    let sorts = [
        ('+', added, ""),
        ('~', changed, ""),
        ('-', removed, ""),
        (' ', retained, " (leaves the graph, stays on the host)"),
        ('o', deactivated, " (inactive)"),
    ];
    for (mark, sort, note) in sorts {
        for name in &sort.names {
            text.push_str(&format!("\n{mark} {}{note}", plain(name)));
        }
        let more = sort.count - sort.names.len();
        if more > 0 {
            text.push_str(&format!("\n{mark} and {more} more"));
        }
    }
    text
}

/// Describes changed settings: a line for the applied ones, and one for those that need a restart.
#[must_use]
pub fn settings_change(change: &SettingsChange) -> Vec<String> {
    let mut lines = Vec::new();
    if !change.applied.is_empty() {
        lines.push(format!("settings applied: {}", change.applied.join(", ")));
    }
    if !change.restart.is_empty() {
        let names = change.restart.join(", ");
        lines.push(format!("settings that need a restart of steadfast: {names}"));
    }
    lines
}
