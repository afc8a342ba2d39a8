//! The heartbeat of a worker: written by the worker and read by the supervisor, without either waiting for the other.

use super::Name;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The last sign of life of one start of a worker.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat {
    whose: Name,
    /// The origin of all times: the same for all workers, so that they wake together.
    began: Instant,
    /// The longest silence; none if the worker need not send signs of life.
    limit: Option<Duration>,
    /// The time of the last sign of life, in milliseconds since `began`.
    heard: Arc<AtomicU64>,
    silence: Arc<Mutex<Silence>>,
}

/// The silence of a thread of the worker.
#[derive(Debug, Default)]
struct Silence {
    /// The time at which the silence was first found to be too long.
    doubted: Option<Instant>,
    /// The time since which the thread has not replied, if it hangs.
    since: Option<Instant>,
}

/// The number of signs of life that a worker sends within its limit.
pub(super) const TIMES: u32 = 3;

impl Heartbeat {
    pub(super) fn new(whose: Name, began: Instant, limit: Option<Duration>) -> Self {
        let pulse = Self { whose, began, limit, heard: Arc::default(), silence: Arc::default() };
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

    /// Returns the time of the last sign of life.
    pub(super) fn heard(&self) -> Duration {
        Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// Records that a thread has not replied since `since`. A silence beyond the limit is logged once. The whole
    /// process may have been suspended, so the thread gets another chance to reply first.
    pub(super) fn waits(&self, since: Instant) {
        let silent = since.elapsed();
        let Some(limit) = self.limit.filter(|limit| silent >= *limit) else { return };
        let mut silence = self.silence();
        if silence.doubted.get_or_insert_with(Instant::now).elapsed() < limit / TIMES {
            return;
        }
        if silence.since.replace(since).is_none() {
            let (whose, seconds) = (&self.whose, silent.as_secs());
            tracing::error!(
                event = "worker_hangs",
                worker = &**whose,
                "{whose}: the thread has not responded for {seconds} s and cannot be aborted"
            );
        }
    }

    /// Records that the thread has replied.
    pub(super) fn answered(&self) {
        if std::mem::take(&mut *self.silence()).since.is_some() {
            let whose = &self.whose;
            tracing::warn!(
                event = "worker_responds",
                worker = &**whose,
                "{whose}: the thread responds again"
            );
        }
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since which a thread of the worker has not replied; none if it does not hang.
    pub(super) fn hangs(&self) -> Option<Instant> {
        self.silence().since
    }
}
