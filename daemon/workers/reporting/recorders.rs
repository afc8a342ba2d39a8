//! The workers of the recorders. A recorder delays no other worker; unsent events are sent later.

use crate::config::{Destination, Recorder as Declared};
use crate::events::Stream;
use crate::events::export::{NoCertificates, Recorder, Sink, ToFile, ToJournald, ToWebhook};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_EVENTS;
use crate::workers::reporting::event_log::{LogThread, TAIL};
use crate::workers::shutdown::Shutdown;
use crate::workers::worker_factory::{WorkerFactory, heartbeat_limit};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Returns the name of the worker of a recorder.
fn worker_name(declared: &Declared) -> String {
    format!("recorder:{}", declared.name())
}

/// The workers of the recorders.
pub(in crate::workers) struct RecorderWorkers {
    pub(in crate::workers) factory: WorkerFactory,
    pub(in crate::workers) log_thread: Arc<LogThread>,
    pub(in crate::workers) shutdown: Arc<Shutdown>,
    pub(in crate::workers) state_directory: PathBuf,
    pub(in crate::workers) stream: Stream,
    /// A lock against overlapping exchanges.
    pub(in crate::workers) exchange: tokio::sync::Mutex<()>,
}

impl RecorderWorkers {
    /// Ends the recorders that are no longer declared, or declared differently, and starts the new ones. A new recorder
    /// waits only for an old one of the same name. Exchanges of two reloads do not overlap.
    pub(in crate::workers) async fn exchange(
        self: &Arc<Self>,
        old: Vec<Declared>,
        new: Vec<Declared>,
    ) {
        let _one_at_a_time = self.exchange.lock().await;
        let supervisor = &self.shutdown.supervisor;
        let gone = old.iter().filter(|one| !new.contains(one)).map(worker_name);
        let gone: Vec<String> = gone.collect();
        let added = new.into_iter().filter(|one| !old.contains(one));
        let (later, now): (Vec<_>, Vec<_>) =
            added.partition(|one| gone.contains(&worker_name(one)));
        self.install(now).await;
        let removals = gone.iter().map(|name| async move {
            if let Err(why) = supervisor.remove(name).await {
                tracing::warn!(event = "recorder", "{name}: could not be removed: {why}");
            }
        });
        futures_util::future::join_all(removals).await;
        self.install(later).await;
    }

    async fn install(self: &Arc<Self>, declared: Vec<Declared>) {
        for added in declared {
            let name = added.name();
            let worker = self.worker(added);
            if let Err(why) = self.shutdown.supervisor.install(vec![worker]).await {
                tracing::warn!(event = "recorder", "{name}: could not be installed: {why}");
            }
        }
    }

    /// Creates the worker of a recorder that is declared in the settings.
    pub(in crate::workers) fn worker(self: &Arc<Self>, declared: Declared) -> Manifold {
        let (own, worker, name) = (Arc::clone(self), worker_name(&declared), declared.name());
        let said = Arc::new(Mutex::new(String::new()));
        let worker = self.factory.worker(&worker, move |_, life: WorkerContext| {
            let (parts, declared, name) = (Arc::clone(&own), declared.clone(), name.clone());
            let said = Arc::clone(&said);
            async move {
                let _present = Present::new(&parts.log_thread.recorders);
                let sink = sink(&declared).map_err(|why| {
                    log_if_new(&said, &name, &why.to_string());
                    Failure::again(why)
                })?;
                let own = Arc::clone(&parts);
                let recorder = Recorder {
                    name: name.into(),
                    sink,
                    stream: parts.stream.clone(),
                    state_directory: parts.state_directory.clone(),
                    turn: heartbeat_limit() / 3,
                    debug: declared.debug,
                    leaves: Box::new(move || !own.shutdown.is_ending()),
                };
                let _failing = Failing { stream: &parts.stream, name: Arc::clone(&recorder.name) };
                life.ready(Outputs::none());
                let says = |says: String| {
                    life.alive();
                    life.set_status(says);
                };
                tokio::select! {
                    ended = recorder.run(life.stopping(), says) => ended.map_err(Failure::again),
                    () = parts.shutdown.at_once() => {
                        let name = &recorder.name;
                        tracing::warn!(event = "recorder", "{name}: unsent events remain; the next start sends them");
                        Ok(())
                    }
                }
            }
        });
        worker.handles("events").stop_rank(STOP_RANK_EVENTS).grace(TAIL * 2)
    }
}

/// Opens the destination of a declared recorder.
pub(crate) fn sink(declared: &Declared) -> Result<Box<dyn Sink>, NoCertificates> {
    Ok(match declared.destination.clone() {
        Destination::File { path } => Box::new(ToFile::new(path)),
        Destination::Journald { socket } => Box::new(ToJournald::new(socket)),
        Destination::Webhook { url, headers, timeout } => {
            Box::new(ToWebhook::new(url, headers, Duration::from_secs(timeout))?)
        }
    })
}

/// Logs the reason why a recorder does not run, unless that reason was logged last.
fn log_if_new(said: &Mutex<String>, name: &str, why: &str) {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    if *said != why {
        tracing::warn!(event = "recorder", "{name}: not running, retrying: {why}");
        why.clone_into(&mut said);
    }
}

/// A guard that ends the failure report of a recorder when the recorder ends.
struct Failing<'a> {
    stream: &'a Stream,
    name: Arc<str>,
}

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        self.stream.aside().succeeds(&self.name);
    }
}

/// A guard that counts a running recorder.
struct Present(watch::Sender<usize>);

impl Present {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
