//! Maintenance of the state of a running daemon (import, repair): the worker of the store carries it out, and starts
//! again.

use crate::store::{Entry, Maintenance, Store, StoreError, StoredState};
use crate::workers::errors::MaintenanceError;
use std::sync::{Mutex as Short, PoisonError};
use tokio::sync::{Mutex, mpsc, oneshot};

/// The result of maintenance: a line for each change, or the reason of the failure.
type Done = Result<Vec<String>, MaintenanceError>;

/// A request for maintenance.
pub(in crate::workers) struct MaintenanceRequest {
    pub(in crate::workers) what: Maintenance,
    /// The sender of the result.
    pub(in crate::workers) answer: oneshot::Sender<Done>,
}

/// The queue of requests to the worker of the store.
pub(in crate::workers) struct MaintenanceQueue {
    ask: mpsc::Sender<MaintenanceRequest>,
    asked: Mutex<mpsc::Receiver<MaintenanceRequest>>,
    pub(in crate::workers) carried: CarriedPauses,
}

impl Default for MaintenanceQueue {
    fn default() -> Self {
        let (ask, asked) = mpsc::channel(1);
        Self { ask, asked: Mutex::new(asked), carried: CarriedPauses::default() }
    }
}

impl MaintenanceQueue {
    /// Waits for the next request whose requester still waits.
    pub(in crate::workers) async fn next(&self) -> MaintenanceRequest {
        let mut queue = self.asked.lock().await;
        loop {
            match queue.recv().await {
                Some(asked) if asked.answer.is_closed() => {}
                Some(asked) => return asked,
                // This value has the other end, so that the channel never closes.
                None => std::future::pending().await,
            }
        }
    }

    /// Sends a request; returns `None` if another one is pending.
    pub(in crate::workers) fn ask(&self, what: Maintenance) -> Option<oneshot::Receiver<Done>> {
        let (answer, answered) = oneshot::channel();
        self.ask.try_send(MaintenanceRequest { what, answer }).ok().map(|()| answered)
    }
}

/// Changes of pauses while the state was unusable; they go to the next usable state.
#[derive(Default)]
pub(in crate::workers) struct CarriedPauses(Short<Vec<Entry>>);

impl CarriedPauses {
    /// Takes the changes, if the state stays unusable.
    pub(in crate::workers) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records all pauses that differ between the begin and now.
    pub(in crate::workers) fn put(&self, began: &StoredState, now: &StoredState) {
        let mut entries = Vec::new();
        if began.pause != now.pause {
            entries.push(Entry::Pause(now.pause.clone()));
        }
        let of = |recalled: &StoredState, name: &str| {
            recalled.resources.get(name).and_then(|kept| kept.pause.clone())
        };
        let names = began.resources.keys().chain(now.resources.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        for name in names.into_iter().filter(|name| of(began, name) != of(now, name)) {
            entries.push(Entry::ResourcePause {
                identity: name.as_str().into(),
                pause: of(now, name),
            });
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = entries;
    }

    /// Stores the changes; after a failure they wait for the next state.
    pub(in crate::workers) fn hand_over(&self, store: &mut impl Store) -> Result<(), StoreError> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.is_empty() {
            store.commit(&entries)?;
            entries.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CarriedPauses, MaintenanceQueue};
    use crate::store::{Entry, Maintenance, MemoryStore, PauseRecord, Store as _};

    /// A request whose requester no longer waits is not carried out later.
    #[tokio::test]
    async fn requests_without_a_waiter_are_not_done() {
        let queue = MaintenanceQueue::default();
        drop(queue.ask(Maintenance::Import).expect("asked"));
        assert!(queue.ask(Maintenance::Repair).is_none(), "one at a time");
        let mut next = Box::pin(queue.next());
        tokio::select! {
            biased;
            asked = &mut next => panic!("nobody waits for {:?}", asked.what),
            () = tokio::task::yield_now() => {}
        }
        let _waits = queue.ask(Maintenance::Repair).expect("asked");
        assert_eq!(next.await.what, Maintenance::Repair);
    }

    #[test]
    fn pauses_made_meanwhile_are_carried_over() {
        let pause =
            |reason: &str| PauseRecord { reason: reason.to_owned(), until_unix: 9, lasts: None };
        let pause_of = |name: &str, pause| Entry::ResourcePause { identity: name.into(), pause };
        let mut memory = MemoryStore::default();
        memory.commit(&[pause_of("file[a]", Some(pause("before")))]).expect("kept");
        let began = memory.recall().expect("told");
        memory
            .commit(&[
                pause_of("file[a]", None),
                pause_of("file[b]", Some(pause("one"))),
                Entry::Pause(Some(pause("all"))),
            ])
            .expect("kept");
        let carried = CarriedPauses::default();
        carried.put(&began, &memory.recall().expect("told"));
        let mut store = MemoryStore::with(began);
        carried.hand_over(&mut store).expect("kept");
        let told = store.recall().expect("told");
        assert_eq!(told.pause, Some(pause("all")));
        assert_eq!(told.resources.keys().collect::<Vec<_>>(), ["file[b]"]);
        assert_eq!(told.resources["file[b]"].pause, Some(pause("one")));
        assert!(carried.take().is_empty(), "once");
    }
}
