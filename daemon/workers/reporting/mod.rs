//! Reports of a running daemon to others: the event log, recorders, systemd, and the facts of a status.
//!
//! A report never delays the driver, and no request is carried out here.
//!
//! Reading order: `event_log`, `recorders`, `worker_events`, `metrics`, `health`, `host_limits`, `sd_notify`,
//! `watchdog`.

pub(in crate::workers) mod event_log;
pub(in crate::workers) mod health;
pub(in crate::workers) mod host_limits;
pub(in crate::workers) mod metrics;
pub(in crate::workers) mod recorders;
pub mod sd_notify;
pub(in crate::workers) mod watchdog;
pub(in crate::workers) mod worker_events;
