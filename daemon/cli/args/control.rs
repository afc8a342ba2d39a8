//! The command lines of the commands that use a running daemon.

use super::Socket;
use crate::config;
use crate::selection::LABEL;
use clap::{Args, ValueEnum};

/// A selection of resources; empty selects all.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Resources: `kind[name]`, a unique name, a kind, `kind[glob*]`, or `instance/*`
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// Select by labels: `tier=web`, `tier!=test`, `tier`; several with commas
    #[arg(short = 'l', long = "label", value_name = "LABELS", conflicts_with = "resources")]
    pub labels: Option<String>,
}

impl Selection {
    /// Returns the selectors; empty for all resources.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        selectors(&self.resources, self.labels.as_deref())
    }
}

/// Returns the selectors of arguments and of `-l`.
pub(in crate::cli) fn selectors(resources: &[String], labels: Option<&str>) -> Vec<String> {
    let labels = labels.map(|labels| format!("{LABEL}{labels}"));
    resources.iter().cloned().chain(labels).collect()
}

/// `steadfast status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Show only these resources.
    #[command(flatten)]
    pub selection: Selection,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Refresh the output every second
    #[arg(long)]
    pub watch: bool,
    /// Show at most N unconverged resources
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// `steadfast top`.
#[derive(Debug, Args)]
pub struct Top {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast why`.
#[derive(Debug, Args)]
pub struct OfResource {
    /// Resource: `kind[name]`
    #[arg(value_name = "RES")]
    pub resource: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `steadfast workers`.
#[derive(Debug, Args)]
pub struct Workers {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `steadfast pause`.
#[derive(Debug, Args)]
pub struct Pause {
    /// Pause only these resources; dependents of an unconverged one wait.
    #[command(flatten)]
    pub selection: Selection,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Duration of the pause: `90s`, `30m`, `2h`, `1d` [default: --pause-limit of the daemon]
    #[arg(long = "for", value_name = "TIME", value_parser = config::span)]
    pub limit: Option<u64>,
    /// Reason, shown in the status
    #[arg(long)]
    pub reason: Option<String>,
    /// Finish pending work and its consequences, then pause
    #[arg(long, conflicts_with_all = ["resources", "labels"])]
    pub drain: bool,
}

/// `steadfast resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// Resume only these individually paused resources.
    #[command(flatten)]
    pub selection: Selection,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Show the pending changes without resuming
    #[arg(long)]
    pub plan: bool,
}

/// `steadfast reload`.
#[derive(Debug, Args)]
pub struct Reload {
    /// Accept a graph without resources: nothing stays declared
    #[arg(long)]
    pub allow_empty: bool,
    /// Let collections of exported resources shrink at once
    #[arg(long)]
    pub yes: bool,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

/// `steadfast retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// The resources and the daemon.
    #[command(flatten)]
    pub of: Resources,
    /// Store the request: the resources also run after a restart; works without a daemon
    #[arg(long)]
    pub persist: bool,
}

/// `steadfast protect`, `unprotect`, `forget`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "as the argument is called")]
pub struct Resources {
    /// Resource: `kind[name]`, a unique name, a kind, `kind[glob*]`, or `instance/*`
    #[arg(required_unless_present = "labels", value_name = "RES")]
    pub resources: Vec<String>,
    /// Select by labels: `tier=web`, `tier!=test`, `tier`; several with commas
    #[arg(short = 'l', long = "label", value_name = "LABELS", conflicts_with = "resources")]
    pub labels: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}

impl Resources {
    /// Returns the selectors.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        selectors(&self.resources, self.labels.as_deref())
    }
}

/// `steadfast wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// Wait for these resources instead of the whole host.
    #[command(flatten)]
    pub selection: Selection,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Condition to wait for
    #[arg(long = "for", value_enum, default_value = "converged")]
    pub what: Awaited,
    /// Give up after TIME: `90s`, `2m`, or seconds
    #[arg(long, value_name = "TIME", value_parser = seconds_or_span)]
    pub timeout: Option<u64>,
}

/// Parses a number of seconds, or a time span with a unit.
pub(super) fn seconds_or_span(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_no_number| config::span(text))
}

/// The states that `wait` can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Awaited {
    /// All resources are converged.
    Converged,
    /// At least one change happened since the command began.
    Changed,
    /// At least one resource has failed without retries left.
    Failed,
    /// The resources, or the daemon, are paused and no run is active.
    Paused,
}

/// `steadfast stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
    /// Stop at once and interrupt running commands
    #[arg(long)]
    pub now: bool,
}

/// `steadfast log-level`.
#[derive(Debug, Args)]
pub struct LogLevel {
    /// Level `error`, `warn`, `info`, `debug` or `trace`; for one module: `steadfast::driver=trace`
    #[arg(value_name = "FILTER")]
    pub filter: String,
    /// The daemon.
    #[command(flatten)]
    pub socket: Socket,
}
