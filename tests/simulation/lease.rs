//! C-6: a machine sleeps longer than its lease is valid. All timers stand still, and no loss is reported yet.

use crate::environment::{Shared, Stage, here, lock};
use crate::input::chance::Chance;
use crate::input::profile::Profile;
use crate::input::shape::load_outside;
use crate::life::Life;
use crate::schedule::until;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::driver::{
    Clock, DriverEvent, LeaseValidity, Notification, Observer, Query, Settings,
};
use steadfast::store::MemoryStore;
use steadfast_engine::Slots;
use steadfast_resources::host::simulated::Machine;

const GRAPH: &str =
    "graph: leased\nresources:\n  file: [{name: f, path: /f, content: \"declared\\n\"}]\n";

/// The longest simulated time that a condition may take.
const LONGEST: Duration = Duration::from_mins(1);

/// An observer that records the results of `file[f]`: the word `changed`, or the reason of a failure.
#[derive(Clone, Debug, Default)]
struct Reported(Arc<Mutex<Vec<String>>>);

impl Observer for Reported {
    fn hear(&mut self, news: &Notification<'_>) {
        let word = match news {
            Notification::Changed { .. } => "changed".to_owned(),
            Notification::Failed { failure, .. } => {
                failure.map(|t| t.what.clone()).unwrap_or_default()
            }
            _ => return,
        };
        self.0.lock().expect("one thread").push(word);
    }
}

/// A daemon on a simulated host, with its notifications.
struct Held {
    stage: Shared,
    life: Life,
    told: Reported,
    /// The milliseconds that the machine has slept.
    slept: Arc<AtomicU64>,
}

impl Held {
    fn new() -> Self {
        let profile = Profile::draw(&mut Chance::of(1, "profile"));
        let mut stage = Stage::new(profile, Chance::of(1, "stage"), false);
        stage.rough = false;
        let (stage, told) = (Arc::new(Mutex::new(stage)), Reported::default());
        let settings = Settings {
            one_shot: false,
            slots: Slots::default(),
            sweep: None,
            pause_limit: Duration::from_mins(2),
            whole: true,
            removes: false,
            repair_limit: None,
            clock: || (0, 0),
            guard: None,
        };
        let life = Life::with(&stage, &MemoryStore::default(), settings, Box::new(told.clone()));
        Self { stage, life, told, slept: Arc::default() }
    }

    /// Returns a clock that runs on while the machine sleeps.
    fn clock(&self) -> Clock {
        let (stage, slept) = (Arc::clone(&self.stage), Arc::clone(&self.slept));
        Arc::new(move || Duration::from_millis(lock(&stage).now() + slept.load(Ordering::SeqCst)))
    }

    /// Grants the lease for this time, counted from now.
    fn is_given(&self, lifetime: Duration) {
        let clock = self.clock();
        let end = clock() + lifetime;
        self.life.inbox.put(DriverEvent::Lease(Ok(LeaseValidity::until(end, clock))));
    }

    /// Waits until `count` results of the file were reported, and returns the last one.
    async fn hears(&mut self, count: usize) -> String {
        let told = self.told.clone();
        let has_heard = || told.0.lock().expect("one thread").len() >= count;
        let heard = until(&mut self.life, &self.stage, has_heard);
        assert!(tokio::time::timeout(LONGEST, heard).await.is_ok(), "{:?}", self.told);
        let told = self.told.0.lock().expect("one thread");
        assert_eq!(told.len(), count, "{told:?}");
        told.last().expect("something").clone()
    }

    /// Changes the file behind the daemon's back and requests a check of it.
    fn drifts(&self) {
        here().write("/f", "drifted\n").expect("written");
        let (answer, _) = tokio::sync::oneshot::channel();
        let look = Query::CheckNow(vec!["file[f]".to_owned()], answer);
        self.life.inbox.put(DriverEvent::Query(look));
    }
}

fn loaded() -> steadfast::config::LoadedGraph {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("graph.yaml");
    std::fs::write(&path, GRAPH).expect("written");
    load_outside(&path).expect("a graph")
}

fn content() -> String {
    let node = here().look(|tree| tree.at("/f").cloned());
    format!("{:?}", node.map(|node| node.what))
}

async fn slept() {
    let mut held = Held::new();
    held.is_given(Duration::from_mins(1));
    held.life.inbox.put(DriverEvent::Graph { graph: Ok(Box::new(loaded())), operator: true });
    assert_eq!(held.hears(1).await, "changed");
    let declared = content();
    // Awake for half of the lease's lifetime: the repair is permitted.
    tokio::time::sleep(Duration::from_secs(30)).await;
    held.drifts();
    assert_eq!(held.hears(2).await, "changed");
    // No timer fires and no loss of the lease is reported.
    held.slept.store(31_000, Ordering::SeqCst);
    held.drifts();
    let why = held.hears(3).await;
    assert!(why.contains("without the lease: the lease expired"), "{why}");
    assert_ne!(content(), declared);
    // With a new lease, the rejected repair is done.
    held.is_given(Duration::from_mins(1));
    assert_eq!(held.hears(4).await, "changed");
    assert_eq!(content(), declared);
    held.life.killed(&held.stage);
}

/// C-6: a begin is judged by the clock of the lease, not by the last report about the lease.
#[test]
fn a_daemon_that_slept_through_its_lease_begins_nothing() {
    let machine = Machine::default();
    let _entered = machine.enter();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(tokio::task::unconstrained(slept()));
}
