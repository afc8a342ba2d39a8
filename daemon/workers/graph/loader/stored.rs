//! The stored last-good graph: written when a graph is accepted, and run when the present graph is rejected at the
//! start.

use super::latest_graph::LatestGraph;
use super::{ReloadRequest, lock};
use crate::api::event_data::LastGoodGraph;
use crate::api::{EventKind, Level};
use crate::config::{self, LoadedGraph, Options, Text};
use crate::driver::{DriverEvent, DriverHealth, PingReply};
use crate::events::NewEvent;
use crate::workers::graph::last_good_graph;
use crate::workers::graph::last_good_graph::GraphVersion;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// The wait before another attempt to store a graph.
const STORE_AGAIN: Duration = Duration::from_secs(5);

/// An accepted graph that is not stored yet.
#[derive(Clone, Debug)]
pub(super) struct UnstoredGraph {
    pub(super) number: u64,
    pub(super) version: GraphVersion,
    pub(super) texts: Arc<[Text]>,
}

impl ReloadRequest {
    /// Handles a graph that the driver rejected. A driver without a graph runs the last accepted one: the host stays
    /// managed even if a protected resource would be removed.
    pub(super) async fn run_last_good(&self, why: &str) {
        let (to, pulse) = oneshot::channel();
        let reply = move |pulse: DriverHealth| to.send(pulse.counts.total).unwrap_or_default();
        self.requests.put(DriverEvent::Ping(PingReply(Box::new(reply))));
        if pulse.await != Ok(0) {
            return;
        }
        let graph = match self.latest().await {
            Some(graph) => Some(graph),
            None => self.accepted(why).await,
        };
        if let Some(graph) = graph {
            self.requests.put(DriverEvent::LastGoodGraph(graph));
        }
    }

    /// Removes a partial file that a killed daemon left.
    pub(super) async fn clear(self: &Arc<Self>, directory: &Path) {
        let (this, directory) = (Arc::clone(self), directory.to_owned());
        let cleared = tokio::task::spawn_blocking(move || {
            let _alone = this.stored_version();
            last_good_graph::clear(&directory)
        });
        if let Ok(Err(error)) = cleared.await {
            tracing::warn!(event = "warning", "an old stored graph could not be removed: {error}");
        }
    }

    /// Stores the accepted graph that is not stored yet, unless a later one was delivered meanwhile. A failed attempt
    /// is repeated: a start with a rejected graph would run an older graph.
    pub(super) async fn keep_unstored(self: &Arc<Self>, directory: &Path) {
        let mut is_told = false;
        loop {
            let unstored = lock(&self.unstored).clone();
            let Some(unstored) = unstored else { return };
            if self.handed.load(Ordering::SeqCst) > unstored.number {
                return;
            }
            let (this, to) = (Arc::clone(self), directory.to_owned());
            let stored = tokio::task::spawn_blocking(move || this.keep(&to, &unstored)).await;
            match stored {
                Ok(Err(error)) if !is_told => {
                    tracing::warn!(
                        event = "warning",
                        "the last-good graph could not be stored, and is tried again: {error}"
                    );
                    is_told = true;
                }
                Ok(Err(_)) => {}
                Ok(Ok(())) | Err(_) => return,
            }
            tokio::time::sleep(STORE_AGAIN).await;
        }
    }

    /// Stores an accepted graph whose time has not come yet: a start after a stop may need it.
    pub(super) fn store_before_rest(&self) {
        let Some(unstored) = lock(&self.unstored).clone() else { return };
        let Some(directory) = self.graph().kept_in else { return };
        if let Err(error) = self.keep(&directory, &unstored) {
            tracing::warn!(event = "warning", "the last-good graph could not be stored: {error}");
        }
    }

    /// Stores an accepted graph, unless a later one is stored already.
    fn keep(&self, directory: &Path, unstored: &UnstoredGraph) -> std::io::Result<()> {
        let UnstoredGraph { number, version, texts } = unstored;
        let mut last = self.stored_version();
        if *last < *number {
            last_good_graph::write(directory, &self.graph().paths, (version, texts))?;
            *last = *number;
            self.pack_latest(*number, texts);
        }
        lock(&self.unstored).take_if(|unstored| unstored.number <= *number);
        Ok(())
    }

    /// Returns the last-good graph, for running it instead of a rejected one.
    pub(super) async fn accepted(&self, why: &str) -> Option<Box<LoadedGraph>> {
        let graph = self.graph();
        let directory = graph.kept_in.clone()?;
        let read = tokio::task::spawn_blocking(move || {
            let kept = last_good_graph::read(&directory, graph.named())?;
            let options = Options { refuse_empty: false, ..graph.options };
            let packed = LatestGraph::pack(0, &kept.texts);
            let loaded = config::load_texts(kept.texts, &options);
            let loaded = loaded.inspect_err(|rejected| {
                let why = rejected.without_values();
                tracing::warn!(
                    event = "warning",
                    "the last-good graph cannot be used either: {why}"
                );
            });
            Some((kept.at, packed, loaded.ok()?))
        });
        // The texts are stored already.
        let (at, packed, loaded) = read.await.ok()??;
        let loaded = LoadedGraph { texts: Vec::new(), ..loaded };
        let time = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let time = time.map(|time| time.to_string()).unwrap_or_default();
        let (name, reason) = (loaded.name.clone(), why.trim_end().to_owned());
        let used = LastGoodGraph { graph: name, accepted_at: time, reason };
        let event = NewEvent::new(EventKind::LastGoodGraphUsed(used), Level::Error);
        let says = event.message.clone();
        tracing::error!(event = "last_good_graph_used", "{says}");
        self.publisher.publish(event);
        *lock(&self.instead) = Some(says);
        *self.lock_latest() = packed;
        self.is_empty.store(loaded.vertices.is_empty(), Ordering::SeqCst);
        Some(Box::new(loaded))
    }
}
