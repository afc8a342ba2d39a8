//! Reloads by HUP and `--watch`: only changed resources are affected; a broken graph is rejected whole with its
//! place, and the old one goes on.

use crate::client_commands::status;
use crate::host::Host;
use crate::process;
use nix::sys::signal::Signal::{SIGHUP, SIGUSR1, SIGUSR2};
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: first
resources:
  file:
  - {name: same, path: $DIR/same, content: "same\n"}
  - {name: changed, path: $DIR/changed, content: "one\n"}
  - {name: removed, path: $DIR/removed, content: "stays where it is\n"}
  exec:
  - {name: once, shell: /bin/sh, cmd: "echo x >> $DIR/once"}
  - {name: sleeps, args: [$DIR/sleep, "1000"]}
"#;

fn second() -> String {
    let changed = GRAPH
        .replace("one\\n", "two\\n")
        .replace("removed, path: $DIR/removed", "added, path: $DIR/added");
    assert_ne!(changed, GRAPH);
    changed
}

fn sleeper(host: &Host) -> i32 {
    let find = || host.processes().into_iter().find(|(_, words)| words.contains("/sleep 1000"));
    host.wait_until("the exec sleeps", || find().is_some());
    find().expect("it sleeps").0
}

/// E-17: unchanged resources keep their records and their active runs.
#[test]
fn only_what_differs_is_touched() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    let pid = sleeper(&host);
    daemon.wait_for_all("changed", &["file[same]", "file[changed]", "file[removed]", "exec[once]"]);
    let before = host.metadata("same");
    host.graph(&second());
    let line = daemon.signal(SIGHUP).wait_for("loaded");
    let says = "1 added, 1 changed, 1 removed, 3 unchanged\n+ file[added]\n~ file[changed]\n  file[removed]";
    assert!(line.message.contains(says), "{line:?}");
    daemon.wait_for_all("changed", &["file[changed]", "file[added]"]);
    assert_eq!(
        (host.read("changed"), host.read("added")),
        ("two\n".into(), "stays where it is\n".into())
    );
    assert!(host.exists("removed"), "what leaves the graph is forgotten, not removed");
    let after = host.metadata("same");
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(sleeper(&host), pid, "the exec that runs was not disturbed");
    assert_eq!(host.lines("once").len(), 1);
    host.write("removed", "mine\n").write("added", "mine\n");
    daemon.wait_for_of("changed", "file[added]");
    assert_eq!(host.read("removed"), "mine\n");
}

/// A reload of the same graph has no effect.
#[test]
fn the_same_graph_again_touches_nothing() {
    let host = Host::with(&GRAPH.replace("1000", "0"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for _ in 0..3 {
        let line = daemon.signal(SIGHUP).wait_for("loaded");
        assert!(line.message.ends_with("0 added, 0 changed, 0 removed, 5 unchanged"), "{line:?}");
        daemon.wait_for("converged");
    }
    assert_eq!(daemon.count("changed"), 5);
    assert_eq!(host.lines("once").len(), 1);
}

/// R-17, F-20: a broken graph is rejected with its place, and the old graph goes on.
#[test]
fn a_broken_graph_is_refused_and_the_old_one_goes_on() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    let pid = sleeper(&host);
    daemon.wait_for_all("changed", &["file[same]", "file[changed]", "exec[once]"]);
    let broken = second().replace("path: $DIR/same", "pth: $DIR/same");
    host.graph(&broken);
    let line = daemon.signal(SIGHUP).wait_for("rejected");
    assert!(line.message.contains("$DIR/graph.yaml:5:18: "), "file, line and column: {line:?}");
    assert!(
        line.message.contains("pth") && line.message.contains("did you mean `path`"),
        "{line:?}"
    );
    host.write("changed", "mine\n");
    daemon.wait_for_of("changed", "file[changed]");
    assert_eq!(host.read("changed"), "one\n");
    assert!(!host.exists("added"));
    assert_eq!(sleeper(&host), pid);
    host.remove("graph.yaml");
    daemon.signal(SIGHUP).wait_for("rejected");
    host.graph(&second());
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for_all("changed", &["file[changed]", "file[added]"]);
}

/// `status` shows that the graph on disk is rejected, and the reason, until a graph is accepted.
#[test]
fn a_refused_graph_is_in_the_status() {
    let good = GRAPH.replace("1000", "0");
    let host = Host::with(&good);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("rejected");
    assert_eq!(status(&host)["rejected"], Value::Null);
    host.graph(&good.replace("path: $DIR/same", "pth: $DIR/same"));
    daemon.wait_for("rejected");
    host.wait_until("all is as declared", || status(&host)["verdict"] == "converged");
    let said = host.ask_daemon(&["status"]);
    said.exits(65);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("first: converged"), "{said}");
    assert!(lines[1].starts_with("  the current graph file was rejected "), "{said}");
    assert!(lines[1].contains("$DIR/graph.yaml:5:18: ") && lines[1].contains("pth"), "{said}");
    let refused = &status(&host)["rejected"];
    assert!(refused["reason"].as_str().is_some_and(|why| !why.contains('\n')), "{refused}");
    assert!(refused["details"].as_str().is_some_and(|full| full.contains("hint: ")), "{refused}");
    // A failed resource has priority in the verdict.
    host.make_directory("full").write("full/theirs", "precious\n").exchange("full", "same");
    daemon.wait_for_of("failed", "file[same]");
    host.ask_daemon(&["status"]).exits(1).prints("the current graph file was rejected");
    host.exchange("full", "same");
    host.graph(&good);
    daemon.wait_for("loaded");
    host.wait_until("all is well", || host.ask_daemon(&["status"]).code == 0);
    host.ask_daemon(&["status"]).prints_nothing_of("rejected");
}

