//! Requests of operators, by the control socket and by signals, and the queue in which they wait for the driver.
//!
//! The folder decides nothing about resources. A request is never lost with a failed driver.
//!
//! Reading order: `queue`, `parts`, `handler`, `pause`, `conditions`, `places`, `selection`, `state_requests`,
//! `control`, `signals`, `event_query`.

mod conditions;
pub(in crate::workers) mod control;
pub(in crate::workers) mod event_query;
pub(in crate::workers) mod handler;
pub(in crate::workers) mod parts;
mod pause;
mod places;
pub(in crate::workers) mod queue;
mod selection;
pub(in crate::workers) mod signals;
mod state_requests;
