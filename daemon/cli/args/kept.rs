//! What can be said on the command line of what is kept: `state show`, `state verify`.

use super::State;
use clap::{Args, Subcommand};

/// `steadfast state`.
#[derive(Debug, Args)]
pub struct Kept {
    /// What to do.
    #[command(subcommand)]
    pub what: OfKept,
}

/// What can be done with all that is kept.
#[derive(Debug, Subcommand)]
pub enum OfKept {
    /// Show what is kept of all resources, or of one; takes no lock, needs no daemon
    Show(ShowKept),
    /// Look for damage; changes nothing; ends with 0 where there is none, with 1 where there is
    Verify(VerifyKept),
}

/// `steadfast state show`.
#[derive(Debug, Args)]
pub struct ShowKept {
    /// Only of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// Where state is kept.
    #[command(flatten)]
    pub state: State,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast state verify`.
#[derive(Debug, Args)]
pub struct VerifyKept {
    /// Where state is kept.
    #[command(flatten)]
    pub state: State,
}
