//! The command lines of `state show`, `verify`, `export`, `import`, `repair`.

use super::{Socket, State};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `steadfast state`.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub what: StateCommand,
}

/// What can be done with all that is kept.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Show what is kept of all resources, or of one; takes no lock, needs no daemon
    Show(ShowKept),
    /// Look for damage; changes nothing; ends with 0 where there is none, with 1 where there is
    Verify(VerifyKept),
    /// Write all that is kept as one JSON document, without secrets; takes no lock, needs no daemon
    Export(ExportKept),
    /// Keep what such a document says instead of what is kept, which stays beside; a daemon must be paused
    Import(ImportKept),
    /// Put right what can be, say what was changed, and keep what was there beside; a daemon must be paused, or
    /// observing only
    Repair(RepairKept),
}

/// `steadfast state export`.
#[derive(Debug, Args)]
pub struct ExportKept {
    /// To this file, for its owner alone [default: standard output]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
}

/// `steadfast state import`.
#[derive(Debug, Args)]
pub struct ImportKept {
    /// What `state export` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast state repair`.
#[derive(Debug, Args)]
pub struct RepairKept {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast state show`.
#[derive(Debug, Args)]
pub struct ShowKept {
    /// Only of this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Show it as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast state verify`.
#[derive(Debug, Args)]
pub struct VerifyKept {
    /// The state directory.
    #[command(flatten)]
    pub state: State,
}
