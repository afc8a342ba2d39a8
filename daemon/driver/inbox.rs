//! Where everything that happens outside the driver is put down: many writers, one reader, nothing lost, one wake-up for many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The inbox of the driver. Cheap to clone.
#[derive(Debug)]
pub struct Inbox<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    items: Mutex<Items<T>>,
    filled: Notify,
}

#[derive(Debug)]
struct Items<T> {
    list: Vec<T>,
    /// The reader has been woken since it last took all.
    woken: bool,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let items = Mutex::new(Items { list: Vec::new(), woken: false });
        Self(Arc::new(Shared { items, filled: Notify::new() }))
    }
}

impl<T> Inbox<T> {
    /// Puts one item down; never blocks for longer than the reader takes to empty the list.
    pub fn put(&self, item: T) {
        self.put_all([item]);
    }

    /// Puts several down, in this order.
    pub fn put_all(&self, more: impl IntoIterator<Item = T>) {
        self.lock().list.extend(more);
        self.wake();
    }

    /// Puts several down in this order, before all that is there.
    pub fn put_first(&self, items: Vec<T>) {
        self.lock().list.splice(0..0, items);
        self.wake();
    }

    /// Puts one item down for when the reader comes by. Who does this sees to it that somebody calls [`Inbox::wake`] soon.
    pub fn put_quietly(&self, item: T) {
        self.lock().list.push(item);
    }

    /// Wakes the reader if there is something that it has not been woken for.
    pub fn wake(&self) {
        let mut items = self.lock();
        let wake = !items.woken && !items.list.is_empty();
        items.woken |= wake;
        drop(items);
        if wake {
            self.0.filled.notify_one();
        }
    }

    /// Takes all there is into an empty list, and leaves that list's memory for the next.
    pub fn take(&self, into: &mut Vec<T>) {
        let mut items = self.lock();
        std::mem::swap(&mut items.list, into);
        items.woken = false;
    }

    fn lock(&self) -> MutexGuard<'_, Items<T>> {
        self.0.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be there.
    pub async fn filled(&self) {
        self.0.filled.notified().await;
    }
}

/// What its reader has taken and works off one by one. Where that breaks (it panics), what it has not come to is put back, before what has come
/// since: nothing that was asked is lost with it but what broke it.
#[derive(Debug)]
pub(super) struct Batch<T> {
    inbox: Inbox<T>,
    /// The next one is the last.
    rest: Vec<T>,
}

impl<T> Batch<T> {
    /// Nothing yet, of this inbox.
    pub(super) fn of(inbox: &Inbox<T>) -> Self {
        Self { inbox: inbox.clone(), rest: Vec::new() }
    }

    /// Takes all there is, once the last batch is worked off; false where there is nothing.
    pub(super) fn fill(&mut self) -> bool {
        debug_assert!(self.rest.is_empty(), "there is a rest");
        self.inbox.take(&mut self.rest);
        self.rest.reverse();
        !self.rest.is_empty()
    }
}

impl<T> Iterator for Batch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.rest.pop()
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            rest.reverse();
            self.inbox.put_first(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, Inbox};
    use futures_util::FutureExt as _;

    fn is_woken<T>(inbox: &Inbox<T>) -> bool {
        inbox.filled().now_or_never().is_some()
    }

    /// What was put down quietly does not keep a later item, or a call to wake, from waking the reader.
    #[test]
    fn quiet_items_wake_nobody_and_hide_nobody() {
        let inbox = Inbox::default();
        inbox.put_quietly(1);
        assert!(!is_woken(&inbox));
        inbox.put(2);
        assert!(is_woken(&inbox));
        let mut all = Vec::new();
        inbox.take(&mut all);
        assert_eq!(all, [1, 2]);
        all.clear();
        inbox.put_quietly(3);
        inbox.wake();
        assert!(is_woken(&inbox));
        inbox.take(&mut all);
        assert_eq!(all, [3]);
        inbox.wake();
        assert!(!is_woken(&inbox), "nothing is there");
    }

    /// F-19: whoever comes after a reader that broke finds all that it had not come to, in its order.
    #[test]
    fn what_a_reader_that_broke_has_not_come_to_is_there() {
        let inbox = Inbox::default();
        inbox.put_all(1..=4);
        let broken = std::panic::catch_unwind(|| {
            let mut batch = Batch::of(&inbox);
            assert!(batch.fill());
            for item in &mut batch {
                inbox.put(item + 10);
                assert!(item < 2, "it breaks");
            }
        });
        assert!(broken.is_err());
        let mut batch = Batch::of(&inbox);
        assert!(batch.fill());
        assert_eq!(batch.by_ref().collect::<Vec<_>>(), [3, 4, 11, 12]);
        assert!(!batch.fill());
    }
}
