//! Daemons on a real cluster: values and permits over faults of the members.

use super::cluster::{Cluster, until_ready};
use super::network::Network;
use crate::hosts::site::Site;
use steadfast::world::EtcdWorld;

pub(super) fn start() -> (Cluster, Site) {
    let cluster = Cluster::start("http", &[]);
    let world = EtcdWorld::new(cluster.settings("test"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(until_ready(&world));
    let endpoints: Vec<_> = cluster.members.iter().map(|member| member.client.clone()).collect();
    let site = Site::with_world(&format!(
        "etcd: {{cluster: test, endpoints: [{}]}}",
        endpoints.join(", ")
    ));
    (cluster, site)
}

const WRITER: &str = "graph: w\nresources:\n  kv:\n  - {name: k, value: \"1\"}\n";
const READER: &str =
    "graph: r\nresources:\n  file:\n  - {name: f, path: $DIR/f, recv: {content: {world: k}}}\n";

/// All members die: the hosts go on with their values, and follow again when the members are back.
#[test]
fn hosts_survive_the_loss_of_all_members() {
    let (mut cluster, mut site) = start();
    site.graph("a", WRITER);
    site.graph("b", READER);
    site.start("a");
    site.start("b");
    site.wait_for_file("b/f", "1");
    (0..3).for_each(|number| cluster.kill(number));
    site.wait_until("the status names the world", || {
        site.ask_daemon("b", &["status"]).1.contains("world: stale")
    });
    std::fs::remove_file(site.path("b/f")).unwrap();
    site.wait_for_file("b/f", "1");
    (0..3).for_each(|number| cluster.restart(number));
    site.graph("a", &WRITER.replace("\"1\"", "\"2\""));
    site.wait_for_file("b/f", "2");
}

/// A holder that is stopped for longer than its lease has ended its run before the next one starts.
#[test]
fn a_stopped_holder_does_not_overlap_the_next() {
    let (_cluster, mut site) = start();
    let graph = r#"graph: g
resources:
  exec:
  - name: restart
    shell: /bin/sh
    cmd: 'echo "begin $HOST" >> $SITE/trace; sleep 2; echo "end $HOST" >> $SITE/trace'
    meta: {sema: ["world:s:1"]}
"#;
    site.graph("a", &graph.replace("sleep 2", "sleep 1000"));
    site.start("a");
    site.wait_until("the first holds", || site.read("trace").contains("begin a"));
    site.signal("a", "-STOP");
    site.graph("b", graph);
    site.start("b");
    site.wait_until("the lease of the stopped host ends", || site.read("trace").contains("end b"));
    site.signal("a", "-CONT");
    site.wait_until("the first is interrupted", || site.read("a/log").contains("permit"));
}

/// The fleet of ten hosts, on three members.
#[test]
fn ten_hosts_play_on_a_cluster() {
    let (_cluster, mut site) = start();
    crate::hosts::ten_hosts::play_the_fleet(&mut site);
}

/// The examples of mgmt, each on a cluster of its own.
#[test]
fn the_examples_of_mgmt_play_on_a_cluster() {
    use crate::hosts::mgmt_examples::{
        play_an_empty_pattern, play_keys, play_one_file_for_all, play_own_and_offered_files,
    };
    let plays: [fn(&mut Site); 4] =
        [play_one_file_for_all, play_own_and_offered_files, play_an_empty_pattern, play_keys];
    for play in plays {
        let (_cluster, mut site) = start();
        play(&mut site);
    }
}

/// A host behind a cut network hears nothing, and no connection is refused: it goes on, and follows again afterwards.
#[test]
fn a_host_behind_a_cut_network_goes_on() {
    let network = Network::start();
    let cluster = Cluster::start_at(&network.addresses(), &[]);
    let world = EtcdWorld::new(cluster.settings("test"));
    tokio::runtime::Runtime::new().unwrap().block_on(until_ready(&world));
    let endpoints: Vec<_> = cluster.members.iter().map(|member| member.client.clone()).collect();
    let endpoints = endpoints.join(", ");
    let mut site = Site::with_world(&format!("etcd: {{cluster: test, endpoints: [{endpoints}]}}"));
    site.graph("a", WRITER);
    site.graph("b", READER);
    site.start("a");
    site.start("b");
    site.wait_for_file("b/f", "1");
    (0..3).for_each(|number| network.cut(number, true));
    site.wait_until("the status names the world", || {
        site.ask_daemon("b", &["status"]).1.contains("world: stale")
    });
    std::fs::remove_file(site.path("b/f")).unwrap();
    site.wait_for_file("b/f", "1");
    site.graph("a", &WRITER.replace("\"1\"", "\"2\""));
    (0..3).for_each(|number| network.cut(number, false));
    site.wait_for_file("b/f", "2");
}
