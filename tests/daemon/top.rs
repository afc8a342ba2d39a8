//! `steadfast top` in a real terminal with a real daemon; the terminal is restored after every sort of end.

use crate::host::Host;
use crate::snapshots::matches_snapshot;
use crate::terminal::Terminal;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const GRAPH: &str = r#"
graph: seen
resources:
  file:
  - {name: well, path: $DIR/well, content: "one\n"}
  - {name: bad, path: $DIR/later/b, content: "x", meta: {autoedge: false}}
  - {name: below, path: $DIR/c, content: "x", after: "file[bad]"}
"#;

/// Starts `top` on this host in a terminal.
fn watch(host: &Host, environment: &[(&str, &str)]) -> Terminal {
    let mut command = host.bare(&["top", "--state-dir"]);
    command.arg(host.path("state")).env("TERM", "xterm").env_remove("NO_COLOR");
    command.envs(environment.iter().copied());
    Terminal::start(&command, 24, 80)
}

#[track_caller]
fn is_given_back(terminal: &Terminal) {
    // The program has ended; its last output may still be on its way.
    terminal.wait_until("the first screen again", |_| {
        !terminal.is_alternate() && !terminal.hides_cursor()
    });
    assert!(terminal.is_cooked(), "keys are left raw");
}

/// Table, details, diff, events, filter, resize, pause and resume; also a restart of the daemon.
#[test]
fn everything_is_seen_in_a_real_terminal() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[bad]");
    let mut terminal = watch(&host, &[]);
    terminal.wait_for("seen: failed: 2 of 3 resources not converged");
    terminal.wait_for("failed    file[bad]").wait_for("waiting for others");
    assert!(terminal.is_alternate() && !terminal.is_cooked());
    terminal.type_in("\r").wait_for("needed by: file[below]").wait_for("s  failed file[bad]");
    terminal
        .type_in("d")
        .wait_for("file[bad]: differences")
        .wait_for("the differences are unknown");
    terminal.type_in("q").wait_for("3 resources");
    terminal.type_in("?").wait_for("order by state, name").type_in("q").wait_for("3 resources");
    terminal.type_in("e").wait_for("newest first").wait_for("changed file[well]: created");
    terminal.type_in("q/wel\r").wait_for("1 with `wel`");
    terminal.wait_until("only one row", |screen| !screen.contains("file[bad]"));
    // Drift without a repair is noticed by the check.
    terminal.type_in("p").wait_for("pause all repairs for an hour? y/n").type_in("y");
    daemon.wait_for("paused");
    terminal.wait_for("paused: steadfast top; resumes automatically in");
    host.write("well", "edited\n");
    terminal.type_in("d").wait_for("-edited").wait_for("+one").type_in("q");
    terminal.type_in("r").wait_for("resume? y/n").type_in("y");
    daemon.wait_for("resumed");
    host.wait_until("it is put back", || host.read("well") == "one\n");
    // The result of the command stays in the last line until the next key.
    terminal.wait_for("done").resize(10, 60).wait_for("file[well]");
    terminal.resize(40, 120).press_until("j", "? keys  q quit");

    drop(daemon);
    terminal.wait_for("the data is outdated: no daemon listens");
    daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[bad]");
    terminal.wait_until("it is back", |screen| !screen.contains("is outdated"));
    terminal.type_in("q");
    assert_eq!(terminal.ends(), 0);
    is_given_back(&terminal);
}

/// ^C and a signal end the program, without a daemon too, and restore the terminal.
#[test]
fn the_terminal_is_given_back() {
    let host = Host::with(GRAPH);
    let mut terminal = watch(&host, &[]);
    terminal.wait_for("no daemon listens at");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.ends(), 0);
    is_given_back(&terminal);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut terminal = watch(&host, &[]);
        terminal.wait_for("no daemon listens at");
        kill(Pid::from_raw(terminal.program()), signal).expect("it runs");
        assert_eq!(terminal.ends(), 0, "{signal}");
        is_given_back(&terminal);
    }
}

