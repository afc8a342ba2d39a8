//! The description and the status of this host, under its lease: at a change, at most once per 5 s, and each minute.

use super::host_world::HostWorld;
use crate::api::{self, Status};
use crate::driver::{DriverEvent, Query};
use crate::workers::world::WorldParts;
use crate::world::records::{
    FleetHostStatus, HostMeta, KnownHost, SCHEMA, unix_seconds, write_record,
};
use crate::world::{Compare, LeaseId, Operation, Transaction, World, bundle, keys};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The longest time without a new status.
const REPEAT: Duration = Duration::from_mins(1);

/// The time that the driver has for its status.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of resources in a status.
const WORST: usize = 20;

/// The published state of this host.
pub(super) struct Publisher {
    has_meta: bool,
    last: Option<(FleetHostStatus, Instant)>,
}

/// The state of this host at one moment.
pub(super) struct KnownState {
    pub(super) status: Status,
    /// The hash of the graph that was delivered last.
    graph: String,
    /// The sequence and the manifest of the running bundle.
    bundle: (u64, String),
}

/// Asks the driver for its status; none if no driver answers in time.
pub(super) async fn ask_status(parts: &Arc<WorldParts>) -> Option<KnownState> {
    // The status is not older than the bundle: that of a former graph never counts for a new one.
    let (graph, bundle) = (parts.graph.running_hash(), parts.world.sequence());
    let (to, answer) = oneshot::channel();
    parts.requests.put_now(DriverEvent::Query(Query::Status(WORST, to))).ok()?;
    let status = tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()?;
    Some(KnownState { status, graph, bundle })
}

impl Publisher {
    pub(super) fn new() -> Self {
        Self { has_meta: false, last: None }
    }

    /// Forgets what was published: the lease is a new one.
    pub(super) fn publish_again(&mut self) {
        (self.has_meta, self.last) = (false, None);
    }

    /// Publishes description and status where they have changed.
    pub(super) async fn publish(
        &mut self,
        world: &dyn World,
        host: &HostWorld,
        lease: LeaseId,
        known: Option<KnownState>,
    ) {
        if !self.has_meta {
            self.note_host(world, host.host()).await;
            let value = write_record(&own_meta());
            match world.put(&keys::host_meta(host.host()), value, Some(lease)).await {
                Ok(_) => self.has_meta = true,
                Err(error) => {
                    tracing::debug!(%error, "the description of this host was not published");
                }
            }
        }
        let Some(known) = known else { return };
        let status = record_of(known, host);
        let is_same = |(last, at): &(FleetHostStatus, Instant)| {
            let comparable = FleetHostStatus { since: last.since, ..status.clone() };
            *last == comparable && at.elapsed() < REPEAT
        };
        if self.last.as_ref().is_some_and(is_same) {
            return;
        }
        let value = write_record(&status);
        match world.put(&keys::host_status(host.host()), value, Some(lease)).await {
            Ok(_) => self.last = Some((status, Instant::now())),
            Err(error) => tracing::debug!(%error, "the status of this host was not published"),
        }
    }
}

impl Publisher {
    /// Records that this host is part of the cluster: without a lease it counts as lost, until it is forgotten.
    async fn note_host(&self, world: &dyn World, host: &str) {
        let key = keys::host_known(host);
        let record = KnownHost { schema: SCHEMA, since: unix_seconds() };
        let note = Transaction {
            conditions: vec![Compare::CreateRevision(key.clone(), 0)],
            operations: vec![Operation::Put(key, write_record(&record), None)],
        };
        if let Err(error) = world.transact(note).await {
            tracing::debug!(%error, "this host was not recorded in the world");
        }
    }
}

fn own_meta() -> HostMeta {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let machine = bundle::sha256_hex(format!("steadfast {}", read("/etc/machine-id")).as_bytes());
    let system = rustix::system::uname();
    let facts = [
        ("kernel", system.release().to_string_lossy().into_owned()),
        ("arch", system.machine().to_string_lossy().into_owned()),
    ];
    HostMeta {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine.chars().take(16).collect(),
        boot: read("/proc/sys/kernel/random/boot_id"),
        facts: facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

fn record_of(known: KnownState, host: &HostWorld) -> FleetHostStatus {
    let KnownState { status, graph, bundle: (sequence, digest) } = known;
    let counts = status.counts;
    let numbers = [
        ("total", counts.total),
        ("settled", counts.settled),
        ("failed", counts.failed),
        ("held", counts.held),
        ("contended", counts.contended),
        ("running", counts.running),
        ("stuck", counts.stuck),
    ];
    let rejected = host.rejected();
    let worst = status.unhealthy.iter().take(WORST);
    let worst = worst.map(|one| (one.resource.clone(), shorten(&one.message)));
    FleetHostStatus {
        schema: SCHEMA,
        generation: if digest.is_empty() { graph } else { digest },
        sequence,
        counts: numbers
            .into_iter()
            .map(|(name, number)| (name.to_owned(), u64::from(number)))
            .collect::<BTreeMap<_, _>>(),
        worst: worst.collect(),
        paused: status.pause.is_some(),
        converged: status.verdict == api::HostStatus::Converged && status.swap.is_none(),
        rejected_manifest: rejected
            .as_ref()
            .map(|it| it.request.manifest.clone())
            .unwrap_or_default(),
        rejected_token: rejected.as_ref().map(|it| it.request.token),
        is_rejection_final: rejected.as_ref().is_some_and(|it| it.is_final),
        rejected: rejected
            .map(|it| shorten(&it.reason))
            .or_else(|| status.rejected.as_ref().map(|it| shorten(&it.reason))),
        since: unix_seconds(),
    }
}

/// Returns the first 300 characters of a message.
fn shorten(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{KindSet, Options};
    use crate::driver::Inbox;
    use crate::workers::GraphSource;
    use crate::workers::graph::loader::{GraphLoader, SettingsFile};
    use crate::workers::requests::queue::Requests;

    /// A bundle that begins to run while the driver answers is not shown with that answer.
    #[tokio::test]
    async fn a_status_is_not_older_than_its_bundle() {
        let directory = tempfile::tempdir().unwrap();
        let (publisher, _stream) = crate::events::stream();
        let requests = Requests::default();
        let source = GraphSource {
            paths: Vec::new(),
            options: Options::new(KindSet::of_this_build()),
            watch: false,
            by_settings: false,
            kept_in: None,
            bundle_link: directory.path().join("bundles/current"),
        };
        let source = (source, SettingsFile::default());
        let world = Arc::new(HostWorld::new(None, directory.path()));
        let parts = Arc::new(WorldParts {
            world: Arc::clone(&world),
            graph: GraphLoader::new(source, requests.clone(), publisher.clone()),
            requests: requests.clone(),
            publisher,
            state_directory: directory.path().to_owned(),
            offered: tokio::sync::Mutex::default(),
        });
        let inbox = Inbox::default();
        requests.attach(inbox.clone());
        world.set_sequence(40, "old".to_owned());
        let asked = tokio::spawn(async move { ask_status(&parts).await });
        let mut taken = Vec::new();
        while taken.is_empty() {
            tokio::task::yield_now().await;
            inbox.take(&mut taken);
        }
        let Some(DriverEvent::Query(Query::Status(_, to))) = taken.pop() else {
            panic!("expected a query")
        };
        world.set_sequence(41, "new".to_owned());
        to.send(Status::starting()).unwrap();
        let known = asked.await.unwrap().expect("an answer");
        assert_eq!(known.bundle, (40, "old".to_owned()));
    }
}
