//! The queue of requests to the driver: requests wait while no driver runs, and none is lost with a failed driver.

use crate::driver::{DriverEvent, Inbox, Query};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The queue of requests. Clones share one queue.
#[derive(Clone, Debug)]
pub(in crate::workers) struct Requests(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The number of drivers so far.
    drivers: watch::Sender<u32>,
}

#[derive(Debug, Default)]
struct State {
    inbox: Option<Inbox<DriverEvent>>,
    waiting: Vec<DriverEvent>,
    /// True if the running driver was given a graph.
    has_graph: bool,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), drivers: watch::Sender::new(0) }))
    }
}

impl Requests {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the driver, or to the next one.
    pub(in crate::workers) fn put(&self, request: DriverEvent) {
        let mut state = self.lock();
        let graph = is_graph(&request);
        if let Some(inbox) = &state.inbox {
            inbox.put(request);
        } else {
            if matches!(request, DriverEvent::Lease(_)) {
                // Only the present state of the lease counts: while no driver runs, many renewals may arrive.
                state.waiting.retain(|older| !matches!(older, DriverEvent::Lease(_)));
            }
            return state.waiting.push(request);
        }
        state.has_graph |= graph;
    }

    /// Sends a request to the running driver.
    ///
    /// # Errors
    /// Returns the request if no driver runs.
    pub(in crate::workers) fn put_now(&self, request: DriverEvent) -> Result<(), DriverEvent> {
        match &self.lock().inbox {
            Some(inbox) => {
                inbox.put(request);
                Ok(())
            }
            None => Err(request),
        }
    }

    /// Attaches a driver, which receives all waiting requests.
    pub(in crate::workers) fn attach(&self, inbox: Inbox<DriverEvent>) {
        let mut state = self.lock();
        state.has_graph = state.waiting.iter().any(is_graph);
        inbox.put_all(state.waiting.drain(..));
        state.inbox = Some(inbox);
        drop(state);
        self.0.drivers.send_modify(|drivers| *drivers += 1);
    }

    /// Detaches a driver that ends or has ended. Requests that it has not taken go to the next driver, before later
    /// ones. Returns the other events, which concern only this driver; a query waits for its reply as long as its event
    /// exists.
    pub(in crate::workers) fn detach(&self, inbox: &Inbox<DriverEvent>) -> Vec<DriverEvent> {
        let mut state = self.lock();
        (state.inbox, state.has_graph) = (None, false);
        let mut all = Vec::new();
        inbox.take(&mut all);
        let (mut requests, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_request);
        requests.append(&mut state.waiting);
        state.waiting = requests;
        rest
    }

    /// Returns true if a driver runs that was given no graph.
    pub(in crate::workers) fn lacks_graph(&self) -> bool {
        let state = self.lock();
        state.inbox.is_some() && !state.has_graph
    }

    /// Returns a receiver of the number of drivers.
    pub(in crate::workers) fn drivers(&self) -> watch::Receiver<u32> {
        self.0.drivers.subscribe()
    }
}

/// Returns true for an event that goes to the next driver if this one does not take it.
fn is_request(input: &DriverEvent) -> bool {
    matches!(
        input,
        DriverEvent::Graph { .. }
            | DriverEvent::Pause { .. }
            | DriverEvent::Resume
            | DriverEvent::Query(Query::LoadResult(_))
    )
}

/// Returns true for an event that carries a valid graph.
fn is_graph(input: &DriverEvent) -> bool {
    matches!(input, DriverEvent::Graph { graph: Ok(_), .. } | DriverEvent::LastGoodGraph(_))
}

#[cfg(test)]
mod tests {
    use super::Requests;
    use crate::driver::LoadError;
    use crate::driver::{DriverEvent, Inbox};
    use std::time::Duration;

    fn pause(reason: &str) -> DriverEvent {
        DriverEvent::Pause { reason: reason.to_owned(), limit: None, drain: false }
    }

    fn taken(inbox: &Inbox<DriverEvent>) -> Vec<String> {
        let mut all = Vec::new();
        inbox.take(&mut all);
        all.iter().map(|input| format!("{input:?}")).collect()
    }

    /// F-19: requests that a failed driver has not taken go to the next one, in order; a stop, a query and the results
    /// of runs do not.
    #[test]
    fn untaken_requests_of_a_broken_driver_go_to_the_next() {
        let requests = Requests::default();
        requests.put(pause("before any"));
        let first = Inbox::default();
        requests.attach(first.clone());
        assert_eq!(taken(&first).len(), 1);
        requests.put(pause("not taken"));
        requests.put(DriverEvent::Graph { graph: Err(LoadError::NoneYet), operator: true });
        requests.put(DriverEvent::Stop(Duration::ZERO));
        first.put(DriverEvent::JournalReplies(vec![1], None));
        let rest = requests.detach(&first);
        assert_eq!(rest.len(), 2, "what is only its");
        requests.put(DriverEvent::Resume);
        assert!(requests.put_now(DriverEvent::Resume).is_err(), "there is none");
        let second = Inbox::default();
        requests.attach(second.clone());
        assert!(requests.lacks_graph(), "one that could not be read is none");
        let graph = DriverEvent::Graph { graph: Err(LoadError::NoneYet), operator: true };
        let expected =
            [pause("not taken"), graph, DriverEvent::Resume].map(|input| format!("{input:?}"));
        assert_eq!(taken(&second), expected);
        assert_eq!(*requests.drivers().borrow(), 2);
        requests.put(loaded());
        assert!(!requests.lacks_graph());
        assert!(requests.detach(&second).is_empty());
        requests.put(pause("later"));
        second.put(pause("left behind"));
        assert!(requests.detach(&second).is_empty());
        let third = Inbox::default();
        requests.attach(third.clone());
        assert!(!requests.lacks_graph(), "the second had not taken it");
        let words = taken(&third).join(" ");
        let at = |word: &str| words.find(word).expect("handed over");
        assert!(at("left behind") < at("Graph") && at("Graph") < at("later"), "{words}");
        assert!(requests.detach(&third).is_empty());
        requests.attach(Inbox::default());
        assert!(requests.lacks_graph(), "the third had taken it");
    }

    fn loaded() -> DriverEvent {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, "graph: g\nresources: {noop: [{name: n}]}\n").expect("written");
        let loaded = crate::config::load(
            &[file.path().to_owned()],
            &crate::config::Options::new(crate::config::KindSet::of_this_build()),
        );
        DriverEvent::Graph { graph: Ok(Box::new(loaded.expect("valid"))), operator: false }
    }
}
