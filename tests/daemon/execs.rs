//! Commands in a graph: their order, their number of runs, and their inputs.

use crate::host::Host;

const FAN: &str = r#"
graph: fan
resources:
  exec:
  - {name: last, shell: /bin/sh, cmd: "echo last >> $DIR/log", after: ["exec[a]", "exec[b]", "exec[c]", "exec[d]", "exec[e]"]}
  - {name: a, shell: /bin/sh, cmd: "$DIR/sleep 0.3; echo a >> $DIR/log"}
  - {name: b, shell: /bin/sh, cmd: "echo b >> $DIR/log"}
  - {name: c, shell: /bin/sh, cmd: "$DIR/sleep 0.1; echo c >> $DIR/log"}
  - {name: d, shell: /bin/sh, cmd: "echo d >> $DIR/log", after: "exec[c]"}
  - {name: e, shell: /bin/sh, cmd: "$DIR/sleep 0.2; echo e >> $DIR/log"}
"#;

#[track_caller]
fn ran_well(host: &Host) {
    let log = host.lines("log");
    assert_eq!(log.last().map(String::as_str), Some("last"), "{log:?}");
    let mut sorted = log.clone();
    sorted.sort();
    assert_eq!(sorted, ["a", "b", "c", "d", "e", "last"], "each of them once");
    let at = |name: &str| log.iter().position(|line| line == name);
    assert!(at("c") < at("d"), "{log:?}");
}

/// E-1, E-2: a command with five parents runs once.
#[test]
fn a_fan_in_runs_the_last_one_once() {
    let host = Host::with(FAN);
    host.apply().exits(0).ends_with_line("done: fan: 6 resources, 6 changed");
    ran_well(&host);
}

#[test]
fn a_fan_in_runs_the_last_one_once_in_a_daemon() {
    let host = Host::with(FAN);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    ran_well(&host);
    assert_eq!(daemon.count("changed"), 6);
}

/// E-9: five simultaneous notifications are one refresh.
#[test]
fn a_fan_in_of_notifications_is_one_run() {
    let host = Host::with(
        r#"
graph: told
resources:
  file: [{name: a, path: $DIR/a}, {name: b, path: $DIR/b}, {name: c, path: $DIR/c}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/log", refresh_only: true, subscribe: ["file[a]", "file[b]", "file[c]"]}
"#,
    );
    host.apply().exits(0);
    assert_eq!(host.lines("log").len(), 1);
}

/// A command without a guard runs once per definition, and never because of a restart.
#[test]
fn an_unguarded_exec_does_not_run_again_at_restart() {
    let host = Host::with(FAN);
    for _ in 0..2 {
        let daemon = host.run(&[]);
        daemon.wait_for("converged");
        daemon.kill();
    }
    host.apply().exits(0).ends_with_line("done: fan: 6 resources, 0 changed");
    ran_well(&host);
    host.graph(&FAN.replace("echo b", "echo bb"));
    host.apply().exits(0).ends_with_line("done: fan: 6 resources, 1 changed");
    assert_eq!(host.lines("log").len(), 7, "a new definition runs, its dependents do not");
}

/// A sweep checks: it runs no command without a check, and repairs drift.
#[test]
fn an_unguarded_exec_is_not_run_by_the_sweep() {
    let host = Host::with(
        r#"
graph: swept
resources:
  exec:
  - {name: once, shell: /bin/sh, cmd: "echo x >> $DIR/once"}
  - {name: always, shell: /bin/sh, cmd: "echo x >> $DIR/always", always: true}
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true}
  - {name: guarded, shell: /bin/sh, cmd: "echo x >> $DIR/guarded", nifcmd: "test -s $DIR/guarded"}
  file: [{name: f, path: $DIR/f, content: "f\n", meta: {poll: -1}}]
"#,
    );
    let daemon = host.run(&["--sweep", "1"]);
    daemon.wait_for("converged");
    // Nothing watches `f`, so each repair ends a sweep.
    for _ in 0..3 {
        host.write("f", "mine\n");
        daemon.wait_for_of("changed", "file[f]");
        daemon.wait_for("converged");
    }
    assert_eq!(["once", "always", "told", "guarded"].map(|f| host.lines(f).len()), [1, 1, 0, 1]);
    host.write("guarded", "");
    host.wait_for_lines("guarded", 1);
    daemon.kill();
    let daemon = host.run(&["--sweep", "1"]);
    daemon.wait_for("converged");
    assert_eq!(["once", "always", "told", "guarded"].map(|f| host.lines(f).len()), [1, 2, 0, 1]);
}

