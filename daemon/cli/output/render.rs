//! Notifications as log lines: one line for each change of state.

pub(in crate::cli) use super::log_output::{Process, filter, set_up};
use super::{graph_change, plain};
use crate::cli::args::Log;
use crate::driver::status::ChangeClass;
use crate::driver::{ConflictCause, Notification, Observer, RunRef};
use crate::events::{self, NewEvent};
use std::collections::HashMap;
use std::time::Duration;
use steadfast_engine::{Class, HeldReason};
use steadfast_resources::{Difference, Failure};

/// An observer that writes notifications to the log.
#[derive(Debug)]
pub(in crate::cli) struct LogObserver {
    form: Log,
    /// The last report for each resource that is not converged: an equal report is no change of state.
    said: HashMap<String, (Unwell, String)>,
}

/// The trouble of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unwell {
    Retrying,
    Failed,
    Held,
}

/// One line: the event, the resource, and a description.
struct Line<'a> {
    event: &'static str,
    resource: Option<&'a str>,
    words: String,
    level: Level,
    /// The class of a change.
    class: Option<&'static str>,
    /// The run that the line is about.
    run: Option<RunRef>,
}

#[derive(Clone, Copy)]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogObserver {
    /// Creates an observer for a format.
    #[must_use]
    pub(in crate::cli) fn new(log: Log) -> Self {
        Self { form: log, said: HashMap::new() }
    }

    /// Returns true if the same was reported last: a repeated attempt with the same result is no change of state.
    fn was_said(&mut self, news: &Notification<'_>) -> bool {
        let (identity, ill, words) = match news {
            Notification::Failed { identity, .. } => (*identity, Unwell::Failed, String::new()),
            Notification::Retrying { identity, .. } => (*identity, Unwell::Retrying, String::new()),
            Notification::Held { identity, holding, until, differences, .. } => {
                (*identity, Unwell::Held, held(*holding, *until, differences))
            }
            Notification::Recovered { identity, .. }
            | Notification::Same(identity)
            | Notification::Changed { identity, .. } => {
                self.said.remove(*identity);
                return false;
            }
            Notification::Loaded { .. } => {
                self.said.clear();
                return false;
            }
            _ => return false,
        };
        match self.said.get(identity) {
            Some((Unwell::Failed, _)) if ill == Unwell::Retrying => true,
            Some((before, same)) if *before == ill && *same == words => true,
            _ => {
                self.said.insert(identity.to_owned(), (ill, words));
                false
            }
        }
    }

    fn write(&self, line: &Line<'_>) {
        let resource = line.resource.map(plain).unwrap_or_default();
        let (event, words) = (line.event, &line.words);
        // JSON has these parts as fields; the journal needs them in the message for its readers too.
        let message = match (self.form, line.resource) {
            (Log::Json, _) => words.trim_start_matches([':', ' ']).to_owned(),
            (Log::Human | Log::Journald, Some(_)) => format!("{event} {resource}{words}"),
            (Log::Human | Log::Journald, None) => format!("{event}{words}"),
        };
        macro_rules! log {
            ($level:ident) => {
                match (self.form, line.resource, line.run) {
                    (Log::Human, ..) => tracing::$level!("{message}"),
                    (_, Some(_), Some(RunRef { number, cause })) => {
                        let class = line.class;
                        tracing::$level!(event, resource, class, run = number, cause, "{message}");
                    }
                    (_, Some(_), None) => tracing::$level!(event, resource, "{message}"),
                    (_, None, _) => tracing::$level!(event, "{message}"),
                }
            };
        }
        match line.level {
            Level::Debug => log!(debug),
            Level::Info => log!(info),
            Level::Warn => log!(warn),
            Level::Error => log!(error),
        }
    }
}

impl Observer for LogObserver {
    fn hear(&mut self, news: &Notification<'_>) {
        let Some(mut line) = line(news) else { return };
        if self.was_said(news) {
            line.level = Level::Debug;
        }
        self.write(&line);
    }
}

