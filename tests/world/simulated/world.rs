//! A world in memory with virtual time and faults: lost requests, lost answers, late writes, slow watches, partitions
//! and compaction. One seed gives one course.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use steadfast::world::{
    Committed, Compare, Entry, KeyChange, LeaseId, Operation, Range, Transaction, WatchBatch,
    WatchStream, World, WorldError, WorldFuture,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Returns a time from `from` to `to` milliseconds.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

struct Lease {
    lifetime: Duration,
    ends: Instant,
}

/// The state of the store.
struct Store {
    entries: BTreeMap<String, Entry>,
    revision: u64,
    compacted: u64,
    changes: Vec<KeyChange>,
    leases: BTreeMap<i64, Lease>,
    last_lease: i64,
}

impl Store {
    fn change(&mut self, operation: Operation) {
        let revision = self.revision;
        let (key, entry) = match operation {
            Operation::Put(key, value, lease) => {
                let created = self.entries.get(&key).map_or(revision, |it| it.create_revision);
                let entry = Entry {
                    key: key.clone(),
                    value,
                    create_revision: created,
                    mod_revision: revision,
                    lease,
                };
                self.entries.insert(key.clone(), entry.clone());
                (key, Some(entry))
            }
            Operation::Delete(key) => {
                if self.entries.remove(&key).is_none() {
                    return;
                }
                (key, None)
            }
        };
        self.changes.push(KeyChange { key, entry, revision });
    }

    fn transact(&mut self, transaction: Transaction) -> Result<Committed, WorldError> {
        let revision_of = |key: &String, created: bool| {
            let entry = self.entries.get(key);
            entry.map_or(0, |it| if created { it.create_revision } else { it.mod_revision })
        };
        let holds = |condition: &Compare| match condition {
            Compare::ModRevision(key, revision) => revision_of(key, false) == *revision,
            Compare::CreateRevision(key, revision) => revision_of(key, true) == *revision,
        };
        if !transaction.conditions.iter().all(holds) {
            return Ok(Committed { succeeded: false, revision: self.revision });
        }
        for operation in &transaction.operations {
            if let Operation::Put(_, _, Some(lease)) = operation
                && !self.leases.contains_key(&lease.0)
            {
                return Err(WorldError::LeaseEnded);
            }
        }
        self.revision += 1;
        for operation in transaction.operations {
            self.change(operation);
        }
        Ok(Committed { succeeded: true, revision: self.revision })
    }

    fn end_lease(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let bound = self.entries.values().filter(|it| it.lease == Some(LeaseId(lease)));
        let keys: Vec<String> = bound.map(|entry| entry.key.clone()).collect();
        if !keys.is_empty() {
            self.revision += 1;
            for key in keys {
                self.change(Operation::Delete(key));
            }
        }
    }

    fn end_old_leases(&mut self) {
        let now = Instant::now();
        let old: Vec<i64> =
            self.leases.iter().filter(|(_, it)| it.ends <= now).map(|(id, _)| *id).collect();
        for lease in old {
            self.end_lease(lease);
        }
    }
}

/// The faults of all connections, as chances in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lost_request: u64,
    pub(crate) lost_answer: u64,
    pub(crate) late_write: u64,
    pub(crate) slow_watch: u64,
}

/// The servers of a simulated world.
pub(crate) struct Servers {
    store: Mutex<Store>,
    written: watch::Sender<u64>,
    faults: Mutex<Faults>,
}

