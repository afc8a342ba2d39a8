//! Metrics of a daemon in the two text formats of Prometheus: `OpenMetrics`, and the classic text format 0.0.4.
//!
//! Purpose: hold the values of one moment ([`Snapshot`]), write them as text, and offer the text by HTTP or in a file.
//! This folder must never ask a worker, an engine or the host for a value: its callers fill in the snapshot. A metric
//! has no label for a single resource, unless a setting asks for a limited number of them.
//!
//! Reading order: `snapshot` (the values), `histogram`, `exposition` (`OpenMetrics`), `classic` (the format 0.0.4),
//! `server` (HTTP), `file` (the collector file of `node_exporter`).

mod classic;
mod exposition;
mod file;
mod histogram;
mod server;
mod snapshot;

pub use classic::to_classic;
pub use exposition::to_open_metrics;
pub use file::write_file;
pub use histogram::Histogram;
pub use server::{Form, Metrics, serve_connection};
pub use snapshot::{
    Classes, DriverValues, ResourceCounts, ResourceState, Snapshot, WatchCounts, WorkerValues,
    WorldValues,
};
