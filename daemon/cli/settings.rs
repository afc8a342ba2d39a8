//! The settings of this host fill in what the command line leaves open. The command line takes precedence.

use super::args::group::group;
use super::args::{Command, Graph, Log, Run, State};
use super::exit::Exit;
use super::output;
use super::output::render;
use crate::config::{self, CollectedExport, Judge, Recorder, Rejected, Settings};
use crate::events::Retention;
use crate::history::Limits;
use crate::plan::Plan;
use crate::store::SqliteStore;
use crate::workers::{MetricsSettings, last_good_settings, stored_exports};
use clap::ValueEnum as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The default settings file.
pub(super) const SETTINGS: &str = "/etc/steadfast/steadfast.yaml";

/// The default graph.
const GRAPH: &str = "/etc/steadfast/graph.yaml";

const DAY: Duration = Duration::from_hours(24);

/// Fills in the parts that the command line leaves open.
pub(super) fn complete(command: &mut Command) -> Result<(), Exit> {
    match command {
        Command::Run(run) => start(run)?,
        Command::Apply(apply) => {
            if let Some(plan) = &apply.plan {
                planned(plan, &mut apply.graph);
            }
            let settings = of(&mut apply.graph)?;
            apply.state.fill(&settings);
            apply.graph.exports = Some(exports_of(&apply.state));
            apply.recorders = settings.recorders;
            apply.world = settings.world.map(Box::new);
        }
        Command::Plan(plan) => {
            plan.state.fill(&of(&mut plan.graph)?);
            plan.graph.exports = Some(exports_of(&plan.state));
        }
        Command::Drift(drift) => drop(of(&mut drift.graph)?),
        Command::Graph(show) => drop(of(&mut show.graph)?),
        Command::Eval(evaluate) => {
            let settings = find(&mut evaluate.graph).map_err(|unusable| unusable.report())?;
            match merge(&mut evaluate.graph, &settings) {
                // An expression needs no graph.
                Ok(()) | Err(Unusable::NoGraph) => {}
                Err(unusable) => return Err(unusable.report()),
            }
        }
        // Labels without a graph select resources of the daemon.
        Command::Check(check) if check.graph.graphs.is_empty() && check.graph.labels.is_some() => {}
        Command::Check(check) => {
            for warning in
                of(&mut check.graph)?.recorders.iter().filter_map(Recorder::clear_headers)
            {
                output::eprint(format!("warning: {warning}"));
            }
        }
        Command::Undo(undo) if Path::new(SETTINGS).exists() => {
            let settings = read(Path::new(SETTINGS));
            let rejected = |why| Unusable::Rejected(SETTINGS.into(), why).report();
            undo.history = limits(&settings.map_err(rejected)?);
        }
        _ => {}
    }
    Ok(())
}

/// Returns the exports of other hosts that the daemon of a state directory knows.
fn exports_of(state: &State) -> Arc<[CollectedExport]> {
    stored_exports(&super::state_dir::directory(state.state_dir.as_deref()))
}

/// Returns warnings about recorders that send secret headers without encryption.
pub(super) fn clear_headers(settings: &Path) -> Vec<String> {
    let settings = read(settings).unwrap_or_default();
    settings.recorders.iter().filter_map(Recorder::clear_headers).collect()
}

/// Returns the socket and the state directory of the daemon, as far as the settings name them.
pub(super) fn of_daemon() -> (Option<PathBuf>, Option<PathBuf>) {
    let settings = if Path::new(SETTINGS).exists() { read(Path::new(SETTINGS)).ok() } else { None };
    settings.map(|settings| (settings.socket, settings.state_dir)).unwrap_or_default()
}

/// The error of unusable settings, or of a missing graph.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The settings file is rejected.
    Rejected(PathBuf, Rejected),
    /// No graph is named.
    NoGraph,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejected(_, why) => write!(f, "{why}"),
            Self::NoGraph => write!(f, "no graph was given, and {GRAPH} does not exist"),
        }
    }
}

impl Unusable {
    /// Reports the error, and returns its exit code.
    fn report(&self) -> Exit {
        match self {
            Self::Rejected(_, why) => {
                output::say_rejected(why);
                Exit::Graph
            }
            Self::NoGraph => {
                let hint = format!("give a graph file, or set `graph: FILE` in {SETTINGS}");
                output::error(self.to_string(), Some(&hint));
                Exit::Usage
            }
        }
    }
}

