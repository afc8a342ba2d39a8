//! Collections in the simulated world: the exports of twelve hosts as one host uses them, under faults, deaths of
//! hosts, restarts and steps of the clock of the collecting host.

use super::world::{Faults, Random, Servers, SimulatedWorld};
use super::{in_virtual_time, seeds};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast::world::collection::{Collection, HostClocks};
use steadfast::world::follower::{RangeView, follow_range};
use steadfast::world::records::{ExportRecord, SCHEMA, write_record};
use steadfast::world::selector::CollectionSelector;
use steadfast::world::{World, keys};
use tokio::sync::watch;
use tokio::time::Instant;

/// The time after which the exports of a lost host vanish, in seconds.
const GONE_AFTER: u64 = 2 * 3600;

/// The exporting hosts, and the exports of each.
const HOSTS: u64 = 12;
const EXPORTS: u64 = 4;

/// The time for which a change may be unknown to the collecting host: a slow watch, a read again, and a list of hosts.
const LAG: Duration = Duration::from_mins(10);

fn record(name: &str) -> ExportRecord {
    ExportRecord {
        schema: SCHEMA,
        kind: "noop".to_owned(),
        module: String::new(),
        name: name.to_owned(),
        fields: BTreeMap::new(),
    }
}

fn key(host: u64, number: u64) -> String {
    keys::export(&format!("h{host}"), &format!("noop[x{number}]"))
}

async fn put(world: &SimulatedWorld, key: &str, value: Vec<u8>) {
    while world.put(key, value.clone(), None).await.is_err() {}
}

async fn delete(world: &SimulatedWorld, key: &str) {
    while world.delete(key).await.is_err() {}
}

/// The true course of the world: since when each export, and each host, is present or absent.
#[derive(Default)]
struct Truth {
    exports: BTreeMap<String, (bool, Instant)>,
    hosts: BTreeMap<String, (bool, Instant)>,
}

/// The clocks of the collecting host, whose system clock jumps.
struct Clocks {
    began: Instant,
    boot: u64,
    booted: Instant,
    ahead: i64,
}

impl Clocks {
    fn read(&self) -> HostClocks {
        let unix = 1_700_000_000 + i64::try_from(self.began.elapsed().as_secs()).unwrap();
        HostClocks {
            unix: u64::try_from((unix + self.ahead).max(1)).unwrap(),
            boot: format!("boot {}", self.boot),
            since_boot: self.booted.elapsed().as_secs(),
        }
    }
}

/// Checks one step of a collection: nothing is invented, nothing vanishes that is exported, and at most a tenth of it
/// vanishes within an hour of true time.
fn check(
    (before, after): (&BTreeSet<String>, &BTreeSet<String>),
    (truth, vanished): (&Truth, &mut Vec<Instant>),
    seed: u64,
) {
    let now = Instant::now();
    for export in after {
        assert!(truth.exports.contains_key(export), "seed {seed}: {export} is invented");
    }
    for export in before.difference(after) {
        let (is_exported, since) = truth.exports[export];
        let is_withdrawn = !is_exported || now - since < LAG;
        let host = export.split('/').nth(1).unwrap();
        let (is_there, lost) = truth.hosts[host];
        let is_lost = !is_there && now - lost + LAG >= Duration::from_secs(GONE_AFTER);
        assert!(is_withdrawn || is_lost, "seed {seed}: {export} vanishes and is exported");
        vanished.push(now);
    }
    vanished.retain(|at| now - *at < Duration::from_hours(1));
    let limit = ((after.len() + vanished.len()) / 10).max(1);
    assert!(
        vanished.len() <= limit,
        "seed {seed}: {} of {} exports vanish within an hour",
        vanished.len(),
        after.len() + vanished.len()
    );
}

/// Returns the keys of the exports that a collection uses.
fn used(collection: &Collection) -> BTreeSet<String> {
    let key = |(host, record): (String, &ExportRecord)| {
        keys::export(&host, &format!("noop[{}]", record.name))
    };
    collection.exports().map(key).collect()
}

