//! The command lines of all commands.
//!
//! The doc comments of arguments are help texts. This folder must not carry out any command. Reading order: this file,
//! `one_shot` (`apply`, `plan`, `drift`), `state`, `history`, `explain`.

mod explain;
pub(super) mod history;
mod one_shot;
mod state;

use super::settings::group;
pub use super::since::Since;
use super::since::since;
use crate::config::{self, Defaults, Recorder, Text};
use crate::events::Retention;
use crate::history::Limits;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use explain::{Explain, Inspect};
pub use history::{Diff, History, Show, Undo};
pub use one_shot::{Apply, Drift, Plan};
pub use state::{
    ExportKept, ImportKept, RepairKept, ShowKept, StateArgs, StateCommand, VerifyKept,
};
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::LONGEST_SPAN;

/// Holds a Linux host to a YAML graph of resources.
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, about, max_term_width = 100)]
pub struct Cli {
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
    /// Explain a kind, the metaparams or a problem code
    Explain(Explain),
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
    /// Run resources again, including failed and one-time resources
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
    /// Check without changing anything (as `noop: true` on every resource)
    #[arg(long, visible_aliases = ["dry-run", "what-if"])]
    pub noop: bool,
    /// Select only these resources: `file[motd]`, or `file` for a whole kind
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Exclude these resources
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Run at most N resources in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sema: Option<u32>,
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

/// `steadfast status`.
#[derive(Debug, Args)]
pub struct Status {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Refresh the output every second
    #[arg(long)]
    pub watch: bool,
    /// Show at most N unconverged resources
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// `steadfast top`.
#[derive(Debug, Args)]
pub struct Top {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast why`.
#[derive(Debug, Args)]
pub struct OfResource {
    /// Resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `steadfast events`.
#[derive(Debug, Args)]
pub struct Events {
    /// Show only events of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
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
    /// Include debug events while following
    #[arg(long, requires = "follow")]
    pub debug: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `steadfast workers`.
#[derive(Debug, Args)]
pub struct Workers {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Pause only these resources; dependents of an unconverged one wait: `kind[name]`
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Duration of the pause: `90s`, `30m`, `2h`, `1d` [default: --pause-limit of the daemon]
    #[arg(long = "for", value_name = "TIME", value_parser = config::span)]
    pub limit: Option<u64>,
    /// Reason, shown in the status
    #[arg(long)]
    pub reason: Option<String>,
    /// Finish pending work and its consequences, then pause
    #[arg(long, conflicts_with = "resources")]
    pub drain: bool,
}

/// `steadfast resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Resume only these individually paused resources: `kind[name]`
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show the pending changes without resuming
    #[arg(long)]
    pub plan: bool,
}

/// `steadfast reload`.
#[derive(Debug, Args)]
pub struct Reload {
    /// Accept a graph without resources: nothing stays declared
    #[arg(long)]
    pub allow_empty: bool,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// The resources and the daemon.
    #[command(flatten)]
    pub of: Resources,
    /// Store the request: the resources also run after a restart; works without a daemon
    #[arg(long)]
    pub persist: bool,
}

/// `steadfast protect`, `unprotect`, `forget`.
#[derive(Debug, Args)]
pub struct Resources {
    /// Resource: `kind[name]`
    #[arg(required = true, value_name = "RES")]
    pub resources: Vec<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Condition to wait for
    #[arg(long = "for", value_enum, default_value = "converged")]
    pub what: Awaited,
    /// Give up after S seconds
    #[arg(long, value_name = "S")]
    pub timeout: Option<u64>,
}

/// The states that `wait` can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Awaited {
    /// All resources are converged.
    Converged,
}

/// `steadfast stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Stop at once and interrupt running commands
    #[arg(long)]
    pub now: bool,
}

/// `steadfast log-level`.
#[derive(Debug, Args)]
pub struct LogLevel {
    /// Level `error`, `warn`, `info`, `debug` or `trace`; for one module: `steadfast::driver=trace`
    #[arg(value_name = "FILTER")]
    pub filter: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
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

/// `steadfast completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells that can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU bash, 4.4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// `steadfast man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Output directory; one page per command
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
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
    /// Exit after the host has been converged for S seconds
    #[arg(long, value_name = "S")]
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
    /// The command line without the settings; `None` if no settings are read.
    #[arg(skip)]
    pub given: Option<Box<Self>>,
    /// The text of the settings file.
    #[arg(skip)]
    pub settings_text: Option<Box<Text>>,
    /// The reason why other settings apply than those of the file, if so.
    #[arg(skip)]
    pub settings_instead: Option<String>,
    /// Seconds that running resources may take to finish after a stop [default: 30]
    #[arg(long, value_name = "S")]
    pub grace: Option<u64>,
    /// Seconds for one sweep, which checks every resource regardless of events; 0 disables it [default: 600]
    #[arg(long, value_name = "S")]
    pub sweep: Option<u64>,
    /// Seconds after which a pause without --for ends automatically [default: 28800]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=LONGEST_SPAN.as_secs()))]
    pub pause_limit: Option<u64>,
    /// Repairs a minute, of what was repaired within that minute already, after which nothing is repaired twice a
    /// minute; 0: never [default: 600]
    #[arg(long, value_name = "N")]
    pub max_repairs_per_minute: Option<u32>,
}

/// `steadfast graph`.
#[derive(Debug, Args)]
pub struct ShowGraph {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// The state directory, with the records of undeclared resources.
    #[command(flatten)]
    pub state: State,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// The forms of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For graphviz: `steadfast graph --format dot GRAPH | dot -Tsvg`.
    Dot,
    /// One JSON object.
    Json,
}

/// `steadfast check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Print the problems as JSON
    #[arg(long)]
    pub json: bool,
    /// The daemon, if resources are given instead of graphs: the daemon checks them again.
    #[command(flatten)]
    pub socket: Socket,
}
