//! Rejected graphs, command lines and state directories: each with its exit code and a remedy.

use crate::host::{Host, is_root};
use std::fmt::Write as _;
use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

/// S-10, F-13: all problems are reported at once, each with its place.
#[test]
fn check_tells_every_problem_at_once() {
    let host = Host::with(
        r#"graph: bad
resources:
  file:
  - {name: a, path: $DIR/a, mode: 644}
  - {name: b, path: $DIR/b, contents: x}
  - {name: b, path: $DIR/c}
  - {name: d, path: $DIR/x}
  - {name: e, path: !tag $DIR/e}
  - {name: f, path: $DIR//x}
  net: [{name: eth0}]
  noop:
  - {name: x, after: "noop[y]"}
  - {name: y, after: "noop[x]"}
  - {name: z, after: "noop[z]"}
  - {name: w, after: "noop[nowhere]"}
  - {name: v, meta: {limit: 1, burst: 0}}
  - {name: u, meta: {sema: ["s:1", "s:2"]}}
"#,
    );
    let answer = host.check();
    answer.exits(65);
    for (line, words) in [
        (4, "644"),
        (5, "contents"),
        (6, "file[b]"),
        (9, "claimed twice"),
        (10, "not in this build"),
        (15, "nowhere"),
        (16, "burst"),
        (17, "count 2 here and 1 elsewhere"),
    ] {
        let place = format!("$DIR/graph.yaml:{line}:");
        let told =
            answer.stderr.lines().any(|said| said.starts_with(&place) && said.contains(words));
        assert!(told, "`{place}` with `{words}`\n{answer}");
    }
    answer.says("noop[x] → noop[y] → noop[x]").says("`noop[z]` would wait for itself").says("0644");
    host.apply().exits(65);
    host.plan().exits(65);
    assert_eq!(host.run(&[]).ends(), 65);
    assert!(!host.exists("a"), "a graph with problems is refused whole");
}

#[test]
fn json_commands_reject_in_json() {
    let host = Host::with("graph: g\nresources: {nop: [{name: a}], file: [{name: b}]}\n");
    let commands = [["check", "--json"], ["plan", "--json"], ["apply", "--json"]];
    let others = [["drift", "--json"], ["graph", "--format=json"]];
    for words in commands.iter().chain(&others) {
        let answer = host.ask(words);
        let json = answer.exits(65).json();
        let problems = json["problems"].as_array().expect("a list");
        assert_eq!(problems.len(), 2, "{answer}");
        assert!(problems.iter().all(|p| p["places"][0]["line"] == 2), "{answer}");
    }
    host.graph("graph: g\n").ask(&["check", "--json"]).exits(65);
    host.ask(&["check", "--json", "--allow-empty"]).exits(0);
}

/// S-10: alias bombs are rejected quickly.
#[test]
fn bombs_are_refused_quickly() {
    let mut laughs = "graph: g\na0: &a0 [x, x]\n".to_owned();
    for n in 1..40 {
        writeln!(laughs, "a{n}: &a{n} [*a{m}, *a{m}, *a{m}]", m = n - 1).expect("a string");
    }
    let deep = format!("graph: g\nresources: {}\n", "[".repeat(100_000));
    for text in [laughs, deep, "\u{0}\u{1}".to_owned(), "graph: [".to_owned(), "- a\n".to_owned()] {
        let host = Host::with(&text);
        let began = Instant::now();
        host.check().exits(65);
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "a program not optimised, on a busy machine"
        );
    }
}

/// F-13: a long chain causes no recursion.
#[test]
fn a_long_chain_overflows_no_stack() {
    let mut text = "graph: chain\nresources:\n  noop:\n  - {name: n0}\n".to_owned();
    for n in 1..50_000 {
        writeln!(text, "  - {{name: n{n}, after: \"noop[n{}]\"}}", n - 1).expect("a string");
    }
    let host = Host::with(&text);
    host.check().exits(0).prints("valid: chain: 50000 resources, 49999 edges");
    host.apply().exits(0);
    let closed = text.replace("{name: n0}", "{name: n0, after: \"noop[n49999]\"}");
    host.graph(&closed).check().exits(65).says("dependency cycle of 50000 resources");
}

