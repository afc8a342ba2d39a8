//! The command lines of all commands.
//!
//! The doc comments of arguments are help texts. This folder must not carry out any command. Reading order: this file,
//! `one_shot` (`apply`, `plan`, `drift`), `state`, `history`.

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
    /// Hold the host to a graph: make what is missing, put back what moves, until stopped
    Run(Run),
    /// Make the host as declared, once, and say how it went
    Apply(Apply),
    /// Show what `apply` would change; changes nothing, takes no lock
    Plan(Plan),
    /// Show what differs from a graph now; opens nothing for writing
    Drift(Drift),
    /// Read a graph and report every problem in it
    Check(Check),
    /// Show a graph: its resources, its edges and where each comes from
    Graph(ShowGraph),
    /// Explain a kind, the metaparams, or the code of a problem
    Explain(Explain),
    /// Say how the host stands; ends with 0 as declared, 1 failed, 2 neither, 65 graph refused, 69 no daemon
    Status(Status),
    /// Watch the running daemon over the whole screen: all resources, what differs, what happens
    Top(Top),
    /// Show one resource of the running daemon in full; with --at, a file as it was
    Show(Show),
    /// Show what stands in the way of a resource, up to the cause
    Why(OfResource),
    /// Show what happened lately; with --follow also what happens
    Events(Events),
    /// Show the workers inside the daemon
    Report(Report),
    /// Let the daemon come to rest, or only some resources; every pause ends by itself
    Pause(Pause),
    /// Show what will change, and let it go on
    Resume(Resume),
    /// Let the daemon read its graph again, and say whether it was taken
    Reload(Reload),
    /// Show what was changed, when and why; each number can be shown, compared and gone back to
    History(History),
    /// Compare a file as it was with what is there now, or with what it was at another time
    Diff(Diff),
    /// Put back what a resource was before its last change, and pause it by itself
    Undo(Undo),
    /// Run resources again, also what has failed or runs once
    Retry(Resources),
    /// Refuse every graph that leaves these out, until `unprotect`
    Protect(Resources),
    /// End the protection of resources
    Unprotect(Resources),
    /// Forget whose resources are and that they have run: what is there is adopted, what runs once runs again
    Forget(Resources),
    /// Run resources again that have run, also when the daemon starts next: kept, unlike `retry`
    Redo(Resources),
    /// Show, verify, export, import or repair what is kept of resources between runs
    State(StateArgs),
    /// Wait until the host is as declared
    Wait(Wait),
    /// End the daemon
    Stop(Stop),
    /// Change how much the daemon logs
    LogLevel(LogLevel),
    /// Say whether this machine lets a daemon do its work; ends with 0 ok, 1 problems, 2 warnings only
    Doctor(Doctor),
    /// Print the script by which a shell completes this command line
    Completions(Completions),
    /// Write the manual pages to a directory
    Man(Man),
}

/// Which graph, and how much of it.
#[derive(Clone, Debug, Args)]
pub struct Graph {
    /// Graph files, or folders of *.yaml; `-` reads standard input [default: as the settings say, or
    /// /etc/steadfast/graph.yaml]
    #[arg(value_name = "GRAPH")]
    pub graphs: Vec<PathBuf>,
    /// The settings of this host [default: /etc/steadfast/steadfast.yaml, where no GRAPH is named]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Metaparams for all resources, from the settings.
    #[arg(skip)]
    pub defaults: Option<Arc<Defaults>>,
    /// Check only, change nothing (as `noop: true` on every resource)
    #[arg(long, visible_aliases = ["dry-run", "what-if"])]
    pub noop: bool,
    /// Only these resources: `file[motd]`, or `file` for all of a kind
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// All but these resources
    #[arg(long, value_name = "RES", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// At most N resources at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sema: Option<u32>,
}

/// Where state is kept.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "as the flag is called")]
pub struct State {
    /// Where state is kept [default: /var/lib/steadfast, or ~/.local/state/steadfast without root]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The limits of the history, from the settings.
    #[arg(skip)]
    pub history: Limits,
    /// The limits of the event log, from the settings.
    #[arg(skip)]
    pub retention: Retention,
}

