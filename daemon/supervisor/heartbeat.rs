//! The proof that a worker lives: put down by it, read by its supervisor, without either waiting for the other.

use super::Name;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The last proof of one start of a worker.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    whose: Name,
    /// From here on times are counted: the same for all workers, so that they wake together.
    began: Instant,
    /// How long it may be silent; none where it need not prove anything.
    limit: Option<Duration>,
    /// When it was last heard, in milliseconds.
    heard: Arc<AtomicU64>,
    /// Since when a thread that it holds has not answered.
    hangs: Arc<Mutex<Option<Instant>>>,
}

/// So often in its limit a worker proves that it lives.
pub(super) const TIMES: u32 = 3;

impl Heartbeat {
    pub(super) fn new(whose: Name, began: Instant, limit: Option<Duration>) -> Self {
        let pulse = Self { whose, began, limit, heard: Arc::default(), hangs: Arc::default() };
        pulse.alive();
        pulse
    }

    pub(super) fn alive(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    pub(super) async fn prove_alive(&self) {
        self.alive();
        let Some(limit) = self.limit else { return std::future::pending().await };
        let every = (limit / TIMES).max(Duration::from_millis(1));
        let turns = self.began.elapsed().as_nanos() / every.as_nanos() + 1;
        let next = every.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX));
        sleep_until(self.began + next).await;
        self.alive();
    }

    /// When it was last heard.
    pub(super) fn heard(&self) -> Duration {
        Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// A thread has not answered since it was asked.
    pub(super) fn waits(&self, since: Instant) {
        let silent = since.elapsed();
        if self.limit.is_some_and(|limit| silent >= limit) && self.put(Some(since)).is_none() {
            let (whose, seconds) = (&self.whose, silent.as_secs());
            tracing::error!(
                event = "hangs",
                worker = &**whose,
                "{whose}: the thread has not responded for {seconds} s and cannot be aborted"
            );
        }
    }

    /// It has answered.
    pub(super) fn answered(&self) {
        if self.put(None).is_some() {
            let whose = &self.whose;
            tracing::warn!(
                event = "answers",
                worker = &**whose,
                "{whose}: the thread responds again"
            );
        }
    }

    fn put(&self, hangs: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut *self.hangs.lock().unwrap_or_else(PoisonError::into_inner), hangs)
    }

    /// Since when a thread of it has not answered, where it hangs.
    pub(super) fn hangs(&self) -> Option<Instant> {
        *self.hangs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
