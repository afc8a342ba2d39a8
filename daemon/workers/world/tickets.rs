//! The permits of this host: which tickets the driver wants, and which ones hold.

use super::host_world::{HostWorld, Views};
use crate::driver::DriverEvent;
use crate::supervisor::WorkerContext;
use crate::workers::world::WorldParts;
use crate::world::follower::RangeView;
use crate::world::permit_guard::PermitGuard;
use crate::world::permits::Ticket;
use crate::world::tickets::{TicketRequest, Tickets};
use crate::world::{LeaseId, World, boot_time, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::world::{NumberedPermit, PermitRequest};

/// Returns the prefix of all tickets for a permit.
fn prefix_of(permit: &PermitRequest) -> String {
    if permit.resource.is_some() { keys::semaphore(&permit.id) } else { keys::roll(&permit.id) }
}

/// Returns the key of a ticket of a host.
fn key_of(host: &str, permit: &PermitRequest) -> String {
    match &permit.resource {
        Some(resource) => keys::semaphore_ticket(&permit.id, host, resource),
        None => keys::roll_slot(&permit.id, host),
    }
}

const fn ticket_request(wanted: &NumberedPermit) -> TicketRequest {
    let NumberedPermit { permit, number } = wanted;
    TicketRequest { size: permit.size, number: *number, has_lease: permit.resource.is_some() }
}

/// Returns the tickets that the driver wants, by key.
fn wanted_tickets(
    host: &str,
    wanted: &BTreeSet<NumberedPermit>,
) -> BTreeMap<String, TicketRequest> {
    wanted.iter().map(|one| (key_of(host, &one.permit), ticket_request(one))).collect()
}

/// Takes over the tickets for semaphores that this host has under its lease and does not want.
fn take_over_left(
    (host, lease): (&str, Option<LeaseId>),
    tickets: &mut Tickets,
    wanted: &BTreeMap<String, TicketRequest>,
    views: &Views,
) {
    let part = keys::encode_name(host);
    let seen = views.sema.borrow();
    let own = seen.entries.values().filter(|entry| {
        lease.is_some() && entry.lease == lease && entry.key.split('/').nth(2) == Some(&*part)
    });
    tickets.take_over(wanted, own);
}

/// Returns the permits that the views grant: the wanted ones, and the slots that an earlier session took.
fn granted_permits(
    (host, lease): (&str, Option<LeaseId>),
    tickets: &Tickets,
    wanted: BTreeSet<NumberedPermit>,
    views: &Views,
) -> Vec<NumberedPermit> {
    let (sema, roll) = (views.sema.borrow(), views.roll.borrow());
    let is_wanted = |permit: &PermitRequest| wanted.iter().any(|one| one.permit == *permit);
    let left = own_slots(host, &roll).into_iter().filter(|permit| !is_wanted(permit));
    let left: Vec<_> = left.map(|permit| NumberedPermit { permit, number: 0 }).collect();
    let is_granted = |one: &NumberedPermit| {
        let view = if one.permit.resource.is_some() { &*sema } else { &*roll };
        let (key, prefix) = (key_of(host, &one.permit), prefix_of(&one.permit));
        tickets.is_granted((&key, &prefix), ticket_request(one), (view, lease))
    };
    wanted.into_iter().chain(left).filter(is_granted).collect()
}

/// Returns the slots of this host.
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

/// Tells the driver which permits it may use, also while a call of the world has no answer. The permits with a lease
/// end with this value: nobody would revoke them in time.
pub(super) struct PermitTeller<'a> {
    parts: &'a WorldParts,
    life: &'a WorkerContext,
    guard: PermitGuard<NumberedPermit>,
}

impl<'a> PermitTeller<'a> {
    pub(super) fn new(parts: &'a WorldParts, life: &'a WorkerContext) -> Self {
        let has_lease = |one: &NumberedPermit| one.permit.resource.is_some();
        Self { parts, life, guard: PermitGuard::new(Arc::new(boot_time), has_lease) }
    }

    /// Waits for a call of the world. Permits whose lease is not safe any more end meanwhile.
    pub(super) async fn during<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(self.life.during(call));
        tokio::select! {
            biased;
            done = &mut call => return done,
            () = self.guard.expired() => {}
        }
        self.revoke();
        call.await
    }

    pub(super) fn set_safe_until(&mut self, safe_until: Duration) {
        self.parts.world.set_lease_safe_until(safe_until);
        self.guard.set_safe_until(safe_until);
    }

    /// Forgets what was told: another driver runs.
    pub(super) fn forget_sent(&mut self) {
        self.guard.forget_told();
    }

    /// Waits until a permit in use is not safe any more.
    pub(super) async fn expired(&self) {
        self.guard.expired().await;
    }

    /// Puts and deletes tickets, and tells the driver which permits hold.
    pub(super) async fn update(
        &mut self,
        (world, tickets): (&dyn World, &mut Tickets),
        (host, lease): (&HostWorld, Option<LeaseId>),
        requests: BTreeSet<NumberedPermit>,
        views: &Views,
    ) {
        let own = (host.host(), lease);
        let wanted = wanted_tickets(host.host(), &requests);
        take_over_left(own, tickets, &wanted, views);
        self.during(tickets.update(world, &wanted, lease)).await;
        // No call stands between this look at the views and the message to the driver.
        self.send_granted(granted_permits(own, tickets, requests, views));
    }

    /// Tells the granted permits if they have changed.
    fn send_granted(&mut self, granted: Vec<NumberedPermit>) {
        if let Some(usable) = self.guard.take(granted) {
            self.parts.requests.put(DriverEvent::WorldPermits(usable.into_iter().collect()));
        }
    }

    /// Revokes the permits with a lease.
    pub(super) fn revoke(&mut self) {
        self.parts.world.set_lease_safe_until(Duration::ZERO);
        if let Some(usable) = self.guard.revoke() {
            self.parts.requests.put(DriverEvent::WorldPermits(usable.into_iter().collect()));
        }
    }
}

impl Drop for PermitTeller<'_> {
    fn drop(&mut self) {
        self.revoke();
    }
}
