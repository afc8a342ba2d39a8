//! Recorded courses on three members in network namespaces that are killed, frozen, cut off and compacted meanwhile.

#![expect(clippy::print_stdout, reason = "the figures are for whoever runs the test")]

use super::cluster::{Cluster, until_ready};
use super::history::{Outcome, Record, find_violation};
use super::network::Network;
use crate::simulated::first_excess;
use crate::simulated::hosts::{History, Pace, live};
use crate::simulated::world::Random;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::world::follower::{RangeView, follow_range};
use steadfast::world::{Compare, EtcdWorld, Operation, Transaction, World};
use tokio::sync::watch;
use tokio::time::Instant;

const LIST: &str = "v/list";

/// A cluster whose members have a network namespace each.
struct Site {
    cluster: Cluster,
    network: Network,
}

impl Site {
    fn start() -> Self {
        let network = Network::start();
        let cluster = Cluster::start_at(&network.addresses(), &[]);
        Self { cluster, network }
    }

    fn world(&self) -> Arc<dyn World> {
        Arc::new(EtcdWorld::new(self.cluster.settings("test")))
    }

    /// Injects one fault for a while, and heals it.
    async fn injure(&mut self, random: &mut Random, world: &Arc<dyn World>, longest: u64) {
        let number = usize::try_from(random.below(3)).unwrap();
        let time = random.millis(1000, longest);
        match random.below(7) {
            0 => {
                self.cluster.kill(number);
                tokio::time::sleep(time).await;
                self.cluster.restart(number);
            }
            1 => {
                self.cluster.signal(number, "-STOP");
                tokio::time::sleep(time).await;
                self.cluster.signal(number, "-CONT");
            }
            2 => {
                self.network.cut(number, true);
                tokio::time::sleep(time).await;
                self.network.cut(number, false);
            }
            3 => {
                self.network.cut_from_peers(number, true);
                tokio::time::sleep(time).await;
                self.network.cut_from_peers(number, false);
            }
            4 => {
                (0..3).for_each(|number| self.network.cut(number, true));
                tokio::time::sleep(time).await;
                (0..3).for_each(|number| self.network.cut(number, false));
            }
            5 => {
                let disk = self.cluster.slow_disk(number);
                tokio::time::sleep(time).await;
                drop(disk);
            }
            _ => {
                if let Ok(range) = world.list(LIST).await {
                    drop(world.compact_history(range.revision).await);
                }
            }
        }
        tokio::time::sleep(random.millis(500, 3000)).await;
    }
}

