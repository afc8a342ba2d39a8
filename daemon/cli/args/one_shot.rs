//! The command lines of the commands that run once over a graph: `apply`, `plan`, `drift`.

use super::{Graph, Log, State};
use crate::config::{Recorder, WorldSettings};
use crate::plan::Plan as Planned;
use clap::Args;
use std::path::PathBuf;

/// `steadfast apply`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct Apply {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Apply the plan saved by `plan --out FILE`; fail if the graph or the host has changed since
    #[arg(long, value_name = "FILE", value_parser = Planned::named, conflicts_with_all = ["graphs", "config", "noop", "only", "labels", "skip", "sema"])]
    pub plan: Option<Planned>,
    /// Do not ask before existing objects are removed; without a terminal nothing is asked
    #[arg(short, long)]
    pub yes: bool,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Accept a graph without resources: nothing stays declared
    #[arg(long)]
    pub allow_empty: bool,
    /// Exit with 2 if anything was changed
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Format of the progress lines
    #[arg(long, value_enum, default_value = "human")]
    pub log: Log,
    /// The recorders of the settings.
    #[arg(skip)]
    pub recorders: Vec<Recorder>,
    /// The world of the settings.
    #[arg(skip)]
    pub world: Option<Box<WorldSettings>>,
}

/// `steadfast plan`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct Plan {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Accept a graph without resources, as `apply --allow-empty` does
    #[arg(long)]
    pub allow_empty: bool,
    /// Exit with 2 if anything would change
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show the origin of each edge
    #[arg(long)]
    pub explain_edges: bool,
    /// Save the plan to FILE, for `apply --plan FILE`
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `steadfast drift`.
#[derive(Debug, Args)]
pub struct Drift {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Exit with 2 if anything differs
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
