//! The command lines of all commands.
//!
//! The doc comments of arguments are help texts. This folder must not carry out any command. Reading order: this file,
//! `graph`, `one_shot` (`apply`, `plan`, `drift`), `control` (clients of a daemon), `state`, `history`, `world`,
//! `explain`, `facts`, `shell`, `group`.

mod control;
mod explain;
mod facts;
mod graph;
pub(super) mod group;
pub(super) mod history;
mod one_shot;
mod shell;
mod state;
mod world;

pub use super::output::colour::ColorWhen;
pub use super::since::Since;
use super::since::since;
use crate::config::{CollectedExport, Defaults, Recorder, Text, WorldSettings};
use crate::events::Retention;
use crate::history::Limits;
use crate::workers::MetricsSettings;
use clap::{Args, Parser, Subcommand, ValueEnum};
use control::seconds_or_span;
pub(super) use control::selectors;
pub use control::{
    Awaited, LogLevel, OfResource, Pause, Reload, Resources, Resume, Retry, Selection, Status,
    Stop, Top, Wait, Workers,
};
pub use explain::{Evaluate, Explain, FormatFiles, Init, Inspect, Schema};
pub use facts::FactsArgs;
pub use graph::{Check, Format, ShowGraph, TestModule};
use group::group;
pub use history::{Diff, History, Show, Undo};
pub use one_shot::{Apply, Drift, Plan};
pub use shell::{Completions, Man, Shell};
pub use state::{
    ExportKept, ImportKept, RepairKept, ShowKept, StateArgs, StateCommand, VerifyKept,
};
use std::path::PathBuf;
use std::sync::Arc;
pub use world::{
    Bundle, Deploy, Fleet, FleetCommand, FleetShow, FleetWait, World, WorldCommand, WorldForget,
    WorldList, WorldOf, WorldRelease,
};

/// Holds a Linux host to a YAML graph of resources.
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, about, max_term_width = 100)]
pub struct Cli {
    /// Colour the output: `auto` (on a terminal, unless `NO_COLOR` is set), `always` or `never`
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true,
        display_order = 1000
    )]
    pub color: ColorWhen,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon: apply the graph and repair drift until stopped
    Run(Run),
    /// Apply a graph once and print a summary
    Apply(Apply),
    /// Preview the changes of `apply`; read-only, takes no lock
    Plan(Plan),
    /// Show the differences between the host and a graph; read-only
    Drift(Drift),
    /// Validate a graph and report every problem
    Check(Check),
    /// Show the resources of a graph and its edges with their origin
    Graph(ShowGraph),
    /// Run the test cases of a graph module: cases/*.yaml in its folder; needs no host
    Test(TestModule),
    /// Explain a kind, a field, a word of the graph language, the metaparams or a problem code
    Explain(Explain),
    /// Evaluate an expression of the graph language: value, type, names; `vars.x` shows each layer
    Eval(Evaluate),
    /// Print the JSON Schema of graph files, for editors
    Schema(Schema),
    /// Format graph files: indentation and empty lines; values and comments stay
    Fmt(FormatFiles),
    /// Show the facts of this host, which expressions of a graph use
    Facts(FactsArgs),
    /// Write a first graph of this host, and settings; never overwrites a file
    Init(Init),
    /// Print live objects of this host as a graph; read-only, secrets by name only
    Inspect(Inspect),
    /// Show host status. Exit code: 0 converged, 1 failed, 2 pending, 65 graph rejected, 69 no daemon
    Status(Status),
    /// Monitor the daemon full-screen: resources, differences, events
    Top(Top),
    /// Show one resource in detail; with --at, the earlier content of a file
    Show(Show),
    /// Show the chain of blockers of a resource, up to the cause
    Why(OfResource),
    /// Show recent events; with --follow, also new ones
    Events(Events),
    /// Show the workers of the daemon
    Workers(Workers),
    /// Pause the daemon or single resources; every pause ends automatically
    Pause(Pause),
    /// Show the pending changes and end a pause
    Resume(Resume),
    /// Reload the graph and the settings; report whether they were accepted
    Reload(Reload),
    /// List recorded changes; each number works with `show --at`, `diff` and `undo --to`
    History(History),
    /// Compare an earlier content of a file with the current or another one
    Diff(Diff),
    /// Restore the state before the last change of a resource, and pause the resource
    Undo(Undo),
    /// Run resources again, including failed and one-time resources; guards and `refresh_only` still hold
    Retry(Retry),
    /// Protect resources: graphs without them are rejected until `unprotect`
    Protect(Resources),
    /// End the protection of resources
    Unprotect(Resources),
    /// Discard ownership and run-once records; existing objects are adopted and one-time resources run again
    Forget(Resources),
    /// Show, verify, export, import or repair the stored state
    State(StateArgs),
    /// Wait until the host is converged
    Wait(Wait),
    /// Stop the daemon
    Stop(Stop),
    /// Change the log level of the daemon
    LogLevel(LogLevel),
    /// Diagnose the host and the installation. Exit code: 0 ok, 1 problems, 2 warnings only
    Doctor(Doctor),
    /// Show all hosts of the world. Exit code: 0 converged, 1 failed or lost, 2 pending
    Fleet(Fleet),
    /// Forget a host, free a permit by hand, or list the keys of the world
    World(World),
    /// Pack and sign a graph folder for other hosts
    Bundle(Bundle),
    /// Request a bundle on hosts, wave by wave; stop at the first failure
    Deploy(Deploy),
    /// Print the completion script for a shell
    Completions(Completions),
    /// Write the manual pages to a directory
    Man(Man),
}

