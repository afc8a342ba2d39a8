//! `kv` and received values on three hosts.

use super::site::Site;
use std::time::{Duration, Instant};

const WRITER: &str = r#"graph: writer
resources:
  kv:
  - {name: release, value: "7"}
  - {name: address, mapped: true, value: "10.0.0.1"}
"#;

const READER: &str = r#"graph: reader
resources:
  kv:
  - {name: address, mapped: true, value: "10.0.0.2"}
  file:
  - {name: release, path: $DIR/release, recv: {content: {world: release}}}
"#;

#[test]
fn a_value_reaches_a_receiver_on_another_host() {
    let mut site = Site::with_file();
    site.graph("a", WRITER);
    site.graph("b", READER);
    site.start("b");
    site.start("a");
    site.wait_for_file("b/release", "7");
    let began = Instant::now();
    site.graph("a", &WRITER.replace("\"7\"", "\"8\""));
    site.wait_for_file("b/release", "8");
    assert!(began.elapsed() < Duration::from_secs(30));
    let (code, text) = site.ask("b", &["world", "list", "values/"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("values/a/address") && text.contains("values/b/address"), "{text}");
    // Both hosts are seen by each other.
    site.wait_until("both hosts converge", || site.ask("b", &["fleet"]).0 == 0);
    let (_, text) = site.ask("b", &["fleet"]);
    assert!(text.contains("2 of 2 hosts converged"), "{text}");
    assert_eq!(site.ask("a", &["fleet", "show", "b"]).0, 0);
    assert_eq!(site.ask("a", &["fleet", "show", "none"]).0, 1);
}

/// Drift of a key is repaired, and a value that others hold as higher stays with `skiplessthan`.
#[test]
fn a_key_is_held_to_its_value() {
    let mut site = Site::with_file();
    let graph = "graph: g\nresources:\n  kv:\n  - {name: n, value: \"5\", skiplessthan: true}\n  - {name: k, value: x}\n";
    site.graph("a", graph);
    site.start("a");
    let value = |site: &Site, key: &str| {
        let (_, text) = site.ask("a", &["world", "list", &format!("strings/{key}")]);
        text
    };
    site.wait_until("the key is written", || value(&site, "k").contains("\"x\""));
    site.graph("b", "graph: g\nresources:\n  kv:\n  - {name: n, value: \"9\"}\n");
    site.start("b");
    site.wait_until("the higher value is written", || value(&site, "n").contains("\"9\""));
    std::thread::sleep(Duration::from_secs(1));
    assert!(value(&site, "n").contains("\"9\""), "the lower value does not replace the higher one");
}

/// Without the world a host starts with the values that it knew last, and says so.
#[test]
fn a_host_without_its_world_keeps_its_values() {
    let mut site = Site::with_file();
    site.graph("a", WRITER);
    site.graph("b", READER);
    site.start("a");
    site.start("b");
    site.wait_for_file("b/release", "7");
    site.kill("a");
    site.wait_until("the values are stored", || {
        site.read("b/state/world-values.json").contains("release")
    });
    site.kill("b");
    // The world is a directory now: no database can be opened.
    for name in ["world.sqlite", "world.sqlite-wal", "world.sqlite-shm"] {
        drop(std::fs::remove_file(site.path(name)));
    }
    std::fs::create_dir(site.path("world.sqlite")).unwrap();
    std::fs::remove_file(site.path("b/release")).unwrap();
    site.start("b");
    site.wait_for_file("b/release", "7");
    site.wait_until("the status names the world", || {
        site.ask_daemon("b", &["status"]).1.contains("world")
    });
}

/// `apply` uses the world without a daemon.
#[test]
fn apply_reads_and_writes_the_world() {
    let site = Site::with_file();
    site.graph("a", WRITER);
    let (code, text) = site.ask("a", &["apply"]);
    assert_eq!(code, 0, "{text}");
    let (_, text) = site.ask("a", &["world", "list", "strings/"]);
    assert!(text.contains("strings/release") && text.contains("\"7\""), "{text}");
    site.graph("b", READER);
    let (code, text) = site.ask("b", &["apply"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(site.read("b/release"), "7");
}