/// Returns the list of a range.
fn list_of(value: &[u8]) -> Vec<u64> {
    let text = std::str::from_utf8(value).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Appends and reads until the time is over; returns the history.
async fn record(
    (world, epoch): (Arc<dyn World>, Instant),
    (process, end): (u64, Instant),
) -> Vec<Record> {
    let mut history = Vec::new();
    let mut random = Random(process);
    let mut number = process * 1_000_000;
    while Instant::now() < end {
        tokio::time::sleep(random.millis(5, 60)).await;
        let began = epoch.elapsed();
        let read = world.list(LIST).await;
        let mut note = |began, number, outcome| {
            history.push(Record { began, ended: epoch.elapsed(), number, outcome });
        };
        let Ok(range) = read else {
            note(began, 0, Outcome::Unknown);
            continue;
        };
        let (seen, revision) = range
            .entries
            .first()
            .map_or_else(Default::default, |it| (list_of(&it.value), it.mod_revision));
        note(began, 0, Outcome::Seen(range.revision, seen.clone()));
        number += 1;
        let all = seen.iter().chain([&number]).map(u64::to_string).collect::<Vec<_>>().join(" ");
        let append = Transaction {
            conditions: vec![Compare::ModRevision(LIST.to_owned(), revision)],
            operations: vec![Operation::Put(LIST.to_owned(), all.into(), None)],
        };
        let began = epoch.elapsed();
        let outcome = match world.transact(append).await {
            Ok(done) if done.succeeded => Outcome::Appended(done.revision),
            Ok(_) => Outcome::Refused,
            Err(_) => Outcome::Unknown,
        };
        note(began, number, outcome);
    }
    history
}

/// Collects the states of a view: revisions must not go back, and each list must be a beginning of the last one.
async fn watch_list(world: Arc<dyn World>, states: Arc<Mutex<Vec<(u64, Vec<u64>)>>>) {
    let (sender, mut view) = watch::channel(RangeView::default());
    tokio::spawn(follow_range(world, (LIST.to_owned(), 3), sender));
    while view.changed().await.is_ok() {
        let seen = view.borrow_and_update();
        let list = seen.entries.get(LIST).map(|it| list_of(&it.value)).unwrap_or_default();
        states.lock().unwrap().push((seen.revision, list));
    }
}

/// No acknowledged write is lost, no read is old, and no revision goes back, over faults of members and network.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_appends_and_reads_have_no_violation() {
    let mut site = Site::start();
    let world = site.world();
    until_ready(world.as_ref()).await;
    let (epoch, end) = (Instant::now(), Instant::now() + Duration::from_secs(50));
    let states = Arc::new(Mutex::default());
    let watcher = tokio::spawn(watch_list(site.world(), Arc::clone(&states)));
    let processes: Vec<_> =
        (1..=4).map(|it| tokio::spawn(record((site.world(), epoch), (it, end)))).collect();
    let mut random = Random(u64::from(std::process::id()));
    while Instant::now() < end {
        site.injure(&mut random, &world, 5000).await;
    }
    let mut history = Vec::new();
    for process in processes {
        history.extend(process.await.unwrap());
    }
    until_ready(world.as_ref()).await;
    let range = world.list(LIST).await.unwrap();
    let last = list_of(&range.entries.first().expect("some append took effect").value);
    let appended = history.iter().filter(|it| matches!(it.outcome, Outcome::Appended(_))).count();
    println!("{} operations, {appended} acknowledged appends", history.len());
    assert!(appended > 20, "{appended} appends were acknowledged");
    assert_eq!(find_violation(&history, &last), None);
    let began = Instant::now();
    while states.lock().unwrap().last().is_none_or(|(_, list)| *list != last) {
        assert!(began.elapsed() < Duration::from_mins(1), "the view does not reach the end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    watcher.abort();
    let states = states.lock().unwrap().clone();
    for pair in states.windows(2) {
        let ((before, _), (after, list)) = (&pair[0], &pair[1]);
        assert!(before <= after, "the revision of the view goes back: {before} {after}");
        assert!(last.starts_with(list), "the view has a list that never was: {list:?}");
    }
}

/// Five hosts share a semaphore of size 2 while members die and all are cut off for longer than a permit is safe.
#[tokio::test(flavor = "multi_thread")]
async fn a_semaphore_is_never_over_its_limit() {
    let mut site = Site::start();
    let world = site.world();
    until_ready(world.as_ref()).await;
    let history = History { steps: Arc::default(), epoch: Instant::now() };
    let (rests, resting) = watch::channel(false);
    let pace = Pace { idle: (10, 1000), run: (200, 6000), grace: 5000 };
    for number in 0..5 {
        let told = (history.clone(), resting.clone());
        tokio::spawn(live((format!("h{number}"), number), site.world(), (2, pace), told));
    }
    let mut random = Random(u64::from(std::process::id()));
    let end = Instant::now() + Duration::from_secs(50);
    while Instant::now() < end {
        site.injure(&mut random, &world, 4000).await;
    }
    // Longer than a lease: its keys end with the cluster's clock, and all holders have stopped before.
    (0..3).for_each(|number| site.network.cut(number, true));
    tokio::time::sleep(Duration::from_secs(36)).await;
    let calm = history.steps.lock().unwrap().len();
    (0..3).for_each(|number| site.network.cut(number, false));
    let began = Instant::now();
    let has_run = |name: &str| {
        let steps = history.steps.lock().unwrap();
        steps.iter().skip(calm).any(|step| step.begins && step.host == name)
    };
    while !(0..5).all(|number| has_run(&format!("h{number}"))) {
        assert!(began.elapsed() < Duration::from_secs(90), "a host gets no permit any more");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rests.send_replace(true);
    let began = Instant::now();
    loop {
        let left = world.list("sema/").await.map(|range| range.entries);
        if left.as_ref().is_ok_and(Vec::is_empty) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "tickets are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let steps = history.steps.lock().unwrap().clone();
    println!("{} runs", steps.len() / 2);
    assert_eq!(first_excess(&steps, 2), None);
}