impl Servers {
    pub(crate) fn start() -> Arc<Self> {
        let store = Store {
            entries: BTreeMap::new(),
            revision: 1,
            compacted: 0,
            changes: Vec::new(),
            leases: BTreeMap::new(),
            last_lease: 0,
        };
        let servers = Arc::new(Self {
            store: Mutex::new(store),
            written: watch::Sender::new(1),
            faults: Mutex::default(),
        });
        let own = Arc::clone(&servers);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                own.on_store(Store::end_old_leases);
            }
        });
        servers
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    fn on_store<T>(&self, call: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store();
        let result = call(&mut store);
        let revision = store.revision;
        drop(store);
        self.written.send_if_modified(|seen| {
            let is_new = *seen < revision;
            *seen = revision;
            is_new
        });
        result
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }

    pub(crate) fn compact(&self) {
        let mut store = self.store();
        let revision = store.revision;
        store.compacted = revision;
        store.changes.retain(|change| change.revision >= revision);
    }

    /// Returns the entries below a prefix.
    pub(crate) fn entries(&self, prefix: &str) -> Vec<Entry> {
        let store = self.store();
        store.entries.values().filter(|entry| entry.key.starts_with(prefix)).cloned().collect()
    }

    /// Returns the keys below a prefix.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        self.entries(prefix).into_iter().map(|entry| entry.key).collect()
    }
}

/// The connection of one host.
pub(crate) struct SimulatedWorld {
    servers: Arc<Servers>,
    random: Arc<Mutex<Random>>,
    /// The end of the partition of this host.
    cut_until: Arc<Mutex<Instant>>,
}

impl std::fmt::Debug for SimulatedWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedWorld").finish_non_exhaustive()
    }
}

/// The course of one call.
enum CallOutcome {
    Answered,
    LostRequest,
    LostAnswer,
    LateWrite(Duration),
}

impl SimulatedWorld {
    pub(crate) fn connect(servers: &Arc<Servers>, seed: u64) -> Self {
        Self {
            servers: Arc::clone(servers),
            random: Arc::new(Mutex::new(Random(seed))),
            cut_until: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Cuts this host off for a while.
    pub(crate) fn cut(&self, time: Duration) {
        *self.cut_until.lock().unwrap() = Instant::now() + time;
    }

    fn is_cut(&self) -> bool {
        *self.cut_until.lock().unwrap() > Instant::now()
    }

    fn draw(&self) -> (Duration, Duration, CallOutcome) {
        let faults = *self.servers.faults.lock().unwrap();
        let mut random = self.random.lock().unwrap();
        let (to, back) = (random.millis(1, 30), random.millis(1, 30));
        let drawn = random.below(1000);
        let lost = faults.lost_request;
        let silent = lost + faults.lost_answer;
        let course = match drawn {
            _ if self.is_cut() => CallOutcome::LostRequest,
            drawn if drawn < lost => CallOutcome::LostRequest,
            drawn if drawn < silent => CallOutcome::LostAnswer,
            drawn if drawn < silent + faults.late_write => {
                CallOutcome::LateWrite(random.millis(3000, 60_000))
            }
            _ => CallOutcome::Answered,
        };
        (to, back, course)
    }

    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Store) -> Result<T, WorldError> + Send + 'static,
    ) -> Result<T, WorldError> {
        let (to, back, course) = self.draw();
        tokio::time::sleep(to).await;
        let silent = || WorldError::Unavailable("no answer within 9 s".to_owned());
        match course {
            CallOutcome::Answered => {
                let result = self.servers.on_store(call);
                tokio::time::sleep(back).await;
                return result;
            }
            CallOutcome::LostRequest => {}
            CallOutcome::LostAnswer => drop(self.servers.on_store(call)),
            CallOutcome::LateWrite(after) => {
                let servers = Arc::clone(&self.servers);
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    drop(servers.on_store(call));
                });
            }
        }
        tokio::time::sleep(Duration::from_secs(9)).await;
        Err(silent())
    }
}