/// Completes the command line of a daemon. If the settings are rejected, the last-good settings of this file apply.
fn start(run: &mut Run) -> Result<(), Exit> {
    let (path, why) = match completed(run) {
        Ok(complete) => {
            *run = complete;
            return Ok(());
        }
        Err(Unusable::Rejected(path, why)) => (path, why),
        Err(Unusable::NoGraph) if may_have_last_good_graph(run) => {
            // The driver reports that the file is missing, and runs the last-good graph.
            let path = Path::new(SETTINGS);
            run.graph.config = path.exists().then(|| path.to_owned());
            run.graph.graphs = vec![GRAPH.into()];
            *run = completed(run).map_err(|unusable| unusable.report())?;
            return Ok(());
        }
        Err(other) => return Err(other.report()),
    };
    let shown = output::plain(&path.display().to_string());
    let stored = (!run.no_last_good_graph).then(|| stored(run, &path)).flatten();
    let Some((settings, at)) = stored else {
        return Err(Unusable::Rejected(path, why).report());
    };
    *run = run.completed_with(settings).map_err(|unusable| unusable.report())?;
    let at = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    let why = why.to_string();
    run.settings_instead = Some(format!(
        "running with the settings of {at}, because {shown} is rejected:\n{}",
        why.trim_end()
    ));
    Ok(())
}

/// Returns true if a daemon has run with this state directory, and its last-good graph may run again.
fn may_have_last_good_graph(run: &Run) -> bool {
    let named = run.state.state_dir.clone().or_else(|| of_daemon().1);
    let directory = super::state_dir::directory(named.as_deref());
    !run.no_last_good_graph && run.graph.config.is_none() && SqliteStore::is_there(&directory)
}

/// Returns the command line of a daemon, completed with the settings.
pub(super) fn completed(given: &Run) -> Result<Run, Unusable> {
    let mut graph = given.graph.clone();
    let settings = find(&mut graph)?;
    given.completed_with(settings)
}

/// Returns the settings file of a daemon with this command line.
pub(super) fn file(given: &Run) -> PathBuf {
    let path = given.graph.config.clone().unwrap_or_else(|| SETTINGS.into());
    std::path::absolute(&path).unwrap_or(path)
}

/// Returns the last-good settings, for a settings file that is rejected now.
fn stored(run: &Run, path: &Path) -> Option<(Settings, u64)> {
    let named = run.state.state_dir.clone().or_else(|| state_directory_in(path));
    let directory = super::state_dir::directory(named.as_deref());
    let (text, at) = last_good_settings(&directory, path)?;
    let settings = with_words(|words| config::parse_settings(text, words)).ok()?;
    Some((settings, at))
}

/// Returns the state directory that a rejected settings file names.
fn state_directory_in(path: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with("state_dir:"))?;
    let named: BTreeMap<String, PathBuf> = serde_yaml::from_str(line).ok()?;
    Some(path.parent()?.join(named.get("state_dir")?))
}

/// Reads the settings for a graph, and fills in the graph that they name.
fn of(graph: &mut Graph) -> Result<Settings, Exit> {
    let settings = find(graph).map_err(|unusable| unusable.report())?;
    merge(graph, &settings).map_err(|unusable| unusable.report())?;
    Ok(settings)
}

/// Reads the settings for a graph.
fn find(graph: &mut Graph) -> Result<Settings, Unusable> {
    if graph.config.is_none() && !graph.graphs.is_empty() {
        return Ok(Settings::default());
    }
    if graph.config.is_none() && Path::new(SETTINGS).exists() {
        graph.config = Some(SETTINGS.into());
    }
    let settings = match &graph.config {
        Some(path) => read(path).map_err(|why| Unusable::Rejected(path.clone(), why))?,
        None => Settings::default(),
    };
    Ok(settings)
}

/// Fills in the parts of the graph that the command line leaves open.
fn merge(graph: &mut Graph, settings: &Settings) -> Result<(), Unusable> {
    if graph.graphs.is_empty() {
        graph.graphs.clone_from(&settings.graph);
    }
    if graph.graphs.is_empty() && Path::new(GRAPH).exists() {
        graph.graphs.push(GRAPH.into());
    }
    if graph.graphs.is_empty() {
        return Err(Unusable::NoGraph);
    }
    graph.noop |= settings.noop.unwrap_or_default();
    graph.sema = graph.sema.or(settings.sema);
    // The files of the command line win over those of the settings.
    let files = settings.vars_files.iter().chain(&graph.vars_files);
    graph.vars_files = files.cloned().collect();
    graph.defaults.clone_from(&settings.defaults);
    Ok(())
}

