//! Commands of an operator that change the driver's state: pause and resume of resources, undo, protect and forget.
//!
//! Each command is answered once. Reading order: `resource_pause`, `state_commands`, `undo`.

pub(super) mod resource_pause;
pub mod state_commands;
pub(super) mod undo;
