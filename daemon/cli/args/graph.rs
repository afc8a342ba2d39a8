//! The command lines of `check`, `graph` and `test`.

use super::{Graph, Socket, State};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    /// Print the expanded graph as YAML: variables, loops, includes and modules replaced, origins as comments
    #[arg(long, conflicts_with = "format")]
    pub expanded: bool,
}

/// `steadfast test`.
#[derive(Debug, Args)]
pub struct TestModule {
    /// The folder of the module
    #[arg(value_name = "MODULE_DIR")]
    pub module: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
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
    /// Also give advice about valid graphs; exit with 1 if there is some. `# lint: allow NAME: REASON` silences it
    #[arg(long)]
    pub lint: bool,
    /// Accept a graph without resources, as `apply --allow-empty` does
    #[arg(long)]
    pub allow_empty: bool,
    /// Print the problems as JSON
    #[arg(long)]
    pub json: bool,
    /// The daemon, if resources are given instead of graphs: the daemon checks them again.
    #[command(flatten)]
    pub socket: Socket,
}