/// Selects the graph of a plan, with the options of the plan.
fn planned(plan: &Plan, graph: &mut Graph) {
    graph.graphs.clone_from(&plan.paths);
    graph.config.clone_from(&plan.config);
    graph.only.clone_from(&plan.only);
    graph.skip.clone_from(&plan.skip);
    graph.sema = plan.sema;
    graph.vars.clone_from(&plan.vars);
    graph.vars_files.clone_from(&plan.vars_files);
}

fn read(path: &Path) -> Result<Settings, Rejected> {
    with_words(|words| config::read_settings(path, words))
}

/// Returns the settings of a host, for `doctor`; `None` without a file.
pub(super) fn of_host(config: Option<&Path>) -> (PathBuf, Option<Result<Settings, Rejected>>) {
    let path = config.unwrap_or_else(|| Path::new(SETTINGS));
    let is_there = config.is_some() || path.exists();
    (path.to_owned(), is_there.then(|| read(path)))
}

/// Calls a reader of settings with the checks of settings that accept only some values.
fn with_words<T>(read: impl FnOnce(&[(&str, Judge<'_>)]) -> T) -> T {
    let form = |word: &str| {
        let known = Log::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        let is_one = known.iter().any(|name| name == word);
        is_one.then_some(()).ok_or_else(|| format!("one of {}, found `{word}`", known.join(", ")))
    };
    let group =
        |word: &str| group(word).map(drop).map_err(|why| format!("a group of this host: {why}"));
    let level = |word: &str| {
        let wrong = |why: crate::workers::LogLevelError| {
            let why = why.to_string();
            why.strip_prefix("expected ").map_or_else(|| why.clone(), str::to_owned)
        };
        render::filter(word).map(drop).map_err(wrong)
    };
    read(&[("log", &form), ("socket_group", &group), ("log_level", &level)])
}

/// Returns the limits of the history.
fn limits(settings: &Settings) -> Limits {
    let (said, usual) = (settings.history, Limits::default());
    Limits {
        file: said.file.unwrap_or(usual.file),
        total: said.total.unwrap_or(usual.total),
        age: said.age.map_or(usual.age, Duration::from_secs),
    }
}

/// Returns the limits of the event log.
fn retention(settings: &Settings) -> Retention {
    let usual = Retention::default();
    Retention {
        bytes: settings.events_size.map_or(usual.bytes, |mebibytes| u64::from(mebibytes) << 20),
        age: settings.events_days.map_or(usual.age, |days| DAY * days),
    }
}

impl State {
    fn fill(&mut self, settings: &Settings) {
        if self.state_dir.is_none() {
            self.state_dir.clone_from(&settings.state_dir);
        }
        self.history = limits(settings);
        self.retention = retention(settings);
    }
}

impl Run {
    /// Returns this command line, completed with settings.
    fn completed_with(&self, settings: Settings) -> Result<Self, Unusable> {
        let mut run = self.clone();
        let is_alone = run.graph.config.is_none() && !run.graph.graphs.is_empty();
        merge(&mut run.graph, &settings)?;
        run.given = (!is_alone).then(|| Box::new(self.clone()));
        run.state.fill(&settings);
        run.fill(settings);
        Ok(run)
    }

    fn fill(&mut self, settings: Settings) {
        self.watch |= settings.watch.unwrap_or_default();
        self.socket = self.socket.take().or(settings.socket);
        let group = settings.socket_group.and_then(|name| group(&name).ok());
        self.socket_group = self.socket_group.or(group);
        let form = settings.log.and_then(|word| Log::from_str(&word, false).ok());
        self.log = self.log.or(form);
        self.log_level = settings.log_level;
        self.sweep = self.sweep.or(settings.sweep);
        self.grace = self.grace.or(settings.grace);
        self.pause_limit = self.pause_limit.or(settings.pause_limit);
        self.max_repairs_per_minute =
            self.max_repairs_per_minute.or(settings.max_repairs_per_minute);
        self.recorders = settings.recorders;
        self.metrics = MetricsSettings {
            listen: settings.metrics_listen,
            file: settings.metrics_file,
            resources: settings.metrics_resources.unwrap_or_default(),
        };
        self.world = settings.world.map(Box::new);
        self.settings_text = settings.text.map(Box::new);
    }
}
