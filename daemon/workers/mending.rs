//! What an operator has done to the state as a whole while a daemon runs: the worker that keeps it does it, and begins anew.

use crate::store::Mend;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Where it is answered: what was done, a line for each thing, or why not.
pub(super) type Mending = oneshot::Sender<Result<Vec<String>, String>>;

/// The way to the worker that keeps state.
pub(super) struct Mender {
    ask: mpsc::Sender<(Mend, Mending)>,
    asked: Mutex<mpsc::Receiver<(Mend, Mending)>>,
}

impl Default for Mender {
    fn default() -> Self {
        let (ask, asked) = mpsc::channel(1);
        Self { ask, asked: Mutex::new(asked) }
    }
}

impl Mender {
    /// What is asked next.
    pub(super) async fn next(&self) -> (Mend, Mending) {
        match self.asked.lock().await.recv().await {
            Some(asked) => asked,
            // We hold the other end ourselves.
            None => std::future::pending().await,
        }
    }

    /// Asks, where nobody else does.
    pub(super) fn ask(&self, what: Mend) -> Option<oneshot::Receiver<Result<Vec<String>, String>>> {
        let (answer, answered) = oneshot::channel();
        self.ask.try_send((what, answer)).ok().map(|()| answered)
    }
}
