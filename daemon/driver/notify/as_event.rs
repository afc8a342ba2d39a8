//! Notifications as events: the data of each notification, bounded in size, without a word.

use super::notification::{ConflictCause, Notification, RunRef};
use crate::api::event_data::{
    Asking, AspectChange, Changed, Contended, Converged, Culprit, Failed, FailedChange, Held,
    HoldReason, Interrupted, Loaded, Loading, PauseEnds, Paused, Reason, RepairsSuspended,
    Retrying, RunError, RunFailed, RunInfo, Text, Waiting,
};
use crate::api::{EventKind, Level, NameSample};
use crate::driver::runs::failures::AttemptedChange;
use crate::events::{NewEvent, done};
use std::time::Duration;
use steadfast_engine::HeldReason;
use steadfast_resources::{Difference, Failure};

/// The maximum number of differences in an event.
const DIFFERENCES: usize = 20;

/// The longest value of a difference in an event, in bytes.
const LONGEST_VALUE: usize = 200;

impl Notification<'_> {
    /// Returns the notification as an event; `None` for progress, which is no change of state.
    #[must_use]
    pub fn to_event(&self) -> Option<NewEvent> {
        if let Self::Done(deed) = self {
            return Some(done(deed));
        }
        if let Some((resource, kind, level)) = self.of_resource() {
            return Some(NewEvent::of(resource, kind, level));
        }
        self.of_host().map(|(kind, level)| NewEvent::new(kind, level))
    }

    /// Returns the run that the notification is about.
    #[must_use]
    pub fn run(&self) -> Option<RunRef> {
        match self {
            Self::Changed { run, .. }
            | Self::RunFailed { run, .. }
            | Self::Interrupted { run, .. } => Some(*run),
            Self::Retrying { run, .. } | Self::Failed { run, .. } | Self::Held { run, .. } => *run,
            _ => None,
        }
    }

    /// Returns the resource, the data and the level of a notification about one resource.
    fn of_resource(&self) -> Option<(&str, EventKind, Level)> {
        use Level::{Debug, Error, Info, Warn};
        let quiet_in = |is_contended: bool, level: Level| if is_contended { Debug } else { level };
        Some(match self {
            Self::Started(name) => (name, EventKind::Started, Debug),
            Self::Unchanged(name) => (name, EventKind::Unchanged, Debug),
            // During a contention, an event for each repair is no news.
            Self::Changed { identity, is_contended, .. } => {
                (identity, EventKind::Changed(self.changed()?), quiet_in(*is_contended, Info))
            }
            Self::RunFailed { identity, failure, run } => {
                let failed = RunFailed { error: run_error(failure), run: run_info(*run) };
                (identity, EventKind::Error(failed), Debug)
            }
            Self::Interrupted { identity, run } => {
                let run = Some(run_info(*run));
                (identity, EventKind::Interrupted(Interrupted { run }), Warn)
            }
            Self::InterruptedBefore { identity } => {
                (identity, EventKind::Interrupted(Interrupted { run: None }), Warn)
            }
            Self::Asking { identity, above } => {
                (identity, EventKind::Asking(Asking { parents: sample(above) }), Debug)
            }
            Self::Excused(name) => (name, EventKind::Excused, Debug),
            // A failure during a contention belongs to the contention that was reported.
            Self::Retrying { identity, failure, change, after, run, is_contended } => {
                let (error, run) = (failure.map(run_error), run.map(run_info));
                let (after, change) = (milliseconds(*after), change.map(failed_change));
                let retrying = Retrying { error, change, after, run };
                (identity, EventKind::Retrying(retrying), quiet_in(*is_contended, Warn))
            }
            Self::Failed { identity, failure, change, waiting: (names, count), run } => {
                let waiting = NameSample { count: *count, ..sample(names) };
                let (error, run) = (failure.map(run_error), run.map(run_info));
                let change = change.map(failed_change);
                (identity, EventKind::Failed(Failed { error, change, waiting, run }), Error)
            }
            Self::Recovered { identity, is_contended } => {
                (identity, EventKind::Recovered, quiet_in(*is_contended, Info))
            }
            Self::Held { identity, .. } => (identity, EventKind::Held(self.held()?), Info),
            Self::Stuck(name) => (name, EventKind::Stuck, Error),
            Self::Unwatched { identity, why } => {
                (identity, EventKind::Unwatched(reason(why)), Warn)
            }
            Self::ResourcePaused { identity, reason, limit } => {
                let paused = Paused { reason: (*reason).to_owned(), ends_in: milliseconds(*limit) };
                (identity, EventKind::Paused(paused), Info)
            }
            Self::ResourceResumed(name) => (name, EventKind::Resumed, Info),
            Self::Undeclared { identity, message, removed } => {
                let text = Text { text: (*message).to_owned() };
                let kind =
                    if *removed { EventKind::Removed(text) } else { EventKind::Undeclared(text) };
                (identity, kind, Info)
            }
            Self::GroupSplit { identity, why } => {
                (identity, EventKind::GroupSplit(reason(why)), Warn)
            }
            Self::GroupJoined(name) => (name, EventKind::GroupJoined, Info),
            Self::Diverged { identity, is_contended } => {
                (identity, EventKind::Diverged, quiet_in(*is_contended, Info))
            }
            _ => return self.of_contention(),
        })
    }

    /// Returns the resource, the data and the level of a notification about a contention.
    fn of_contention(&self) -> Option<(&str, EventKind, Level)> {
        use Level::{Info, Warn};
        Some(match self {
            Self::Contended { identity, by, repairs } => {
                let by = Some(culprit(*by));
                let contended = Contended { repairs: *repairs, by, lasts: None, next: None };
                (identity, EventKind::Contended(contended), Warn)
            }
            Self::StillContended { identity, repairs, lasts, next } => {
                let (lasts, next) = (Some(milliseconds(*lasts)), next.map(milliseconds));
                let contended = Contended { repairs: *repairs, by: None, lasts, next };
                (identity, EventKind::Contended(contended), Warn)
            }
            Self::ContentionEnded(name) => (name, EventKind::ContentionEnded, Info),
            _ => return None,
        })
    }

    /// Returns the data and the level of a notification about the whole host.
    fn of_host(&self) -> Option<(EventKind, Level)> {
        use Level::{Debug, Error, Info, Warn};
        Some(match self {
            Self::Loaded { graph, change } => {
                let (graph, change) = ((*graph).to_owned(), (*change).clone());
                (EventKind::Loaded(Loaded { graph, change }), Info)
            }
            Self::Loading { waits, change } => {
                let loading = Loading { waits: sample(waits), change: (*change).clone() };
                (EventKind::Loading(loading), Info)
            }
            Self::Rejected(why) => (EventKind::Rejected(reason(why)), Error),
            Self::Converged { counts, is_contended } => {
                let level = if *is_contended { Debug } else { Info };
                (EventKind::Converged(Converged { total: counts.total }), level)
            }
            Self::Pausing(names) => (EventKind::Pausing(waiting(names)), Info),
            Self::Paused { reason, ends_in } => {
                let paused =
                    Paused { reason: (*reason).to_owned(), ends_in: milliseconds(*ends_in) };
                (EventKind::Paused(paused), Info)
            }
            Self::RepairsSuspended { repairs, pause } => {
                let lasts = milliseconds(*pause);
                let repair_limit = RepairsSuspended { repairs: *repairs, lasts };
                (EventKind::RepairsSuspended(repair_limit), Error)
            }
            Self::RepairsResumed => (EventKind::RepairsResumed, Warn),
            Self::Resumed => (EventKind::Resumed, Info),
            Self::PauseEnds(left) => {
                (EventKind::PauseEnds(PauseEnds { ends_in: milliseconds(*left) }), Warn)
            }
            Self::ReadOnly(why) => (EventKind::ReadOnly(reason(why)), Error),
            Self::StateWriteFailed(why) => (EventKind::StateWriteFailed(reason(why)), Error),
            Self::Stopping(names) => (EventKind::Stopping(waiting(names)), Info),
            Self::Stopped(names) => (EventKind::Stopped(waiting(names)), Info),
            _ => return None,
        })
    }

    fn changed(&self) -> Option<Changed> {
        let Self::Changed { differences, notes, took, class, run, .. } = self else { return None };
        let omitted = differences.len().saturating_sub(DIFFERENCES);
        let class = (*class).into();
        let (differences, notes) = (aspects(differences), notes.to_vec());
        let (took, run) = (milliseconds(*took), run_info(*run));
        Some(Changed { class, differences, omitted, notes, took, run })
    }

    fn held(&self) -> Option<Held> {
        let Self::Held { holding, until, differences, destructive, run, .. } = self else {
            return None;
        };
        let reason = match holding {
            HeldReason::WouldChange => HoldReason::WouldChange,
            HeldReason::WouldRefresh => HoldReason::WouldRefresh,
            HeldReason::UnknownUntil(_) => HoldReason::Unknown,
            HeldReason::Window(_) => HoldReason::Window,
            HeldReason::Operator => HoldReason::Operator,
        };
        Some(Held {
            reason,
            until: until.map(ToOwned::to_owned),
            differences: aspects(differences),
            omitted: differences.len().saturating_sub(DIFFERENCES),
            destructive: *destructive,
            run: run.map(run_info),
        })
    }
}

