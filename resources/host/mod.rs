//! The one door to the machine: files, processes, accounts.

mod command;

pub use command::Command;

/// The machine, as kinds see it. Cheap to clone: it is shared by all runs.
#[derive(Clone, Debug, Default)]
pub struct Host {}
