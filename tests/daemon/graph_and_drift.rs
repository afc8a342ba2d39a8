//! `graph`, `drift` and `plan --explain-edges`: their output, and that they write nothing.

use crate::host::Host;
use serde_json::json;
use std::process::{Command, Stdio};

const GRAPH: &str = r#"graph: shown
resources:
  file:
  - {name: a, path: $DIR/a, content: x}
  - {name: b, after: "file[a]", path: $DIR/b, content: x}
  - {name: 'say "hi"', path: $DIR/c}
  exec:
  - {name: deed, subscribe: ["file[a]", "file[b]"], cmd: touch, args: [$DIR/done]}
  - {name: guarded, cmd: touch, args: [$DIR/guarded], creates: $DIR/guarded}
edges:
- {name: e, from: {kind: file, name: a}, to: {kind: file, name: b}, notify: true}
"#;

#[test]
fn a_graph_is_shown_with_the_origin_of_each_edge() {
    let host = Host::with(GRAPH);
    let expected = r#"shown: 5 resources
  file[a]
  file[b]
  file[say "hi"]
  exec[deed]
  exec[guarded]
3 edges
  file[a] => file[b]: `after` at $DIR/graph.yaml:5:22, `edges` at $DIR/graph.yaml:11:38
  file[a] => exec[deed]: `subscribe` at $DIR/graph.yaml:8:30
  file[b] => exec[deed]: `subscribe` at $DIR/graph.yaml:8:41
  (=> notifies: a change of the first refreshes the second)
"#;
    let shown = host.ask(&["graph"]);
    assert_eq!(shown.exits(0).stdout, expected, "{shown}");
    host.ask(&["plan", "--explain-edges"])
        .exits(0)
        .prints(expected.split_once("3 edges").unwrap().1);
    host.ask(&["graph", "--skip", "file[b]"]).exits(0).prints_nothing_of("file[b]");
}

/// An edge across left-out resources still holds and is explained.
#[test]
fn an_edge_across_what_is_left_out_is_explained() {
    let graph = "graph: g\nresources:\n  noop:\n  - {name: a}\n  - {name: b, after: 'noop[a]'}\n  - {name: c, after: 'noop[b]'}\n";
    let host = Host::with(graph);
    host.ask(&["graph", "--skip", "noop[b]"])
        .exits(0)
        .prints("noop[a] -> noop[c]: across excluded resources");
}

#[test]
fn a_graph_for_graphviz() {
    let host = Host::with(GRAPH);
    let expected = r#"digraph "shown" {
  "file[a]";
  "file[b]";
  "file[say \"hi\"]";
  "exec[deed]";
  "exec[guarded]";
  "file[a]" -> "file[b]";
  "file[a]" -> "exec[deed]";
  "file[b]" -> "exec[deed]";
}
"#;
    assert_eq!(host.ask(&["graph", "--format", "dot"]).exits(0).stdout, expected);
}

#[test]
fn a_graph_as_json() {
    let host = Host::with(GRAPH);
    let json = host.ask(&["graph", "--format", "json"]).exits(0).json();
    assert_eq!(json["resources"].as_array().map(Vec::len), Some(5));
    assert_eq!(json["resources"][1]["line"], 5);
    let edge = &json["edges"][0];
    assert_eq!((&edge["from"], &edge["to"]), (&json!("file[a]"), &json!("file[b]")));
    let keys = edge["origins"].as_array().unwrap().iter().map(|origin| origin["key"].clone());
    assert_eq!(keys.collect::<Vec<_>>(), ["after", "edges"]);
    let plan = host.ask(&["plan", "--json", "--explain-edges"]).exits(0).json();
    assert_eq!(plan["edges"], json["edges"]);
}

#[test]
fn codes_kinds_and_metaparams_are_explained() {
    let host = Host::with("graph: g\nresources: {file: [{name: /a, contents: x}]}\n");
    host.check().exits(65).says("[C101]").says("more: steadfast explain C101");
    let explain = |words: &[&str]| host.finish(host.bare(&[&["explain"], words].concat()));
    explain(&["c101"]).exits(0).prints("C101: an unknown key").prints("```yaml right");
    explain(&["exec"])
        .exits(0)
        .prints("refresh_only")
        .prints("true or false. Run only when notified");
    explain(&["meta"]).exits(0).prints("retry").prints("Integer.");
    explain(&[]).exits(0).prints("  file ").prints("  C404 ");
    explain(&["exce"]).exits(64).says("unknown topic `exce`");
}

