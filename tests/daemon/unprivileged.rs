//! The program without root: it works, and forbidden changes are clear failures.

use crate::host::{Host, is_root};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::process::Command;

const GRAPH: &str = r#"
graph: mine
resources:
  file:
  - {name: d, path: $DIR/d/, mode: 0750}
  - {name: f, path: $DIR/d/f, content: "f\n", mode: 0600, after: "file[d]"}
  - {name: forbidden, path: $DIR/locked/f, content: "f\n"}
  - {name: other, path: $DIR/other}
  exec:
  - {name: e, shell: /bin/sh, cmd: "id -u > $DIR/id", creates: $DIR/id}
"#;

fn host() -> Host {
    let host = Host::of_nobody(GRAPH);
    host.make_directory("locked").chmod("locked", 0o555);
    if is_root() {
        chown(host.path("locked"), Some(0), Some(0)).expect("given to root");
    }
    host
}

#[test]
fn a_file_it_may_not_write_is_one_clear_failure() {
    let host = host();
    let answer = host.apply();
    answer.exits(1).ends_with_line("failed: mine: 5 resources, 4 changed, 1 failed");
    let failed: Vec<&str> =
        answer.stdout.lines().filter(|line| line.starts_with("failed file")).collect();
    assert_eq!(failed.len(), 1, "{answer}");
    assert!(
        failed[0].starts_with("failed file[forbidden]: ") && failed[0].contains("ermission"),
        "{answer}"
    );
    assert_eq!(host.read("d/f"), "f\n");
    assert!(host.exists("other") && host.exists("id"));
    if is_root() {
        assert_eq!(host.read("id"), "65534\n");
        assert_eq!(host.metadata("d/f").uid(), 65534);
    }
}

#[test]
fn a_daemon_without_root_holds_what_it_may() {
    let host = host();
    // A directory's mode causes no event for its content: the sweep notices the new permission.
    let daemon = host.run(&["--sweep", "1"]);
    daemon.wait_for_all("changed", &["file[d]", "file[f]", "file[other]"]);
    host.wait_until("the other has failed", || daemon.count("failed") > 0);
    host.remove("d/f");
    daemon.wait_for_of("changed", "file[f]");
    assert_eq!(host.read("d/f"), "f\n");
    host.chmod("locked", 0o777);
    daemon.wait_for("converged");
    assert_eq!(host.read("locked/f"), "f\n");
}

/// Without an option, the state is stored in the user's own directory.
#[test]
fn state_goes_where_the_user_keeps_it() {
    let host = Host::of_nobody("graph: g\nresources: {file: [{name: $DIR/f}]}\n");
    let mut command = host.bare(&["apply", "$DIR/graph.yaml"]);
    command.env("HOME", host.path("")).env_remove("XDG_STATE_HOME").env_remove("STATE_DIRECTORY");
    host.finish(command).exits(0);
    assert_eq!(host.mode(".local/state/steadfast"), 0o700);
}

/// S-11: files that others could change give a warning with the line of the resource, for each way of reading or
/// running them.
#[test]
fn files_open_to_others_are_reported() {
    let host = Host::of_nobody(
        r"graph: told
resources:
  file:
  - {name: a, path: $DIR/a, source: $DIR/open}
  - {name: b, path: $DIR/b, fragments: [$DIR/well, $DIR/open]}
  - {name: c, path: $DIR/c, content: x, validate: [$DIR/judge, '%s']}
  - {name: d, path: $DIR/d, source: $DIR/well}
  exec:
  - {name: e, args: [$DIR/judge]}
",
    );
    for name in ["open", "judge", "well"] {
        host.write(name, "#!/bin/sh\n").chmod(name, 0o755).give_away(name);
    }
    host.chmod("open", 0o666).chmod("judge", 0o777);
    let check = host.check();
    check.exits(0);
    let all: Vec<&str> =
        check.stderr.split("\n\n").filter(|one| one.contains("another user could")).collect();
    let told = |name: &str, what: &str| {
        let found = all.iter().any(|one| one.contains(name) && one.contains(what));
        assert!(found, "{name}: {what}\n{check}");
    };
    told("file[a]", "$DIR/open is writable by others");
    told("file[b]", "$DIR/open is writable by others");
    told("file[c]", "$DIR/judge is writable by others");
    told("exec[e]", "$DIR/judge is writable by others");
    assert_eq!(all.len(), 4, "{check}");
    assert_eq!(host.apply().exits(0).code, 0, "and used all the same");
    assert_eq!(host.read("a"), "#!/bin/sh\n");
}

/// R6: a command without enough threads fails with an error, waits or succeeds, and never panics. Needs root.
#[test]
fn a_lack_of_threads_is_an_error() {
    assert!(is_root(), "this test must run as root");
    // The limit counts all tasks of a user, so the user is one of this test alone.
    let user = 61_000 + std::process::id() % 4000;
    let graph = "
graph: few
resources:
  file: [{name: f, path: $DIR/f, content: x}]
  exec: [{name: e, cmd: /bin/true}]
";
    let host = Host::of_nobody(graph);
    for path in [host.path(""), host.path("graph.yaml")] {
        chown(path, Some(user), Some(user)).expect("given to the user");
    }
    let mut failures = 0;
    for tasks in 1..=8 {
        for words in [&["apply", "$DIR/graph.yaml"][..], &["doctor"]] {
            let mut command = Command::new("timeout");
            command
                .args(["10", "setpriv"])
                .args([format!("--reuid={user}"), format!("--regid={user}")])
                .args(["--clear-groups", "prlimit", &format!("--nproc={tasks}")])
                .arg(host.path("steadfast"))
                .args(words.iter().map(|word| host.full(word)))
                .args(["--state-dir", &host.full("$DIR/state")]);
            let answer = host.finish(command);
            assert!(
                answer.code != 101 && !answer.stderr.contains("panicked"),
                "{tasks} tasks, {words:?}: {answer}"
            );
            failures += usize::from(answer.code != 0);
        }
    }
    assert!(failures > 1, "the limit had no effect");
}