/// Which daemon is asked.
#[derive(Clone, Debug, Args)]
pub struct Socket {
    /// Where the daemon listens [default: in its runtime directory; in its --state-dir if that was given]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The daemon with this state directory
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// `steadfast status`.
#[derive(Debug, Args)]
pub struct Status {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show it again each second
    #[arg(long)]
    pub watch: bool,
    /// At most so many resources that are not as declared
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub most: usize,
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
    /// Which: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `steadfast events`.
#[derive(Debug, Args)]
pub struct Events {
    /// Only those of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Go on with what happens, until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Only from there on: a number of an event, an age such as 2h, or a time such as 14:00 or 2026-11-21T14:00
    #[arg(long, value_name = "SINCE", value_parser = since)]
    pub since: Option<Since>,
    /// Of those that were, only the last N [default: 200, unless --since is given]
    #[arg(short = 'n', long = "lines", value_name = "N")]
    pub most: Option<usize>,
    /// Of those that come, also what helps to look for a fault
    #[arg(long, requires = "follow")]
    pub debug: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `steadfast report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Only these, and what depends on them waits where they are not as declared: `kind[name]`
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// It ends by itself after so long: `90s`, `30m`, `2h`, `1d` [default: the daemon's --pause-limit]
    #[arg(long = "for", value_name = "TIME", value_parser = config::span)]
    pub limit: Option<u64>,
    /// Why, for who looks at the status
    #[arg(long)]
    pub reason: Option<String>,
    /// First do what is to be done at this moment, and what that leads to
    #[arg(long, conflicts_with = "resources")]
    pub drain: bool,
}

/// `steadfast resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Only these, which were paused by themselves: `kind[name]`
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Only show what will change
    #[arg(long)]
    pub plan: bool,
}

/// `steadfast reload`.
#[derive(Debug, Args)]
pub struct Reload {
    /// Take a graph without a single resource too: all that was declared is given up
    #[arg(long)]
    pub allow_empty: bool,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast retry`, `protect`, `unprotect`, `forget`.
#[derive(Debug, Args)]
pub struct Resources {
    /// Which: `kind[name]`
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
    /// What for
    #[arg(long = "for", value_enum, default_value = "converged")]
    pub what: Awaited,
    /// For so many seconds at most
    #[arg(long, value_name = "S")]
    pub timeout: Option<u64>,
}

/// The states that `wait` can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Awaited {
    /// All is as declared.
    Converged,
}

/// `steadfast stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// At once: cut off what runs
    #[arg(long)]
    pub now: bool,
}

/// `steadfast log-level`.
#[derive(Debug, Args)]
pub struct LogLevel {
    /// `error`, `warn`, `info`, `debug`, `trace`, or for a part: `steadfast::driver=trace`
    #[arg(value_name = "FILTER")]
    pub filter: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Graphs that are checked [default: as the settings say, or /etc/steadfast/graph.yaml, if it is there]
    #[arg(value_name = "GRAPH")]
    pub graphs: Vec<PathBuf>,
    /// The settings that are checked [default: /etc/steadfast/steadfast.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// For which shell
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
    /// Where to; a page for each command
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// The formats of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
    /// To the journal of systemd, with fields: `journalctl STEADFAST_RESOURCE=file[motd]`.
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
    /// Where to listen for commands [default: in the runtime directory; in --state-dir if that is given]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// A group, by name or number, whose members may ask how all stands (changes are for root and the daemon's user)
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub socket_group: Option<u32>,
    /// Reload when a graph file changes
    #[arg(long)]
    pub watch: bool,
    /// Start with a graph without a single resource too
    #[arg(long)]
    pub allow_empty: bool,
    /// End where the graph is invalid, instead of running the one that was accepted last
    #[arg(long)]
    pub no_kept_graph: bool,
    /// End when all has been as declared for so many seconds
    #[arg(long, value_name = "S")]
    pub converged_timeout: Option<u64>,
    /// How log lines look [default: human]
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
    /// Seconds that running resources may still take after a stop [default: 30]
    #[arg(long, value_name = "S")]
    pub grace: Option<u64>,
    /// Seconds for one sweep, which looks at everything whatever events said; 0 for none [default: 600]
    #[arg(long, value_name = "S")]
    pub sweep: Option<u64>,
    /// Seconds after which a pause ends by itself that was not given another time [default: 28800]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=LONGEST_SPAN.as_secs()))]
    pub pause_limit: Option<u64>,
    /// Repairs a minute, of what was repaired within that minute already, after which nothing is repaired for a minute;
    /// 0: never [default: 600]
    #[arg(long, value_name = "N")]
    pub brake: Option<u32>,
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
    /// In which form
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
    /// Show the problems as JSON
    #[arg(long)]
    pub json: bool,
    /// The daemon, if resources are given instead of graphs: the daemon checks them again.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A kind (`file`), `meta`, or a code (`C404`); all that can be explained, where none is given
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}