/// Converts a notification to an event for the event stream.
pub(in crate::cli) fn happening(news: &Notification<'_>) -> Option<NewEvent> {
    let line = line(news)?;
    let level = match line.level {
        Level::Debug => events::Level::Debug,
        Level::Info => events::Level::Info,
        Level::Warn => events::Level::Warn,
        Level::Error => events::Level::Error,
    };
    let says = line.words.trim_start_matches([':', ' ']).to_owned();
    let resource = line.resource.map(str::to_owned);
    let class = line.class;
    Some(NewEvent { resource, class, ..NewEvent::new(line.event, says, level) })
}

/// Returns the line of a notification.
fn line<'a>(news: &'a Notification<'a>) -> Option<Line<'a>> {
    match of_resource(news) {
        Some((event, name, words, level)) => {
            let class = match news {
                Notification::Changed { class, .. } => Some(ChangeClass::from(*class).words()),
                _ => None,
            };
            Some(Line { event, resource: Some(name), words, level, class, run: run(news) })
        }
        None => of_whole(news).map(|(event, words, level)| Line {
            event,
            resource: None,
            words,
            level,
            class: None,
            run: None,
        }),
    }
}

/// Returns the run that a notification is about.
fn run(news: &Notification<'_>) -> Option<RunRef> {
    match news {
        Notification::Changed { run, .. }
        | Notification::Trouble { run, .. }
        | Notification::Interrupted { run, .. } => Some(*run),
        Notification::Retrying { run, .. }
        | Notification::Failed { run, .. }
        | Notification::Held { run, .. } => *run,
        _ => None,
    }
}

/// Returns event, resource, description and level of a notification about one resource.
fn of_resource<'a>(news: &'a Notification<'a>) -> Option<(&'static str, &'a str, String, Level)> {
    use Level::{Debug, Error, Info, Warn};
    Some(match news {
        Notification::Started(name) => ("started", name, String::new(), Debug),
        Notification::Same(name) => ("unchanged", name, String::new(), Debug),
        Notification::Changed { identity, differences, notes, took, class, in_fight, .. } => {
            let words = changed(differences, notes, *took, *class);
            // During a contention, a line for each repair is no news.
            ("changed", identity, words, if *in_fight { Debug } else { Info })
        }
        Notification::Contended { identity, by, repairs } => {
            ("contended", identity, contended(*by, *repairs), Warn)
        }
        Notification::StillContended { identity, repairs, lasts, next } => {
            ("contended", identity, still_contended(*repairs, *lasts, *next), Warn)
        }
        Notification::Calm(name) => {
            ("contention_ended", name, ": contention ended; repair delay reset".to_owned(), Info)
        }
        Notification::Trouble { identity, trouble, .. } => {
            ("error", identity, trouble_words(trouble), Debug)
        }
        Notification::Interrupted { identity, .. } => {
            ("interrupted", identity, String::new(), Warn)
        }
        Notification::Asking { identity, above } => ("asking", identity, asking(above), Debug),
        Notification::Excused(name) => ("excused", name, EXCUSED.to_owned(), Debug),
        // A failure during a contention belongs to the contention that was reported.
        Notification::Retrying { identity, trouble, after, in_fight, .. } => {
            let level = if *in_fight { Debug } else { Warn };
            ("retrying", identity, retrying(*trouble, *after), level)
        }
        Notification::Failed { identity, trouble, waiting, .. } => {
            ("failed", identity, failed(*trouble, waiting), Error)
        }
        Notification::Recovered { identity, in_fight } => {
            ("recovered", identity, String::new(), if *in_fight { Debug } else { Info })
        }
        Notification::Held { identity, holding, until, differences, .. } => {
            ("held", identity, held(*holding, *until, differences), Info)
        }
        Notification::Stuck(name) => {
            let words =
                ": the run does not return; the resource is not retried until it does".to_owned();
            ("stuck", name, words, Error)
        }
        Notification::Unwatched { identity, why } => {
            let words = format!(": cannot be watched ({}); polling every 30 s", plain(why));
            ("unwatched", identity, words, Warn)
        }
        Notification::Parked { identity, reason, limit } => {
            let words =
                format!(": {}; resumes automatically in {}", plain(reason), seconds(*limit));
            ("paused", identity, words, Info)
        }
        Notification::Undeclared { identity, message, removed } => {
            let event = if *removed { "removed" } else { "undeclared" };
            (event, identity, format!(": {message}"), Info)
        }
        Notification::Done(deed) => {
            (deed.what, &deed.resource, format!(": {}", plain(&deed.message)), Info)
        }
        Notification::Apart { identity, why } => {
            let words = format!(": {why}; applied separately from its group until it is stable");
            ("group_split", identity, words, Warn)
        }
        Notification::Joined(name) => {
            ("group_joined", name, ": stable again; applied with its group".to_owned(), Info)
        }
        Notification::Unparked(name) => ("resumed", name, String::new(), Info),
        Notification::Diverged { identity, in_fight } => {
            ("diverged", identity, String::new(), if *in_fight { Debug } else { Info })
        }
        _ => return None,
    })
}

