//! The workers that offer metrics: at a socket beside the control socket, by TCP, and in a file.

use crate::control::{Address, SideSocket};
use crate::driver::{DriverEvent, Query};
use crate::events::Stream;
use crate::lease::{LeaseStatus, boottime};
use crate::metrics::{
    DriverValues, Metrics, Snapshot, WorkerValues, serve_connection, to_classic, to_open_metrics,
    write_file,
};
use crate::supervisor::{Failure, Manifold, Outputs, State, WorkerContext};
use crate::workers::requests::queue::Requests;
use crate::workers::shutdown::Shutdown;
use crate::workers::worker_factory::{WorkerFactory, heartbeat_limit};
use crate::workers::world::host_world::HostWorld;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::input_trust::Reader;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::task::TaskTracker;

/// The time that the driver may take to answer. A scrape without its values follows then.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which the file is written.
const FILE_EVERY: Duration = Duration::from_secs(15);

/// The wait after a connection could not be accepted, for example for a lack of file descriptors.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// The connections that one listener serves at a time; more of them wait.
const CONNECTIONS: usize = 64;

/// The settings of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The address for scrapes by TCP.
    pub listen: Option<SocketAddr>,
    /// The file for the textfile collector of `node_exporter`.
    pub file: Option<PathBuf>,
    /// The maximum number of single resources in the metrics.
    pub resources: u32,
}

/// The parts whose values are metrics.
#[derive(Clone)]
pub(in crate::workers) struct MetricsSources {
    pub(in crate::workers) shutdown: Arc<Shutdown>,
    pub(in crate::workers) lease: watch::Receiver<LeaseStatus>,
    /// The time since 1970 of the start of the daemon.
    pub(in crate::workers) started: Duration,
    pub(in crate::workers) requests: Requests,
    pub(in crate::workers) world: Arc<HostWorld>,
    pub(in crate::workers) dropped_lines: fn() -> u64,
    pub(in crate::workers) stream: Stream,
}

/// Returns the values of all metrics now.
async fn take_snapshot(sources: &MetricsSources, most: u32) -> Snapshot {
    let report = sources.shutdown.supervisor.report();
    let workers = report.workers.into_iter().map(|(name, worker)| WorkerValues {
        name,
        running: worker.state == State::Running,
        restarts: worker.starts.saturating_sub(1),
    });
    let lease = sources.lease.borrow().clone();
    let lease_left = match lease {
        LeaseStatus::Held { until: Some(end), .. } => Some(end.saturating_sub(boottime())),
        LeaseStatus::Held { until: None, .. } | LeaseStatus::Wanted | LeaseStatus::Lost(_) => None,
    };
    Snapshot {
        version: env!("CARGO_PKG_VERSION"),
        started: sources.started,
        driver: ask_driver(sources, most).await,
        workers: workers.collect(),
        has_lease: matches!(lease, LeaseStatus::Held { .. }),
        lease_left,
        world: sources.world.metrics(),
        dropped_lines: (sources.dropped_lines)(),
        failing_recorders: sources.stream.aside().failing().len(),
        lists_resources: most > 0,
    }
}

/// Returns the values of the driver; `None` if it does not run or does not answer in time.
async fn ask_driver(sources: &MetricsSources, most: u32) -> Option<DriverValues> {
    let (to, answer) = oneshot::channel();
    let query = Query::Metrics(usize::try_from(most).unwrap_or(usize::MAX), to);
    sources.requests.put_now(DriverEvent::Query(query)).ok()?;
    tokio::time::timeout(PATIENCE, answer).await.ok()?.ok().map(|values| *values)
}

/// Returns the function that each scrape calls.
fn metrics_of(sources: &MetricsSources, most: u32) -> Metrics {
    let sources = sources.clone();
    Arc::new(move || {
        let sources = sources.clone();
        Box::pin(async move { to_open_metrics(take_snapshot(&sources, most).await) })
    })
}

/// The connections of one listener.
struct Connections {
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    metrics: Metrics,
}

impl Connections {
    fn new(metrics: Metrics) -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        Self { tasks: TaskTracker::new(), places, metrics }
    }

    /// Serves an accepted connection, as soon as one of the places is free.
    async fn serve<S>(&self, accepted: std::io::Result<S>, life: &WorkerContext)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "no connection could be accepted for metrics");
                return tokio::time::sleep(TRY_AGAIN).await;
            }
        };
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
        let (metrics, stopping) = (Arc::clone(&self.metrics), life.stopping().clone());
        drop(self.tasks.spawn(async move {
            let _place = place;
            tokio::select! {
                () = serve_connection(stream, metrics) => {}
                () = stopping.cancelled() => {}
            }
        }));
    }
}

