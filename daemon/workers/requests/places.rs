//! Work of requests on threads, with a bounded number of places.

use crate::api::Reply;
use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

/// The reason why work of a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkError {
    /// The places were closed.
    #[error("no place for the request: {0}")]
    Closed(#[from] AcquireError),
    /// The work has panicked.
    #[error("the work of the request has failed: {0}")]
    Panicked(#[from] JoinError),
}

impl From<WorkError> for Reply {
    fn from(error: WorkError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Waits for a place. A client that leaves while it waits gets none.
///
/// # Errors
/// [`WorkError::Closed`] if the places were closed.
pub(super) async fn wait_for_place(
    places: &Arc<Semaphore>,
) -> Result<OwnedSemaphorePermit, WorkError> {
    Ok(Arc::clone(places).acquire_owned().await?)
}

/// Runs work on a thread of its own. The place is occupied until the work ends, also if the client leaves before that:
/// a flood of requests occupies as many threads as there are places.
///
/// # Errors
/// [`WorkError::Panicked`] if the work has panicked.
pub(super) async fn run_in_place<T: Send + 'static>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkError> {
    let work = move || {
        let done = work();
        drop(place);
        done
    };
    Ok(tokio::task::spawn_blocking(work).await?)
}
