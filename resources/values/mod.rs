//! Values between resources: what a resource sends, and the fields that receive values and secrets.
//!
//! A kind never learns where a value comes from. Reading order: `sent_values.rs`, `sent_slot.rs`, `inputs.rs`,
//! `deferred.rs`.

pub(crate) mod deferred;
pub(crate) mod inputs;
pub(crate) mod sent_slot;
pub(crate) mod sent_values;
