//! An event of each name, with the words that it is rendered to.

use steadfast::api::event_data::{
    Asking, AspectChange, Changed, Contended, Converged, Culprit, DeadLettered, Failed,
    FailedChange, Gap, Held, HoldReason, Interrupted, LastGoodGraph, Loaded, Loading, PauseEnds,
    Paused, Reason, RepairsSuspended, Repeated, Retrying, RunError, RunFailed, RunInfo, Session,
    SessionEnd, SessionUser, Text, Waiting, Worker,
};
use steadfast::api::{ChangeClass, EventKind, GraphDiff, NameSample, SettingsChange};

fn text() -> Text {
    Text { text: "two\nlines".to_owned() }
}

fn reason() -> Reason {
    Reason { reason: "disk full\u{1b}[2J".to_owned() }
}

fn names(names: &[&str]) -> NameSample {
    NameSample { count: names.len(), names: names.iter().map(ToString::to_string).collect() }
}

fn run() -> RunInfo {
    RunInfo { number: 7, cause: "drift".to_owned() }
}

fn error() -> RunError {
    RunError { reason: "no such package".to_owned(), hint: Some("update the lists".to_owned()) }
}

fn mode() -> AspectChange {
    let (aspect, from, to) = ("mode".to_owned(), "0600".to_owned(), "0644".to_owned());
    AspectChange { aspect, from, to }
}

fn session() -> Session {
    Session {
        command: "apply".to_owned(),
        graph: vec!["/etc/steadfast/graph.yaml".to_owned()],
        user: SessionUser { uid: 0, name: Some("root".to_owned()) },
        version: "0.1.0".to_owned(),
        process: 17,
    }
}

/// Returns a change of this class with a note that names an aspect, and one that does not.
pub(crate) fn change(class: ChangeClass) -> EventKind {
    let notes = vec!["mode".to_owned(), "ran: exit 0".to_owned()];
    let differences = vec![mode()];
    EventKind::Changed(Changed { class, differences, omitted: 0, notes, took: 3, run: run() })
}

fn held(reason: HoldReason, until: Option<&str>) -> EventKind {
    let (until, run) = (until.map(ToOwned::to_owned), Some(run()));
    let differences = vec![mode()];
    EventKind::Held(Held { reason, until, differences, omitted: 2, destructive: false, run })
}

fn failed_change(class: ChangeClass) -> FailedChange {
    FailedChange { class, differences: vec![mode()], omitted: 2 }
}

fn contended(by: Option<Culprit>) -> EventKind {
    let later = by.is_none();
    let (lasts, next) = (later.then_some(60_000), later.then_some(200_000));
    EventKind::Contended(Contended { repairs: 5, by, lasts, next })
}

fn worker(reason: Option<&str>) -> Worker {
    Worker { worker: "driver".to_owned(), reason: reason.map(ToOwned::to_owned) }
}

