//! Canaries in the history, on terminal screens, in plans and in documentation pages.

use super::sinks::Silence;
use super::table::Row;
use crate::host::Host;
use crate::terminal::Terminal;
use serde_json::Value;
use std::collections::BTreeSet;

/// Writes a plan to a file and applies it.
pub(super) fn is_planned(host: &Host, silence: &Silence<'_>, rows: &[Row]) {
    // A plan with a failing step is not written, so only good resources are selected.
    let well: Vec<String> = rows.iter().filter_map(Row::well).collect();
    silence.ask(&["plan", "--out", "$DIR/planned", "--only", &well.join(",")]).exits(0);
    let plan = host.read("planned");
    assert!(plan.contains("well-"), "it is a plan: {plan}");
    silence.holds("a plan in a file", plan.as_bytes());
    let mut command = host.bare(&["apply", "--plan", "$DIR/planned", "--json"]);
    command.arg("--state-dir").arg(host.path("state"));
    super::surround(host, &mut command);
    let applied = host.finish(command);
    silence.holds("a plan that is followed", applied.to_string().as_bytes());
}

/// Writes pages, examples and schemas on a host with secrets.
pub(super) fn is_documented(host: &Host, silence: &Silence<'_>) {
    let about = [&["man", "$DIR/man"][..], &["explain", "file"], &["completions", "bash"]];
    for words in about {
        let output = host.finish(host.bare(words));
        silence.holds(words[0], output.to_string().as_bytes());
    }
    let state = [&["state", "show"][..], &["state", "show", "--json"], &["state", "verify"]];
    for words in state {
        silence.ask_daemon(words);
    }
}

/// Shows all recorded changes of each resource: the prior content, the difference, and the undo.
pub(super) fn is_told(host: &Host, silence: &Silence<'_>, held: usize) {
    silence.ask_daemon(&["history"]).exits(0);
    let all = silence.ask_daemon(&["history", "--json", "--limit", "100000"]);
    let entries: Vec<Value> =
        all.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(entries.len() > 20, "{}", entries.len());
    let mut seen = BTreeSet::new();
    for entry in &entries {
        let resource = entry["resource"].as_str().expect("a name");
        let number = entry["number"].to_string();
        silence.ask_daemon(&["show", resource, "--at", &number]);
        silence.ask_daemon(&["diff", resource, &number]);
        if seen.insert(resource.to_owned()) {
            silence.ask_daemon(&["history", resource]);
            silence.ask_daemon(&["diff", resource]);
            silence.ask_daemon(&["state", "show", resource]);
        }
    }
    let held = format!("file[well-{held}]");
    assert!(seen.contains(&held), "{seen:?}");
    silence.ask_daemon(&["undo", &held]);
    silence.ask_daemon(&["resume", &held]);
    for worker in ["report", "doctor"] {
        silence.ask_daemon(&[worker]);
        silence.ask_daemon(&[worker, "--json"]);
    }
    assert!(host.exists("state/history/history.db") && host.exists("state/events.db"));
}

/// Shows resources with a secret on all screens of `top`, converged and rejected: table, details, differences and
/// events.
pub(super) fn is_seen(host: &Host, silence: &Silence<'_>, held: usize) {
    for name in [format!("file[well-{held}]"), "file[refused-".to_owned()] {
        let mut command = host.bare(&["top", "--state-dir"]);
        command.arg(host.path("state")).env("TERM", "xterm").env_remove("NO_COLOR");
        let terminal = Terminal::start(&command, 50, 200);
        terminal.wait_for("resources");
        terminal.type_in(&format!("/{name}\r")).wait_for(&format!("with `{name}`"));
        // The row comes with the next reply.
        terminal.press_until("\r", "needed by:");
        terminal.type_in("d").wait_for("differences");
        terminal.type_in("q").wait_for(" with `").type_in("e").wait_for("newest first");
        silence.holds("the screens of top", terminal.raw().as_bytes());
    }
}
