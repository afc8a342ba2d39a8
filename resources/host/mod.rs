//! The one door to the machine: files, processes, accounts, systemd, packages.

mod account;
mod capture;
mod command;
mod command_records;
mod cores;
mod descriptors;
pub mod files;
mod group;
pub mod journal;
mod kept;
mod kernel;
mod lines;
mod look;
pub mod packages;
mod prepare;
mod process;
mod secrets;
mod spawner;
mod supervise;
pub mod systemd;
pub mod trust;

pub use capture::Captured;
pub use command::{Command, MAX_TASKS};
pub use command_records::end_orphaned_commands;
pub use cores::leave_no_core;
pub use descriptors::close_inherited;
pub use files::Files;
pub use kernel::overlay::{Limits, Overlay};
pub(crate) use kernel::wall;
#[cfg(feature = "twin")]
pub use kernel::{fork as calls, twin};
pub use lines::{Line, Lines};
pub use look::Glance;
pub use process::{End, Finished};
pub use secrets::Supply;
pub use systemd::Systemd;

/// The machine, as kinds see it. Cheap to clone: it is shared by all runs.
#[derive(Clone, Debug, Default)]
pub struct Host {
    files: std::sync::Arc<Files>,
    systemd: std::sync::Arc<Systemd>,
    packages: std::sync::Arc<packages::Shared>,
    command_records: Option<std::sync::Arc<command_records::CommandRecords>>,
}

impl Host {
    /// Records the commands that run in this state directory, for [`end_orphaned_commands`].
    #[must_use]
    pub fn with_command_records(self, state_directory: &std::path::Path) -> Self {
        let records = command_records::CommandRecords::new(state_directory);
        Self { command_records: Some(std::sync::Arc::new(records)), ..self }
    }
}
