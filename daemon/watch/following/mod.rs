//! The tasks of the hub: each follows one event source besides the directories, and reports what it hears.
//!
//! A task never changes the index but through [`Shared`](super::shared::Shared). Reading order:
//! `timers_and_commands.rs`, `units.rs` (systemd), `kernel_files.rs`, `mounts.rs`, `retries.rs`.

mod kernel_files;
mod mounts;
mod retries;
mod timers_and_commands;
mod units;

pub(super) use kernel_files::follow_file;
pub(super) use mounts::follow_mounts;
pub(super) use retries::try_again;
pub(super) use timers_and_commands::{listen, tick};
pub(super) use units::follow;
