//! The world of a daemon: values, exports, permits, the status of this host, and requested generations.
//!
//! The worker must never stand in the path of local convergence: the driver and the graph loader read what this host
//! knew last, and only a grant waits for an answer.
//!
//! Reading order: `connection` (the back end of the settings), `host_world` (what kinds see), this file (the worker),
//! `collection` and `offered_exports` (exports of other hosts), `tickets` (permits), `publisher` (status), `bundles`
//! and `generation` (bundles), `bundle_record`, `unpacked_bundles`, `bundle_source`, `download`, `git_fetch`, `direct`
//! (one-shot commands).

mod bundle_record;
mod bundle_source;
mod bundles;
mod collection;
mod connection;
mod direct;
mod download;
mod generation;
mod git_fetch;
pub(in crate::workers) mod host_world;
pub(in crate::workers) mod offered_exports;
mod publisher;
mod tickets;
mod unpacked_bundles;

pub use collection::stored_exports;
pub use connection::{host_name, open_existing_world};
pub use direct::with_direct_world;
pub use unpacked_bundles::bundle_link;

use crate::api::event_data::Reason;
use crate::api::{EventKind, Level};
use crate::driver::DriverEvent;
use crate::events::NewEvent;
use crate::events::Publisher;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::graph::loader::GraphLoader;
use crate::workers::requests::queue::Requests;
use crate::workers::worker_factory::WorkerFactory;
use crate::world::boot_time;
use crate::world::collection::Collection;
use crate::world::host_lease::HostLease;
use crate::world::records::unix_seconds;
use crate::world::tickets::Tickets;
use host_world::HostWorld;
use offered_exports::OfferedExports;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The interval of looks at the hosts that export resources.
const HOSTS: Duration = Duration::from_mins(10);

/// The interval of looks at the status.
const STATUS: Duration = Duration::from_secs(5);

/// The parts of the worker.
pub(in crate::workers) struct WorldParts {
    /// The connection to the world.
    pub(in crate::workers) world: Arc<HostWorld>,
    pub(in crate::workers) graph: GraphLoader,
    pub(in crate::workers) requests: Requests,
    pub(in crate::workers) publisher: Publisher,
    pub(in crate::workers) state_directory: PathBuf,
    /// The exports that the graph loader knows; the running worker holds them.
    pub(in crate::workers) offered: tokio::sync::Mutex<OfferedExports>,
}

/// Creates the worker of the world.
pub(in crate::workers) fn world(factory: &WorkerFactory, parts: WorldParts) -> Manifold {
    let own = Arc::new(parts);
    factory.worker("world", move |_, life: WorkerContext| {
        let parts = Arc::clone(&own);
        async move {
            life.ready(Outputs::none());
            tokio::select! {
                () = life.during(parts.world.used()) => {}
                () = life.stopping().cancelled() => return Ok(()),
            }
            let stopping = life.stopping().clone();
            tokio::select! {
                ended = work(&parts, &life) => ended,
                () = stopping.cancelled() => Ok(()),
            }
        }
    })
}