/// Creates the worker that listens at the socket beside the control socket.
pub(in crate::workers) fn metrics_socket(
    factory: &WorkerFactory,
    sources: &MetricsSources,
    (control, group): (&Address, Option<u32>),
    settings: &MetricsSettings,
) -> Manifold {
    let (own, most) = (sources.clone(), settings.resources);
    let address = control.of_metrics();
    factory.worker("metrics", move |_, life: WorkerContext| {
        let (address, connections) = (address.clone(), Connections::new(metrics_of(&own, most)));
        let mut lease = own.lease.clone();
        async move {
            tokio::select! {
                // Without the lease another daemon may own the socket. The sender lives as long as the daemon.
                held = life.during(lease.wait_for(|it| *it != LeaseStatus::Wanted)) => drop(held),
                () = life.stopping().cancelled() => return Ok(()),
            }
            let path = address.path().display().to_string();
            let bound = SideSocket::bind(address, group).await;
            let mut socket = bound.map_err(Failure::again)?;
            life.set_status(format!("listens at {path}"));
            life.ready(Outputs::none());
            loop {
                tokio::select! {
                    accepted = life.during(socket.accept()) => {
                        life.during(connections.serve(accepted, &life)).await;
                    }
                    () = tokio::time::sleep(heartbeat_limit() / 3) => {
                        if socket.renew().await.map_err(Failure::again)? {
                            tracing::warn!(event = "metrics", "{path} was removed and is recreated");
                        }
                    }
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    })
}

/// Creates the workers of the metrics that the settings ask for, beside the socket.
pub(in crate::workers) fn optional_metrics(
    factory: &WorkerFactory,
    sources: &MetricsSources,
    wanted: &MetricsSettings,
) -> impl Iterator<Item = Manifold> {
    let tcp = wanted.listen.map(|at| metrics_tcp(factory, sources, (at, wanted.resources)));
    let file = wanted.file.clone().map(|to| metrics_file(factory, sources, (to, wanted.resources)));
    tcp.into_iter().chain(file)
}

/// Creates the worker that listens at the TCP address of the settings.
fn metrics_tcp(
    factory: &WorkerFactory,
    sources: &MetricsSources,
    (address, most): (SocketAddr, u32),
) -> Manifold {
    let own = sources.clone();
    factory.worker("metrics:tcp", move |_, life: WorkerContext| {
        let connections = Connections::new(metrics_of(&own, most));
        async move {
            let bound = TcpListener::bind(address).await;
            let listener = bound.map_err(|error| {
                tracing::warn!(
                    event = "metrics",
                    "cannot listen at {address} for metrics: {error}"
                );
                Failure::again(error)
            })?;
            life.set_status(format!("listens at {address}"));
            life.ready(Outputs::none());
            loop {
                tokio::select! {
                    accepted = life.during(listener.accept()) => {
                        let stream = accepted.map(|(stream, _)| stream);
                        life.during(connections.serve(stream, &life)).await;
                    }
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    })
}

/// Returns the reason for which another user can change a file that root writes; a directory of the exporter is one.
fn find_doubt(path: &Path) -> Option<String> {
    let reader = Reader::here();
    let doubt = reader.untrusted_on_the_way(path.parent()?);
    doubt.filter(|_| reader.is_strict())
}

/// Creates the worker that writes the file of the settings.
fn metrics_file(
    factory: &WorkerFactory,
    sources: &MetricsSources,
    (path, most): (PathBuf, u32),
) -> Manifold {
    let own = sources.clone();
    factory.worker("metrics:file", move |_, life: WorkerContext| {
        let (sources, path) = (own.clone(), path.clone());
        async move {
            life.ready(Outputs::none());
            life.set_status(format!("writes {}", path.display()));
            if let Some(doubt) = find_doubt(&path) {
                tracing::warn!(
                    event = "metrics",
                    "{}: another user can change these metrics: {doubt}",
                    path.display()
                );
            }
            loop {
                let text = to_classic(&to_open_metrics(take_snapshot(&sources, most).await));
                let to = path.clone();
                let written = tokio::task::spawn_blocking(move || write_file(&to, &text));
                let written = life.during(written).await.map_err(Failure::again)?;
                written.map_err(|error| {
                    let why = format!("cannot write {}: {error}", path.display());
                    tracing::warn!(event = "metrics", "{why}");
                    Failure::again(why)
                })?;
                tokio::select! {
                    () = life.during(tokio::time::sleep(FILE_EVERY)) => {}
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    })
}
