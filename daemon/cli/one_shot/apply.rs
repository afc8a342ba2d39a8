//! `steadfast apply`: makes the host converge once, with live progress on a terminal or plain lines on a pipe, and a
//! summary.

use super::rounds::Rounds;
use super::{StopRelay, confirm, plan_report};
use crate::cli::args::Apply;
use crate::cli::exit::Exit;
use crate::cli::output::deliveries::Deliveries;
use crate::cli::output::event_recording::Recording;
use crate::cli::output::render;
use crate::cli::output::render::{LogObserver, list, seconds};
use crate::cli::output::{count, out_json, plain, print};
use crate::cli::state_dir::Opening;
use crate::cli::{args, load_graph, one_shot, output, state_dir};
use crate::config::LoadedGraph;
use crate::driver::{DriverDeps, DriverExit, Guard, Notification, Observer, Progress};
use crate::events::render::headline;
use crate::history::History;
use crate::plan::{Plan, StepCollector};
use crate::signals::Signals;
use crate::store::{Journal as StateJournal, Key, StoredState};
use crate::workers::with_direct_world;
use serde_json::json;
use std::collections::HashMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast_engine::{HeldReason, VertexStatus};
use steadfast_resources::{Host, KindSet, MintKey};
use tokio::runtime::Runtime;

/// Applies a graph, and returns the exit code of the summary.
pub(in crate::cli) fn apply(args: &Apply, signals: Signals, key: MintKey) -> Exit {
    render::set_up(args.log, None, render::Process::Command);
    crate::cli::on_runtime(|runtime| match run_once(args, signals, key, runtime) {
        Ok(exit) | Err(exit) => exit,
    })
}

/// The parts that each round of an apply uses.
struct ApplyParts<'a> {
    args: &'a Apply,
    runtime: &'a Runtime,
    host: Host,
    key: Arc<MintKey>,
    journal: StateJournal,
    history: Arc<History>,
    recording: Recording,
    relay: StopRelay,
}

fn run_once(
    args: &Apply,
    mut signals: Signals,
    key: MintKey,
    runtime: &Runtime,
) -> Result<Exit, Exit> {
    let began = Instant::now();
    let directory = state_dir::directory(args.state.state_dir.as_deref());
    let opening = Opening::begin(directory.clone());
    let loaded = match read_graph(args, &mut signals, runtime) {
        Ok(Some(loaded)) => as_asked(loaded, args),
        Ok(None) => {
            output::error("stopped before the graph was read; no changes made", None);
            return Err(Exit::Failed);
        }
        Err(exit) => {
            opening.abandon();
            return Err(exit);
        }
    };
    let (store, recalled) = opening.finish()?;
    let (name, key) = (loaded.name.clone(), Arc::new(key));
    let guard = match &args.plan {
        Some(plan) => Some(as_planned(plan, (&loaded, &args.graph), &recalled, (&key, runtime))?),
        None if confirm::is_asked(args) => {
            confirm::ask((&loaded, &args.graph), &recalled, (&key, runtime), &mut signals)?
        }
        None => None,
    };
    let deliveries = Deliveries::new(runtime.handle(), &args.recorders, &directory);
    let recording = Recording::new("apply", directory.clone(), args.state.retention)
        .with_graph(&args.graph.graphs)
        .with_deliveries(deliveries);
    let journal = StateJournal::spawn(store).map_err(|error| {
        output::error(format!("cannot start: {error}"), None);
        Exit::Failed
    })?;
    let host = Host::default().with_command_records(&directory);
    let host = with_direct_world(host, args.world.as_deref(), &directory);
    // The lock of the directory lasts until all events are recorded.
    let held = journal.clone();
    let history = History::new(directory, args.state.history);
    let mut rounds = match &args.plan {
        // A saved plan holds for the graph that was planned.
        Some(_) => None,
        None => Rounds::begin(&loaded, load_graph::options(&args.graph)?),
    };
    let relay = StopRelay::default();
    let parts = ApplyParts { args, runtime, host, key, journal, history, recording, relay };
    let state_key = recalled.key.clone();
    let whole = (loaded, &args.graph);
    let stops = Some((&parts.relay, Some(signals)));
    let first = one_shot::drive(parts.deps(recalled, rounds.as_ref()), whole, guard, stops);
    let mut finished = runtime.block_on(first);
    let went_on = match rounds.as_mut() {
        Some(rounds) => parts.drive_rounds(rounds, state_key.as_ref(), &mut finished),
        None => Ok(()),
    };
    parts.close(&finished);
    drop(held);
    if let Some(exit) = given_up(&finished) {
        return Err(exit);
    }
    let verdict = ApplySummary::of(&finished);
    if let Err(why) = went_on {
        output::error(why, None);
        return Err(Exit::Failed);
    }
    if args.json {
        out_json(&verdict.to_json(&name, &finished, began.elapsed()));
    } else {
        rounds.iter().flat_map(Rounds::waiting_lines).for_each(print);
        verdict.print(&name, &finished, began.elapsed());
    }
    Ok(match verdict {
        v if v.is_bad() => Exit::Failed,
        v if args.detailed_exitcode && v.changed + v.held > 0 => Exit::Changes,
        _ => Exit::Well,
    })
}

