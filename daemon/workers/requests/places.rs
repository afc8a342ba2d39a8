//! Work of requests on threads, with a bounded number of places.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Waits for a place. A client that leaves while it waits gets none.
///
/// # Errors
/// A message if the places were closed.
pub(super) async fn wait_for_place(
    places: &Arc<Semaphore>,
) -> Result<OwnedSemaphorePermit, String> {
    let place = Arc::clone(places).acquire_owned().await;
    place.map_err(|error| error.to_string())
}

/// Runs work on a thread of its own. The place is occupied until the work ends, also if the client leaves before that:
/// a flood of requests occupies as many threads as there are places.
///
/// # Errors
/// A message if the work has panicked.
pub(super) async fn run_in_place<T: Send + 'static>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let work = move || {
        let done = work();
        drop(place);
        done
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}
