//! A view of one range that survives lost watches: read the range at revision R, watch from R + 1, read again after a
//! loss, and every ten minutes anyway.
//!
//! An empty range, like any other, is believed only from a read at a revision that is not below the last one seen.

use super::{Entry, Range, World, WorldError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The interval of full reads.
const FULL_READ: Duration = Duration::from_mins(10);

/// The silence after which a watch counts as lost: more than twice the interval of progress notifications.
const SILENCE: Duration = Duration::from_secs(25);

/// The first and the last delay after a loss.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));

/// The state of a range.
#[derive(Clone, Debug, Default)]
pub struct RangeView {
    /// The entries by key; the last known ones while the view is stale.
    pub entries: BTreeMap<String, Entry>,
    /// The revision up to which the entries are known; 0 before the first read.
    pub revision: u64,
    /// The reason and the beginning of staleness, in seconds since 1970; none while the watch works.
    pub stale: Option<(String, u64)>,
}

impl RangeView {
    /// Returns true if the view was read, and is not stale: an unread one says nothing, and a stale one nothing new.
    #[must_use]
    pub const fn is_believed(&self) -> bool {
        self.revision > 0 && self.stale.is_none()
    }
}

impl RangeView {
    /// Takes a full read. Returns false if the read is older than the view and must not be believed.
    pub fn replace_entries(&mut self, range: Range) -> bool {
        if range.revision < self.revision {
            return false;
        }
        self.revision = range.revision;
        self.entries = range.entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        true
    }
}

/// Follows a range until the receivers are dropped, and publishes each state. The seed spreads the returns of many
/// followers after a loss: each host has another one.
pub async fn follow_range(
    world: Arc<dyn World>,
    (prefix, mut seed): (String, u64),
    views: watch::Sender<RangeView>,
) {
    let mut delay = BACKOFF.0;
    loop {
        let began = Instant::now();
        let lost = match follow_once(world.as_ref(), &prefix, &views).await {
            Ok(()) => continue,
            Err(error) => error,
        };
        if views.is_closed() {
            return;
        }
        views.send_if_modified(|view| {
            let since =
                view.stale.as_ref().map_or_else(super::records::unix_seconds, |stale| stale.1);
            let stale = Some((lost.to_string(), since));
            let is_new = view.stale != stale;
            view.stale = stale;
            is_new
        });
        // A watch that worked for a while is tried again at once.
        if began.elapsed() > BACKOFF.1 || matches!(lost, WorldError::Compacted(_)) {
            delay = BACKOFF.0;
        }
        seed = next_number(seed);
        tokio::select! {
            biased;
            () = views.closed() => return,
            () = tokio::time::sleep(with_jitter(delay, seed)) => {}
        }
        delay = (delay * 2).min(BACKOFF.1);
    }
}

/// Returns the number after `seed` in a sequence that looks random (the constants are those of Knuth's MMIX).
const fn next_number(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// Returns a time between half of `delay` and `delay`, so that not all hosts return at once.
fn with_jitter(delay: Duration, seed: u64) -> Duration {
    let part = u32::from(seed.to_be_bytes()[0]);
    delay / 2 + delay * part / 512
}

/// Reads the range and follows one watch until a full read is due.
async fn follow_once(
    world: &dyn World,
    prefix: &str,
    views: &watch::Sender<RangeView>,
) -> Result<(), WorldError> {
    let range = world.list(prefix).await?;
    let mut next = range.revision + 1;
    let mut is_believed = true;
    views.send_if_modified(|view| {
        let before = (view.stale.take().is_some(), view.entries.clone(), view.revision == 0);
        is_believed = view.replace_entries(range);
        before.0 || before.2 || before.1 != view.entries
    });
    if !is_believed {
        let what = "the read is older than an earlier one: was the world restored from a backup?";
        return Err(WorldError::Unavailable(what.to_owned()));
    }
    let mut stream = world.watch(prefix, next).await?;
    let due = Instant::now() + FULL_READ;
    loop {
        let batch = tokio::select! {
            biased;
            () = views.closed() => return Err(WorldError::Unavailable("not needed".to_owned())),
            () = tokio::time::sleep_until(due) => return Ok(()),
            batch = tokio::time::timeout(SILENCE, stream.next_batch()) => {
                batch.map_err(|late| WorldError::Unavailable(format!("the watch is silent: {late}")))??
            }
        };
        next = next.max(batch.revision + 1);
        views.send_if_modified(|view| {
            view.revision = view.revision.max(batch.revision);
            let changed = !batch.changes.is_empty();
            for change in batch.changes {
                match change.entry {
                    Some(entry) => drop(view.entries.insert(change.key, entry)),
                    None => drop(view.entries.remove(&change.key)),
                }
            }
            changed
        });
    }
}