/// Delivers the changes of a prefix until the watch is lost.
async fn deliver(
    (servers, random, cut_until): (Arc<Servers>, Arc<Mutex<Random>>, Arc<Mutex<Instant>>),
    (prefix, mut next): (String, u64),
    batches: mpsc::Sender<Result<WatchBatch, WorldError>>,
) {
    let mut written = servers.written.subscribe();
    loop {
        let slow = servers.faults.lock().unwrap().slow_watch;
        let lag = {
            let mut random = random.lock().unwrap();
            if random.below(1000) < slow {
                random.millis(1000, 18_000)
            } else {
                random.millis(1, 40)
            }
        };
        tokio::time::sleep(lag).await;
        if *cut_until.lock().unwrap() > Instant::now() {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let lost = WorldError::Unavailable("the watch is silent".to_owned());
            drop(batches.send(Err(lost)).await);
            return;
        }
        let answer = {
            let store = servers.store();
            if next <= store.compacted && next < store.revision {
                Err(WorldError::Compacted(store.compacted))
            } else {
                let of_range = |it: &&KeyChange| it.revision >= next && it.key.starts_with(&prefix);
                let changes: Vec<_> = store.changes.iter().filter(of_range).cloned().collect();
                // As on etcd, only changes advance the revision.
                let revision = changes.last().map_or(next - 1, |change| change.revision);
                Ok(WatchBatch { revision, changes })
            }
        };
        let is_end = answer.is_err();
        if let Ok(batch) = &answer {
            next = batch.revision + 1;
        }
        let is_news = answer.as_ref().map_or(true, |batch| !batch.changes.is_empty());
        if is_news && (batches.send(answer).await.is_err() || is_end) {
            return;
        }
        tokio::select! {
            biased;
            _ = written.changed() => {}
            () = tokio::time::sleep(Duration::from_secs(10)) => {
                let alive = WatchBatch { revision: next - 1, changes: Vec::new() };
                if batches.send(Ok(alive)).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl World for SimulatedWorld {
    fn backend(&self) -> &'static str {
        "simulated"
    }

    fn get<'a>(&'a self, key: &'a str) -> WorldFuture<'a, Option<Entry>> {
        let key = key.to_owned();
        Box::pin(self.call(move |store| Ok(store.entries.get(&key).cloned())))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> WorldFuture<'a, Range> {
        let prefix = prefix.to_owned();
        Box::pin(self.call(move |store| {
            let found = store.entries.values().filter(|it| it.key.starts_with(&prefix));
            Ok(Range { revision: store.revision, entries: found.cloned().collect() })
        }))
    }

    fn transact(&self, transaction: Transaction) -> WorldFuture<'_, Committed> {
        Box::pin(self.call(move |store| store.transact(transaction)))
    }

    fn watch<'a>(&'a self, prefix: &'a str, from: u64) -> WorldFuture<'a, WatchStream> {
        Box::pin(async move {
            self.call(|_| Ok(())).await?;
            let own =
                (Arc::clone(&self.servers), Arc::clone(&self.random), Arc::clone(&self.cut_until));
            let (sender, receiver) = mpsc::channel(16);
            let task = tokio::spawn(deliver(own, (prefix.to_owned(), from), sender));
            Ok(WatchStream::new(receiver, task))
        })
    }

    fn grant_lease(&self, time_to_live: Duration) -> WorldFuture<'_, LeaseId> {
        Box::pin(self.call(move |store| {
            store.last_lease += 1;
            let lease = Lease { lifetime: time_to_live, ends: Instant::now() + time_to_live };
            store.leases.insert(store.last_lease, lease);
            Ok(LeaseId(store.last_lease))
        }))
    }

    fn keep_alive(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(self.call(move |store| {
            let lease = store.leases.get_mut(&lease.0).ok_or(WorldError::LeaseEnded)?;
            lease.ends = Instant::now() + lease.lifetime;
            Ok(())
        }))
    }

    fn lease_time_left(&self, lease: LeaseId) -> WorldFuture<'_, Duration> {
        Box::pin(self.call(move |store| {
            let lease = store.leases.get(&lease.0).ok_or(WorldError::LeaseEnded)?;
            Ok(lease.ends.saturating_duration_since(Instant::now()))
        }))
    }

    fn revoke_lease(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(self.call(move |store| {
            store.end_lease(lease.0);
            Ok(())
        }))
    }

    fn compact_history(&self, _: u64) -> WorldFuture<'_, ()> {
        self.servers.compact();
        Box::pin(async { Ok(()) })
    }
}
