//! The watch of the graph files and of the settings file: a change requests a reload.

use super::{GraphLoader, GraphSource, LONGEST_WAIT, ReloadCause, lock};
use crate::watch::{Signal, WatchHub};
use futures_util::FutureExt as _;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::{WatchSource, printable};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// The mounts of this process: the kernel marks the file after each mount and unmount.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The number of attempts to set up the watch, because a path may turn from a file to a directory meanwhile.
const MOST_TURNS: usize = 5;

/// A watch that requests a reload after a change of one of its paths, or of an entry of a directory among them.
pub(super) struct GraphWatch {
    hub: WatchHub,
    armed: Option<Vec<WatchSource>>,
    answered: Arc<Notify>,
    mounts: Option<AsyncFd<File>>,
}

impl GraphWatch {
    /// Creates a watch without paths. `broken` is notified if the watch fails.
    pub(super) fn open(reloader: GraphLoader, broken: Arc<Notify>) -> Self {
        let answered = Arc::new(Notify::new());
        let answers = Arc::clone(&answered);
        let hub = WatchHub::through_notify(tokio::runtime::Handle::current(), move |signals| {
            let moves = |s: &Signal| {
                matches!(s, Signal::Changed(_) | Signal::Supplied(_) | Signal::Suspect(_))
            };
            if signals.iter().any(moves) {
                reloader.reload(ReloadCause::Nobody);
            }
            for signal in &signals {
                match signal {
                    Signal::Absent(_, why) => {
                        tracing::warn!(event = "unwatched", "the graph: {}", printable(why));
                    }
                    Signal::Broken(_) => broken.notify_one(),
                    Signal::Established(_)
                    | Signal::Changed(_)
                    | Signal::Supplied(_)
                    | Signal::Suspect(_) => {}
                }
            }
            if signals.iter().any(|s| matches!(s, Signal::Established(_) | Signal::Absent(..))) {
                answers.notify_one();
            }
        });
        let mounts = File::open(MOUNTS).ok();
        #[expect(
            deprecated,
            reason = "its replacement is unsafe; an owned descriptor is sound in both"
        )]
        let mounts = mounts.and_then(|it| AsyncFd::with_interest(it, Interest::PRIORITY).ok());
        Self { hub, armed: None, answered, mounts }
    }

    /// Watches these paths in their present form: a directory with its entries, or a file. Returns when the watch is
    /// established; true if a path was added.
    pub(super) async fn follow(&mut self, paths: &[PathBuf]) -> bool {
        let mut is_wider = false;
        for _ in 0..MOST_TURNS {
            let (given, limit) = (paths.to_vec(), LONGEST_WAIT);
            let looked = tokio::task::spawn_blocking(move || sources(&given));
            let Ok(Ok(sources)) = tokio::time::timeout(limit, looked).await else {
                tracing::warn!(event = "unwatched", "the graph: the paths do not respond");
                return is_wider;
            };
            if self.armed.as_ref() == Some(&sources) {
                return is_wider;
            }
            let is_known = |source| self.armed.iter().flatten().any(|armed| armed == source);
            is_wider |= !sources.iter().all(is_known);
            // Drops a late answer to an earlier call.
            let _late = self.answered.notified().now_or_never();
            self.hub.arm(VertexId(0), sources.clone());
            self.armed = Some(sources);
            if tokio::time::timeout(limit, self.answered.notified()).await.is_err() {
                tracing::warn!(event = "unwatched", "the graph: the watch does not respond");
            }
        }
        is_wider
    }

    /// Waits for a mount or unmount, which causes no events in directories, and then checks all paths. Never returns
    /// without a watch.
    pub(super) async fn mounts(watch: Option<&Self>) {
        let Some((hub, mounts)) = watch.and_then(|it| Some((&it.hub, it.mounts.as_ref()?))) else {
            return std::future::pending().await;
        };
        match mounts.ready(Interest::PRIORITY).await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return std::future::pending().await,
        }
        hub.walk_all();
    }
}

/// Returns the watch sources of these paths, without the standard input.
fn sources(paths: &[PathBuf]) -> Vec<WatchSource> {
    let named = paths.iter().filter(|path| path.as_os_str() != "-");
    let sources = named.filter_map(|path| {
        let path = std::path::absolute(path).ok()?;
        Some(WatchSource::Path { below: path.is_dir(), path })
    });
    sources.collect()
}

impl GraphLoader {
    /// Watches the files of a graph and of the settings, and the files that the last read looked for, if the settings
    /// ask for a watch. Returns true if a path was added.
    pub(super) async fn follow(
        &self,
        graph: &GraphSource,
        watch: &mut Option<GraphWatch>,
        broken: &Arc<Notify>,
    ) -> bool {
        if !graph.watch {
            *watch = None;
            return false;
        }
        let mut paths = graph.paths.clone();
        paths.extend(self.0.settings.path.clone());
        paths.extend(lock(&self.0.last_read).sought.iter().cloned());
        let open = || GraphWatch::open(self.clone(), Arc::clone(broken));
        watch.get_or_insert_with(open).follow(&paths).await
    }

    /// Watches the files that the last read looked for. A file that changed before its watch began requests a reload.
    pub(super) async fn follow_inputs(
        &self,
        graph: GraphSource,
        watch: &mut Option<GraphWatch>,
        broken: &Arc<Notify>,
    ) {
        if self.follow(&graph, watch, broken).await && self.0.reads_differently(graph).await {
            self.reload(ReloadCause::Nobody);
        }
    }
}
