//! A simulated host: the lease, the tickets, the guard and the view of the real worker, with a driver that wants a
//! permit again and again. The history has each begin and end of a run, in the order of virtual time.

use super::world::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::world::follower::{RangeView, follow_range};
use steadfast::world::host_lease::HostLease;
use steadfast::world::permit_guard::PermitGuard;
use steadfast::world::tickets::{TicketRequest, Tickets};
use steadfast::world::{BootClock, World, keys};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// The number of a request and the permit's size.
pub(crate) type Want = Option<TicketRequest>;

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) host: String,
    pub(crate) begins: bool,
}

/// The history of all hosts.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) steps: Arc<Mutex<Vec<Step>>>,
    pub(crate) epoch: Instant,
}

impl History {
    pub(crate) fn note(&self, host: &str, begins: bool) {
        let step = Step { at: self.epoch.elapsed(), host: host.to_owned(), begins };
        self.steps.lock().unwrap().push(step);
    }
}

/// The end of a run in the history, also if the host dies.
struct RunningHost<'a>(&'a History, &'a str);

impl Drop for RunningHost<'_> {
    fn drop(&mut self) {
        self.0.note(self.1, false);
    }
}

/// The times of a driver, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) idle: (u64, u64),
    pub(crate) run: (u64, u64),
    /// The longest time that an interrupted run takes to end.
    pub(crate) grace: u64,
}

/// Runs the driver of a host: it wants the permit, runs under it, and ends a run whose permit has ended.
async fn drive(
    (name, size, pace): (String, u32, Pace),
    mut random: Random,
    (wants, mut permits): (watch::Sender<Want>, mpsc::UnboundedReceiver<BTreeSet<u64>>),
    (history, rests): (History, watch::Receiver<bool>),
) {
    let mut granted = BTreeSet::new();
    let mut number = random.next() | 1;
    loop {
        tokio::time::sleep(random.millis(pace.idle.0, pace.idle.1)).await;
        if *rests.borrow() {
            continue;
        }
        number += 1;
        wants.send_replace(Some(TicketRequest { size, number, has_lease: true }));
        while !granted.contains(&number) {
            let Some(now) = permits.recv().await else { return };
            granted = now;
        }
        history.note(&name, true);
        let running = RunningHost(&history, &name);
        let run = tokio::time::sleep(random.millis(pace.run.0, pace.run.1));
        tokio::pin!(run);
        loop {
            tokio::select! {
                biased;
                now = permits.recv() => {
                    granted = now.unwrap_or_default();
                    if !granted.contains(&number) {
                        tokio::time::sleep(random.millis(0, pace.grace)).await;
                        break;
                    }
                }
                () = &mut run => break,
            }
        }
        drop(running);
        wants.send_replace(None);
    }
}

/// Waits for a call; permits that are not safe any more end meanwhile.
async fn during<T>(
    guard: &mut PermitGuard<u64>,
    permits: &mpsc::UnboundedSender<BTreeSet<u64>>,
    call: impl Future<Output = T>,
) -> T {
    tokio::pin!(call);
    tokio::select! {
        biased;
        done = &mut call => return done,
        () = guard.expired() => {}
    }
    if let Some(left) = guard.revoke() {
        drop(permits.send(left));
    }
    call.await
}

/// Runs a host until the future is dropped: the host dies.
pub(crate) async fn live(
    (name, seed): (String, u64),
    world: Arc<dyn World>,
    (size, pace): (u32, Pace),
    (history, rests): (History, watch::Receiver<bool>),
) {
    let epoch = history.epoch;
    let clock: BootClock = Arc::new(move || epoch.elapsed() + Duration::from_hours(1));
    let (wants, mut wanted) = watch::channel(None);
    let (permits, receiver) = mpsc::unbounded_channel();
    let (sender, mut view) = watch::channel(RangeView::default());
    let prefix = keys::semaphore("s");
    let key = keys::semaphore_ticket("s", &name, "x");
    let follower = follow_range(Arc::clone(&world), (keys::SEMA.to_owned(), seed), sender);
    let of_driver = (name.clone(), size, pace);
    let driver = drive(of_driver, Random(seed), (wants, receiver), (history, rests));
    let worker = async {
        let mut lease = HostLease::new(Arc::clone(&clock));
        let mut guard = PermitGuard::new(clock, |_: &u64| true);
        let mut tickets = Tickets::default();
        loop {
            if lease.due() <= Instant::now() {
                let renewed = during(&mut guard, &permits, lease.renew(world.as_ref())).await;
                guard.set_safe_until(lease.safe_until());
                if renewed == Ok(true) {
                    tickets.forget_leased();
                }
            }
            let want: Want = *wanted.borrow_and_update();
            let keys: BTreeMap<String, TicketRequest> =
                want.iter().map(|want| (key.clone(), *want)).collect();
            {
                let known = view.borrow_and_update();
                let own = known.entries.get(&key).filter(|entry| entry.lease == lease.id());
                tickets.take_over(&keys, own);
            }
            let update = tickets.update(world.as_ref(), &keys, lease.id());
            during(&mut guard, &permits, update).await;
            let granted = want.filter(|want| {
                let known = view.borrow();
                tickets.is_granted((&key, &prefix), *want, (&known, lease.id()))
            });
            if let Some(usable) = guard.take(granted.map(|want| want.number)) {
                drop(permits.send(usable));
            }
            tokio::select! {
                biased;
                () = guard.expired() => {
                    if let Some(left) = guard.revoke() {
                        drop(permits.send(left));
                    }
                }
                _ = wanted.changed() => {}
                _ = view.changed() => {}
                () = tokio::time::sleep_until(lease.due()) => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = follower => {}
        () = driver => {}
        () = worker => {}
    }
}
