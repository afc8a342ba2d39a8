//! The cost of an idle daemon, and of one that reloads again and again.

use super::syscall_tracer::{self, Act, Call, Scope};
use crate::daemon::Daemon;
use crate::host::Host;
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};
use std::sync::{Arc, Mutex};

/// B-5: a sweep over a converged host makes no changing system call.
#[test]
fn a_sweep_that_finds_nothing_writes_nothing() {
    let host = Host::with(
        r#"
graph: idle
resources:
  file:
  - {name: dir, path: $DIR/t/}
  - {name: conf, path: $DIR/t/conf, content: "x\n", mode: 0640, notify: "exec[told]"}
  - {name: link, path: $DIR/link, symlink: t/conf}
  - {name: copy, path: $DIR/copy, source: from/x}
  - {name: joined, path: $DIR/joined, fragments: [from/]}
  - {name: tree, path: $DIR/tree/, source: from/, recurse: true}
  exec:
  - {name: told, shell: /bin/sh, cmd: "true", refresh_only: true}
  - {name: swept, shell: /bin/sh, cmd: "true", ifshell: /bin/sh, ifcmd: "echo x >> $DIR/swept; false"}
"#,
    );
    host.make_directory("from").write("from/x", "x\n");
    let calls = Arc::<Mutex<Vec<Call>>>::default();
    let seen = Arc::clone(&calls);
    let command = host.command(&["run", "--log", "json", "--sweep", "1"]);
    let mut running = syscall_tracer::start(command, Scope::Own, move |call| {
        seen.lock().expect("no panic").push(call.clone());
        Act::Pass
    });
    let talk = running.talk.take().expect("piped");
    let daemon = Daemon::heard(running.pid, talk, &host.path(""));
    daemon.wait_for("converged");
    // All reports are durable by now; the next sweep finds what the last one found.
    let settled = host.lines("swept").len() + 1;
    host.wait_for_lines("swept", settled);
    let before = calls.lock().expect("no panic").len();
    assert!(before > 20, "the calls of the start were seen");
    host.wait_for_lines("swept", settled + 3);
    let made = calls.lock().expect("no panic").split_off(before);
    assert!(made.is_empty(), "{made:?}");
    daemon.signal(SIGTERM);
    assert_eq!(running.end().code, Some(0));
}

/// B-5: an `apply` on a converged host makes no changing system call, not even in the state directory: the lock shows
/// the holder.
#[test]
fn an_apply_that_finds_nothing_writes_nothing() {
    let host = Host::with(
        r#"
graph: idle
resources:
  file:
  - {name: conf, path: $DIR/conf, content: "x\n", notify: "exec[told]"}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: copy, path: $DIR/copy, source: from/x}
  - {name: joined, path: $DIR/joined, fragments: [from/]}
  - {name: tree, path: $DIR/tree/, source: from/, recurse: true}
  exec:
  - {name: told, shell: /bin/sh, cmd: "true", refresh_only: true}
  - {name: once, shell: /bin/sh, cmd: "true"}
"#,
    );
    host.write("conf", "mine\n").write("gone", "x");
    host.make_directory("from").write("from/x", "x\n").apply().exits(0);
    // The source was replaced with equal content.
    host.write("new", "x\n").rename("new", "from/x");
    assert!(host.exists("state/history/history.db") && host.exists("state/events.db"));
    let second = syscall_tracer::run(&host.command(&["apply"]), &host.path(""), |_| Act::Pass);
    assert_eq!(second.code, Some(0), "{}", second.said);
    assert!(second.calls.is_empty(), "{:#?}", second.calls);
    // The counter-check: a file that differs is written, and the change is recorded.
    host.write("conf", "mine\n");
    let third = syscall_tracer::run(&host.command(&["apply"]), &host.path(""), |_| Act::Pass);
    assert!(third.calls.iter().filter(|call| call.name.contains("sync")).count() > 5);
}

/// The resources of a process: descriptors, threads, kilobytes of memory and inotify watches.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    kilobytes: usize,
    watches: usize,
}

fn held(pid: u32) -> Held {
    let list = |what: &str| {
        let found = std::fs::read_dir(format!("/proc/{pid}/{what}")).expect("it lives");
        found.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let told = list("fdinfo").into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let watches = told.map(|text| text.matches("inotify wd:").count()).sum();
    Held {
        descriptors: list("fd").len(),
        threads: list("task").len(),
        kilobytes: number("VmRSS:"),
        watches,
    }
}

/// F-8: after ten thousand different graphs, descriptors, threads, watches and memory have not grown.
#[test]
fn ten_thousand_reloads_leave_nothing_behind() {
    const RELOADS: usize = 10_000;
    let graph = |content: &str, own: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: f, path: $DIR/f, content: \"{content}\", notify: \"exec[e]\"}}\n  \
             - {{name: {own}, path: $DIR/{own}/, meta: {{sema: [\"{own}:1\"]}}}}\n  exec:\n  - {{name: e, shell: /bin/sh, \
             cmd: \"true\", refresh_only: true}}\n"
        )
    };
    let host = Host::with(&graph("zero", "zero"));
    let mut daemon = host.run(&["--max-repairs-per-minute", "0"]);
    daemon.wait_for("converged");
    let names = ["one", "two", "three"];
    let mut looks = Vec::new();
    for round in 1..=RELOADS {
        // Declarations, watches and names differ in each round; the content changes less often, since each change
        // costs two syncs.
        let content = if round % 50 < 25 { "a" } else { "b" };
        host.graph(&graph(content, names[round % 3]));
        daemon.signal(SIGHUP).wait_for("loaded");
        if round % 1000 == 0 {
            host.wait_until("as declared", || host.read("f") == content);
            daemon.signal(SIGHUP).wait_for("loaded");
            looks.push(held(daemon.pid()));
        }
    }
    // The thread pool has its final size by now. One thread more or less in a sample is work in progress; a leak
    // would not shrink again.
    let grown = looks.split_off(3);
    let (early, late) = grown.split_at(2);
    let least = |looks: &[Held], of: fn(&Held) -> usize| looks.iter().map(of).min();
    for (what, of, room) in [
        ("descriptors", (|held: &Held| held.descriptors) as fn(&Held) -> usize, 2),
        ("threads", |held| held.threads, 3),
        ("watches", |held| held.watches, 0),
        // A leaked graph would be some kilobytes for each reload: more than five times this limit.
        ("kilobytes", |held| held.kilobytes, 8192),
    ] {
        assert!(
            least(late, of) <= least(early, of).map(|least| least + room),
            "{what}: {looks:#?}, then {grown:#?}"
        );
    }
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
}