impl ApplyParts<'_> {
    fn deps(&self, recalled: StoredState, rounds: Option<&Rounds>) -> DriverDeps {
        let observer = self.recording.of(observer(self.args));
        let observer = match rounds {
            Some(rounds) => rounds.observe(observer),
            None => observer,
        };
        let (host, key) = (self.host.clone(), Arc::clone(&self.key));
        let (journal, history) = (Some(self.journal.clone()), Some(Arc::clone(&self.history)));
        let kinds = KindSet::of_this_build();
        DriverDeps { host, key, journal, recalled, history, read_only: None, kinds, observer }
    }

    /// Applies the graph again for as long as probes give it new values.
    fn drive_rounds(
        &self,
        rounds: &mut Rounds,
        state_key: Option<&Key>,
        finished: &mut DriverExit,
    ) -> Result<(), String> {
        while may_go_on(finished, &self.relay) {
            let Some(graph) = rounds.next_graph()? else { break };
            let recalled = self.journal.recall().map_err(|error| error.to_string())?;
            let recalled = StoredState { key: state_key.cloned(), ..recalled };
            let whole = (as_asked(graph, self.args), &self.args.graph);
            let parts = self.deps(recalled, Some(rounds));
            let stops = Some((&self.relay, None));
            let round = self.runtime.block_on(one_shot::drive(parts, whole, None, stops));
            *finished = DriverExit { changed: finished.changed + round.changed, ..round };
        }
        Ok(())
    }

    /// Records the end of the apply, and waits for the recorders.
    fn close(self, finished: &DriverExit) {
        self.history.close();
        let (class, message) = end_of_run(finished);
        self.recording.end(class, message);
        self.runtime.block_on(self.recording.deliver());
        self.recording.close();
    }
}

/// Reads the graph of the apply, unless a signal stops it first.
fn read_graph(
    args: &Apply,
    signals: &mut Signals,
    runtime: &Runtime,
) -> Result<Option<LoadedGraph>, Exit> {
    // Resources that are declared `noop` must stay distinguishable from those under `--noop`.
    let graph = args::Graph { noop: false, ..args.graph.clone() };
    let options = (args.json, args.allow_empty);
    runtime.block_on(load_graph::read_unless_stopped(&graph, signals, options))
}

/// Returns true if another round may follow: this one was neither stopped nor aborted.
fn may_go_on(finished: &DriverExit, relay: &StopRelay) -> bool {
    let is_aborted = finished.rejection.is_some()
        || finished.write_failure.is_some()
        || finished.broken.is_some();
    !is_aborted && !relay.is_stopped()
}

/// Prepares the graph for the apply: with `--noop`, its steps are those of a plan.
fn as_asked(loaded: LoadedGraph, args: &Apply) -> LoadedGraph {
    if args.graph.noop { loaded.rehearsed() } else { loaded }
}

/// Returns the class and the message of the event that ends this apply.
fn end_of_run(finished: &DriverExit) -> (&'static str, String) {
    let verdict = ApplySummary::of(finished);
    let (class, how) = if finished.write_failure.is_some() || finished.rejection.is_some() {
        ("failed", "aborted")
    } else if verdict.is_bad() {
        ("failed", "not all resources are converged")
    } else {
        ("succeeded", "all resources are converged")
    };
    (class, format!("apply ended: {how}; {}", count(verdict.changed, "change")))
}

