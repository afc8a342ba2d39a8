//! Where everything that happens outside the driver is put down: many writers, one reader, nothing lost, one wake-up for many.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The inbox of the driver. Cheap to clone.
#[derive(Debug)]
pub struct Inbox<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    items: Mutex<Vec<T>>,
    filled: Notify,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self(Arc::new(Shared { items: Mutex::new(Vec::new()), filled: Notify::new() }))
    }
}

impl<T> Inbox<T> {
    /// Puts one item down; never blocks for longer than the reader takes to empty the list.
    pub fn put(&self, item: T) {
        self.put_all([item]);
    }

    /// Puts several down, in this order.
    pub fn put_all(&self, more: impl IntoIterator<Item = T>) {
        let mut items = self.0.items.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = items.is_empty();
        items.extend(more);
        let wake = was_empty && !items.is_empty();
        drop(items);
        if wake {
            self.0.filled.notify_one();
        }
    }

    /// Takes all there is into an empty list, and leaves that list's memory for the next.
    pub fn take(&self, into: &mut Vec<T>) {
        let mut items = self.0.items.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *items, into);
    }

    /// Waits until something may be there.
    pub async fn filled(&self) {
        self.0.filled.notified().await;
    }
}
