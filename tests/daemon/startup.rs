//! The start of a daemon, its convergence, and its end by itself.

use crate::host::Host;
use std::time::{Duration, Instant};

#[test]
fn a_daemon_ends_when_all_has_been_right_for_long_enough() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    let began = Instant::now();
    let mut daemon = host.run(&["--converged-timeout", "1"]);
    assert_eq!(daemon.ends(), 0);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(host.read("f"), "x");
    daemon.wait_for("loaded");
    daemon.wait_for("converged");
    daemon.wait_for("stopped");
}

/// R-13: a failed host has not converged.
#[test]
fn a_daemon_with_a_failure_does_not_end_by_itself() {
    let host = Host::with(
        "graph: g\nresources: {exec: [{name: e, args: [\"false\"]}], file: [{name: $DIR/f}]}\n",
    );
    let mut daemon = host.run(&["--converged-timeout", "0"]);
    daemon.wait_for_of("failed", "exec[e]");
    // Real time on purpose.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(daemon.count("converged"), 0);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(host.exists("f"));
}

/// An empty graph is valid.
#[test]
fn an_empty_graph_converges_at_once() {
    let host = Host::with("graph: empty\n");
    host.ask(&["apply", "--allow-empty"])
        .exits(0)
        .ends_with_line("done: empty: 0 resources, 0 changed");
    let daemon = host.run(&["--allow-empty"]);
    daemon.wait_for("converged");
}

/// R-9: a change before the watch is established is not missed, at any moment.
#[test]
fn changes_during_the_start_are_not_missed() {
    let files: Vec<_> =
        (0..200).map(|n| format!("  - {{name: $DIR/f{n}, content: \"f\\n\"}}\n")).collect();
    let files = files.join("");
    let host = Host::with(&format!("graph: many\nresources:\n  file:\n{files}"));
    host.apply().exits(0);
    for round in 0..5 {
        let daemon = host.run(&["--sweep", "0"]);
        let end = Instant::now() + Duration::from_millis(100 * (round + 1));
        let mut n = 0;
        while Instant::now() < end {
            host.write(&format!("f{}", n % 200), "mine\n");
            n += 1;
        }
        host.wait_until("all as declared", || {
            (0..200).all(|n| host.read(&format!("f{n}")) == "f\n")
        });
        daemon.kill();
    }
}

/// S-7: the state directory is private.
#[test]
fn the_state_directory_is_for_us_alone() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.mode("state"), 0o700);
    for entry in std::fs::read_dir(host.path("state")).expect("the state") {
        let name = entry.expect("an entry").file_name();
        assert_eq!(host.mode(&format!("state/{}", name.display())) & 0o077, 0, "{name:?}");
    }
}

/// Every line of the log is a JSON object with the needed fields.
#[test]
fn the_log_is_json_line_by_line() {
    let host = Host::with(
        r#"
graph: g
resources:
  exec: [{name: e, shell: /bin/sh, cmd: 'printf "a\033[2Jb" >&2'}]
"#,
    );
    let mut daemon = host.run(&["--converged-timeout", "0"]);
    assert_eq!(daemon.ends(), 0);
    let log = daemon.log();
    assert!(log.iter().all(|line| line.event != "talk"), "{log:?}");
    let events: Vec<&str> = log.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(events, ["loaded", "changed", "converged", "stopping", "stopped"]);
    let foreign = log.iter().any(|line| line.message.contains('\u{1b}'));
    assert!(
        !foreign && log[1].message.contains("[2Jb"),
        "S-13: foreign characters are escaped: {log:?}"
    );
}

#[test]
fn the_human_log_says_the_same() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    let answer = host.ask(&["run", "--converged-timeout", "0"]);
    answer
        .exits(0)
        .says("loaded: graph g")
        .says("changed file[$DIR/f]: created")
        .says("converged: 1 resource");
    assert!(!answer.stderr.contains('\u{1b}'), "no colour on a pipe: {answer}");
}

