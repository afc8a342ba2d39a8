//! Queues for slots and semaphores, which decide the order of starts (E-6, E-14).

use crate::interface::ids::{SemaphoreId, VertexId};
use std::collections::{BTreeMap, VecDeque};
use steadfast_traits::ExecutorKind;

/// The order of starts if slots are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Drift, refreshes, retries, and requests of the operator.
    Drift,
    /// First runs after a load.
    Load,
    /// Looks.
    Look,
}

/// The queues for slots of one class, and the number of slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    /// The number of slots.
    pub(crate) total: u32,
    /// The number of slots in use, without those written off.
    pub(crate) used: u32,
    /// The number of slots written off because their run does not return.
    pub(crate) written_off: u32,
    /// Entries by priority, oldest first. An entry is live while the place of its vertex has the same number.
    queues: [VecDeque<(u64, VertexId)>; 3],
}

impl Lane {
    pub(crate) fn new(total: u32) -> Self {
        Self { total, used: 0, written_off: 0, queues: Default::default() }
    }

    pub(crate) fn push(&mut self, priority: Priority, number: u64, vertex: VertexId) {
        self.queues[priority as usize].push_back((number, vertex));
    }

    /// Removes the oldest entry of the highest priority, if a slot is free.
    pub(crate) fn pop(&mut self) -> Option<(u64, VertexId)> {
        if self.used >= self.total {
            return None;
        }
        self.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(crate) fn entries(&mut self) -> impl Iterator<Item = &mut (u64, VertexId)> {
        self.queues.iter_mut().flatten()
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(u64, VertexId) -> bool) {
        for queue in &mut self.queues {
            queue.retain(|(number, vertex)| keep(*number, *vertex));
        }
    }
}

/// The lanes of both slot classes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lanes {
    pub(crate) threads: Lane,
    pub(crate) commands: Lane,
}

impl Lanes {
    pub(crate) fn of(&mut self, class: ExecutorKind) -> &mut Lane {
        match class {
            ExecutorKind::Thread => &mut self.threads,
            ExecutorKind::Command => &mut self.commands,
        }
    }
}

/// A counting semaphore: the number of holders, the number of admitted vertices, and the queue by ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Semaphore {
    pub(crate) count: u32,
    pub(crate) holders: u32,
    /// The number of vertices that may wait for a slot. They hold nothing yet, and their place is reserved.
    pub(crate) admitted: u32,
    pub(crate) queue: BTreeMap<u64, VertexId>,
}

impl Semaphore {
    /// Returns the number of waiting vertices that may be admitted.
    fn room(&self) -> usize {
        self.count.saturating_sub(self.holders).saturating_sub(self.admitted) as usize
    }

    /// Returns true if a ticket may be admitted: holders + lower tickets < count. A higher ticket is admitted only if
    /// there is room for all below it, so admitted tickets count as lower, and an admissible ticket stays so unless the
    /// count shrinks.
    pub(crate) fn admits(&self, ticket: u64) -> bool {
        let room = self.room();
        self.queue.len() <= room || self.queue.keys().take(room).any(|waiting| *waiting == ticket)
    }
}

/// All semaphores, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Semaphores(pub(crate) Vec<Semaphore>);

impl Semaphores {
    /// Takes the counts of a new graph; holders and tickets stay.
    pub(crate) fn resize(&mut self, counts: &[u32]) {
        if self.0.len() < counts.len() {
            self.0.resize_with(counts.len(), Semaphore::default);
        }
        for (semaphore, count) in self.0.iter_mut().zip(counts) {
            semaphore.count = *count;
        }
    }

    fn each(&mut self, ids: &[SemaphoreId], mut f: impl FnMut(&mut Semaphore)) {
        for id in ids {
            if let Some(semaphore) = self.0.get_mut(id.0 as usize) {
                f(semaphore);
            }
        }
    }

    /// P, first half: enters one ticket into all queues, in one step.
    pub(crate) fn enqueue(&mut self, ids: &[SemaphoreId], ticket: u64, vertex: VertexId) {
        self.each(ids, |semaphore| {
            semaphore.queue.insert(ticket, vertex);
        });
    }

    /// Removes a ticket from all queues, admitted or not.
    pub(crate) fn withdraw(&mut self, ids: &[SemaphoreId], ticket: u64) {
        self.each(ids, |semaphore| {
            if semaphore.queue.remove(&ticket).is_none() {
                semaphore.admitted = semaphore.admitted.saturating_sub(1);
            }
        });
    }

    /// Admits a ticket if all its semaphores allow it. The ticket leaves the queues, and its place is reserved.
    pub(crate) fn admit(&mut self, ids: &[SemaphoreId], ticket: u64) -> bool {
        let may = ids.iter().all(|id| self.0.get(id.0 as usize).is_none_or(|s| s.admits(ticket)));
        if may {
            self.each(ids, |semaphore| {
                semaphore.queue.remove(&ticket);
                semaphore.admitted += 1;
            });
        }
        may
    }

    /// P, second half: turns an admitted ticket into a holder. If a count has shrunk meanwhile, the ticket returns to
    /// the queues.
    pub(crate) fn hold(&mut self, ids: &[SemaphoreId], ticket: u64, vertex: VertexId) -> bool {
        let fits =
            ids.iter().all(|id| self.0.get(id.0 as usize).is_none_or(|s| s.holders < s.count));
        self.each(ids, |semaphore| {
            semaphore.admitted = semaphore.admitted.saturating_sub(1);
            if fits {
                semaphore.holders += 1;
            } else {
                semaphore.queue.insert(ticket, vertex);
            }
        });
        fits
    }

    /// Adds a run in progress as a holder of these semaphores.
    pub(crate) fn take_over(&mut self, ids: &[SemaphoreId]) {
        self.each(ids, |semaphore| semaphore.holders += 1);
    }

    /// V: releases the semaphores.
    pub(crate) fn release(&mut self, ids: &[SemaphoreId]) {
        self.each(ids, |semaphore| semaphore.holders = semaphore.holders.saturating_sub(1));
    }

    /// Returns the vertices at the front of these queues, which may be admissible.
    pub(crate) fn front(&self, ids: &[SemaphoreId]) -> Vec<VertexId> {
        let mut found = Vec::new();
        for semaphore in ids.iter().filter_map(|id| self.0.get(id.0 as usize)) {
            found.extend(semaphore.queue.values().take(semaphore.room()));
        }
        found
    }
}