/// The graph and its selection.
#[derive(Clone, Debug, Args)]
pub struct Graph {
    /// Graph files, or folders of *.yaml; `-` reads standard input [default: as the settings say, or
    /// /etc/steadfast/graph.yaml]
    #[arg(value_name = "GRAPH")]
    pub graphs: Vec<PathBuf>,
    /// Settings file of this host [default: /etc/steadfast/steadfast.yaml, unless GRAPH is given]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Metaparams for all resources, from the settings.
    #[arg(skip)]
    pub defaults: Option<Arc<Defaults>>,
    /// The exports of other hosts, from the state directory.
    #[arg(skip)]
    pub exports: Option<Arc<[CollectedExport]>>,
    /// Check without changing anything (as `noop: true` on every resource)
    #[arg(long, visible_aliases = ["dry-run", "what-if"])]
    pub noop: bool,
    /// Select only these resources: `file[motd]`, `motd`, a kind, `file[/etc/*]`, or `instance/*`
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Select only resources with these labels: `tier=web`, `tier!=test`; several with commas
    #[arg(short = 'l', long = "label", value_name = "LABELS")]
    pub labels: Option<String>,
    /// Exclude these resources
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Run at most N resources in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sema: Option<u32>,
    /// Set a variable of the graph: `--var workers=4`
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub vars: Vec<(String, String)>,
    /// Read variables from a YAML or JSON file; `--var` wins over the file
    #[arg(long = "vars", value_name = "FILE")]
    pub vars_files: Vec<PathBuf>,
    /// Use the facts in a JSON or YAML file instead of those of this host
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
}

impl Graph {
    /// Returns true if the arguments select a part of the graph: the other resources are declared all the same, and are
    /// neither undeclared nor removed.
    pub(in crate::cli) const fn is_selected(&self) -> bool {
        !self.only.is_empty() || !self.skip.is_empty() || self.labels.is_some()
    }
}

/// Splits the argument of `--var`.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as workers=4".to_owned()),
    }
}

/// The state directory.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "as the flag is called")]
pub struct State {
    /// State directory [default: /var/lib/steadfast, or ~/.local/state/steadfast without root]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The limits of the history, from the settings.
    #[arg(skip)]
    pub history: Limits,
    /// The limits of the event log, from the settings.
    #[arg(skip)]
    pub retention: Retention,
}

/// The selection of the daemon to query.
#[derive(Clone, Debug, Args)]
pub struct Socket {
    /// Control socket of the daemon [default: in its runtime directory, or in --state-dir if given]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// State directory of the daemon
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// `steadfast events`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Events {
    /// Show only events of these resources.
    #[command(flatten)]
    pub selection: Selection,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Follow new events until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Start at an event number, an age such as 2h, or a time such as 14:00 or 2026-11-21T14:00
    #[arg(long, value_name = "SINCE", value_parser = since)]
    pub since: Option<Since>,
    /// Show only the last N recorded events [default: 200, unless --since is given]
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
    /// Include debug events, and each start and end of a worker
    #[arg(long)]
    pub debug: bool,
    /// Print the age of each event instead of its time
    #[arg(long, conflicts_with_all = ["follow", "json"])]
    pub relative: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `steadfast doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Graphs to check [default: from the settings, else /etc/steadfast/graph.yaml if present]
    #[arg(value_name = "GRAPH")]
    pub graphs: Vec<PathBuf>,
    /// Settings file to check [default: /etc/steadfast/steadfast.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The formats of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Plain text.
    Human,
    /// One JSON object per line.
    Json,
    /// Structured entries in the systemd journal: `journalctl STEADFAST_RESOURCE=file[motd]`.
    Journald,
}

/// `steadfast run`.
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Path of the control socket [default: in the runtime directory, or in --state-dir if given]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Group (name or number) whose members may query the status; only root and the daemon's user may change anything
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub socket_group: Option<u32>,
    /// Reload the graph when one of its files changes
    #[arg(long)]
    pub watch: bool,
    /// Accept a graph without resources at the start
    #[arg(long)]
    pub allow_empty: bool,
    /// Exit if the graph or the settings are invalid, instead of running the last-good ones
    #[arg(long)]
    pub no_last_good_graph: bool,
    /// Exit after the host has been converged for this time: seconds, or 10m
    #[arg(long, value_name = "TIME", value_parser = seconds_or_span)]
    pub converged_timeout: Option<u64>,
    /// Log format [default: human]
    #[arg(long, value_enum)]
    pub log: Option<Log>,
    /// The level of the log, from the settings.
    #[arg(skip)]
    pub log_level: Option<String>,
    /// The recorders of events, from the settings.
    #[arg(skip)]
    pub recorders: Vec<Recorder>,
    /// The settings of metrics.
    #[arg(skip)]
    pub metrics: MetricsSettings,
    /// The world, from the settings.
    #[arg(skip)]
    pub world: Option<Box<WorldSettings>>,
    /// The command line without the settings; `None` if no settings are read.
    #[arg(skip)]
    pub given: Option<Box<Self>>,
    /// The text of the settings file.
    #[arg(skip)]
    pub settings_text: Option<Box<Text>>,
    /// The reason why other settings apply than those of the file, if so.
    #[arg(skip)]
    pub settings_instead: Option<String>,
    /// Time that running resources may take to finish after a stop: seconds, or 2m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = seconds_or_span)]
    pub grace: Option<u64>,
    /// Time for one sweep, which checks every resource regardless of events; 0 disables it [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = seconds_or_span)]
    pub sweep: Option<u64>,
    /// Time after which a pause without --for ends automatically: seconds, or 2h [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = crate::config::span)]
    pub pause_limit: Option<u64>,
    /// Repeated repairs within a minute after which no resource is repaired more than three times a minute; 0: no
    /// limit [default: 600]
    #[arg(long, value_name = "N")]
    pub max_repairs_per_minute: Option<u32>,
}
