//! The task that tries failed watches again.

use crate::watch::index::Again;
use crate::watch::shared::Shared;
use std::sync::Arc;
use tokio::time::Instant;

/// Triggers retries until no route fails.
pub(in crate::watch) async fn try_again(shared: Arc<Shared>) {
    let mut due = None;
    loop {
        let next = {
            let mut state = shared.lock();
            let is_closed = state.work.closed;
            state.retry.next_try(is_closed)
        };
        let Some((wait, fresh)) = next else { return };
        // A new failure moves the next retry forward, never back.
        let soon = Instant::now() + wait;
        let at = due.map_or(soon, |due: Instant| due.min(soon));
        due = Some(at);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(at) => due = None,
            () = fresh.notified() => continue,
        }
        let mut state = shared.lock();
        state.retry.lengthen();
        state.work.again(Again::Failed);
        drop(state);
        shared.wake.notify_one();
    }
}
