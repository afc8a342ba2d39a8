//! A simulated world: many hosts in one process, virtual time, and faults drawn from a seed. `STEADFAST_SEED=N` plays
//! one seed again, and `STEADFAST_SEEDS=N` the first N.
//!
//! Reading order: `world` (the servers and the connections), `hosts` (one host), this file (the plays and the checks),
//! `collections`.

pub(crate) mod collections;
pub(crate) mod hosts;
pub(crate) mod world;

use hosts::{History, Pace, Step, live};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::world::follower::{RangeView, follow_range};
use steadfast::world::{World, keys};
use tokio::sync::watch;
use tokio::time::Instant;
use world::{Faults, Random, Servers, SimulatedWorld};

/// Runs a play in virtual time.
fn in_virtual_time<T>(play: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(play)
}

/// Returns the seeds to play: the one of the environment, or the first ones.
fn seeds() -> Vec<u64> {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let number = given("STEADFAST_SEEDS").unwrap_or(30);
    given("STEADFAST_SEED").map_or_else(|| (0..number).collect(), |seed| vec![seed])
}

/// Returns the first moment at which more hosts run than the semaphore allows.
pub(crate) fn first_excess(steps: &[Step], size: usize) -> Option<String> {
    let mut inside = BTreeSet::new();
    for step in steps {
        if step.begins {
            inside.insert(step.host.as_str());
        } else {
            inside.remove(step.host.as_str());
        }
        if inside.len() > size {
            return Some(format!("at {:?}: {inside:?} run, {size} may", step.at));
        }
    }
    None
}

#[test]
fn the_check_finds_an_excess() {
    let step = |host: &str, begins| Step { at: Duration::ZERO, host: host.to_owned(), begins };
    let apart = [step("a", true), step("a", false), step("b", true), step("b", false)];
    assert_eq!(first_excess(&apart, 1), None);
    let together = [step("a", true), step("b", true), step("a", false)];
    assert!(first_excess(&together, 1).is_some());
    assert_eq!(first_excess(&together, 2), None);
}

/// One play: hosts with faults for ten minutes, then without; returns the history.
async fn play(seed: u64) -> Vec<Step> {
    let mut random = Random(seed);
    let size = 1 + u32::try_from(random.below(2)).unwrap();
    let pace = Pace { idle: (0, 4000), run: (500, 40_000), grace: 10_000 };
    let servers = Servers::start();
    let history = History { steps: Arc::new(Mutex::default()), epoch: Instant::now() };
    let (rests, resting) = watch::channel(false);
    servers.set_faults(Faults {
        lost_request: random.below(60),
        lost_answer: random.below(60),
        late_write: random.below(60),
        slow_watch: random.below(200),
    });
    let start = |number: u64, life: u64| {
        let seed = seed.wrapping_mul(1000) + number * 50 + life;
        let world = Arc::new(SimulatedWorld::connect(&servers, seed));
        let host = (format!("h{number}"), seed);
        let told = (history.clone(), resting.clone());
        let shared: Arc<dyn World> = Arc::clone(&world) as Arc<dyn World>;
        (world, tokio::spawn(live(host, shared, (size, pace), told)))
    };
    let mut hosts: Vec<_> = (0..5).map(|number| start(number, 0)).collect();
    for life in 1..40 {
        tokio::time::sleep(random.millis(1000, 30_000)).await;
        let number = random.below(5);
        let at = usize::try_from(number).unwrap();
        match random.below(4) {
            0 => servers.compact(),
            1 => {
                hosts[at].1.abort();
                // The host is dead for a while; its lease may end meanwhile, or not.
                tokio::time::sleep(random.millis(10, 20_000)).await;
                hosts[at] = start(number, life);
            }
            _ => hosts[at].0.cut(random.millis(500, 50_000)),
        }
    }
    servers.set_faults(Faults::default());
    tokio::time::sleep(Duration::from_mins(3)).await;
    let calm = history.steps.lock().unwrap().len();
    tokio::time::sleep(Duration::from_mins(30)).await;
    let steps = history.steps.lock().unwrap().clone();
    for number in 0..5 {
        let name = format!("h{number}");
        let runs = steps.iter().skip(calm).any(|step| step.host == name && step.begins);
        let last = steps.iter().rfind(|step| step.host == name);
        let tickets = servers.entries(keys::SEMA);
        assert!(runs, "seed {seed}: {name} gets no permit after {last:?}: {tickets:#?}");
    }
    rests.send_replace(true);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let left = servers.keys(keys::SEMA);
    assert!(left.is_empty(), "seed {seed}: tickets are left: {left:?}");
    if let Some(excess) = first_excess(&steps, usize::try_from(size).unwrap()) {
        panic!("seed {seed}: {excess}");
    }
    steps
}

/// Five hosts, one semaphore: never more holders than allowed, nobody starves afterwards, and no ticket is left.
#[test]
fn a_semaphore_is_never_over_its_limit() {
    let mut runs = 0;
    for seed in seeds() {
        runs += in_virtual_time(play(seed)).iter().filter(|step| step.begins).count();
    }
    assert!(runs > 50, "{runs} runs");
}

#[test]
fn a_seed_plays_the_same_course() {
    assert_eq!(in_virtual_time(play(7)), in_virtual_time(play(7)));
}

/// A thousand hosts offer a resource each under faults; every view ends with all of them, and invents none.
#[test]
fn a_thousand_views_lose_and_invent_nothing() {
    let hosts: u64 = 1000;
    let complete = in_virtual_time(async {
        let servers = Servers::start();
        let (lost_request, lost_answer, late_write, slow_watch) = (30, 30, 10, 50);
        servers.set_faults(Faults { lost_request, lost_answer, late_write, slow_watch });
        let mut views = Vec::new();
        for number in 0..hosts {
            let world: Arc<dyn World> = Arc::new(SimulatedWorld::connect(&servers, number));
            let (sender, view) = watch::channel(RangeView::default());
            let of = (keys::EXPORTS.to_owned(), number);
            tokio::spawn(follow_range(Arc::clone(&world), of, sender));
            views.push(view);
            tokio::spawn(async move {
                let key = keys::export(&format!("h{number}"), "noop[x]");
                while world.put(&key, b"{}".to_vec(), None).await.is_err() {}
            });
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        servers.compact();
        tokio::time::sleep(Duration::from_mins(2)).await;
        servers.set_faults(Faults::default());
        tokio::time::sleep(Duration::from_mins(5)).await;
        let expected = servers.keys(keys::EXPORTS);
        assert_eq!(expected.len(), 1000);
        let is_complete =
            |view: &watch::Receiver<RangeView>| view.borrow().entries.keys().eq(expected.iter());
        views.iter().filter(|view| is_complete(view)).count()
    });
    assert_eq!(complete, 1000);
}