/// `--watch` reloads a changed graph by itself: written in place, replaced whole, and broken in between.
#[test]
fn a_watched_graph_is_read_again_by_itself() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for_all("changed", &["file[same]", "file[changed]"]);
    host.graph(&second());
    daemon.wait_for_all("changed", &["file[changed]", "file[added]"]);
    host.write("new.yaml", host.full(&GRAPH.replace("one\\n", "three\\n")))
        .rename("new.yaml", "graph.yaml");
    daemon.wait_for_of("changed", "file[changed]");
    assert_eq!(host.read("changed"), "three\n");
    host.graph("graph: [\n");
    daemon.wait_for("rejected");
    host.graph(&second());
    daemon.wait_for_of("changed", "file[changed]");
    assert_eq!(host.read("changed"), "two\n");
}

/// With `--watch`, a new file in the graph's folder extends the graph.
#[test]
fn a_watched_folder_is_read_again_when_a_file_comes() {
    let host = Host::with("graph: unused\n");
    host.make_directory("folder");
    host.write("folder/1.yaml", host.full("graph: two\nresources: {file: [{name: $DIR/1}]}\n"));
    let mut command =
        host.bare(&["run", "--log", "json", "--watch", "--state-dir", "$DIR/state", "$DIR/folder"]);
    command.env_remove("STEADFAST_LOG");
    let daemon = crate::daemon::Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    host.write("folder/2.yaml", host.full("resources: {file: [{name: $DIR/2}]}\n"));
    daemon.wait_for_of("changed", "file[$DIR/2]");
    host.remove("folder/2.yaml");
    let line = daemon.wait_for("loaded");
    assert!(line.message.contains("1 removed"), "{line:?}");
}

/// E-17: a reload waits for the active run of a changed resource; others go on meanwhile.
#[test]
fn a_reload_waits_for_what_it_changes() {
    let host = Host::with(
        r#"
graph: waits
resources:
  exec:
  - {name: long, shell: /bin/sh, cmd: "echo x >> $DIR/began; while ! test -e $DIR/go; do $DIR/sleep 0.02; done; echo one >> $DIR/ended"}
  file: [{name: f, path: $DIR/f, content: "f\n"}]
"#,
    );
    let daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    daemon.wait_for_of("changed", "file[f]");
    host.graph(&host.read("graph.yaml").replace("echo one", "echo two").replace("f\\n", "g\\n"));
    let line = daemon.signal(SIGHUP).wait_for("loading");
    assert!(line.message.contains("exec[long]"), "it says whom it waits for: {line:?}");
    host.ask_daemon(&["status"])
        .exits(2)
        .prints("  a newer graph, waits, has waited ")
        .prints(" s for running resources: exec[long]\n");
    let swap = &status(&host)["swap"];
    assert_eq!((&swap["graph"], &swap["waits_for"][0]), (&"waits".into(), &"exec[long]".into()));
    host.write("go", "");
    daemon.wait_for("loaded");
    assert_eq!(status(&host)["swap"], Value::Null);
    daemon.wait_for("converged");
    assert_eq!(host.lines("ended"), ["one", "two"]);
    assert_eq!(host.read("f"), "g\n");
}

/// F-20: a storm of signals during reloads never gives half a graph or the broken one; the last signals decide.
#[test]
fn signals_stormed_during_reloads_leave_nothing_half_done() {
    let graph = |n: usize| {
        let files = ["a", "b", "c"]
            .map(|name| format!("  - {{name: {name}, path: $DIR/{name}, content: \"{n}\\n\"}}\n"));
        format!("graph: storm\nresources:\n  file:\n{}", files.join(""))
    };
    let host = Host::with(&graph(0));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for n in 1..=60 {
        let text = if n % 3 == 0 { graph(n).replace("path", "pth") } else { graph(n) };
        // Each graph is written whole, so that half a graph could only come from the program.
        host.write("new", host.full(&text)).rename("new", "graph.yaml");
        for signal in [SIGHUP, SIGUSR1, SIGHUP, SIGUSR2, SIGHUP] {
            daemon.signal(signal);
        }
    }
    host.graph(&graph(61));
    // Pending signals have no order, so the last two are sent alone.
    host.wait_until("all signals are taken", || process::pending(daemon.pid()) == 0);
    daemon.signal(SIGUSR2).signal(SIGHUP);
    host.wait_until("the last graph runs", || {
        ["a", "b", "c"].iter().all(|f| host.read(f) == "61\n")
    });
    host.write("a", "mine\n");
    host.wait_until("and holds", || host.read("a") == "61\n");
    let loaded = daemon.log().into_iter().filter(|line| line.event == "loaded");
    let half: Vec<_> = loaded
        .skip(1)
        .filter(|line| !line.message.contains("3 changed") && !line.message.contains("3 unchanged"))
        .collect();
    assert!(half.is_empty(), "each graph differs in all three or in none: {half:?}");
}

