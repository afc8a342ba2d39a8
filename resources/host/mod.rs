//! The only access to the machine: files, processes, accounts, systemd, packages.
//!
//! Kinds must change the host only through this module, and each mutating function takes a permit. The module must
//! never know a kind or the graph.
//!
//! Reading order: `kernel/` (system calls), `files/`, `input_trust.rs` (files that root may read or run), `process/`,
//! `git_command.rs`, `secrets.rs`, `stat.rs`, `unfinished.rs` (files that others are writing), `tables/`, `systemd/`,
//! `packages/`, `journal.rs`, `world.rs`.

pub mod files;
mod git_command;
pub mod input_trust;
pub mod journal;
mod kernel;
pub mod packages;
mod process;
mod secrets;
mod stat;
pub mod systemd;
pub mod tables;
pub(crate) mod unfinished;
pub mod world;

pub use files::Files;
pub use git_command::git_command;
pub use kernel::overlay::{Limits, Overlay};
#[cfg(feature = "simulated-host")]
pub use kernel::{dispatch as calls, simulated};
pub(crate) use kernel::{is_bound_to_thread, wall};
pub use process::capture::Captured;
pub use process::command::{Command, MAX_TASKS};
pub use process::command_records::end_orphaned_commands;
pub use process::core_dumps::leave_no_core;
pub use process::descriptors::close_inherited;
pub use process::line_stream::{Line, Lines};
pub use process::{End, Finished};
pub use secrets::Supply;
pub use stat::PathInfo;
pub use systemd::Systemd;

/// The machine as seen by kinds. Clones are cheap and share their state, so all runs use one host.
#[derive(Clone, Debug, Default)]
pub struct Host {
    files: std::sync::Arc<Files>,
    systemd: std::sync::Arc<Systemd>,
    packages: std::sync::Arc<packages::Shared>,
    tables: std::sync::Arc<tables::Tables>,
    command_records: Option<std::sync::Arc<process::command_records::CommandRecords>>,
    world: Option<std::sync::Arc<dyn world::SharedWorld>>,
}

impl Host {
    /// Records running commands in this state directory, for [`end_orphaned_commands`].
    #[must_use]
    pub fn with_command_records(self, state_directory: &std::path::Path) -> Self {
        let records = process::command_records::CommandRecords::new(state_directory);
        Self { command_records: Some(std::sync::Arc::new(records)), ..self }
    }
}
