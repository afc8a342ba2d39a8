//! The health of the daemon: problems of its workers and of its databases.

use crate::api::{PartCondition, PartStatus};
use crate::api::{Report, State, WorkerReport};
use crate::events::Stream;
use crate::history::History;
use crate::workers::graph::settings::LiveSettings;
use crate::workers::shutdown::Shutdown;
use crate::workers::world::host_world::HostWorld;
use std::sync::Arc;
use std::time::Duration;

/// The parts whose problems are shown.
pub(in crate::workers) struct HealthSources {
    pub(in crate::workers) shutdown: Arc<Shutdown>,
    pub(in crate::workers) stream: Stream,
    pub(in crate::workers) log_problem: fn() -> Option<String>,
    pub(in crate::workers) history: Arc<History>,
    pub(in crate::workers) world: Arc<HostWorld>,
    pub(in crate::workers) settings: Arc<LiveSettings>,
}

/// Returns the problems, worst first.
pub(in crate::workers) fn look(parts: &HealthSources) -> Vec<PartStatus> {
    let mut ill = of_workers(&parts.shutdown.supervisor.report());
    let unwritable_part = |part: &str, why: String| PartStatus {
        part: part.to_owned(),
        condition: PartCondition::WriteFailed,
        message: format!("cannot be written: {why}"),
    };
    let problem = parts.stream.progress().borrow().problem.clone();
    ill.extend(problem.map(|why| unwritable_part("event log", why)));
    ill.extend((parts.log_problem)().map(|says| PartStatus {
        part: "log".to_owned(),
        condition: PartCondition::WriteFailed,
        message: says,
    }));
    ill.extend(parts.history.problem().map(|why| unwritable_part("history", why)));
    ill.extend(parts.stream.aside().all().into_iter().map(|(recorder, aside)| PartStatus {
        part: format!("recorder:{recorder}"),
        condition: PartCondition::WriteFailed,
        message: aside.message(),
    }));
    ill.extend(parts.stream.aside().failing().into_iter().map(|(recorder, failing)| PartStatus {
        part: format!("recorder:{recorder}"),
        condition: PartCondition::WriteFailed,
        message: failing.message(),
    }));
    ill.extend(parts.world.problem().map(|message| PartStatus {
        part: "world".to_owned(),
        condition: PartCondition::Unsteady,
        message,
    }));
    let pending = parts.settings.pending().join(", ");
    if !pending.is_empty() {
        ill.push(PartStatus {
            part: "settings".to_owned(),
            condition: PartCondition::Unsteady,
            message: format!("changed settings that need a restart: {pending}"),
        });
    }
    // The sort is stable: equally severe problems stay sorted by name.
    ill.sort_by_key(|part| part.condition);
    ill
}

fn of_workers(report: &Report) -> Vec<PartStatus> {
    let workers = report.workers.iter().filter_map(|(name, worker)| {
        worker_is(worker).map(|(ill, says)| PartStatus {
            part: name.clone(),
            condition: ill,
            message: says,
        })
    });
    let nobody = report.missing_inputs.iter().map(|name| PartStatus {
        part: name.clone(),
        condition: PartCondition::Down,
        message: "the input is declared, but no such worker exists".to_owned(),
    });
    workers.chain(nobody).collect()
}

fn worker_is(worker: &WorkerReport) -> Option<(PartCondition, String)> {
    let seconds = |ms: u64| Duration::from_millis(ms).as_secs_f64();
    if let Some(long) = worker.hangs_for {
        return Some((PartCondition::Hangs, format!("hangs for {:.0} s", seconds(long))));
    }
    let is_down = matches!(worker.state, State::Waiting | State::Stopped);
    if let Some(why) = worker.last_error.as_ref().filter(|_| is_down) {
        let next = worker.next_attempt_in;
        let next = next.map(|ms| format!("; next try in {:.1} s", seconds(ms)));
        return Some((
            PartCondition::Down,
            format!("not running: {why}{}", next.unwrap_or_default()),
        ));
    }
    let how_often = match worker.failures {
        0 => return None,
        1 => format!("once, {}", ago(worker.failed_ago.unwrap_or_default())),
        number => format!("{number} times within an hour"),
    };
    let why = worker.last_failure.as_deref().unwrap_or("unknown");
    Some((PartCondition::Unsteady, format!("failed {how_often}: {why}")))
}

fn ago(milliseconds: u64) -> String {
    match milliseconds / 60_000 {
        0 => "less than a minute ago".to_owned(),
        minutes => format!("{minutes} min ago"),
    }
}

/// Describes the workers that a stopping daemon waits for.
pub(in crate::workers) fn shutdown_progress(report: &Report) -> String {
    let live = |state| matches!(state, State::Starting | State::Running | State::Stopping);
    let left = report.workers.iter().filter(|(_, worker)| worker.state == State::Stopping);
    let names: Vec<&str> = left.map(|(name, _)| name.as_str()).collect();
    match names.as_slice() {
        [] => {
            let count = report.workers.values().filter(|worker| live(worker.state)).count();
            format!("the daemon is stopping: {count} workers are running")
        }
        names => format!("the daemon is stopping: waiting for {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_workers, shutdown_progress};
    use crate::api::PartCondition;
    use crate::api::{Report, State, WorkerReport};

    fn worker(state: State) -> WorkerReport {
        WorkerReport { state, ..WorkerReport::default() }
    }

    /// P-7, F-19: missing inputs and workers that failed once are reported; healthy and finished workers are not.
    #[test]
    fn health_problems_are_reported() {
        let mut report = Report::default();
        let why = || Some("broke".to_owned());
        for (name, worker) in [
            ("ended", worker(State::Stopped)),
            (
                "once",
                WorkerReport {
                    failures: 1,
                    failed_ago: Some(185_000),
                    last_failure: why(),
                    ..worker(State::Running)
                },
            ),
            ("twice", WorkerReport { failures: 2, last_failure: why(), ..worker(State::Running) }),
            ("hung", WorkerReport { hangs_for: Some(31_000), ..worker(State::Running) }),
            (
                "waits",
                WorkerReport {
                    last_error: why(),
                    next_attempt_in: Some(1500),
                    ..worker(State::Waiting)
                },
            ),
            ("lacks", WorkerReport { last_error: why(), ..worker(State::Stopped) }),
        ] {
            report.workers.insert(name.to_owned(), worker);
        }
        report.missing_inputs.push("drvier".to_owned());
        let told = of_workers(&report);
        let told: Vec<_> =
            told.iter().map(|part| (&*part.part, part.condition, &*part.message)).collect();
        assert_eq!(
            told,
            [
                ("hung", PartCondition::Hangs, "hangs for 31 s"),
                ("lacks", PartCondition::Down, "not running: broke"),
                ("once", PartCondition::Unsteady, "failed once, 3 min ago: broke"),
                ("twice", PartCondition::Unsteady, "failed 2 times within an hour: broke"),
                ("waits", PartCondition::Down, "not running: broke; next try in 1.5 s"),
                ("drvier", PartCondition::Down, "the input is declared, but no such worker exists"),
            ]
        );
    }

    /// P-1: the status names the worker that the stop waits for.
    #[test]
    fn awaited_workers_are_reported() {
        let mut report = Report::default();
        report.workers.insert("control".to_owned(), worker(State::Running));
        assert_eq!(shutdown_progress(&report), "the daemon is stopping: 1 workers are running");
        report.workers.insert("recorder".to_owned(), worker(State::Stopping));
        assert_eq!(shutdown_progress(&report), "the daemon is stopping: waiting for recorder");
    }
}