#[test]
fn a_wrong_command_line_is_64() {
    let host = Host::with("graph: g\n");
    for words in [
        &[][..],
        &["frobnicate"],
        &["run"],
        &["apply", "--nop", "$DIR/graph.yaml"],
        &["apply", "--sema", "0", "$DIR/graph.yaml"],
        &["run", "--log", "xml", "$DIR/graph.yaml"],
        &["run", "--converged-timeout", "x", "$DIR/graph.yaml"],
    ] {
        let answer = host.finish(host.bare(words));
        answer.exits(64);
        assert!(answer.stdout.is_empty() && !answer.stderr.is_empty(), "{words:?}: {answer}");
    }
    host.finish(host.bare(&["--help"])).exits(0).prints("apply");
    host.finish(host.bare(&["--version"])).exits(0).prints("steadfast 0.");
}

#[test]
fn a_graph_that_is_not_there_is_65() {
    let host = Host::with("graph: g\n");
    host.remove("graph.yaml");
    for command in ["check", "plan", "apply"] {
        host.ask(&[command]).exits(65).says("graph.yaml");
    }
}

/// C-10: a second daemon is rejected; the lock left by `kill -9` does not block.
#[test]
fn a_second_daemon_is_75_and_told_to_reload() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f}]}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let pid = daemon.pid().to_string();
    host.apply().exits(75).says("reload").says(&pid);
    host.finish(host.command(&["run"])).exits(75).says("reload").says(&pid);
    daemon.kill();
    host.apply().exits(0);
}

#[test]
fn a_state_directory_that_cannot_be_is_73() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f}]}\n");
    host.write("state", "a file");
    for command in ["apply", "run"] {
        host.ask(&[command]).exits(73).says("state").says("--state-dir");
    }
    assert!(!host.exists("f"));
}

#[test]
fn a_state_directory_without_permission_is_77() {
    let host = Host::of_nobody("graph: g\nresources: {file: [{name: $DIR/f}]}\n");
    host.make_directory("locked").chmod("locked", 0o500);
    if is_root() {
        chown(host.path("locked"), Some(0), Some(0)).expect("given to root");
    }
    for command in ["apply", "run"] {
        let command = host.bare(&[command, "--state-dir", "$DIR/locked/state", "$DIR/graph.yaml"]);
        host.finish(command).exits(77).says("--state-dir");
    }
    assert!(!host.exists("f"));
}

/// A reader that closes the pipe causes neither an error nor a panic.
#[test]
fn a_closed_pipe_is_no_panic() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    for words in [&["plan"][..], &["check"], &["apply"], &["apply", "--json"]] {
        let mut command = host.command(words);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.stdout(writer);
        host.finish(command).exits(0);
    }
    let mut command = host.command(&["apply"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    command.stderr(writer);
    host.finish(command).exits(0);
}

/// B15: the hint for a state directory open to others names the remedy.
#[test]
fn an_open_state_directory_names_the_cure() {
    let host = Host::with("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    host.make_directory("open").write("open/other", "").chmod("open", 0o755);
    let applied = host.finish(host.bare(&["apply", "--state-dir", "$DIR/open", "$DIR/graph.yaml"]));
    applied
        .exits(73)
        .says("accessible to others (mode 0755)")
        .says("hint: run `chmod 700 $DIR/open`, or select another directory with --state-dir");
}

/// S-11: root rejects a state directory that another user could replace.
#[test]
fn a_state_directory_in_a_folder_of_others_is_refused() {
    let host = Host::with("graph: g\nresources: {noop: [{name: a}]}\n");
    if !is_root() {
        return;
    }
    host.make_directory("home");
    chown(host.path("home"), Some(65534), None).expect("given away");
    let apply =
        || host.finish(host.bare(&["apply", "$DIR/graph.yaml", "--state-dir", "$DIR/home/s"]));
    apply().exits(73).says("another user could replace the directory").says("belongs to uid 65534");
    apply().exits(73);
    chown(host.path("home"), Some(0), None).expect("taken back");
    apply().exits(0);
}
