//! The figures of the world's speed, printed. A debug build gives upper bounds:
//! `cargo nextest run --release --features etcd --test world --run-ignored only --no-capture figures`.

#![expect(clippy::print_stdout, reason = "the figures are for whoever runs the test")]

use super::cluster::until_ready;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use steadfast::config::{self, CollectedExport, Options};
use steadfast::world::records::{ExportRecord, FleetHostStatus, KvRecord, SCHEMA, write_record};
use steadfast::world::{EtcdWorld, Operation, Transaction, World, keys};

/// Returns the middle one of some times.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The time from the acknowledged write of a value to the file of a receiver on another host.
#[test]
#[ignore = "measures, and asserts nothing about the machine"]
fn a_value_reaches_a_file() {
    let (cluster, mut site) = super::hosts::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = EtcdWorld::new(cluster.settings("test"));
    let put = |text: &str| {
        let record = KvRecord { schema: SCHEMA, value: text.to_owned() };
        runtime.block_on(world.put("strings/k", write_record(&record), None)).unwrap();
    };
    put("first");
    site.graph(
        "b",
        "graph: r\nresources:\n  file:\n  - {name: f, path: $DIR/f, recv: {content: {world: k}}}\n",
    );
    site.start("b");
    site.wait_for_file("b/f", "first");
    let times = (0..30).map(|number| {
        let text = format!("value {number}");
        put(&text);
        let began = Instant::now();
        while site.read("b/f") != text {
            std::thread::sleep(Duration::from_millis(1));
        }
        began.elapsed()
    });
    println!(
        "a value reaches a file on another host: {:?} (median of 30)",
        median(times.collect())
    );
}

/// The time of one read of the status of 1000 hosts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, and asserts nothing about the machine"]
async fn a_thousand_statuses_in_one_read() {
    let cluster = super::cluster::Cluster::start("http", &[]);
    let world = EtcdWorld::new(cluster.settings("test"));
    until_ready(&world).await;
    let counts = ["total", "settled", "failed"].map(|name| (name.to_owned(), 100)).into();
    let status = write_record(&FleetHostStatus {
        schema: SCHEMA,
        converged: true,
        counts,
        ..FleetHostStatus::default()
    });
    for part in 0..20 {
        let put = |host: u32| {
            Operation::Put(keys::host_status(&format!("h{host}")), status.clone(), None)
        };
        let operations = (part * 50..part * 50 + 50).map(put).collect();
        world.transact(Transaction { operations, ..Transaction::default() }).await.unwrap();
    }
    let mut times = Vec::new();
    for _ in 0..30 {
        let began = Instant::now();
        assert_eq!(world.list(keys::HOSTS).await.unwrap().entries.len(), 1000);
        times.push(began.elapsed());
    }
    println!("the status of 1000 hosts in one read: {:?} (median of 30)", median(times));
}

/// The time to load a graph that collects 20 exports of each of 1000 hosts.
#[test]
#[ignore = "measures, and asserts nothing about the machine"]
fn twenty_thousand_exports_are_expanded() {
    let export = |number: u32| CollectedExport {
        host: format!("h{}", number / 20),
        record: ExportRecord {
            schema: SCHEMA,
            kind: "noop".to_owned(),
            module: String::new(),
            name: format!("x{}", number % 20),
            fields: BTreeMap::new(),
        },
        has_vanished: false,
    };
    let exports = Some((0..20_000).map(export).collect());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.yaml");
    std::fs::write(&path, "graph: g\ncollect: [{kind: noop}]\nresources: {noop: [{name: x}]}\n")
        .unwrap();
    let kinds = config::KindSet::of_this_build();
    let options = Options { exports, kinds, ..Options::default() };
    let began = Instant::now();
    let loaded = config::load(&[path], &options).unwrap();
    println!("{} vertices of 20 000 exports: {:?}", loaded.vertices.len(), began.elapsed());
}

/// Returns the revision of the store and the number of entries in the log of the members.
fn written(endpoint: &str) -> (u64, u64) {
    let mut command = std::process::Command::new("etcdctl");
    command.args(["endpoint", "status", "-w", "json", "--endpoints", endpoint]);
    let output = command.env("ETCDCTL_API", "3").output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let status = &status[0]["Status"];
    (status["header"]["revision"].as_u64().unwrap(), status["raftIndex"].as_u64().unwrap())
}

/// The writes of idle hosts: no more than 20 in a second for 1000 of them.
#[test]
#[ignore = "takes two minutes"]
fn idle_hosts_write_little() {
    const HOSTS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let (cluster, mut site) = super::hosts::start();
    for host in HOSTS {
        let graph = "graph: i\nresources:\n  file:\n  - {name: f, path: $DIR/f, content: x}\n";
        site.graph(host, graph);
        site.start(host);
    }
    for host in HOSTS {
        site.wait_for_file(&format!("{host}/f"), "x");
    }
    // The first statuses are written within a few seconds.
    std::thread::sleep(Duration::from_secs(30));
    let endpoint = &cluster.members[0].client;
    let (before, began) = (written(endpoint), Instant::now());
    std::thread::sleep(Duration::from_secs(90));
    let (after, seconds) = (written(endpoint), began.elapsed().as_secs_f64());
    let of_thousand = |count: u64| f64::from(u32::try_from(count).unwrap()) / seconds * 200.0;
    let [keys, entries] = [after.0 - before.0, after.1 - before.1].map(of_thousand);
    println!("1000 idle hosts: {keys:.1} writes and {entries:.1} log entries in a second");
    assert!(entries <= 20.0, "{before:?} {after:?}");
}
