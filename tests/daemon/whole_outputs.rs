//! The whole text of the commands that describe a daemon, with stored snapshots. Numbers and spans are masked.

use crate::host::Host;
use crate::snapshots::matches_snapshot;
use regex_lite::Regex;

/// A resource in each lasting state: converged, failed, waiting and held.
const GRAPH: &str = r#"
graph: words
resources:
  exec:
  - name: bad
    shell: /bin/sh
    cmd: "echo no such release >&2; exit 3"
    meta: {retry: 0}
  file:
  - {name: child, path: $DIR/child, after: "exec[bad]"}
  - {name: held, path: $DIR/held, content: "x", meta: {noop: true}}
  - {name: motd, path: $DIR/motd, content: "hello\n"}
"#;

/// The exit code of a client without a daemon.
const NO_DAEMON: i32 = 69;

/// Replaces the parts of an output that differ from run to run.
fn mask(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, word) in [
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+Z?", "TIME"),
        (r"\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b", "TIME"),
        (r"\b[0-9]+(\.[0-9]+)? ?(ms|s|min|h|d)\b", "SPAN"),
        (r"\bSPAN SPAN\b", "SPAN"),
        (r"\bless than a second\b", "SPAN"),
        (r"\b[0-9a-f]{12,}\b", "HASH"),
        (r"\b(pid|uid) [0-9]+", "$1 N"),
        (r"\bprocess [0-9]+", "process N"),
        (r"\bby [a-z]+, steadfast [0-9.]+", "by USER, steadfast VERSION"),
        (r"version: [0-9.]+,", "version: VERSION,"),
        (r"\b[0-9]+ recorded", "N recorded"),
        (r"(last event:?) (SPAN ago|never)", "$1 AGO"),
        (r"\n +[0-9]+ +TIME", "\n  N  TIME"),
        (r" {2,}", "  "),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

/// Status, show, why, diff, history and events in the words that users read.
#[test]
fn the_texts_of_a_daemon_are_as_stored() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    host.wait_until("all is at rest", || {
        let status = host.ask_daemon(&["status", "--json"]);
        if status.code == NO_DAEMON {
            return false;
        }
        let status = status.json();
        let of = |name: &str| status["counts"][name].as_u64();
        (of("running"), of("failed"), of("held")) == (Some(0), Some(1), Some(1))
    });
    // An event is recorded a moment after the status shows its cause.
    host.wait_until("all is recorded", || {
        let events = host.ask_daemon(&["events"]).stdout;
        ["changed file[motd]", "failed exec[bad]", "held file[held]"]
            .iter()
            .all(|line| events.contains(line))
    });
    for (name, words) in [
        ("status", &["status"][..]),
        ("status-all", &["status", "file[motd]", "file[child]", "exec[bad]"]),
        ("show-failed", &["show", "exec[bad]"]),
        ("show-file", &["show", "file[motd]"]),
        ("why", &["why", "file[child]"]),
        ("diff", &["diff", "file[motd]"]),
        ("history", &["history"]),
        ("history-resource", &["history", "file[motd]"]),
        ("events", &["events"]),
        ("workers", &["workers"]),
    ] {
        let output = host.ask_daemon(words);
        let text = format!("\n{}", output.stdout);
        let mut lines: Vec<String> = mask(&text).lines().skip(1).map(str::to_owned).collect();
        if ["history", "events"].contains(&name) {
            // The order of resources that do not depend on each other differs from run to run.
            lines.sort();
        }
        let text = format!("{}exit code {}\n{}\n", output.stderr, output.code, lines.join("\n"));
        matches_snapshot(name, &text);
    }
    let doctor = host.ask_daemon(&["doctor"]);
    matches_snapshot("doctor", &mask(&sections(&doctor.stdout, &["permissions", "daemon"])));
    drop(daemon);
}

/// Returns the sections with these headings; the other sections of `doctor` describe the host of the test.
fn sections(text: &str, headings: &[&str]) -> String {
    let mut is_wanted = false;
    let mut found = String::new();
    for line in text.lines() {
        if !line.starts_with(' ') {
            is_wanted = headings.contains(&line);
        }
        if is_wanted && !line.contains(" user: ") {
            found.push_str(line);
            found.push('\n');
        }
    }
    found
}