/// Returns event, description and level of a notification about the whole host.
fn of_whole(news: &Notification<'_>) -> Option<(&'static str, String, Level)> {
    use Level::{Debug, Error, Info, Warn};
    Some(match news {
        Notification::Loaded { graph, change } => {
            ("loaded", format!(": graph {}: {}", plain(graph), graph_change(change)), Info)
        }
        Notification::SwapWaits { waits, change } => {
            ("loading", format!(": waiting for {}: {}", list(waits), graph_change(change)), Info)
        }
        Notification::Refused(why) => (
            "rejected",
            format!(": the previous graph is still running\n{}", why.trim_end()),
            Error,
        ),
        Notification::Converged { counts, in_fight } => {
            let total = super::count(counts.total as usize, "resource");
            let level = if *in_fight { Debug } else { Info };
            ("converged", format!(": {total} converged"), level)
        }
        Notification::Pausing(names) => ("pausing", format!(": waiting for {}", list(names)), Info),
        Notification::Paused { reason, ends_in } => {
            let end = seconds(*ends_in);
            ("paused", format!(": {}; resumes automatically in {end}", plain(reason)), Info)
        }
        Notification::Braked { repairs, pause } => {
            let words = format!(
                ": {repairs} repairs were reverted within a minute; repeated repairs are suspended for {}",
                seconds(*pause)
            );
            ("repairs_suspended", words, Error)
        }
        Notification::Released => {
            ("repairs_resumed", ": drift found meanwhile is repaired now".to_owned(), Warn)
        }
        Notification::Resumed => ("resumed", String::new(), Info),
        Notification::PauseEnds(left) => {
            ("pause_ends", format!(": the pause ends in {}", seconds(*left)), Warn)
        }
        Notification::Observing(why) => ("read_only", format!(": {}", why.trim_end()), Error),
        Notification::Unkept(why) => {
            let words =
                format!(": no changes are made until the state can be written: {}", plain(why));
            ("state_write_failed", words, Error)
        }
        Notification::Stopping(names) => ("stopping", some(": waiting for ", names), Info),
        Notification::Stopped(names) => ("stopped", some(": interrupted: ", names), Info),
        _ => return None,
    })
}

/// Joins a text and names; empty without names.
fn some(words: &str, names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("{words}{}", list(names)) }
}

/// Joins names, up to a limit.
pub(in crate::cli) fn list(names: &[&str]) -> String {
    const MOST: usize = 5;
    let mut row = names.iter().take(MOST).map(|n| plain(n)).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        let more = names.len() - MOST;
        row.push_str(&format!(" and {more} more"));
    }
    row
}

/// Formats a time span for people.
pub(in crate::cli) fn seconds(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        format!("{:.0} ms", span.as_secs_f64() * 1000.0)
    } else if span < Duration::from_mins(2) {
        format!("{:.1} s", span.as_secs_f64())
    } else {
        format!("{} min", span.as_secs() / 60)
    }
}

