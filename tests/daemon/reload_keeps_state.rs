//! The stored records during a swap of graphs, and those of resources that a run does not visit.

use crate::daemon::Daemon;
use crate::host::Host;
use std::collections::BTreeMap;
use steadfast::store::{ResourceRecord, SqliteStore};

const DELETE: &str = "meta: {on_remove: delete}";

fn kept(host: &Host) -> BTreeMap<String, ResourceRecord> {
    SqliteStore::peek(&host.path("state")).expect("read").resources
}

fn file(name: &str, content: &str, more: &str) -> String {
    format!("  - {{name: {name}, path: $DIR/{name}, content: \"{content}\", {DELETE}, {more}}}\n")
}

fn graph(files: &[String], gate: &str) -> String {
    format!("graph: g\nresources:\n  noop: [{{name: stays}}]\n{gate}  file:\n{}", files.concat())
}

/// A command that blocks its dependents until the test has written `go`.
const GATE: &str = "  exec: [{name: gate, shell: /bin/sh, cmd: \"echo x >> $DIR/gated; while ! test -e $DIR/go; do $DIR/sleep 0.02; done\"}]\n";

/// Starts a daemon and waits until its graph has reached the gate.
fn at_the_gate(host: &Host) -> Daemon {
    let daemon = host.run(&[]);
    host.wait_for_lines("gated", 1);
    daemon
}

/// B-13: during a swap, processed resources have new records, unprocessed ones their old records, and new unprocessed
/// ones none; also after `kill -9`. At the end all records are new.
#[test]
fn in_the_middle_of_a_swap_the_records_are_merged() {
    let host = Host::with(&graph(&[file("a", "1", ""), file("c", "1", "")], ""));
    host.apply().exits(0);
    let old = kept(&host);
    let gated = "after: \"exec[gate]\"";
    let new = [file("a", "2", ""), file("c", "2", gated), file("d", "2", gated)];
    host.graph(&graph(&new, GATE));
    let daemon = at_the_gate(&host);
    // A reported change is durable.
    daemon.wait_for_of("changed", "file[a]");
    let look = || {
        let between = kept(&host);
        assert_ne!(between["file[a]"].done, old["file[a]"].done, "processed");
        assert_eq!(between["file[c]"].done, old["file[c]"].done, "not reached");
        let origin = |kept: &ResourceRecord| kept.owned.as_ref().and_then(|owned| owned.origin);
        assert_eq!(origin(&between["file[c]"]), origin(&old["file[c]"]));
        assert!(between.get("file[d]").is_none_or(|kept| kept.done.is_none()), "not reached");
        assert_eq!((host.read("c").as_str(), host.exists("d")), ("1", false));
        between
    };
    let between = look();
    daemon.kill_with_children();
    assert_eq!(look()["file[a]"], between["file[a]"]);
    host.write("go", "");
    host.run(&[]).wait_for("converged");
    let all = kept(&host);
    assert_eq!(all["file[a]"].done, between["file[a]"].done);
    assert_ne!(all["file[c]"].done, old["file[c]"].done);
    assert!(all["file[d]"].done.is_some());
}

/// B-14: the order of `a` and `b` is swapped. After an interruption at any point the state is sound, and undeclared
/// resources are removed once each; without interruption they are removed in the last recorded order.
#[test]
fn a_swapped_order_is_right_at_every_instant() {
    let old = [file("a", "1", ""), file("b", "1", "after: \"file[a]\"")];
    let gate = "after: \"exec[gate]\"";
    let both = "after: [\"exec[gate]\", \"file[b]\"]";
    let cuts = [
        ("before either", Some([file("a", "2", both), file("b", "2", gate)])),
        ("between both", Some([file("a", "2", both), file("b", "2", "")])),
        ("after both", None),
    ];
    for (at, cut) in cuts {
        let host = Host::with(&graph(&old, ""));
        host.apply().exits(0);
        if let Some(new) = cut {
            host.graph(&graph(&new, GATE));
            let daemon = at_the_gate(&host);
            if at == "between both" {
                daemon.wait_for_of("changed", "file[b]");
            }
            daemon.kill_with_children();
        } else {
            host.graph(&graph(&[file("a", "2", "after: \"file[b]\""), file("b", "2", "")], ""));
            host.apply().exits(0);
        }
        let mut verify = host.bare(&["state", "verify"]);
        verify.arg("--state-dir").arg(host.path("state"));
        host.finish(verify).exits(0);
        host.graph(&graph(&[], "").replace("  file:\n", ""));
        let applied = host.apply();
        applied.exits(0);
        for name in ["a", "b"] {
            let told = format!("changed file[{name}]");
            assert_eq!(applied.stdout.matches(&told).count(), 1, "{at}: {applied}");
            assert!(!host.exists(name), "{at}");
        }
        if at == "after both" {
            applied.prints_in_order(&["changed file[a]", "changed file[b]"]);
        }
        assert!(kept(&host).keys().all(|name| !name.starts_with("file[")), "{at}");
    }
}

/// Returns each row of the resource table with its checksum.
fn rows(host: &Host) -> BTreeMap<String, String> {
    let connection = rusqlite::Connection::open(host.path("state/state.db")).expect("opened");
    let mut select = connection.prepare("SELECT * FROM resource").expect("a table");
    let count = select.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let cells = (0..count).map(|at| Ok(format!("{:?}", row.get_ref(at)?)));
        Ok((row.get(0)?, cells.collect::<rusqlite::Result<Vec<_>>>()?.join("|")))
    };
    select.query_map((), row).expect("rows").collect::<rusqlite::Result<_>>().expect("read")
}

/// B-15: a run of a part of the graph leaves all other rows equal byte for byte, although all definitions have
/// changed and one resource is undeclared.
#[test]
fn a_run_of_a_part_rewrites_nothing_else() {
    let all = |content: &str, names: &[&str]| {
        let files: Vec<String> = names.iter().map(|name| file(name, content, "")).collect();
        graph(&files, "")
    };
    let host = Host::with(&all("1", &["a", "b", "c", "gone"]));
    host.apply().exits(0);
    let before = rows(&host);
    assert!(before.len() >= 4, "{before:?}");
    host.graph(&all("2", &["a", "b", "c"]));
    host.ask(&["apply", "--only", "file[b]"]).exits(0).prints("changed file[b]");
    let mut after = rows(&host);
    assert_ne!(after["file[b]"], before["file[b]"]);
    after.insert("file[b]".to_owned(), before["file[b]"].clone());
    assert_eq!(after, before);
    assert_eq!((host.read("a").as_str(), host.read("b").as_str()), ("1", "2"));
    assert!(host.exists("gone"), "only a whole graph removes");
}
