//! The tickets of this host for semaphores and rolls: one key for each, put if absent. The tickets with the lowest
//! create revisions hold.

use super::host_world::{HostWorld, Views};
use crate::world::follower::RangeView;
use crate::world::permits::{Ticket, judge_tickets};
use crate::world::records::{SCHEMA, unix_seconds, write_record};
use crate::world::{Compare, LeaseId, Operation, Transaction, World, WorldError, keys};
use std::collections::{BTreeMap, BTreeSet};
use steadfast_resources::host::world::PermitRequest;

/// The tickets of this host.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    /// The tickets that were put by this session, by key.
    put: BTreeMap<String, PermitRequest>,
    /// The granted permits that the driver knows.
    told: Option<BTreeSet<PermitRequest>>,
}

/// Returns the key of a ticket of this host.
fn key_of(host: &str, permit: &PermitRequest) -> String {
    match &permit.resource {
        Some(resource) => keys::semaphore_ticket(&permit.id, host, resource),
        None => keys::roll_slot(&permit.id, host),
    }
}

/// Returns true if this ticket holds, according to a view. A ticket of a semaphore must have the present lease: another
/// host may have held since the end of an earlier one.
fn is_granted(
    (host, lease): (&str, Option<LeaseId>),
    permit: &PermitRequest,
    views: &Views,
) -> bool {
    let (view, prefix) = match &permit.resource {
        Some(_) => (&views.sema, keys::semaphore(&permit.id)),
        None => (&views.roll, keys::roll(&permit.id)),
    };
    let seen = view.borrow();
    // A stale view grants nothing: another host may hold by now.
    if seen.stale.is_some() {
        return false;
    }
    let key = key_of(host, permit);
    if permit.resource.is_some() && seen.entries.get(&key).is_none_or(|entry| entry.lease != lease)
    {
        return false;
    }
    let entries =
        seen.entries.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    judge_tickets(entries.map(|(_, entry)| entry)).token_of(&key).is_some()
}

impl Tickets {
    /// Forgets what was put: the lease is a new one.
    pub(super) fn write_again(&mut self) {
        self.put.clear();
    }

    /// Forgets what was told: another driver runs.
    pub(super) fn tell_again(&mut self) {
        self.told = None;
    }

    /// Puts wanted tickets and deletes others. Returns the granted permits if they have changed. `lease` has the lease
    /// of this host, and true if it is safe to use a permit under it.
    pub(super) async fn update_tickets(
        &mut self,
        world: &dyn World,
        host: &HostWorld,
        views: &Views,
        (lease, is_safe): (Option<LeaseId>, bool),
    ) -> Option<Vec<PermitRequest>> {
        let mut wanted = host.wanted().borrow().clone();
        // A slot of a roll outlives the session: the driver decides when it is free.
        let kept = own_slots(host.host(), &views.roll.borrow());
        let own = host.host();
        let surplus: Vec<String> = self
            .put
            .iter()
            .filter(|(_, permit)| !wanted.contains(permit))
            .map(|(key, _)| key.clone())
            .collect();
        for key in surplus {
            match world.delete(&key).await {
                Ok(_) => drop(self.put.remove(&key)),
                Err(error) => tracing::debug!(%error, key, "the ticket was not deleted"),
            }
        }
        for permit in &wanted {
            let key = key_of(own, permit);
            if self.put.contains_key(&key) || (permit.resource.is_some() && lease.is_none()) {
                continue;
            }
            let lease = lease.filter(|_| permit.resource.is_some());
            if let Err(error) = put_ticket(world, &key, permit, lease).await {
                tracing::debug!(%error, key, "the ticket was not put");
            } else {
                self.put.insert(key, permit.clone());
            }
        }
        wanted.extend(kept);
        let is_usable = |permit: &&PermitRequest| {
            (permit.resource.is_none() || is_safe) && is_granted((own, lease), permit, views)
        };
        let granted: BTreeSet<PermitRequest> = wanted.iter().filter(is_usable).cloned().collect();
        if self.told.as_ref() == Some(&granted) || (self.told.is_none() && granted.is_empty()) {
            return None;
        }
        self.told = Some(granted.clone());
        Some(granted.into_iter().collect())
    }
}

/// Returns the slots of this host that an earlier session took.
fn own_slots(host: &str, view: &RangeView) -> Vec<PermitRequest> {
    let of_entry = |entry: &crate::world::Entry| {
        let parts = keys::split_key(&entry.key)?;
        let [_, name, owner] = parts.as_slice() else { return None };
        let ticket: Ticket = serde_json::from_slice(&entry.value).ok()?;
        (owner == host).then(|| PermitRequest {
            id: name.clone(),
            size: ticket.size,
            resource: None,
        })
    };
    view.entries.values().filter_map(of_entry).collect()
}

/// Puts a ticket unless it exists. A ticket with the lease of an earlier session gets a new place in the queue.
async fn put_ticket(
    world: &dyn World,
    key: &str,
    permit: &PermitRequest,
    lease: Option<LeaseId>,
) -> Result<(), WorldError> {
    let ticket = Ticket { schema: SCHEMA, size: permit.size, since: unix_seconds() };
    let value = write_record(&ticket);
    let create = Transaction {
        conditions: vec![Compare::CreateRevision(key.to_owned(), 0)],
        operations: vec![Operation::Put(key.to_owned(), value.clone(), lease)],
    };
    if world.transact(create.clone()).await?.succeeded {
        return Ok(());
    }
    let Some(found) = world.get(key).await? else { return Ok(()) };
    let is_own = found.lease == lease;
    let has_size =
        serde_json::from_slice::<Ticket>(&found.value).is_ok_and(|it| it.size == permit.size);
    if is_own && has_size {
        return Ok(());
    }
    if is_own || lease.is_none() {
        // The place in the queue stays: only the size changes.
        return world.put(key, value, lease).await.map(drop);
    }
    world.delete(key).await?;
    world.transact(create).await.map(drop)
}
