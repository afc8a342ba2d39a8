//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Holds a Linux host to a YAML graph of resources.
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
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
}

/// Which graph, and how much of it.
#[derive(Clone, Debug, Args)]
pub struct Graph {
    /// Graph files, or folders of *.yaml; `-` reads standard input
    #[arg(required = true, value_name = "GRAPH")]
    pub graphs: Vec<PathBuf>,
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
pub struct State {
    /// Where state is kept [default: /var/lib/steadfast, or ~/.local/state/steadfast without root]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// How lines of log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// `steadfast run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Where state is kept.
    #[command(flatten)]
    pub state: State,
    /// Reload when a graph file changes
    #[arg(long)]
    pub watch: bool,
    /// End when all has been as declared for so many seconds
    #[arg(long, value_name = "S")]
    pub converged_timeout: Option<u64>,
    /// How log lines look
    #[arg(long, value_enum, default_value = "human")]
    pub log: Log,
    /// Seconds that running resources may still take after a stop
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub grace: u64,
    /// Seconds for one sweep, which looks at everything whatever events said; 0 for none
    #[arg(long, value_name = "S", default_value_t = 600)]
    pub sweep: u64,
    /// Seconds after which a pause ends by itself
    #[arg(long, value_name = "S", default_value_t = 28_800, value_parser = clap::value_parser!(u64).range(1..))]
    pub pause_limit: u64,
    /// Repairs a minute, of what was repaired within that minute already, after which nothing is repaired for a minute; 0: never
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub brake: u32,
}

/// `steadfast apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Where state is kept.
    #[command(flatten)]
    pub state: State,
    /// End with 2 if something was changed
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Say how it went as one JSON object
    #[arg(long)]
    pub json: bool,
    /// How the lines on the way look
    #[arg(long, value_enum, default_value = "human")]
    pub log: Log,
}

/// `steadfast plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Where state is kept.
    #[command(flatten)]
    pub state: State,
    /// End with 2 if something would be changed
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say of each edge where it comes from
    #[arg(long)]
    pub explain_edges: bool,
}

/// `steadfast drift`.
#[derive(Debug, Args)]
pub struct Drift {
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
    /// End with 2 if something differs
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast graph`.
#[derive(Debug, Args)]
pub struct ShowGraph {
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
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
    /// Which graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Show the problems as JSON
    #[arg(long)]
    pub json: bool,
}

/// `steadfast explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A kind (`file`), `meta`, or a code (`C404`); all that can be explained, where none is given
    #[arg(value_name = "TOPIC")]
    pub topic: Option<String>,
}