/// Reports an aborted apply, and returns its exit code.
fn given_up(finished: &DriverExit) -> Option<Exit> {
    if let Some((waited, why)) = &finished.write_failure {
        let why = plain(why);
        let (what, hint) = if waited.is_zero() {
            (
                format!("no changes made: the state database is not writable: {why}"),
                "check whether the state file system is full or read-only, or another steadfast uses the state",
            )
        } else {
            (
                format!(
                    "aborted: the state database was not writable for {} s: {why}",
                    waited.as_secs()
                ),
                "the next apply checks the unrecorded changes again; check whether the state file system is full",
            )
        };
        output::error(what, Some(hint));
        return Some(Exit::State);
    }
    if let Some(why) = &finished.rejection {
        return Some(plan_report::reject_graph(why));
    }
    None
}

/// Checks that graph and host are as planned; afterwards the returned guard checks each step.
fn as_planned(
    plan: &Plan,
    (loaded, graph): (&LoadedGraph, &args::Graph),
    recalled: &StoredState,
    (key, runtime): (&Arc<MintKey>, &Runtime),
) -> Result<Arc<dyn Guard>, Exit> {
    let refuse = |moved| {
        plan_report::refuse(&moved);
        Exit::Failed
    };
    plan.is_of(loaded).map_err(refuse)?;
    let whole = (loaded.clone(), graph);
    let found =
        plan_report::find(whole, recalled.clone(), (Arc::clone(key), runtime), StepCollector::new)?;
    found.is_still(plan).map_err(refuse)?;
    Ok(Arc::new(plan.clone()))
}

fn observer(args: &Apply) -> Box<dyn Observer> {
    let observer: Box<dyn Observer> = if args.json || args.log != args::Log::Human {
        Box::new(LogObserver::new(args.log))
    } else {
        Box::new(Screen {
            live: std::io::stderr().is_terminal(),
            drawn: false,
            failed: HashMap::new(),
        })
    };
    if args.graph.noop { Box::new(one_shot::Foreseeing(observer)) } else { observer }
}

/// The summary of an apply: the number of resources by result.
#[derive(Clone, Copy, Debug, Default)]
struct ApplySummary {
    total: usize,
    changed: usize,
    failed: usize,
    waiting: usize,
    held: usize,
    moved: usize,
}

impl ApplySummary {
    fn of(finished: &DriverExit) -> Self {
        let mut sum = Self {
            total: finished.final_statuses.len(),
            changed: finished.changed as usize,
            moved: finished.changed_after_apply.len(),
            ..Self::default()
        };
        for stand in &finished.final_statuses {
            match stand.status {
                VertexStatus::Settled => {}
                VertexStatus::Failed | VertexStatus::Delayed(_) | VertexStatus::Stuck(..) => {
                    sum.failed += 1;
                }
                VertexStatus::Held(HeldReason::Operator) => sum.waiting += 1,
                VertexStatus::Held(_) => sum.held += 1,
                _ => sum.waiting += 1,
            }
        }
        sum
    }

    fn is_bad(self) -> bool {
        self.failed > 0 || self.waiting > 0 || self.moved > 0
    }

    fn print(self, graph: &str, finished: &DriverExit, took: Duration) {
        for (name, differences) in &finished.changed_after_apply {
            let aspects: Vec<_> = differences.iter().map(|d| d.aspect).collect();
            print(format!(
                "changed_after_apply {}: differs again after the apply: {}",
                plain(name),
                aspects.join(", ")
            ));
        }
        for stand in finished.final_statuses.iter().filter(|s| !s.waits_for.is_empty()) {
            let whom: Vec<&str> = stand.waits_for.iter().map(String::as_str).collect();
            print(format!("waiting {}: for {}", plain(&stand.identity), list(&whom)));
        }
        let mut words = vec![count(self.total, "resource"), format!("{} changed", self.changed)];
        let more = [
            (self.failed, "failed"),
            (self.waiting, "waiting"),
            (self.held, "held"),
            (self.moved, "changed after apply"),
        ];
        words.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        let verdict = if self.is_bad() { "failed" } else { "done" };
        print(format!("{verdict}: {}: {} in {}", plain(graph), words.join(", "), seconds(took)));
    }

    fn to_json(self, graph: &str, finished: &DriverExit, took: Duration) -> serde_json::Value {
        let resources: Vec<_> = finished
            .final_statuses
            .iter()
            .map(|stand| {
                json!({
                    "resource": stand.identity,
                    "state": word(&stand.status),
                    "waits_for": stand.waits_for,
                    "error": stand.failure.as_ref().map(|t| &t.what),
                    "hint": stand.failure.as_ref().and_then(|t| t.hint.as_ref()),
                })
            })
            .collect();
        json!({
            "graph": graph,
            "verdict": if self.is_bad() { "failed" } else { "done" },
            "total": self.total,
            "changed": self.changed,
            "failed": self.failed,
            "waiting": self.waiting,
            "held": self.held,
            "changed_after_apply": finished.changed_after_apply.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "seconds": took.as_secs_f64(),
            "resources": resources,
        })
    }
}

