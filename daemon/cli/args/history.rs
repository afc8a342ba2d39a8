//! The command lines of `history`, `show --at`, `diff`, `undo`.

use super::{OfResource, Socket, State};
use crate::config;
use crate::history::Limits;
use clap::Args;

/// `steadfast show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The resource, and the daemon to query.
    #[command(flatten)]
    pub of: OfResource,
    /// Print the file as it was before change N of `history`
    #[arg(long, value_name = "N")]
    pub at: Option<u64>,
}

/// `steadfast history`.
#[derive(Debug, Args)]
pub struct History {
    /// Show only changes of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Show at most the last N changes
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `steadfast diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Resource: `kind[name]`
    #[arg(value_name = "RES", index = 1)]
    pub resource: String,
    /// Compare the content before change N of `history` [default: the last change]
    #[arg(value_name = "N", index = 2)]
    pub from: Option<u64>,
    /// Compare with the content before change M [default: the current content]
    #[arg(value_name = "M", index = 3)]
    pub to: Option<u64>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
}

/// `steadfast undo`.
#[derive(Debug, Args)]
pub struct Undo {
    /// Resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// Undo change N of `history` and all later ones [default: the last run with changes]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Restore what was recorded even if the record is incomplete; the rest stays unchanged
    #[arg(long)]
    pub partial: bool,
    /// Pause the resource for TIME, so that its graph does not reverse the undo: `90s`, `30m`, `2h`, `1d`
    #[arg(long = "for", value_name = "TIME", value_parser = config::span, default_value = "2h")]
    pub limit: u64,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// The limits of the history, from the settings.
    #[arg(skip)]
    pub history: Limits,
}
