//! The watch index: watched directories, the routes through them, and the vertices that wait at the ends of routes.
//!
//! This folder holds data only: nothing here accesses the host, locks or waits. Reading order: `route.rs`,
//! `vertex_watch.rs`, `tree.rs`, `units.rs`, `retry.rs`, `work.rs` and `turn.rs` (the parts), `watch_index.rs` (all of
//! them, and the events of the kernel), `directories.rs`, `places.rs`, `trees.rs`, `status.rs` and `steps.rs` (its
//! changes by subject).

mod directories;
mod places;
mod retry;
mod route;
mod status;
mod steps;
mod tree;
mod trees;
mod turn;
mod units;
mod vertex_watch;
mod watch_index;
mod work;

pub(super) use places::normal;
pub(super) use route::{LINKS, Name, Reason, RouteId, Waiter, Walked};
pub(super) use tree::share_of_watches;
pub(super) use turn::{Turn, WorkStep};
pub(super) use units::{Answers, Followed, Questions};
pub(super) use vertex_watch::{Placed, Reported, Running, SourceOwner};
pub(super) use watch_index::WatchIndex;
pub(super) use work::Again;
