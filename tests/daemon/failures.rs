//! Failures: retried as declared, then reported together with the waiting dependents; other resources go on, and a
//! removed cause heals them.

use crate::host::Host;

const GRAPH: &str = r#"
graph: fails
resources:
  exec:
  - name: bad
    shell: /bin/sh
    cmd: "date +%s.%N >> $DIR/tries; test -e $DIR/cause"
    watchfiles: [$DIR/cause]
    meta: {retry: 2, delay: 100}
  file:
  - {name: child, path: $DIR/child, after: "exec[bad]"}
  - {name: grandchild, path: $DIR/grandchild, after: "file[child]"}
  - {name: other, path: $DIR/other}
"#;

/// E-10, R-13: after three attempts the resource is failed. Its dependents wait, the others converge, and the exit
/// code tells the failure.
#[test]
fn two_retries_are_three_tries() {
    let host = Host::with(GRAPH);
    host.apply()
        .exits(1)
        .prints("failed exec[bad]: exit 1")
        .prints("waiting file[child]: for exec[bad]")
        .prints("waiting file[grandchild]: for ")
        .prints("changed file[other]")
        .ends_with_line("failed: fails: 4 resources, 1 changed, 1 failed, 2 waiting");
    assert!(host.exists("other") && !host.exists("child") && !host.exists("grandchild"));
    let tries: Vec<f64> =
        host.lines("tries").iter().map(|line| line.parse().expect("a time")).collect();
    assert_eq!(tries.len(), 3);
    assert!(
        tries[1] - tries[0] >= 0.095 && tries[2] - tries[1] >= 0.19,
        "the wait doubles: {tries:?}"
    );
    host.graph(&GRAPH.replace("retry: 2", "retry: 0")).remove("tries").apply().exits(1);
    assert_eq!(host.lines("tries").len(), 1);
}

#[test]
fn waiting_dependents_are_in_the_json_too() {
    let host = Host::with(GRAPH);
    let json = host.ask(&["apply", "--json"]).exits(1).json();
    let of = |name: &str| {
        let all = json["resources"].as_array().expect("a list");
        all.iter().find(|r| r["resource"] == name).expect("there").clone()
    };
    assert_eq!(of("exec[bad]")["state"], "failed");
    assert!(of("exec[bad]")["error"].as_str().is_some_and(|t| t.contains("exit 1")));
    assert_eq!(of("file[child]")["state"], "waiting");
    assert_eq!(of("file[child]")["waits_for"], serde_json::json!(["exec[bad]"]));
    assert_eq!(of("file[other]")["state"], "converged");
}

/// E-10: in a daemon, a failed resource heals once the cause is removed.
#[test]
fn fixing_the_cause_heals_it() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--sweep", "0"]);
    let line = daemon.wait_for_of("failed", "exec[bad]");
    assert!(
        line.message.contains("1 dependent waiting: ") && line.message.contains("file[child]"),
        "{line:?}"
    );
    assert_eq!(host.lines("tries").len(), 3);
    host.wait_until("others are done", || host.exists("other"));
    daemon.has_not_said("converged");
    host.write("cause", "");
    daemon.wait_for_of("recovered", "exec[bad]");
    daemon.wait_for("converged");
    assert!(host.exists("child") && host.exists("grandchild"));
}

/// F-3: a missing parent directory is the cause; the file is written once the directory exists.
#[test]
fn a_file_without_its_directory_heals_when_it_comes() {
    let host = Host::with(
        "graph: g\nresources: {file: [{name: $DIR/sub/f, content: x}, {name: $DIR/other}]}\n",
    );
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "file[$DIR/sub/f]");
    host.make_directory("sub");
    daemon.wait_for("converged");
    assert_eq!(host.read("sub/f"), "x");
}

/// E-10: HUP, a request of the operator, resets the retries.
#[test]
fn a_reload_tries_again() {
    let host = Host::with(&GRAPH.replace("    watchfiles: [$DIR/cause]\n", ""));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "exec[bad]");
    host.write("cause", "");
    daemon.signal(nix::sys::signal::Signal::SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert_eq!(host.lines("tries").len(), 4);
    assert!(host.exists("grandchild"));
}

/// R-5: endless retries delay neither a pause nor a stop.
#[test]
fn an_endless_retry_can_be_paused_and_stopped() {
    let host = Host::with(&GRAPH.replace("retry: 2, delay: 100", "retry: -1, delay: 0"));
    let mut daemon = host.run(&[]);
    host.wait_for_lines("tries", 2);
    daemon.signal(nix::sys::signal::Signal::SIGUSR1).wait_for("paused");
    let tries = host.lines("tries").len();
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(host.lines("tries").len(), tries);
    daemon.signal(nix::sys::signal::Signal::SIGUSR2);
    host.wait_for_lines("tries", tries + 1);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
}