/// Commands without a guard have no state that could differ; resources with a check have.
#[test]
fn drift_is_what_differs_now() {
    let host = Host::with(GRAPH);
    host.write("a", "y").write("b", "x").write("c", "");
    let drift = host.ask(&["drift", "--detailed-exitcode"]);
    drift
        .exits(2)
        .prints("drift: shown: 2 resources differing, 2 unchanged")
        .prints("~ file[a]")
        .prints("~ exec[guarded]")
        .prints_nothing_of("deed");
    host.ask(&["drift"]).exits(0);
    assert!(!host.exists("done") && !host.exists("guarded") && !host.exists("state"));
    host.apply().exits(0);
    host.ask(&["drift", "--detailed-exitcode"])
        .exits(0)
        .prints("0 resources differing, 4 unchanged");
    host.write("b", "edited");
    let json = host.ask(&["drift", "--json"]).exits(0).json();
    assert_eq!(json["resources"][0]["resource"], "file[b]");
}

/// Invariant 4, DESIGN.md 2.4: a read-only command opens no file for writing in any thread, and creates, moves and
/// removes nothing.
#[test]
fn looking_opens_nothing_for_writing() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.write("a", "edited").remove("b");
    for words in [&["drift"][..], &["plan"], &["graph"], &["check"]] {
        opens_nothing_for_writing(&host, &host.command(words), false);
    }
}

/// Invariant 4: read-only commands write nothing with a running daemon, whose database log is in use, and after a
/// killed one, whose log remains. They show the stored state, log included. `SQLite` opens the log for writing, but
/// the state directory stays equal byte for byte.
#[test]
fn looking_beside_a_daemon_opens_nothing_for_writing() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.graph(&GRAPH.replace("graph: shown", "graph: shown\ncomment: another"));
    let look = || {
        assert!(host.metadata("state/state.db-wal").len() > 0, "the log is in use");
        let bytes = || {
            ["", "-wal", "-shm"].map(|part| {
                std::fs::read(host.path(&format!("state/state.db{part}"))).expect("read")
            })
        };
        let before = bytes();
        for words in [&["drift"][..], &["plan"], &["graph"], &["check"]] {
            opens_nothing_for_writing(&host, &host.command(words), true);
        }
        for words in [&["state", "show"][..], &["state", "verify"], &["state", "export"]] {
            let mut command = host.bare(words);
            command.arg("--state-dir").arg(host.path("state"));
            opens_nothing_for_writing(&host, &command, true);
        }
        host.plan().exits(0).prints("0 resources to change");
        assert!(bytes() == before, "nothing was written");
    };
    look();
    let mut status = host.bare(&["status"]);
    status.arg("--state-dir").arg(host.path("state"));
    opens_nothing_for_writing(&host, &status, true);
    daemon.kill();
    look();
}

/// Runs a command successfully under a tracer. `in_use`: the database log is in use and `SQLite` opens it.
#[track_caller]
fn opens_nothing_for_writing(host: &Host, inner: &Command, in_use: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let traced = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=file,ftruncate,fallocate,fsync,fchmod,fchown", "-o"]);
    strace.arg(&traced).arg(inner.get_program()).args(inner.get_args());
    strace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    host.finish(strace).exits(0);
    let trace = std::fs::read_to_string(&traced).expect("the trace");
    assert!(trace.contains("execve("), "something was traced");
    let calls = trace.lines().filter(|line| !line.contains("+++") && !line.contains("---"));
    let wrong: Vec<&str> =
        calls.filter(|line| !line.contains("resumed>") && !only_reads(line, in_use)).collect();
    assert!(wrong.is_empty(), "{inner:?}: {wrong:#?}");
}

fn only_reads(line: &str, in_use: bool) -> bool {
    const READING: [&str; 22] = [
        "execve",
        "access",
        "faccessat",
        "faccessat2",
        "stat",
        "lstat",
        "newfstatat",
        "statx",
        "fstat",
        "statfs",
        "fstatfs",
        "readlink",
        "readlinkat",
        "getcwd",
        "chdir",
        "inotify_add_watch",
        "getxattr",
        "lgetxattr",
        "listxattr",
        "llistxattr",
        "fgetxattr",
        "flistxattr",
    ];
    let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
    let name = call.split('(').next().unwrap_or_default();
    let opens = ["open", "openat", "openat2"].contains(&name);
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];
    // The owner is set to the present owner.
    let of_log = in_use && (name == "fchown" || call.contains("/state/state.db-wal\""));
    let harmless = of_log || call.contains("\"/dev/null\"");
    let reads = opens && !writes.iter().any(|word| call.contains(word));
    READING.contains(&name) || harmless || reads
}