/// Serves the world until the worker is stopped.
async fn work(parts: &Arc<WorldParts>, life: &WorkerContext) -> Result<(), Failure> {
    let host = Arc::clone(&parts.world);
    let world = life.during(host.connect()).await.map_err(Failure::again)?;
    let mut views = host.follow(&world);
    let mut lease = HostLease::new(Arc::new(boot_time));
    let mut publisher = publisher::Publisher::new();
    let mut tickets = Tickets::default();
    let mut permits = tickets::PermitTeller::new(parts, life);
    let mut collection = collection::read(&parts.state_directory);
    let mut offered = life.during(offered_exports::begin_session(&parts.offered)).await;
    let mut bundles = JoinSet::new();
    bundles.spawn(bundles::run_bundles(Arc::clone(parts), views.want.clone()));
    let mut wanted = host.wanted();
    let mut drivers = parts.requests.drivers();
    let mut stale_told = false;
    let mut status = tokio::time::interval(STATUS);
    let mut hosts_due = Instant::now();
    let is_writable = world.backend() != "folder";
    loop {
        if is_writable && lease.due() <= Instant::now() {
            let renewed = permits.during(lease.renew(world.as_ref())).await;
            permits.set_safe_until(lease.safe_until());
            match renewed {
                Ok(true) => {
                    publisher.publish_again();
                    tickets.forget_leased();
                }
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "the lease of this host was not renewed"),
            }
        }
        let changed = host.changed_keys(&mut views);
        if !changed.is_empty() {
            parts.requests.put(DriverEvent::WorldChanged(changed));
            host.store_values(&parts.state_directory);
        }
        if collection.needs_hosts() && hosts_due <= Instant::now() {
            hosts_due = Instant::now() + HOSTS;
            if let Ok(range) = permits.during(world.list(crate::world::keys::HOSTS)).await {
                collection.note_hosts(&range, &collection::clocks());
            }
        }
        follow_exports(parts, (&mut collection, &mut offered), &views);
        let stale = host.stale(&views);
        report_world_reach(parts, stale.as_ref(), &mut stale_told);
        life.set_status(describe_state(host.host(), stale.as_ref(), &offered));
        if drivers.has_changed().unwrap_or_default() {
            drivers.mark_unchanged();
            permits.forget_sent();
            tickets.forget_slots();
        }
        if is_writable {
            let requests = wanted.borrow_and_update().clone();
            let of_host = (host.as_ref(), lease.id());
            permits.update((world.as_ref(), &mut tickets), of_host, requests, &views).await;
        }
        tokio::select! {
            () = permits.expired() => permits.revoke(),
            () = host_world::any_changed(&mut views) => {}
            Ok(()) = wanted.changed() => {}
            Ok(()) = drivers.changed() => {
                permits.forget_sent();
                tickets.forget_slots();
            }
            () = tokio::time::sleep_until(lease.due()), if is_writable => {}
            () = offered.due() => {}
            Some(ended) = bundles.join_next() => {
                let why = ended.err().map_or_else(|| "ended".to_owned(), |error| error.to_string());
                return Err(Failure::again(format!("the task of the bundles: {why}")));
            }
            _ = status.tick() => {
                if let Some(id) = lease.id().filter(|_| is_writable) {
                    let known = permits.during(publisher::ask_status(parts)).await;
                    permits.during(publisher.publish(world.as_ref(), &host, id, known)).await;
                }
            }
            () = life.prove_alive() => {}
        }
    }
}

/// Takes over the exports of other hosts, and expands the graph again if offered ones have changed.
fn follow_exports(
    parts: &Arc<WorldParts>,
    (collection, offered): (&mut Collection, &mut OfferedExports),
    views: &host_world::Views,
) {
    let selectors = parts.graph.collections();
    let takes_all = parts.world.take_all();
    // One view for all that follows: a later one may be the first that was read.
    let (seen, gone) = (views.exports.borrow().clone(), views.gone.borrow().clone());
    let of_world = (parts.world.as_ref(), &seen, &gone);
    let has_changed = collection::update(collection, selectors.clone(), of_world, takes_all);
    let is_known = seen.is_believed();
    let selectors = selectors.as_deref().unwrap_or_default();
    if has_changed || takes_all || offered.needs_update(is_known, selectors) {
        let known = collection::exports(collection);
        let of = (selectors, parts.world.host());
        if let Some(exports) = offered.update((&known, is_known), of, takes_all) {
            parts.graph.set_exports(exports);
        }
    }
    // A graph that came meanwhile may have been read before the exports were set.
    if offered.take_unread(parts.graph.collections().as_deref()) {
        parts.graph.reload(super::graph::loader::ReloadCause::Nobody);
    }
    if has_changed {
        collection::store(collection, &parts.state_directory);
    }
}

/// Describes the state of the world for the report of workers.
fn describe_state(name: &str, stale: Option<&(String, u64)>, offered: &OfferedExports) -> String {
    match stale {
        Some((why, since)) => {
            let age = unix_seconds().saturating_sub(*since);
            format!("host {name}: stale for {age} s: {why}")
        }
        None if !offered.has_session_view() => format!("host {name}: the world was not read yet"),
        None => match offered.waiting() {
            0 => format!("host {name}: up to date"),
            waiting => {
                format!("host {name}: {waiting} changes of collections wait for their delay")
            }
        },
    }
}

/// Reports once that the world is out of reach, and once that it answers again.
fn report_world_reach(parts: &WorldParts, stale: Option<&(String, u64)>, is_told: &mut bool) {
    if stale.is_some() == *is_told {
        return;
    }
    *is_told = stale.is_some();
    let (reason, level) = match stale {
        Some((why, _)) => (format!("the world is out of reach: {why}"), Level::Warn),
        None => ("the world answers again".to_owned(), Level::Info),
    };
    tracing::info!(event = "world", "{reason}");
    parts.publisher.publish(NewEvent::new(EventKind::World(Reason { reason }), level));
}