/// Describes a contention: its culprit and its consequence.
fn contended(by: ConflictCause<'_>, repairs: u32) -> String {
    let who = match by {
        ConflictCause::Another => "by another party".to_owned(),
        ConflictCause::Itself => "not idempotent: by the resource's own run".to_owned(),
        ConflictCause::Ours(other) => format!("not idempotent: by {}", plain(other)),
        ConflictCause::Unknown => "the cause is unknown".to_owned(),
    };
    format!(
        ": repeatedly reverted ({repairs} repairs), {who}; further repairs are delayed as set by `on_conflict`"
    )
}

fn still_contended(repairs: u32, lasts: Duration, next: Option<Duration>) -> String {
    let next = next.map(|next| format!("; next repair in {}", seconds(next))).unwrap_or_default();
    format!(": still reverted after {repairs} repairs in {}{next}", seconds(lasts))
}

/// Formats a change: `: content, mode (3 ms)`; with its class, unless the graph asked for the change.
pub(in crate::cli) fn changed(
    differences: &[Difference],
    notes: &[String],
    took: Duration,
    class: Class,
) -> String {
    let what = if notes.is_empty() {
        differences.iter().map(|d| d.aspect.to_owned()).collect::<Vec<_>>()
    } else {
        notes.iter().map(|n| plain(n)).collect()
    };
    let class = match class {
        Class::Intentional => String::new(),
        Class::Corrective | Class::NotIdempotent | Class::Contended => {
            format!(", {}", ChangeClass::from(class).words())
        }
    };
    format!(": {} ({}{class})", what.join(", "), seconds(took))
}

/// Formats a failure: `: what went wrong (hint)`.
pub(in crate::cli) fn trouble_words(trouble: &Failure) -> String {
    let lines = trouble.what.trim_end().lines().map(plain);
    let mut words = format!(": {}", lines.collect::<Vec<_>>().join("; "));
    if let Some(hint) = &trouble.hint {
        words.push_str(&format!(" (hint: {})", plain(hint)));
    }
    words
}

/// The text for a failure that does not count.
const EXCUSED: &str = ": not counted as failed: a dependency has drifted and is repaired first";

/// Formats: `: its parents are looked at before that counts as failed: file[x]`.
fn asking(above: &[&str]) -> String {
    let mut words = ": checking the dependencies before counting this as a failure".to_owned();
    if !above.is_empty() {
        words.push_str(&format!(": {}", list(above)));
    }
    words
}

/// Formats a retry: ` in 200 ms: what went wrong`.
pub(in crate::cli) fn retrying(trouble: Option<&Failure>, after: Duration) -> String {
    format!(" in {}{}", seconds(after), trouble.map(trouble_words).unwrap_or_default())
}

fn failed(trouble: Option<&Failure>, (names, total): &(Vec<&str>, usize)) -> String {
    let mut words = trouble.map(trouble_words).unwrap_or_default();
    if *total > 0 {
        words.push_str(&format!("; {total} dependents waiting: {}", list(names)));
    }
    words
}

/// Describes the reason why a resource is held.
pub(in crate::cli) fn held(
    holding: HeldReason,
    until: Option<&str>,
    differences: &[Difference],
) -> String {
    match holding {
        HeldReason::WouldChange => {
            let aspects: Vec<_> = differences.iter().map(|d| d.aspect).collect();
            format!(": would change: {}", aspects.join(", "))
        }
        HeldReason::WouldRefresh => ": would refresh".to_owned(),
        HeldReason::UnknownUntil(_) => {
            format!(": unknown until {} is changed", plain(until.unwrap_or("another")))
        }
        HeldReason::Window(_) => {
            let aspects: Vec<_> = differences.iter().map(|d| d.aspect).collect();
            let when = plain(until.unwrap_or("its window"));
            format!(": changes are allowed {when}; would change: {}", aspects.join(", "))
        }
        HeldReason::Operator => {
            ": the run was interrupted and `on_interrupt` is `ask`; waiting for the operator"
                .to_owned()
        }
    }
}