/// A log that is unread or on a full disk does not affect the daemon.
#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: right}]}\n");
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("opened");
    let mut apply = host.command(&["apply", "--log", "json"]);
    apply.stdout(std::process::Stdio::null()).stderr(full());
    assert_eq!(apply.status().expect("it ends").code(), Some(0));
    let mut command = host.command(&["run"]);
    command.stdout(std::process::Stdio::null()).stderr(full());
    let mut child = command.spawn().expect("started");
    for text in ["wrong", "bad"] {
        host.write("f", text);
        host.wait_until("it is put back", || host.read("f") == "right");
    }
    assert!(child.try_wait().expect("asked").is_none(), "it still runs");
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

/// F2: before the first graph, `status` says starting (exit code 2) and `wait` goes on waiting, also while a new
/// driver starts.
#[test]
fn a_daemon_without_a_graph_yet_is_starting() {
    let host = Host::with("graph: slow\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    // The daemon reads its graph from a pipe that is still empty.
    let mut command = host.bare(&["run", "--log", "json", "-"]);
    command.arg("--state-dir").arg(host.path("state"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    command.stdin(reader);
    let daemon = crate::daemon::Daemon::start(command, &host.path(""));
    host.wait_until("it listens", || host.exists("state/control.socket"));
    let starting = |host: &Host| {
        host.wait_until("it answers", || {
            crate::client_commands::status(host)["verdict"].is_string()
        });
        assert_eq!(crate::client_commands::status(host)["verdict"], "starting");
        host.ask_daemon(&["status"]).exits(2).prints("starting: no graph is loaded yet");
        host.ask_daemon(&["wait", "--timeout", "1"]).exits(1).says("not converged after 1 s");
    };
    starting(&host);
    crate::workers::fault(&host, "driver", "panic");
    crate::workers::runs_again(&host, "driver", 2);
    starting(&host);
    let graph = host.full("graph: slow\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    std::io::Write::write_all(&mut writer, graph.as_bytes()).expect("written");
    drop(writer);
    daemon.wait_for("converged");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0).prints("converged: slow");
    host.ask_daemon(&["status"]).exits(0);
}

/// A daemon that still ends the commands of a killed one is starting: `status` never says that something failed, and
/// `wait` waits.
#[test]
fn a_daemon_that_ends_old_commands_is_starting() {
    let script = "if test -e $DIR/log; then exit 0; fi; trap '' TERM; echo start >> $DIR/log; while :; do $DIR/sleep 0.05; done";
    let graph = "graph: g\nresources:\n  exec:\n  - {name: e, shell: /bin/sh, cmd: \"$CMD\"}\n";
    let host = Host::with(&graph.replace("$CMD", script));
    let daemon = host.run(&[]);
    host.wait_for_lines("log", 1);
    crate::interrupted_runs::wait_for_recorded_command(&host);
    daemon.kill();
    let daemon = host.run(&[]);
    let mut starting = 0;
    loop {
        let status = host.ask_daemon(&["status"]);
        match status.code {
            0 => break,
            2 if status.stdout.contains("starting: no graph is loaded yet") => {
                starting += 1;
                if starting == 1 {
                    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
                }
            }
            2 | 69 => {}
            code => panic!("exit code {code}: {status}"),
        }
    }
    assert!(starting > 0, "no status came while it started");
    // The log comes in its order, and later than an answer.
    daemon.wait_for("converged");
    assert!(daemon.log().iter().any(|line| line.message.contains("left running")));
}

/// H1 of a fault run: a daemon that starts while an apply holds the state waits for its end.
#[test]
fn a_start_waits_for_an_apply() {
    let host = Host::with(
        "graph: g\nresources:\n  exec:\n  - {name: slow, shell: /bin/sh, cmd: \"touch $DIR/began; while ! test -e $DIR/go; do sleep 0.02; done\"}\n",
    );
    let apply = host.command(&["apply"]).spawn().expect("started");
    host.wait_until("the apply holds the state", || host.exists("began"));
    let daemon = host.run(&[]);
    daemon.wait_for("waiting_for_state");
    host.write("go", "");
    daemon.wait_for("converged");
    assert!(apply.wait_with_output().expect("ended").status.success());
}
