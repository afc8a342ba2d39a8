//! The one door to the machine: files, processes, accounts.

mod command;
pub mod files;

pub use command::Command;
pub use files::Files;

/// The machine, as kinds see it. Cheap to clone: it is shared by all runs.
#[derive(Clone, Debug, Default)]
pub struct Host {
    files: std::sync::Arc<Files>,
}
