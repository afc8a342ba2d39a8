//! The command lines of the commands that run once over a graph: `apply`, `plan`, `drift`.

use super::{Graph, Log, State};
use crate::config::Recorder;
use crate::plan::Plan as Planned;
use clap::Args;
use std::path::PathBuf;

/// `steadfast apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// Do what `plan --out` has written to FILE; refuse if graph or host are not as they were
    #[arg(long, value_name = "FILE", value_parser = Planned::named, conflicts_with_all = ["graphs", "config", "noop", "only", "skip", "sema"])]
    pub plan: Option<Planned>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Take a graph without a single resource too: all that was declared is given up
    #[arg(long)]
    pub allow_empty: bool,
    /// End with 2 if something was changed
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Say how it went as one JSON object
    #[arg(long)]
    pub json: bool,
    /// How the lines on the way look
    #[arg(long, value_enum, default_value = "human")]
    pub log: Log,
    /// The recorders of the settings.
    #[arg(skip)]
    pub recorders: Vec<Recorder>,
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
    /// Accept a graph without resources too, as `apply --allow-empty` does
    #[arg(long)]
    pub allow_empty: bool,
    /// End with 2 if something would be changed
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say of each edge where it comes from
    #[arg(long)]
    pub explain_edges: bool,
    /// Also write it to FILE, for `apply --plan FILE`
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `steadfast drift`.
#[derive(Debug, Args)]
pub struct Drift {
    /// The graph.
    #[command(flatten)]
    pub graph: Graph,
    /// End with 2 if something differs
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}
