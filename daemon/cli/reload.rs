//! Reading the graph again: on HUP, and with `--watch` when one of its files changes.

use super::args::Graph;
use super::{graph, systemd};
use crate::config;
use crate::driver::watch::{Hub, Signal};
use crate::driver::{Inbox, Input};
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::Source;
use tokio::sync::Mutex;

/// Reads the graph again and hands it to the driver.
#[derive(Clone, Debug)]
pub(super) struct Reloader {
    graph: Graph,
    inbox: Inbox<Input>,
    /// One at a time, so that the newest file is the last one handed over.
    turn: Arc<Mutex<()>>,
}

impl Reloader {
    /// For this graph and this driver.
    #[must_use]
    pub(super) fn new(graph: Graph, inbox: Inbox<Input>) -> Self {
        Self { graph, inbox, turn: Arc::default() }
    }

    /// Starts a reload. An operator's one refills the budgets of retries.
    pub(super) fn reload(&self, operator: bool) {
        systemd::reloading();
        let this = self.clone();
        tokio::spawn(async move {
            let _turn = this.turn.lock().await;
            let graph = this.graph.clone();
            let read = tokio::task::spawn_blocking(move || {
                config::load(&graph.graphs, &graph::options(&graph, false))
            });
            let loaded = match read.await {
                Ok(Ok(loaded)) => {
                    for warning in &loaded.warnings {
                        tracing::warn!(event = "warning", "{warning}");
                    }
                    Ok(Box::new(loaded))
                }
                Ok(Err(rejected)) => Err(rejected.to_string()),
                Err(panic) => Err(format!("reading the graph panicked: {panic}")),
            };
            this.inbox.put(Input::Graph { graph: loaded, operator });
        });
    }

    /// Reloads whenever one of these files, or an entry of a folder that was named, changes; as long as the answer lives.
    #[must_use]
    pub(super) fn watch(&self, files: &[PathBuf]) -> Hub {
        let this = self.clone();
        let handle = tokio::runtime::Handle::current();
        let entered = handle.clone();
        let hub = Hub::new(handle, move |signals| {
            if signals.iter().any(|s| matches!(s, Signal::Changed(_) | Signal::Suspect(_))) {
                let _context = entered.enter();
                this.reload(false);
            }
        });
        let files = files.iter().map(|path| Source::Path { path: path.clone(), below: false });
        let folders = self.graph.graphs.iter().filter(|path| path.is_dir());
        let folders = folders.filter_map(|path| std::path::absolute(path).ok());
        let folders = folders.map(|path| Source::Path { path, below: true });
        hub.arm(VertexId(0), files.chain(folders).collect());
        hub
    }
}
