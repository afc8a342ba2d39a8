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
    /// Print the file as it was before this change: a number that `history` shows
    #[arg(long, value_name = "N")]
    pub at: Option<u64>,
}

/// `steadfast history`.
#[derive(Debug, Args)]
pub struct History {
    /// Only of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// At most so many, the last ones
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub most: u32,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `steadfast diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Which: `kind[name]`
    #[arg(value_name = "RES", index = 1)]
    pub resource: String,
    /// As it was before this change: a number that `history` shows [default: the last]
    #[arg(value_name = "N", index = 2)]
    pub from: Option<u64>,
    /// With what it was before that change [default: what is there now]
    #[arg(value_name = "M", index = 3)]
    pub to: Option<u64>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
}

/// `steadfast undo`.
#[derive(Debug, Args)]
pub struct Undo {
    /// Which: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// Go back to before this change, a number that `history` shows [default: the last run that changed anything]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Put back what can be, also where not all of it was kept; what was not stays as it is
    #[arg(long)]
    pub partial: bool,
    /// The resource is paused for so long, so that its graph does not put it back: `90s`, `30m`, `2h`, `1d`
    #[arg(long = "for", value_name = "TIME", value_parser = config::span, default_value = "2h")]
    pub limit: u64,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// The limits of the history, from the settings.
    #[arg(skip)]
    pub history: Limits,
}