/// F-20: a graph that is being written in place is not loaded as the shorter graph of its beginning.
#[test]
fn the_beginning_of_a_graph_is_no_graph() {
    let files: Vec<_> =
        (0..400).map(|n| format!("  - {{name: f{n}, path: $DIR/f{n}, state: absent}}\n")).collect();
    let text = format!("graph: long\nresources:\n  file:\n{}", files.concat());
    let host = Host::with(&text);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    let whole = host.full(&text);
    let mut first = 0;
    // A round whose writer was itself delayed for too long proves nothing.
    let calm = (0..5).any(|_| {
        daemon.signal(SIGHUP).wait_for("loaded");
        daemon.wait_for("converged");
        first = daemon.log().len();
        longest_pause(&host, whole.as_bytes()) < Duration::from_millis(80)
    });
    assert!(calm, "this machine is too busy to write without a pause");
    host.write("f0", "").wait_until("and it holds", || !host.exists("f0"));
    daemon.signal(SIGHUP);
    daemon.wait_for("loaded");
    daemon.wait_for("converged");
    let loaded = daemon.log().into_iter().skip(first).filter(|line| line.event == "loaded");
    let less: Vec<_> = loaded.filter(|line| !line.message.contains("400 unchanged")).collect();
    assert!(less.is_empty(), "{less:?}");
}

/// Writes the graph in parts for a second, again and again; returns the longest pause between two parts.
fn longest_pause(host: &Host, whole: &[u8]) -> Duration {
    let (began, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while began.elapsed() < Duration::from_secs(1) {
        let mut file = std::fs::File::create(host.path("graph.yaml")).expect("truncated");
        for part in whole.chunks(whole.len() / 8) {
            std::thread::sleep(Duration::from_millis(1));
            file.write_all(part).expect("written");
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
    }
    longest
}

/// A pipe in place of the graph is rejected at once, and does not block the next reload.
#[test]
fn a_pipe_in_place_of_the_graph_holds_nothing_up() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: one}]}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.remove("graph.yaml");
    let pipe = std::process::Command::new("mkfifo").arg(host.path("graph.yaml")).status();
    assert!(pipe.expect("runs").success());
    let line = daemon.signal(SIGHUP).wait_for("rejected");
    assert!(line.message.contains("the path is a pipe, not a file"), "{line:?}");
    host.check().exits(65).says("the path is a pipe, not a file").says("pipe it in");
    host.remove("graph.yaml");
    host.graph("graph: g\nresources: {file: [{name: $DIR/f, content: two}]}\n");
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert_eq!(host.read("f"), "two");
}

/// `wait` ends with 2 if only `noop` keeps resources from convergence: no time ends that. A resource that is unknown
/// until one in noop is changed counts as held by it.
#[test]
fn a_wait_ends_where_only_noop_is_left() {
    let graph = |noop: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: f, path: $DIR/f, content: x}}\n  \
             - {{name: seen, path: $DIR/seen, content: x, meta: {{noop: {noop}}}}}\n"
        )
    };
    let host = Host::with(&graph("true"));
    let daemon = host.run(&[]);
    daemon.wait_for_of("held", "file[seen]");
    for words in [&["wait"][..], &["wait", "file[*]"], &["wait", "seen"]] {
        host.ask_daemon(words).exits(2).says("all but file[seen] converged; held by `noop`");
    }
    host.ask_daemon(&["wait", "f", "--timeout", "60"]).exits(0);
    host.graph(&graph("false"));
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    assert_eq!(host.read("seen"), "x");
    host.graph(
        "graph: g\nresources:\n  file:\n  - {name: d, path: $DIR/d/, meta: {noop: true}}\n  \
         - {name: below, path: $DIR/d/below, content: x, meta: {noop: true}}\n",
    );
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["wait"]).exits(2).says(" and 1 more converged; held by `noop`");
}

/// B9: `wait` fails if the graph on disk is rejected, even if the old graph is converged.
#[test]
fn a_wait_fails_on_a_rejected_graph() {
    let host = Host::with("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    host.graph("graph: g\nresources: {file: [{name: f, pth: $DIR/f}]}\n");
    daemon.wait_for("rejected");
    for flags in [&["wait"][..], &["wait", "--timeout", "60"]] {
        host.ask_daemon(flags)
            .exits(65)
            .says("the graph is rejected: $DIR/graph.yaml:2:")
            .says("pth");
    }
    host.graph("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: y}]}\n");
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
}
