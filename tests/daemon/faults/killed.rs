//! `kill -9` of `apply` at every changing system call, from its first to its last.

use super::syscall_tracer::{Act, run};
use crate::host::Host;
use std::collections::BTreeMap;
use std::path::Path;

const GRAPH: &str = r#"
graph: killed
resources:
  file:
  - {name: dir, path: $DIR/t/}
  - {name: made, path: $DIR/t/made, content: "made\n", mode: 0640, after: "file[dir]"}
  - {name: edited, path: $DIR/edited, content: "new\n"}
  - {name: mode, path: $DIR/mode, mode: 0600}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: tree, path: $DIR/tree, state: absent, force: true}
  - {name: link, path: $DIR/link, symlink: edited}
  exec:
  - {name: told, shell: /bin/sh, cmd: "cat $DIR/edited >> $DIR/told", refresh_only: true, subscribe: "file[edited]"}
  - {name: once, shell: /bin/sh, cmd: "echo x >> $DIR/once"}
  - {name: skipped, shell: /bin/sh, cmd: "echo x >> $DIR/skipped", on_interrupt: skip}
"#;

fn host() -> Host {
    let host = Host::with(GRAPH);
    host.write("edited", "old\n").write("gone", "x").write("mode", "x").chmod("mode", 0o644);
    host.make_directory("tree").make_directory("tree/deep").write("tree/deep/file", "x");
    host
}

fn content(host: &Host, name: &str) -> Option<String> {
    host.exists(name).then(|| host.read(name))
}

/// Lists the temporary names left behind.
fn left_behind(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".steadfast") {
            found.push(name);
        }
        if entry.file_type().expect("known").is_dir() {
            left_behind(&entry.path(), found);
        }
    }
}

/// F-1, F-2: files are whole before and after the kill. The next apply converges and delivers owed refreshes; it
/// repeats a one-time command at most once, or never if its policy says so. No temporary name is left.
#[test]
fn killed_at_every_call_that_changes_something() {
    let whole = host();
    let mut all = BTreeMap::<&str, usize>::new();
    for call in run(&whole.command(&["apply"]), &whole.path(""), |_| Act::Pass).calls {
        *all.entry(call.name).or_default() += 1;
    }
    let mut points = 0;
    for (name, count) in &all {
        // Threads run in any order, so the call is chosen by its name and number.
        for number in 1..=*count {
            points += usize::from(killed_at(name, number));
        }
    }
    assert!(points > 80, "{points} points only: {all:?}");
    for name in ["openat", "fsync", "linkat", "renameat2", "unlinkat", "symlinkat", "mkdirat"] {
        assert!(all.contains_key(name), "{name} was never met: {all:?}");
    }
}

/// Returns true if the call was reached.
fn killed_at(name: &str, number: usize) -> bool {
    let host = host();
    let mut count = 0;
    let cut = run(&host.command(&["apply"]), &host.path(""), |call| {
        count += usize::from(call.name == name);
        if count == number { Act::Kill } else { Act::Pass }
    });
    let at = format!("killed before {name} {number}");
    assert!(["old\n", "new\n"].contains(&host.read("edited").as_str()), "{at}");
    assert!([None, Some("made\n".to_owned())].contains(&content(&host, "t/made")), "{at}");
    let again = host.apply();
    assert_eq!(again.code, 0, "{at}: {again}");
    assert_eq!((host.read("edited"), host.read("t/made")), ("new\n".into(), "made\n".into()));
    assert_eq!((host.mode("t/made"), host.mode("mode")), (0o640, 0o600), "{at}");
    assert!(!host.exists("gone") && !host.exists("tree"), "{at}");
    assert_eq!(std::fs::read_link(host.path("link")).expect("a link"), Path::new("edited"));
    let told = content(&host, "told").unwrap_or_default();
    assert!(told.ends_with("new\n"), "{at}: a refresh that was owed is lost: {told:?}");
    let lines = |name| content(&host, name).unwrap_or_default().lines().count();
    assert!((1..=2).contains(&lines("once")), "{at}: {} runs", lines("once"));
    assert!(lines("skipped") <= 1, "{at}: what is skipped ran again");
    let mut left = Vec::new();
    left_behind(&host.path(""), &mut left);
    assert!(left.is_empty(), "{at}: {left:?}");
    host.apply().exits(0).prints(", 0 changed in");
    cut.code.is_none()
}
