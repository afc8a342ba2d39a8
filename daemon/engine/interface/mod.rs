//! The data that the driver and the engine exchange: the graph and its metaparams, events, actions, and the replies to
//! queries.
//!
//! Nothing here has behaviour, except that a [`graph::Graph`] is validated when it is made. Types of this folder never
//! name the state of the engine.
//!
//! Reading order: `ids`, `metaparams`, `graph`, `event`, `action`, `query_replies`.

pub(crate) mod action;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod ids;
pub(crate) mod metaparams;
pub(crate) mod query_replies;
