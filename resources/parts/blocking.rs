//! Blocking work of a kind that must not block: it runs on a thread of its own.

use crate::failure::Failure;
use crate::host::Host;

/// Runs work that may block, for a kind with [`crate::ExecutorKind::Command`]. In a simulated host and in an
/// overlay, which belong to a thread, the work stays on that thread.
///
/// # Errors
///
/// Fails if the work panicked or the process ends.
pub(crate) async fn on_thread<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&Host) -> T + Send + 'static,
) -> Result<T, Failure> {
    if crate::host::is_bound_to_thread() {
        return Ok(work(host));
    }
    let host = host.clone();
    let done = tokio::task::spawn_blocking(move || work(&host)).await;
    done.map_err(|why| Failure::new(format!("the work ended: {why}")))
}
