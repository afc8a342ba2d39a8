//! The delivery of graphs to the driver: a graph that the driver accepts is recorded and stored.

use super::stored::UnstoredGraph;
use super::{AUTOMATIC, EMPTYING, OPERATOR, ReloadRequest, lock};
use crate::config::{LoadedGraph, Text};
use crate::driver::{DriverEvent, LoadError, Query};
use crate::workers::graph::last_good_graph::GraphVersion;
use crate::workers::graph::settings::{HostSettings, SettingsChanger};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// The time for which a graph must be the newest before it is stored as the last-good graph.
const REST: Duration = Duration::from_millis(200);

impl ReloadRequest {
    /// Delivers the last accepted graph to a restarted driver, because nobody has requested the present files. Reads
    /// the files if no graph was accepted yet.
    pub(super) async fn hand_again(changer: &SettingsChanger, this: &Arc<Self>) {
        match this.latest().await {
            Some(graph) => {
                // The newest graph is still rejected.
                let rejected = lock(&this.rejected).clone();
                Self::put(this, graph, false);
                if let Some(why) = rejected {
                    let graph = Err(LoadError::Invalid(why));
                    this.requests.put(DriverEvent::Graph { graph, operator: false });
                }
            }
            None => Self::hand_over(changer, this, (None, AUTOMATIC, true)).await,
        }
    }

    /// Reads and delivers the graph. If it is rejected, a driver without a graph receives the last-good one.
    pub(super) async fn hand_over(
        changer: &SettingsChanger,
        this: &Arc<Self>,
        (settings, who, is_first): (Option<HostSettings>, u8, bool),
    ) {
        let source = this.graph_of(settings.as_ref());
        let is_empty = this.is_empty.load(Ordering::SeqCst);
        let operator = who & OPERATOR != 0;
        match this.read(source, is_empty || who & EMPTYING != 0).await {
            Ok(graph) => {
                if let Some(settings) = settings {
                    this.apply_settings(changer, settings).await;
                }
                this.live.take_graph(&graph);
                Self::put(this, graph, operator);
            }
            Err(why) => {
                let why = why.to_string();
                if is_first && let Some(kept) = this.accepted(&why).await {
                    this.live.take_graph(&kept);
                    return Self::put(this, kept, false);
                }
                this.reject(why, operator);
            }
        }
    }

    /// Delivers a graph to the driver, and stores it when the driver has accepted it.
    pub(super) fn put(this: &Arc<Self>, mut graph: Box<LoadedGraph>, operator: bool) {
        let texts: Arc<[Text]> = std::mem::take(&mut graph.texts).into();
        let generation = GraphVersion::of(&graph);
        lock(&this.hash).clone_from(&generation.hash);
        *lock(&this.collections) = Some(Arc::clone(&graph.collections));
        // A graph without texts is a repeated one.
        let number =
            if texts.is_empty() { 0 } else { this.handed.fetch_add(1, Ordering::SeqCst) + 1 };
        this.live.note_delivery(number, &graph, &texts);
        this.requests.put(DriverEvent::Graph { graph: Ok(graph), operator });
        let (to, fate) = oneshot::channel();
        this.requests.put(DriverEvent::Query(Query::LoadResult(vec![to])));
        let this = Arc::clone(this);
        tokio::spawn(async move {
            let loaded = match fate.await {
                Ok(Ok(loaded)) => loaded,
                Ok(Err(why)) if number > 0 => {
                    let why = why.to_string();
                    this.live.note_decision(number, false);
                    *lock(&this.rejected) = Some(why.clone());
                    return this.run_last_good(&why).await;
                }
                Ok(Err(_)) | Err(_) => return,
            };
            let Some(directory) = this.graph().kept_in else { return this.accept(number, &texts) };
            if number > 0 {
                this.accept(number, &texts);
                let version = generation;
                // A graph that changes nothing is not stored.
                let unstored = UnstoredGraph { number, version, texts };
                *lock(&this.unstored) = (!loaded.noop).then_some(unstored);
                this.store_settings(&directory).await;
            }
            if loaded.noop {
                return;
            }
            this.clear(&directory).await;
            // A graph that is replaced at once need not be stored.
            tokio::time::sleep(REST).await;
            this.keep_unstored(&directory).await;
        });
    }

    /// Records a graph that the driver has accepted.
    fn accept(&self, number: u64, texts: &Arc<[Text]>) {
        if number == 0 {
            return;
        }
        self.live.note_decision(number, true);
        *lock(&self.instead) = None;
        *lock(&self.rejected) = None;
        self.take(number, Arc::clone(texts));
    }

    /// Tells the driver that the newest graph is rejected. The running graph stays.
    pub(super) fn reject(&self, why: String, operator: bool) {
        *lock(&self.rejected) = Some(why.clone());
        let graph = Err(LoadError::Invalid(why));
        self.requests.put(DriverEvent::Graph { graph, operator });
    }
}
