//! The watch of the sources of facts: files by inotify, files of the kernel by poll(2), and the network by netlink.
//!
//! A source without events, and a source that cannot be watched, is looked at every 30 s.

use crate::facts::{AddressChanges, FactSource, HostRoot};
use crate::watch::{Signal, WatchHub};
use futures_util::future::select_all;
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::{WatchSource, printable};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior};

/// The interval of looks at sources without events.
const POLL: Duration = Duration::from_secs(30);

/// The time within which changes are joined: a mount changes several sources.
pub(in crate::workers) const JOIN: Duration = Duration::from_millis(200);

/// A watch of sources of facts.
pub(in crate::workers) struct FactWatch {
    sources: BTreeSet<FactSource>,
    changed: Arc<Notify>,
    /// True if a source has no working watch.
    is_blind: Arc<AtomicBool>,
    hub: Option<WatchHub>,
    polled: Vec<AsyncFd<File>>,
    network: Option<AsyncFd<AddressChanges>>,
    clock: Interval,
}

impl FactWatch {
    /// Creates a watch without sources.
    pub(in crate::workers) fn new() -> Self {
        let mut clock = tokio::time::interval(POLL);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            sources: BTreeSet::new(),
            changed: Arc::new(Notify::new()),
            is_blind: Arc::new(AtomicBool::new(false)),
            hub: None,
            polled: Vec::new(),
            network: None,
            clock,
        }
    }

    /// Watches these sources. Returns true if they are other ones than before: the facts may have changed before the
    /// watch.
    pub(in crate::workers) fn follow(&mut self, sources: BTreeSet<FactSource>) -> bool {
        if self.sources == sources {
            return false;
        }
        self.is_blind.store(sources.contains(&FactSource::Periodic), Ordering::Relaxed);
        self.watch_paths(&sources);
        self.polled = sources.iter().filter_map(|source| self.open_polled(source)).collect();
        self.network =
            sources.contains(&FactSource::Network).then(|| self.open_network()).flatten();
        let is_used = !sources.is_empty();
        self.sources = sources;
        is_used
    }

    fn watch_paths(&mut self, sources: &BTreeSet<FactSource>) {
        let root = HostRoot::of_this_host();
        let path = |source: &FactSource| match source {
            // A directory with its entries; a file has none.
            FactSource::Path(path) => {
                let below = path.strip_suffix(".d").is_some();
                Some(WatchSource::Path { below, path: root.path(path) })
            }
            FactSource::Polled(_) | FactSource::Network | FactSource::Periodic => None,
        };
        let paths: Vec<WatchSource> = sources.iter().filter_map(path).collect();
        if paths.is_empty() {
            self.hub = None;
            return;
        }
        let (changed, is_blind) = (Arc::clone(&self.changed), Arc::clone(&self.is_blind));
        let open = || {
            WatchHub::through_notify(tokio::runtime::Handle::current(), move |signals| {
                for signal in &signals {
                    note_signal(signal, &changed, &is_blind);
                }
            })
        };
        self.hub.get_or_insert_with(open).arm(VertexId(0), paths);
    }

    fn open_polled(&self, source: &FactSource) -> Option<AsyncFd<File>> {
        let FactSource::Polled(path) = source else { return None };
        #[expect(
            deprecated,
            reason = "its replacement is unsafe; an owned descriptor is sound in both"
        )]
        let open = |file| AsyncFd::with_interest(file, Interest::PRIORITY);
        let opened = File::open(path).and_then(open);
        self.note_blindness(path, opened)
    }

    fn open_network(&self) -> Option<AsyncFd<AddressChanges>> {
        #[expect(
            deprecated,
            reason = "its replacement is unsafe; an owned descriptor is sound in both"
        )]
        let open = |socket| AsyncFd::with_interest(socket, Interest::READABLE);
        let opened = AddressChanges::open().map_err(std::io::Error::from).and_then(open);
        self.note_blindness("the network", opened)
    }

    /// Returns a source that could be opened; for another one the clock is used.
    fn note_blindness<T>(&self, name: &str, opened: std::io::Result<T>) -> Option<T> {
        let report = |error: &std::io::Error| {
            tracing::warn!(event = "unwatched", "facts: {name} is polled every 30 s: {error}");
            self.is_blind.store(true, Ordering::Relaxed);
        };
        opened.inspect_err(report).ok()
    }

    /// Waits until a source may have changed. With `also_by_time` true, also returns every 30 s.
    pub(in crate::workers) async fn changed(&mut self, also_by_time: bool) {
        let Self { changed, is_blind, polled, network, clock, .. } = self;
        loop {
            tokio::select! {
                () = changed.notified() => return,
                () = any_polled(polled) => return,
                () = network_changed(network.as_ref()) => return,
                _ = clock.tick() => {
                    if also_by_time || is_blind.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        }
    }
}

/// Waits until the kernel marks one of these files.
async fn any_polled(polled: &[AsyncFd<File>]) {
    if polled.is_empty() {
        return std::future::pending().await;
    }
    let wait = |file| {
        Box::pin(async move {
            let file: &AsyncFd<File> = file;
            match file.ready(Interest::PRIORITY).await {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => std::future::pending().await,
            }
        })
    };
    select_all(polled.iter().map(wait)).await;
}

/// Waits until the kernel reports a change of the network.
async fn network_changed(network: Option<&AsyncFd<AddressChanges>>) {
    let Some(network) = network else { return std::future::pending().await };
    loop {
        match network.readable().await {
            Ok(mut ready) => {
                let any = ready.get_inner().take_reports();
                ready.clear_ready();
                if any {
                    return;
                }
            }
            Err(_) => return std::future::pending().await,
        }
    }
}

/// Notes a signal of the watches: a change, or a loss of sight.
fn note_signal(signal: &Signal, changed: &Notify, is_blind: &AtomicBool) {
    match signal {
        Signal::Absent(_, why) => {
            tracing::warn!(event = "unwatched", "facts: {}", printable(why));
            is_blind.store(true, Ordering::Relaxed);
        }
        Signal::Broken(_) => is_blind.store(true, Ordering::Relaxed),
        Signal::Established(_) => {}
        Signal::Changed(_) | Signal::Supplied(_) | Signal::Suspect(_) => changed.notify_one(),
    }
}
