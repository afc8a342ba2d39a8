//! Reading the graph again: on HUP, and with `--watch` when one of its files changes.

use super::args::Graph;
use super::{read, systemd};
use crate::config::{self, Loaded};
use crate::driver::watch::{Hub, Signal};
use crate::driver::{Inbox, Input};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::Source;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

/// How long to wait for the watch of the graph, or for its files to be left alone, before it is read all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long a graph file that changes by itself must be left alone before it is read: editors write in steps.
const QUIET: Duration = Duration::from_millis(100);

const AUTOMATIC: u8 = 1;
const OPERATOR: u8 = 2;

/// Reads the graph again and hands it to the driver.
#[derive(Clone, Debug)]
pub(super) struct Reloader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    graph: Graph,
    inbox: Inbox<Input>,
    /// Who has asked for the reload that has not begun yet.
    asked: AtomicU8,
    /// How often anybody has.
    events: AtomicU64,
    /// One at a time, so that the newest file is the last one handed over.
    turn: Arc<Mutex<()>>,
}

impl Reloader {
    /// For this graph and this driver.
    #[must_use]
    pub(super) fn new(graph: Graph, inbox: Inbox<Input>) -> Self {
        let (asked, events) = (AtomicU8::new(0), AtomicU64::new(0));
        Self(Arc::new(Shared { graph, inbox, asked, events, turn: Arc::default() }))
    }

    /// Starts a reload, or joins one that has not begun to read yet. An operator's one refills the budgets of retries.
    pub(super) fn reload(&self, operator: bool) {
        let who = if operator { OPERATOR } else { AUTOMATIC };
        self.0.events.fetch_add(1, Ordering::SeqCst);
        if self.0.asked.fetch_or(who, Ordering::SeqCst) != 0 {
            return;
        }
        systemd::reloading();
        let this = Arc::clone(&self.0);
        tokio::spawn(async move {
            let _turn = this.turn.lock().await;
            this.left_alone().await;
            let operator = this.asked.swap(0, Ordering::SeqCst) & OPERATOR != 0;
            let graph = this.read().await;
            this.inbox.put(Input::Graph { graph, operator });
        });
    }

    /// No reload reads the graph while this is held.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0.turn).lock_owned().await
    }

    /// Reloads whenever one of the files that were named, or an entry of a folder that was, changes; as long as the answer
    /// lives. It answers when the watch stands: what is read from then on is not missed.
    pub(super) async fn watch(&self) -> Hub {
        let this = self.clone();
        let handle = tokio::runtime::Handle::current();
        let entered = handle.clone();
        let stands = Arc::new(Notify::new());
        let answered = Arc::clone(&stands);
        let hub = Hub::through_notify(handle, move |signals| {
            if signals.iter().any(|s| matches!(s, Signal::Changed(_) | Signal::Suspect(_))) {
                let _context = entered.enter();
                this.reload(false);
            }
            for signal in &signals {
                if let Signal::Absent(_, why) = signal {
                    tracing::warn!(event = "unwatched", "the graph: {}", super::text::plain(why));
                }
            }
            if signals.iter().any(|s| matches!(s, Signal::Established(_) | Signal::Absent(..))) {
                answered.notify_one();
            }
        });
        let named = self.0.graph.graphs.iter().filter(|path| path.as_os_str() != "-");
        let sources = named.filter_map(|path| {
            let path = std::path::absolute(path).ok()?;
            Some(Source::Path { below: path.is_dir(), path })
        });
        hub.arm(VertexId(0), sources.collect());
        if tokio::time::timeout(LONGEST_WAIT, stands.notified()).await.is_err() {
            tracing::warn!(event = "unwatched", "the graph: its watch does not answer");
        }
        hub
    }
}

impl Shared {
    /// Waits until the files have been left alone for a while: the beginning of a graph is a graph, with fewer resources (F-20).
    /// An operator has said that they are complete.
    async fn left_alone(&self) {
        let began = tokio::time::Instant::now();
        let is_automatic = || self.asked.load(Ordering::SeqCst) == AUTOMATIC;
        while is_automatic() && began.elapsed() < LONGEST_WAIT {
            let before = self.events.load(Ordering::SeqCst);
            tokio::time::sleep(QUIET).await;
            if self.events.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }

    async fn read(&self) -> Result<Box<Loaded>, String> {
        let graph = self.graph.clone();
        let read = tokio::task::spawn_blocking(move || {
            config::load(&graph.graphs, &read::options(&graph, false))
        });
        match read.await {
            Ok(Ok(loaded)) => {
                for warning in &loaded.warnings {
                    tracing::warn!(event = "warning", "{warning}");
                }
                Ok(Box::new(loaded))
            }
            Ok(Err(rejected)) => Err(rejected.to_string()),
            Err(panic) => Err(format!("reading the graph panicked: {panic}")),
        }
    }
}
