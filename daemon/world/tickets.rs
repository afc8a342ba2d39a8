//! The tickets of a host for semaphores and rolls: one key for each, put if absent. The tickets with the lowest create
//! revisions hold.
//!
//! A view of the world lags behind the own writes. A ticket in a view counts only if its create revision is not below
//! the one that the own put returned: an older one is a ticket that this host has deleted.

use super::follower::RangeView;
use super::permits::{Ticket, judge_tickets};
use super::records::{SCHEMA, unix_seconds, write_record};
use super::{Compare, Entry, LeaseId, Operation, Transaction, World, WorldError};
use std::collections::BTreeMap;

/// A wanted ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketRequest {
    /// The number of holders.
    pub size: u32,
    /// The number of the request: another number means that the ticket was given back meanwhile.
    pub number: u64,
    /// True if the ticket ends with the lease of the host: a semaphore, and not a slot of a roll.
    pub has_lease: bool,
}

/// The tickets of this host.
#[derive(Debug, Default)]
pub struct Tickets {
    /// The tickets that this session has put, by key.
    put: BTreeMap<String, TicketRequest>,
    /// The lowest create revision that a ticket of this host can have now, by key.
    oldest: BTreeMap<String, u64>,
}

impl Tickets {
    /// Forgets the tickets with a lease: the lease is a new one.
    pub fn forget_leased(&mut self) {
        self.put.retain(|_, request| !request.has_lease);
    }

    /// Forgets the slots of rolls without giving them back: another driver decides when they are free.
    pub fn forget_slots(&mut self) {
        self.put.retain(|_, request| request.has_lease);
    }

    /// Takes over tickets of this host that a view shows under its lease and that nobody wants: a put whose answer was
    /// lost may arrive late. The next update deletes them.
    pub fn take_over<'a>(
        &mut self,
        wanted: &BTreeMap<String, TicketRequest>,
        own: impl IntoIterator<Item = &'a Entry>,
    ) {
        for entry in own {
            let oldest = self.oldest.get(&entry.key).copied().unwrap_or_default();
            if entry.create_revision >= oldest && !wanted.contains_key(&entry.key) {
                let left = TicketRequest { size: 1, number: 0, has_lease: true };
                self.put.entry(entry.key.clone()).or_insert(left);
                self.oldest.insert(entry.key.clone(), entry.create_revision);
            }
        }
    }

    /// Puts wanted tickets and deletes those that are not wanted any more.
    pub async fn update(
        &mut self,
        world: &dyn World,
        wanted: &BTreeMap<String, TicketRequest>,
        lease: Option<LeaseId>,
    ) {
        let is_surplus = |(key, request): &(&String, &TicketRequest)| {
            wanted.get(*key).is_none_or(|wanted| wanted.number != request.number)
        };
        let surplus: Vec<String> =
            self.put.iter().filter(is_surplus).map(|(key, _)| key.clone()).collect();
        for key in surplus {
            let created = self.oldest.get(&key).copied().unwrap_or_default();
            match world.transact(deletion(&key, created)).await {
                // A ticket that is not there any more needs no deletion.
                Ok(_) => {
                    self.put.remove(&key);
                    self.oldest.insert(key, created + 1);
                }
                Err(error) => tracing::debug!(%error, key, "the ticket was not deleted"),
            }
        }
        for (key, request) in wanted {
            if self.put.contains_key(key) || (request.has_lease && lease.is_none()) {
                continue;
            }
            let lease = lease.filter(|_| request.has_lease);
            match put_ticket(world, key, request.size, lease).await {
                Ok(created) => {
                    self.put.insert(key.clone(), *request);
                    self.oldest.insert(key.clone(), created);
                }
                Err(error) => tracing::debug!(%error, key, "the ticket was not put"),
            }
        }
    }

    /// Returns true if a ticket of this host holds, according to a view of all tickets with the prefix of the semaphore
    /// or roll. A stale view grants nothing: another host may hold by now.
    #[must_use]
    pub fn is_granted(
        &self,
        (key, prefix): (&str, &str),
        request: TicketRequest,
        (view, lease): (&RangeView, Option<LeaseId>),
    ) -> bool {
        if view.stale.is_some() || self.put.get(key).is_some_and(|it| it.number != request.number) {
            return false;
        }
        let oldest = self.oldest.get(key).copied().unwrap_or_default();
        let is_own = |entry: &Entry| {
            entry.create_revision >= oldest && (!request.has_lease || entry.lease == lease)
        };
        if !view.entries.get(key).is_some_and(is_own) {
            return false;
        }
        let begin = prefix.to_owned();
        let entries = view.entries.range(begin..).take_while(|(key, _)| key.starts_with(prefix));
        judge_tickets(entries.map(|(_, entry)| entry)).token_of(key).is_some()
    }
}

/// Returns the deletion of one ticket. A deletion that arrives late must not meet a later ticket with the same key.
fn deletion(key: &str, created: u64) -> Transaction {
    Transaction {
        conditions: vec![Compare::CreateRevision(key.to_owned(), created)],
        operations: vec![Operation::Delete(key.to_owned())],
    }
}

/// Puts a ticket unless it exists; returns its create revision. A ticket with the lease of an earlier session gets a
/// new place in the queue.
async fn put_ticket(
    world: &dyn World,
    key: &str,
    size: u32,
    lease: Option<LeaseId>,
) -> Result<u64, WorldError> {
    let value = write_record(&Ticket { schema: SCHEMA, size, since: unix_seconds() });
    let create = Transaction {
        conditions: vec![Compare::CreateRevision(key.to_owned(), 0)],
        operations: vec![Operation::Put(key.to_owned(), value.clone(), lease)],
    };
    let created = world.transact(create.clone()).await?;
    if created.succeeded {
        return Ok(created.revision);
    }
    let vanished = || WorldError::Unavailable("the ticket vanished meanwhile".to_owned());
    let found = world.get(key).await?.ok_or_else(vanished)?;
    let has_size = serde_json::from_slice::<Ticket>(&found.value).is_ok_and(|it| it.size == size);
    if found.lease != lease && lease.is_some() {
        world.transact(deletion(key, found.create_revision)).await?;
        let created = world.transact(create).await?;
        return if created.succeeded { Ok(created.revision) } else { Err(vanished()) };
    }
    if !has_size {
        // The place in the queue stays: only the size changes.
        let condition = Compare::CreateRevision(key.to_owned(), found.create_revision);
        let operations = vec![Operation::Put(key.to_owned(), value, lease)];
        let changed = world.transact(Transaction { conditions: vec![condition], operations });
        if !changed.await?.succeeded {
            return Err(vanished());
        }
    }
    Ok(found.create_revision)
}
