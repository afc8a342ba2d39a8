//! The inbox of the driver: many writers, one reader, no lost item, and one wake-up for many items.

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
    /// True if the reader was woken since it last took the items.
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
    /// Adds one item. Blocks only while the reader takes the list.
    pub fn put(&self, item: T) {
        self.put_all([item]);
    }

    /// Adds several items in this order.
    pub fn put_all(&self, more: impl IntoIterator<Item = T>) {
        self.lock().list.extend(more);
        self.wake();
    }

    /// Adds several items in this order, ahead of all others.
    pub fn put_first(&self, items: Vec<T>) {
        self.lock().list.splice(0..0, items);
        self.wake();
    }

    /// Adds one item without waking the reader; the caller ensures that [`Inbox::wake`] follows soon.
    pub fn put_quietly(&self, item: T) {
        self.lock().list.push(item);
    }

    /// Wakes the reader if there are items for which it was not woken.
    pub fn wake(&self) {
        let mut items = self.lock();
        let wake = !items.woken && !items.list.is_empty();
        items.woken |= wake;
        drop(items);
        if wake {
            self.0.filled.notify_one();
        }
    }

    /// Moves all items into `into`, which must be empty; its memory is reused.
    pub fn take(&self, into: &mut Vec<T>) {
        let mut items = self.lock();
        std::mem::swap(&mut items.list, into);
        items.woken = false;
    }

    /// Returns the number of items that the reader has not taken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().list.len()
    }

    fn lock(&self) -> MutexGuard<'_, Items<T>> {
        self.0.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wake-up; the inbox may be empty.
    pub async fn filled(&self) {
        self.0.filled.notified().await;
    }
}

/// A batch of items that the reader has taken and processes one by one. After a panic of the reader the rest returns to
/// the front of the inbox: only the item that caused the panic is lost.
#[derive(Debug)]
pub(super) struct Batch<T> {
    inbox: Inbox<T>,
    /// The remaining items in reverse order.
    rest: Vec<T>,
}

impl<T> Batch<T> {
    /// Creates an empty batch for this inbox.
    pub(super) fn of(inbox: &Inbox<T>) -> Self {
        Self { inbox: inbox.clone(), rest: Vec::new() }
    }

    /// Takes all items after the previous batch is finished; returns false if there are none.
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

    /// A quiet item does not prevent a later item or call from waking the reader.
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

    /// F-19: the next reader finds all items that a panicked reader has not processed, in their order.
    #[test]
    fn unread_events_survive_a_broken_reader() {
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