/// `NO_COLOR` gives no colours; an unsuitable or missing terminal is reported.
#[test]
fn it_says_where_it_cannot_be() {
    let host = Host::with(GRAPH);
    let mut terminal = watch(&host, &[("NO_COLOR", "1")]);
    terminal.wait_for("no daemon listens at").type_in("q");
    assert_eq!(terminal.ends(), 0);
    for colour in ["\u{1b}[31", "\u{1b}[38;", "\u{1b}[32"] {
        assert!(!terminal.raw().contains(colour), "{:?}", terminal.raw());
    }
    let mut terminal = watch(&host, &[("TERM", "dumb")]);
    terminal.wait_for("status --watch");
    assert_eq!(terminal.ends(), 64);
    host.finish(host.bare(&["top"])).exits(64).says("expected a terminal");
}

/// The screens of the table, the keys, a filter, the details, the differences and the question of a resume are as
/// stored; times are masked.
#[test]
fn the_screens_are_as_stored() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[bad]");
    let mut terminal = watch(&host, &[]);
    terminal.wait_for("failed    file[bad]").wait_for("waiting for others");
    // The data is at rest: all three resources are done.
    terminal.wait_for("1 ok, 1 waiting, 1 failed").wait_for("ok        file[well]");
    // A screen arrives in parts: the time and the repairs come after the name.
    terminal.wait_until("the row is whole", |screen| {
        screen.lines().any(|line| line.contains("file[well]") && line.contains(" s"))
    });
    terminal.wait_for("3 resources").wait_for("/ filter");
    let screen = |name: &str| {
        let masked = mask_times(&host.short(&terminal.screen()));
        matches_snapshot(&format!("top-{name}"), &masked);
    };
    screen("table");
    terminal.type_in("?").wait_for("order by state, name").wait_for("esc back");
    screen("keys");
    terminal.type_in("?").wait_for("waiting for others");
    terminal.type_in("j\r").wait_for("needed by: nothing").wait_for("events, newest first");
    terminal.type_in("q/wel\r").wait_for("1 with `wel`");
    terminal.wait_until("only one row", |screen| !screen.contains("file[bad]"));
    screen("filter");
    terminal.type_in("\r").wait_for("ownership: created").wait_for("changed file[well]: created");
    screen("details");
    terminal.type_in("\u{1b}").wait_for("1 with `wel`");
    terminal.type_in("\u{1b}").wait_for("3 resources");
    host.ask_daemon(&["pause", "--for", "2h", "--reason", "stored screens"]).exits(0);
    terminal.wait_for("paused: stored screens");
    host.write("well", "edited\n");
    terminal.type_in("/wel\r").wait_for("1 with `wel`");
    terminal.type_in("d").wait_for("-edited").wait_for("+one").wait_for("3 of 3 resources");
    screen("differences");
    terminal.type_in("q").wait_for("1 with `wel`");
    terminal.type_in("R").wait_for("resume file[well]? y/n").wait_for("-edited");
    screen("resume");
    terminal.type_in("n").wait_for("1 with `wel`");
    terminal.type_in("\u{1b}").wait_for("3 resources");
    terminal.type_in("q");
    assert_eq!(terminal.ends(), 0);
}

/// Replaces each number of seconds or minutes by `N`, and each run of blanks by one.
fn mask_times(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (digits, after) = number.split_at(end);
        let is_unit = |rest: &str| !rest.starts_with(|letter: char| letter.is_alphabetic());
        let is_time = [" s", " ms", " min", " h"]
            .iter()
            .any(|unit| after.strip_prefix(unit).is_some_and(is_unit));
        masked.push_str(before);
        masked.push_str(if is_time { "N" } else { digits });
        rest = after;
    }
    masked.push_str(rest);
    let lines = masked.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}
