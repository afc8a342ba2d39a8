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

/// The operations on the stored state as a whole.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Show the stored state of all resources or one; takes no lock, needs no daemon
    Show(ShowKept),
    /// Check the state for damage; read-only. Exit code: 0 intact, 1 damaged
    Verify(VerifyKept),
    /// Export the state as one JSON document without secrets; takes no lock, needs no daemon
    Export(ExportKept),
    /// Replace the state by an exported document; the old state is kept as a backup. The daemon must be paused
    Import(ImportKept),
    /// Put right what can be, say what was changed, and keep what was there beside; a daemon must be paused, or
    /// read-only
    Repair(RepairKept),
}

/// `steadfast state export`.
#[derive(Debug, Args)]
pub struct ExportKept {
    /// Output file, readable only by its owner [default: standard output]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
}

/// `steadfast state import`.
#[derive(Debug, Args)]
pub struct ImportKept {
    /// Document written by `state export`
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
    /// Show only this resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: Option<String>,
    /// The state directory.
    #[command(flatten)]
    pub state: State,
    /// Print one JSON object
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
