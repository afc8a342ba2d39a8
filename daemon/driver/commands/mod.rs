//! Commands of an operator that change the state of the driver: pause and resume of resources, undo, protect and
//! forget.
//!
//! Invariant: each command is answered exactly once. Reading order: `resource_pause.rs`, `state_commands.rs`,
//! `undo.rs`.

pub(super) mod resource_pause;
pub mod state_commands;
pub(super) mod undo;
