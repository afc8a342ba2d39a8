//! The settings of this host, where the command line leaves something open. What is said on the command line wins.

use super::args::{Command, Graph, Log, Run, State};
use super::exit::Exit;
use super::{log, text};
use crate::config::{self, Settings};
use crate::events::Retention;
use crate::history::Limits;
use crate::plan::Plan;
use clap::ValueEnum as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the settings of a host are.
pub(super) const SETTINGS: &str = "/etc/steadfast/steadfast.yaml";

/// The graph of a host without settings.
const GRAPH: &str = "/etc/steadfast/graph.yaml";

const DAY: Duration = Duration::from_hours(24);

/// Fills in what the command line has left open.
pub(super) fn complete(command: &mut Command) -> Result<(), Exit> {
    match command {
        Command::Run(run) => {
            let settings = of(&mut run.graph)?;
            run.state.fill(&settings);
            run.fill(settings);
        }
        Command::Apply(apply) => {
            if let Some(plan) = &apply.plan {
                planned(plan, &mut apply.graph);
            }
            apply.state.fill(&of(&mut apply.graph)?);
        }
        Command::Plan(plan) => plan.state.fill(&of(&mut plan.graph)?),
        Command::Drift(drift) => drop(of(&mut drift.graph)?),
        Command::Graph(show) => drop(of(&mut show.graph)?),
        Command::Check(check) => drop(of(&mut check.graph)?),
        Command::Undo(undo) if Path::new(SETTINGS).exists() => {
            undo.history = limits(&told(Path::new(SETTINGS))?);
        }
        _ => {}
    }
    Ok(())
}

/// Where the daemon of this host listens, as far as its settings say: the socket, or the state directory.
pub(super) fn of_daemon() -> (Option<PathBuf>, Option<PathBuf>) {
    let settings = if Path::new(SETTINGS).exists() { read(Path::new(SETTINGS)).ok() } else { None };
    settings.map(|settings| (settings.socket, settings.state_dir)).unwrap_or_default()
}

/// The settings that go with a graph; where none is named, theirs.
fn of(graph: &mut Graph) -> Result<Settings, Exit> {
    if graph.config.is_none() && !graph.graphs.is_empty() {
        return Ok(Settings::default());
    }
    if graph.config.is_none() && Path::new(SETTINGS).exists() {
        graph.config = Some(SETTINGS.into());
    }
    let settings = match &graph.config {
        Some(path) => told(path)?,
        None => Settings::default(),
    };
    if graph.graphs.is_empty() {
        graph.graphs.clone_from(&settings.graph);
    }
    if graph.graphs.is_empty() && Path::new(GRAPH).exists() {
        graph.graphs.push(GRAPH.into());
    }
    if graph.graphs.is_empty() {
        let hint = format!("name a file, or put `graph: FILE` into {SETTINGS}");
        text::error(format!("no graph is named, and there is no {GRAPH}"), Some(&hint));
        return Err(Exit::Usage);
    }
    graph.noop |= settings.noop.unwrap_or_default();
    graph.sema = graph.sema.or(settings.sema);
    graph.defaults.clone_from(&settings.defaults);
    Ok(settings)
}

/// The graph of a plan, read as it was then.
fn planned(plan: &Plan, graph: &mut Graph) {
    graph.graphs.clone_from(&plan.paths);
    graph.config.clone_from(&plan.config);
    graph.only.clone_from(&plan.only);
    graph.skip.clone_from(&plan.skip);
    graph.sema = plan.sema;
}

fn told(path: &Path) -> Result<Settings, Exit> {
    read(path).map_err(|rejected| {
        text::say(rejected.to_string());
        Exit::Graph
    })
}

fn read(path: &Path) -> Result<Settings, config::Rejected> {
    let form = |word: &str| {
        let known = Log::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        let is_one = known.iter().any(|name| name == word);
        is_one.then_some(()).ok_or_else(|| format!("one of {}, found `{word}`", known.join(", ")))
    };
    let group = |word: &str| group(word).map(drop).map_err(|why| format!("a group: {why}"));
    let level = |word: &str| log::filter(word).map(drop);
    config::read_settings(path, &[("log", &form), ("socket_group", &group), ("log_level", &level)])
}

/// How much is kept of what is changed.
fn limits(settings: &Settings) -> Limits {
    let (said, usual) = (settings.history, Limits::default());
    Limits {
        file: said.file.unwrap_or(usual.file),
        total: said.total.unwrap_or(usual.total),
        age: said.age.map_or(usual.age, Duration::from_secs),
    }
}

/// How many events are kept.
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
        self.brake = self.brake.or(settings.brake);
        self.recorders = settings.recorders;
    }
}

/// The number of a group.
pub(super) fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!("there is no group named `{text}`")),
        Err(error) => Err(format!("cannot look up the group `{text}`: {error}")),
    }
}