/// E-20: a command that runs at each start is not idempotent, and neither is its notified command. It is reported as
/// a change and not as contention, since nobody else has changed the host.
#[test]
fn an_unconditional_command_is_not_idempotent_and_no_contention() {
    let host = Host::with(
        r#"
graph: always
resources:
  exec:
  - {name: always, shell: /bin/sh, cmd: "echo x >> $DIR/always", always: true, notify: "exec[told]"}
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true}
"#,
    );
    for starts in 1..=7 {
        let mut daemon = host.run(&[]);
        for name in ["exec[always]", "exec[told]"] {
            let told = daemon.wait_for_of("changed", name);
            assert_eq!(told.message.contains(", not idempotent)"), starts > 1, "{told:?}");
        }
        daemon.wait_for("converged");
        assert_eq!(daemon.count("contended"), 0);
        host.ask_daemon(&["stop"]).exits(0);
        assert_eq!(daemon.ends(), 0);
    }
    let again = host.apply();
    again.exits(0).prints("changed exec[always]: ").prints(", not idempotent)");
    again.prints("changed exec[told]: ");
    assert!(!again.stdout.contains("corrective"), "{again}");
    assert_eq!(host.lines("always").len(), 8);
}

/// A timer that notifies causes one run for each tick (W-15).
#[test]
fn a_timer_makes_what_it_notifies_run_at_each_tick() {
    let host = Host::with(
        r#"
graph: clock
resources:
  timer: [{name: t, interval: 0.2}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true, subscribe: "timer[t]"}
  - {name: plain, shell: /bin/sh, cmd: "echo x >> $DIR/plain", after: "timer[t]"}
"#,
    );
    let _daemon = host.run(&[]);
    host.wait_for_lines("told", 4);
    assert_eq!(host.lines("plain").len(), 1);
}

/// Each line of a watch command is an event, and so is a change of a watched file.
#[test]
fn events_of_its_own_run_an_exec_again() {
    let host = Host::with(
        r#"
graph: events
resources:
  exec:
  - {name: lines, shell: /bin/sh, cmd: "echo x >> $DIR/ran", watchcmd: "exec cat $DIR/fifo", watchshell: /bin/sh}
  - {name: files, shell: /bin/sh, cmd: "echo x >> $DIR/seen", watchfiles: [$DIR/trigger]}
"#,
    );
    nix::unistd::mkfifo(&host.path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let daemon = host.run(&["--sweep", "0"]);
    let mut fifo =
        std::fs::OpenOptions::new().write(true).open(host.path("fifo")).expect("read by cat");
    daemon.wait_for("converged");
    let ran = host.lines("ran").len();
    std::io::Write::write_all(&mut fifo, b"event\n").expect("written");
    host.wait_for_lines("ran", ran + 1);
    let seen = host.lines("seen").len();
    host.write("trigger", "x");
    host.wait_for_lines("seen", seen + 1);
    // Creating, truncating, writing and closing a file count as one change.
    host.write("trigger", "y");
    host.wait_for_lines("seen", seen + 2);
    std::io::Write::write_all(&mut fifo, b"event\n").expect("written");
    host.wait_for_lines("ran", ran + 2);
    assert_eq!(host.lines("seen").len(), seen + 2);
}

/// S-8, S-9, S-18: arguments arrive exactly as written, with an environment from the graph alone.
#[test]
fn arguments_and_environment_arrive_exactly() {
    let host = Host::with(
        r#"
graph: exact
resources:
  exec:
  - name: e
    args: [/bin/sh, -c, 'printf "%s|" "$@" > "$0"; env | cut -d= -f1 | sort > "$0.env"; umask > "$0.umask"; pwd >> "$0.umask"', $DIR/out, "; touch $DIR/evil", "$(id)", "-o x", "`id`"]
    env: {GIVEN: "a b"}
"#,
    );
    let mut command = host.command(&["apply"]);
    command
        .env("LD_PRELOAD", "")
        .env("BASH_ENV", "/evil")
        .env("SECRET", "x")
        .env("PATH", "/evil:/usr/bin:/bin");
    host.finish(command).exits(0);
    assert_eq!(host.short(&host.read("out")), "; touch $DIR/evil|$(id)|-o x|`id`|");
    assert!(!host.exists("evil"));
    let names = host.lines("out.env");
    assert!(names.contains(&"GIVEN".to_owned()), "{names:?}");
    assert!(
        !names.iter().any(|name| ["SECRET", "BASH_ENV", "LD_PRELOAD"].contains(&name.as_str())),
        "{names:?}"
    );
    assert_eq!(host.lines("out.umask"), ["0022", "/"]);
}

#[test]
fn a_command_that_fails_is_told_with_what_it_said() {
    let host = Host::with(
        "graph: g\nresources: {exec: [{name: e, shell: /bin/sh, cmd: \"echo the reason >&2; exit 3\"}, {name: n, args: [no-such-program]}]}\n",
    );
    host.apply()
        .exits(1)
        .prints("failed exec[e]")
        .prints("exit 3")
        .prints("the reason")
        .prints("no-such-program")
        .ends_with_line("failed: g: 2 resources, 0 changed, 2 failed");
}

/// A timeout ends the command and is named in the error.
#[test]
fn a_deadline_ends_a_command_and_says_so() {
    let host = Host::with(
        r#"
graph: late
resources:
  exec:
  - {name: own, args: [$DIR/sleep, "1000"], timeout: 0.2}
  - {name: meta, args: [$DIR/sleep, "1000"], meta: {timeout: 200}}
"#,
    );
    let answer = host.apply();
    answer.exits(1).prints("failed exec[own]: timed out").prints("failed exec[meta]");
    assert!(host.processes().is_empty(), "{:?}", host.processes());
}