/// Returns events of all names, each with its message.
#[expect(clippy::too_many_lines, reason = "a table of events")]
pub(crate) fn samples() -> Vec<(EventKind, &'static str)> {
    let first = GraphDiff { added: names(&["file[a]"]), ..GraphDiff::default() };
    let again = GraphDiff { removed: names(&["file[b]"]), again: true, ..GraphDiff::default() };
    let waiting = || Waiting { resources: names(&["file[a]", "file[b]"]) };
    let session_end = SessionEnd {
        result: "succeeded".to_owned(),
        run: Some(3),
        session: Some(session()),
        text: "1 change".to_owned(),
    };
    vec![
        (EventKind::Started, ""),
        (EventKind::Unchanged, ""),
        (change(ChangeClass::Intentional), "mode, ran: exit 0 (3 ms)"),
        (change(ChangeClass::Corrective), "mode: 0600 -> 0644, ran: exit 0 (3 ms, corrective)"),
        (
            EventKind::Error(RunFailed { error: error(), run: run() }),
            "no such package (hint: update the lists)",
        ),
        (
            EventKind::Asking(Asking { parents: names(&["pkg[a]"]) }),
            "checking the dependencies before counting this as a failure: pkg[a]",
        ),
        (
            EventKind::Excused,
            "not counted as failed: a dependency has drifted and is repaired first",
        ),
        (
            EventKind::Retrying(Retrying {
                error: Some(error()),
                change: None,
                after: 200,
                run: Some(run()),
            }),
            "in 200 ms: no such package (hint: update the lists)",
        ),
        (
            EventKind::Retrying(Retrying {
                error: Some(error()),
                change: Some(failed_change(ChangeClass::Corrective)),
                after: 200,
                run: Some(run()),
            }),
            "in 200 ms: no such package (hint: update the lists); drift: mode: 0600 -> 0644, 2 more",
        ),
        (
            EventKind::Failed(Failed {
                error: None,
                change: Some(failed_change(ChangeClass::Intentional)),
                waiting: names(&["svc[a]"]),
                run: None,
            }),
            "1 dependent waiting: svc[a]",
        ),
        (
            EventKind::Failed(Failed {
                error: Some(error()),
                change: Some(failed_change(ChangeClass::Contended)),
                waiting: names(&["svc[a]"]),
                run: None,
            }),
            "no such package (hint: update the lists); drift: mode: 0600 -> 0644, 2 more; \
             1 dependent waiting: svc[a]",
        ),
        (EventKind::Recovered, ""),
        (EventKind::Diverged, ""),
        (held(HoldReason::WouldChange, None), "would change: mode: 0600 -> 0644, 2 more"),
        (held(HoldReason::WouldRefresh, None), "would refresh"),
        (held(HoldReason::Unknown, Some("pkg[a]")), "unknown until pkg[a] is changed"),
        (
            held(HoldReason::Window, Some("22:00-06:00")),
            "changes are allowed 22:00-06:00; would change: mode: 0600 -> 0644, 2 more",
        ),
        (
            held(HoldReason::Operator, None),
            "the run was interrupted and `on_interrupt` is `ask`; waiting for the operator",
        ),
        (EventKind::Stuck, "the run does not return; the resource is not retried until it does"),
        (EventKind::Interrupted(Interrupted { run: Some(run()) }), ""),
        (
            EventKind::Unwatched(reason()),
            "cannot be watched (disk full\\u{1b}[2J); polling every 30 s",
        ),
        (
            EventKind::Paused(Paused { reason: "kernel update".to_owned(), ends_in: 7_200_000 }),
            "kernel update; resumes automatically in 2 h 0 min",
        ),
        (EventKind::Resumed, ""),
        (
            contended(Some(Culprit::Resource("exec[x]".to_owned()))),
            "repeatedly reverted (5 repairs), not idempotent: by exec[x]; further repairs are delayed as set by \
             `on_conflict`",
        ),
        (contended(None), "still reverted after 5 repairs in 60 s; next repair in 3 min"),
        (EventKind::ContentionEnded, "contention ended; repair delay reset"),
        (
            EventKind::GroupSplit(Reason { reason: "failed".to_owned() }),
            "failed; applied separately from its group until it is stable",
        ),
        (EventKind::GroupJoined, "stable again; applied with its group"),
        (EventKind::Undeclared(text()), "two\nlines"),
        (EventKind::Removed(text()), "two\nlines"),
        (EventKind::Protected(text()), "two\nlines"),
        (EventKind::Unprotected(text()), "two\nlines"),
        (EventKind::Forgotten(text()), "two\nlines"),
        (EventKind::Retried(text()), "two\nlines"),
        (EventKind::Undone(text()), "two\nlines"),
        (
            EventKind::RunStart(session()),
            "apply of /etc/steadfast/graph.yaml by root, steadfast 0.1.0, process 17",
        ),
        (
            EventKind::RunEnd(session_end),
            "apply of /etc/steadfast/graph.yaml by root: succeeded: 1 change",
        ),
        (
            EventKind::Loaded(Loaded { graph: "web".to_owned(), change: first }),
            "graph web: 1 added, 0 changed, 0 removed, 0 unchanged",
        ),
        (
            EventKind::Loading(Loading { waits: names(&["svc[a]"]), change: again }),
            "waiting for svc[a]: 0 added, 0 changed, 1 removed, 0 unchanged\n- file[b]",
        ),
        (EventKind::Rejected(reason()), "the previous graph is still running\ndisk full\\u{1b}[2J"),
        (
            EventKind::LastGoodGraphUsed(LastGoodGraph {
                graph: "web".to_owned(),
                accepted_at: "noon".to_owned(),
                reason: "unknown key".to_owned(),
            }),
            "running the last-good graph `web`, accepted at noon; the current graph file is \
             rejected:\nunknown key",
        ),
        (EventKind::LastGoodSettings(reason()), "disk full\\u{1b}[2J"),
        (EventKind::World(reason()), "disk full\\u{1b}[2J"),
        (EventKind::Bundle(reason()), "the bundle was rejected: disk full\\u{1b}[2J"),
        (
            EventKind::Settings(SettingsChange {
                applied: vec!["sweep".to_owned()],
                restart: vec!["socket".to_owned()],
            }),
            "settings applied: sweep; settings that need a restart of steadfast: socket",
        ),
        (EventKind::Converged(Converged { total: 3 }), "3 resources converged"),
        (EventKind::Pausing(waiting()), "waiting for file[a], file[b]"),
        (EventKind::PauseEnds(PauseEnds { ends_in: 3_600_000 }), "the pause ends in 1 h 0 min"),
        (
            EventKind::RepairsSuspended(RepairsSuspended { repairs: 600, lasts: 60_000 }),
            "600 repairs were reverted within a minute; repeated repairs are suspended for 60 s",
        ),
        (EventKind::RepairsResumed, "drift found meanwhile is repaired now"),
        (EventKind::ReadOnly(reason()), "disk full\\u{1b}[2J"),
        (
            EventKind::StateWriteFailed(reason()),
            "no changes are made until the state can be written: disk full\\u{1b}[2J",
        ),
        (EventKind::Stopping(waiting()), "waiting for file[a], file[b]"),
        (EventKind::Stopped(waiting()), "interrupted: file[a], file[b]"),
        (EventKind::Imported(text()), "two\nlines"),
        (EventKind::Repaired(text()), "two\nlines"),
        (EventKind::StateRepaired(text()), "two\nlines"),
        (EventKind::StateUnsound(text()), "two\nlines"),
        (EventKind::StateLeftAlone(text()), "two\nlines"),
        (EventKind::WorkerStarted(worker(None)), "driver"),
        (EventKind::WorkerStopped(worker(Some("panicked"))), "driver: panicked"),
        (
            EventKind::Gap(Gap { count: Some(4), reason: "4 events lost".to_owned() }),
            "4 events lost",
        ),
        (
            EventKind::Repeated(Repeated { of: "changed".to_owned(), count: 990 }),
            "990 more `changed` events within ten minutes",
        ),
        (
            EventKind::DeadLettered(DeadLettered {
                recorder: "webhook".to_owned(),
                first: 5,
                last: 9,
                count: 5,
                reason: "400".to_owned(),
            }),
            "webhook: events 5 to 9 were rejected and dead-lettered: 400",
        ),
        (EventKind::InternalError(text()), "two\nlines"),
    ]
}
