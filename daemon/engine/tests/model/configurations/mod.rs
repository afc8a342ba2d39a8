//! The configurations that the model explores: graphs, features, budgets of events, and first states.
//!
//! Nothing here judges a state. Reading order: `features`, `budget`, `beginning`, `grouping`.

pub(super) mod beginning;
pub(super) mod budget;
pub(super) mod features;
pub(super) mod grouping;
