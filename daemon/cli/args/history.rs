//! The command lines of `history`, `show --at`, `diff`, `undo`.

use super::{OfResource, Socket, State};
use crate::cli::since::{Since, since};
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
    /// Show only changes of these resources: `kind[name]`, a unique name, a kind, or `kind[glob*]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Show at most the last N changes [default: 50, unless --since is given]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Start at a change number, an age such as 2h, or a time such as 14:00 or 2026-11-21T14:00
    #[arg(long, value_name = "SINCE", value_parser = since)]
    pub since: Option<Since>,
    /// Show ages instead of times
    #[arg(long)]
    pub relative: bool,
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
#[derive(Clone, Debug, Args)]
pub struct Undo {
    /// Resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// Undo change N of `history` and all later ones [default: the last run with changes]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Show what the undo would restore, without doing it
    #[arg(long)]
    pub plan: bool,
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