/// Returns one word for the state of a vertex.
fn word(standing: &VertexStatus) -> &'static str {
    match standing {
        VertexStatus::Settled => "converged",
        VertexStatus::Failed => "failed",
        VertexStatus::Delayed(_) => "delayed",
        VertexStatus::Stuck(..) => "stuck",
        VertexStatus::Held(_) => "held",
        VertexStatus::Running(..) => "running",
        _ => "waiting",
    }
}

/// Output of lines on standard output, with a line of progress below on a terminal.
struct Screen {
    live: bool,
    drawn: bool,
    /// The resources that failed, each with the reported text.
    failed: HashMap<String, String>,
}

impl Screen {
    fn line(&mut self, words: &str) {
        self.clear();
        print(words);
    }

    /// Returns true for a failure that was not reported yet. A failed member of a group fails again by itself, usually
    /// for the same reason.
    fn is_new_failure(&mut self, identity: &str, words: &str) -> bool {
        self.failed.insert(identity.to_owned(), words.to_owned()).is_none_or(|told| told != words)
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }

    fn draw(&mut self, progress: &Progress<'_>) {
        let c = progress.counts;
        let done = c.settled + c.failed + c.held;
        let mut words = format!("[{done}/{}]", c.total);
        if !progress.running.is_empty() {
            words.push_str(&format!(" running {}", list(&progress.running)));
        }
        for (who, whom) in progress.waiting.iter().take(2) {
            words.push_str(&format!(" · {} waits for {}", plain(who), plain(whom)));
        }
        let width = terminal_width();
        let words: String = words.chars().take(width).collect();
        drop(write!(std::io::stderr(), "\r\x1b[K{words}"));
        drop(std::io::stderr().flush());
        self.drawn = true;
    }

    /// Prints a notification in the words of its event.
    fn show_event(&mut self, news: &Notification<'_>) {
        let Some(event) = news.to_event() else { return };
        self.line(&headline(event.kind.name(), event.resource.as_deref(), &event.message));
    }
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|s| usize::from(s.ws_col)).filter(|w| *w > 10).unwrap_or(80) - 1
}

impl Observer for Screen {
    fn hear(&mut self, news: &Notification<'_>) {
        match news {
            Notification::Progress(progress) => self.draw(progress),
            Notification::Changed { .. }
            | Notification::Held { .. }
            | Notification::Retrying { .. }
            | Notification::Undeclared { .. }
            | Notification::Interrupted { .. } => self.show_event(news),
            Notification::Failed { identity, failure, change, .. } => {
                // The resources that wait are no part of this line: they wait for the end of the apply only.
                let failed = Notification::Failed {
                    identity,
                    failure: *failure,
                    change: *change,
                    waiting: (Vec::new(), 0),
                    run: None,
                };
                let words = failed.to_event().map(|event| event.message).unwrap_or_default();
                if self.is_new_failure(identity, &words) {
                    self.show_event(&failed);
                }
            }
            Notification::Stuck(name) => {
                self.line(&format!("stuck {}: the run does not return", plain(name)));
            }
            Notification::StateWriteFailed(why) => {
                self.line(&format!("state_write_failed: {}", plain(why)));
            }
            Notification::Stopping(names) if !names.is_empty() => {
                self.line(&format!(
                    "stopping: waiting for {}; interrupt again to stop at once",
                    list(names)
                ));
            }
            Notification::Converged { .. } | Notification::Stopped(_) => self.clear(),
            _ => {}
        }
    }

    fn wants_progress(&self) -> bool {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;
    use std::collections::HashMap;

    /// B13: grouped packages fail together, and then each by itself.
    #[test]
    fn a_failure_is_told_once_for_each_reason() {
        let mut screen = Screen { live: false, drawn: false, failed: HashMap::new() };
        let told = [
            ("pkg[a]", "no such package"),
            ("pkg[b]", "no such package"),
            ("pkg[a]", "no such package"),
            ("pkg[a]", "held"),
            ("pkg[a]", "held"),
        ];
        let new = told.map(|(identity, words)| screen.is_new_failure(identity, words));
        assert_eq!(new, [true, true, false, true, false]);
    }
}