/// Returns the change that a failed apply was to make, bounded in size.
fn failed_change(change: &AttemptedChange) -> FailedChange {
    let differences = &change.differences;
    let omitted = differences.len().saturating_sub(DIFFERENCES);
    FailedChange { class: change.class.into(), differences: aspects(differences), omitted }
}

/// Returns the first differences. The diffs of contents are left out: members of the socket's group may read events.
fn aspects(differences: &[Difference]) -> Vec<AspectChange> {
    let shown = differences.iter().take(DIFFERENCES);
    let each = shown.map(|one| AspectChange {
        aspect: one.aspect.to_owned(),
        from: shortened(&one.from),
        to: shortened(&one.to),
    });
    each.collect()
}

/// Cuts a long value between two characters.
fn shortened(value: &str) -> String {
    if value.len() <= LONGEST_VALUE {
        return value.to_owned();
    }
    let end = value.floor_char_boundary(LONGEST_VALUE);
    format!("{}…", value.get(..end).unwrap_or_default())
}

fn run_error(failure: &Failure) -> RunError {
    RunError { reason: failure.what.clone(), hint: failure.hint.clone() }
}

fn run_info(run: RunRef) -> RunInfo {
    RunInfo { number: run.number, cause: run.cause.to_owned() }
}

fn reason(why: &str) -> Reason {
    Reason { reason: why.to_owned() }
}

fn waiting(names: &[&str]) -> Waiting {
    Waiting { resources: sample(names) }
}

/// Returns the first names and the number of all names.
fn sample(names: &[&str]) -> NameSample {
    let shown = names.iter().take(DIFFERENCES).map(|name| (*name).to_owned());
    NameSample { count: names.len(), names: shown.collect() }
}

fn culprit(by: ConflictCause<'_>) -> Culprit {
    match by {
        ConflictCause::Another => Culprit::Another,
        ConflictCause::Itself => Culprit::Itself,
        ConflictCause::Ours(other) => Culprit::Resource(other.to_owned()),
        ConflictCause::Unknown => Culprit::Unknown,
    }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