/// Changes exports, hosts, and the clocks of the collecting host.
async fn disturb(
    (random, admin): (&mut Random, &SimulatedWorld),
    (truth, clocks): (&mut Truth, &mut Clocks),
    collection: &mut Collection,
) {
    let now = Instant::now();
    let host = random.below(HOSTS);
    match random.below(6) {
        0 | 1 => {
            let key = key(host, random.below(EXPORTS));
            let is_exported = truth.exports[&key].0;
            truth.exports.insert(key.clone(), (!is_exported, now));
            if is_exported {
                delete(admin, &key).await;
            } else {
                let name = key.rsplit('/').next().and_then(keys::decode_name).unwrap();
                let name = name.trim_start_matches("noop[").trim_end_matches(']').to_owned();
                put(admin, &key, write_record(&record(&name))).await;
            }
        }
        2 => {
            let name = format!("h{host}");
            let is_there = truth.hosts[&name].0;
            truth.hosts.insert(name.clone(), (!is_there, now));
            if is_there {
                delete(admin, &keys::host_status(&name)).await;
            } else {
                put(admin, &keys::host_status(&name), b"{}".to_vec()).await;
            }
        }
        3 => {
            let years = i64::try_from(random.below(21)).unwrap() - 10;
            clocks.ahead = years * 365 * 86_400;
        }
        4 => {
            // The process ends, and perhaps the host boots: the collection is read again.
            let text = serde_json::to_string(collection).unwrap();
            *collection = serde_json::from_str(&text).unwrap();
            if random.below(2) == 0 {
                (clocks.boot, clocks.booted) = (clocks.boot + 1, now);
            }
        }
        _ => {}
    }
}

async fn play(seed: u64) -> usize {
    let mut random = Random(seed | 1);
    let servers = Servers::start();
    let admin = SimulatedWorld::connect(&servers, seed);
    let mut truth = Truth::default();
    let began = Instant::now();
    for host in 0..HOSTS {
        let name = format!("h{host}");
        put(&admin, &keys::host_status(&name), b"{}".to_vec()).await;
        truth.hosts.insert(name, (true, began));
        for number in 0..EXPORTS {
            put(&admin, &key(host, number), write_record(&record(&format!("x{number}")))).await;
            truth.exports.insert(key(host, number), (true, began));
        }
    }
    servers.set_faults(Faults { lost_request: 30, lost_answer: 30, late_write: 0, slow_watch: 50 });
    let world: Arc<dyn World> = Arc::new(SimulatedWorld::connect(&servers, seed + 1));
    let (sender, view) = watch::channel(RangeView::default());
    tokio::spawn(follow_range(Arc::clone(&world), (keys::EXPORTS.to_owned(), seed), sender));
    let mut clocks = Clocks { began, boot: 1, booted: began, ahead: 0 };
    let (mut collection, mut vanished) = (Collection::default(), Vec::new());
    let none = RangeView::default();
    let mut all_vanished = 0;
    let mut settled_at = None;
    for step in 0..4000_u64 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        if step == 1500 {
            servers.set_faults(Faults::default());
            // Every host returns; withdrawn exports go on vanishing.
            for host in 0..HOSTS {
                let name = format!("h{host}");
                put(&admin, &keys::host_status(&name), b"{}".to_vec()).await;
                truth.hosts.insert(name, (true, Instant::now()));
            }
        }
        if step < 1500 && step % 5 == 0 {
            disturb((&mut random, &admin), (&mut truth, &mut clocks), &mut collection).await;
        }
        if let Ok(range) = world.list(keys::HOSTS).await {
            collection.note_hosts(&range, &clocks.read());
        }
        let before = used(&collection);
        let known = view.borrow().clone();
        if known.revision > 0 && known.stale.is_none() {
            let selector = CollectionSelector {
                kind: "noop".to_owned(),
                from: vec!["*".to_owned()],
                splay: 0,
            };
            collection.set_selectors(Some(Arc::new([selector])));
            collection.update((&known, &none), (&clocks.read(), GONE_AFTER), false);
        }
        let after = used(&collection);
        let count = vanished.len();
        check((&before, &after), (&truth, &mut vanished), seed);
        all_vanished += vanished.len().saturating_sub(count);
        let exported = truth.exports.iter().filter(|(_, (is, _))| *is).map(|(key, _)| key.clone());
        if step > 1500 && exported.collect::<BTreeSet<_>>() == after {
            settled_at.get_or_insert(step);
        }
    }
    let exported = truth.exports.iter().filter(|(_, (is, _))| *is).map(|(key, _)| key.clone());
    let (exported, used) = (exported.collect::<BTreeSet<_>>(), used(&collection));
    let missing: Vec<_> = exported.difference(&used).collect();
    let more: Vec<_> = used.difference(&exported).collect();
    assert!(
        settled_at.is_some(),
        "seed {seed}: the collection never is that of the world: without {missing:?}, with {more:?}"
    );
    all_vanished
}

/// Nothing is lost or invented, and a collection shrinks slowly, whatever the system clock says.
#[test]
fn a_collection_shrinks_slowly_and_loses_nothing() {
    let mut vanished = 0;
    // A course of 33 hours takes a quarter of a minute in a debug build.
    let is_asked =
        ["STEADFAST_SEED", "STEADFAST_SEEDS"].iter().any(|it| std::env::var_os(it).is_some());
    let most = if is_asked { usize::MAX } else { 2 };
    for seed in seeds().into_iter().take(most) {
        vanished += in_virtual_time(play(seed));
    }
    assert!(vanished > 4, "{vanished} exports vanished");
}
