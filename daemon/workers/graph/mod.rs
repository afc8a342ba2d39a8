//! The graph and the settings of a running daemon: read, watched, stored as last-good, and handed to the driver.
//!
//! A rejected graph never replaces the running one, and a reload never restarts a worker.
//!
//! Reading order: `loader/` (the worker), `fact_watch` (the sources of facts),
//! `last_good_graph`, `settings`, `last_good_settings`.

pub(in crate::workers) mod fact_watch;
pub(in crate::workers) mod last_good_graph;
pub(in crate::workers) mod last_good_settings;
pub(in crate::workers) mod loader;
pub(in crate::workers) mod settings;
