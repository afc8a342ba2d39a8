//! S-6: no secret leaks. Forty canaries go through every field that takes a secret, by every supply, in success,
//! failure, panic, drift, crash and rejected graphs; no sink contains one.
//!
//! Nothing here reads a real secret. Reading order: `table` (fields and supplies), `sinks`, then this file, `past`
//! and `recorders`.

mod past;
mod recorders;
mod sinks;
mod table;

use crate::host::{Host, ends};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use recorders::Recorders;
use sinks::{Onlooker, OutputSink, Silence, surround};
use std::process::{Child, Stdio};
use steadfast_resources::{FieldType, Receives};
use table::{CANARY, FieldPath, Graph, Row, fields, rows, sender, senders};

/// Returns the canary of a row: two lines, since the end of a text is shown more often than all of it.
fn canary(number: usize) -> String {
    format!("{CANARY}-{number}-first\n{CANARY}-{number}-last")
}

/// Writes the secret of a row; returns its line of `secrets`.
fn supply(host: &Host, number: usize, way: FieldPath) -> String {
    let (from, name, mode) = match way {
        FieldPath::Credential => ("{credential: NAME}", format!("credentials/c{number}"), 0o400),
        FieldPath::Command => ("{command: [cat, NAME]}", format!("printed-{number}"), 0o600),
        _ => ("{file: NAME}", format!("secret-{number}"), 0o600),
    };
    host.write(&name, canary(number)).chmod(&name, mode);
    let given = match way {
        FieldPath::Credential => format!("c{number}"),
        _ => format!("$DIR/{name}"),
    };
    format!("  s{number}: {}\n", from.replace("NAME", &given))
}

/// Creates a host with the graph of the whole table.
fn host(rows: &[Row]) -> Host {
    let host = Host::with("graph: none\n");
    host.make_directory("got").make_directory("credentials").chmod("credentials", 0o700);
    let mut graph = Graph::default();
    graph.put("value", "name: plain, text: harmless".to_owned());
    graph.put("password", "name: kept, length: 30, saved: true".to_owned());
    let kept = "name: kept, path: $DIR/got/kept, mode: 0644";
    graph.put("file", format!("{kept}, recv: {{content: 'password[kept].password'}}"));
    for row in rows {
        row.declare(&mut graph);
    }
    let secrets: String = rows.iter().map(|row| supply(&host, row.number, row.supply())).collect();
    host.graph(&graph.text(&secrets));
    host
}

fn daemon(host: &Host, form: &str, log: &str) -> Child {
    let config = ["--config", "$DIR/steadfast.yaml"];
    let mut command = host.command(&[&["run", "--log", form], &config[..]].concat());
    surround(host, &mut command);
    command.env("NOTIFY_SOCKET", host.path("notify")).stdout(Stdio::null());
    command.stderr(std::fs::File::create(host.path(log)).expect("a log"));
    command.spawn().expect("started")
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a number");
    kill(Pid::from_raw(pid), signal).expect("it lives");
}

/// Asserts that the secret of every row has arrived at its receiver.
fn arrived(host: &Host, rows: &[Row]) {
    for row in rows.iter().filter(|row| row.arrives()) {
        let got = host.read(&format!("got/{}", row.number));
        let wanted = match row.way {
            FieldPath::Password => host.read(&format!("got/known-{}", row.number)),
            _ => canary(row.number),
        };
        assert!(wanted.len() >= 30 && got.contains(&wanted), "{row:?}: {got:?}");
    }
}

fn learn_passwords(host: &Host, rows: &[Row], silence: &mut Silence<'_>) {
    for row in rows.iter().filter(|row| row.way == FieldPath::Password) {
        silence.also(host.read(&format!("got/known-{}", row.number)));
    }
    silence.also(host.read("got/kept"));
    silence.stands_in_the_state("password[kept]");
}

fn by_commands(host: &Host, rows: &[Row], silence: &mut Silence<'_>) {
    silence.ask(&["check"]).exits(0);
    for words in [&["graph", "--format", "json"][..], &["graph"], &["plan", "--json"]] {
        silence.ask(words);
    }
    let applied = silence.ask(&["apply", "--json"]);
    assert_eq!(applied.code, 1, "some fail, as declared\n{applied}");
    arrived(host, rows);
    learn_passwords(host, rows, silence);
    // Drift of file contents, of created files, and of files that notify.
    for row in rows.iter().filter(|row| row.arrives()) {
        host.append(&format!("got/{}", row.number), "drifted");
    }
    for words in [&["plan", "--explain-edges"][..], &["plan", "--json"], &["drift"]] {
        silence.ask(words);
    }
    past::is_planned(host, silence, rows);
    silence.ask(&["apply"]);
    past::is_documented(host, silence);
}

fn over_the_socket(silence: &Silence<'_>) {
    for words in [&["status"][..], &["events"], &["workers"]] {
        silence.ask_daemon(words);
        silence.ask_daemon(&[words, &["--json"]].concat());
    }
    let status = silence.ask_daemon(&["status", "--json", "--limit", "1000"]).stdout;
    for row in rows() {
        let (text, number) = (&status, row.number);
        let about = ["well", "refused", "breaks", "killed", "doubtful", "fails", "panics"];
        for kind in ["file", "exec", "test"] {
            for what in about.map(|what| format!("{kind}[{what}-{number}]")) {
                if text.contains(&what) {
                    silence.ask_daemon(&["show", &what]);
                    silence.ask_daemon(&["why", &what, "--json"]);
                }
            }
        }
    }
}

/// Reloads rejected graphs with mistakes beside secrets, and a secret that may no longer be used.
fn with_broken_graphs(host: &Host, silence: &Silence<'_>) {
    let good = host.read("graph.yaml");
    for wrong in ["  file: [{name: /x, content: {secret: s1}, mode: {secret: s1}}]\n", "  [\n"] {
        host.graph(&(good.clone() + wrong));
        assert_ne!(silence.ask(&["check"]).code, 0);
        assert_ne!(silence.ask_daemon(&["reload"]).code, 0);
    }
    host.graph(&good);
    host.chmod("secret-1", 0o644);
    silence.ask(&["plan"]);
    host.chmod("secret-1", 0o600);
    silence.ask_daemon(&["reload"]);
}

fn has_failed(log: &str, names: &[&str]) -> bool {
    names.iter().all(|name| log.lines().any(|l| l.contains(name) && l.contains("failed")))
}

/// S-6, C-18, B-26: no canary is in output, logs, messages, panics, replies, stored state, or arguments of child
/// processes.
#[test]
fn forty_canaries_are_found_nowhere() {
    let rows = rows();
    assert!(rows.len() >= 40, "forty at least: {}", rows.len());
    let host = host(&rows);
    let (mut silence, onlooker, ear) =
        (Silence::of(&host), Onlooker::start(), OutputSink::open(&host, "notify"));
    let recorders = Recorders::open(&host);
    by_commands(&host, &rows, &mut silence);
    silence.holds_in_the_state();

    let mut first = daemon(&host, "json", "first.log");
    let names = ["file[refused-", "file[nowhere-", "exec[breaks-", "exec[killed-", "test[panics-"];
    host.wait_until("all has failed that must", || has_failed(&host.read("first.log"), &names));
    let held = rows.iter().find(|row| row.is_file_of_file()).expect("in the table").number;
    let (got, secret) = (format!("got/{held}"), format!("secret-{held}"));
    host.append(&got, "drifted").append(&secret, "-rotated");
    host.wait_until("it is repaired", || host.read(&got).ends_with("-rotated"));
    over_the_socket(&silence);
    with_broken_graphs(&host, &silence);
    // The daemon is killed in the middle of its work and started again.
    silence.ask_daemon(&["retry"]);
    first.kill().expect("killed");
    first.wait().expect("a child of ours");
    silence.holds_in_the_state();
    host.remove(&got);
    let mut second = daemon(&host, "human", "second.log");
    host.wait_until("it is made again", || host.read(&got).ends_with("-rotated"));
    over_the_socket(&silence);
    silence.ask_daemon(&["log-level", "debug"]);
    past::is_told(&host, &silence, held);
    past::is_seen(&host, &silence, held);
    signal(&second, Signal::SIGTERM);
    ends(&mut second, crate::host::LIMIT);

    arrived(&host, &rows);
    silence.holds_in_the_state();
    let seen = onlooker.end();
    assert!(seen.windows(8).any(|words| words == b"printenv"), "children were seen");
    silence.holds("the arguments of a process", &seen);
    assert!(host.read("argv").contains("cmdline"), "children have looked at themselves");
    silence.holds("the arguments of a child", host.read("argv").as_bytes());
    recorders.hold(&host, &silence);
    let heard = ear.heard();
    assert!(heard.starts_with(b"READY") || heard.windows(6).any(|w| w == b"STATUS"), "heard");
    silence.holds("the status for systemd", &heard);
    for log in ["first.log", "second.log"] {
        assert!(host.read(log).len() > 10_000, "it says a lot");
        silence.holds(log, host.read(log).as_bytes());
    }
}

/// S-6: a value sent by a resource that received a secret is secret.
#[test]
fn a_value_made_of_a_secret_is_secret() {
    let host = Host::with("graph: none\n");
    host.make_directory("got");
    let (mut graph, secret) = (Graph::default(), supply(&host, 1, FieldPath::File));
    for (kind, key) in senders() {
        let name = format!("sends-{kind}-{key}");
        graph.put(kind, sender(kind, key, &name));
        let to = format!("name: {kind}-{key}, path: $DIR/got/{kind}-{key}, mode: 0644");
        graph.put("file", format!("{to}, recv: {{content: '{kind}[{name}].{key}'}}"));
    }
    host.graph(&graph.text(&secret));
    let silence = Silence::of(&host);
    silence.ask(&["apply", "--json"]).exits(0);
    for (kind, key) in senders() {
        let got = format!("got/{kind}-{key}");
        assert_eq!(host.read(&got), canary(1), "{got}");
        host.append(&got, "drifted");
    }
    silence.ask(&["plan"]).prints("is not stored");
    silence.ask(&["apply"]).prints("is not stored");
    silence.holds_in_the_state();
}

/// Fields that make a valid resource alone, with any received text.
const ALONE: [(&str, &str); 3] = [("exec", "args"), ("msg", "body"), ("value", "text")];

/// S-6: a field that would show a secret gets none, neither at load nor from a resource that turns out to send a
/// secret.
#[test]
fn fields_that_show_values_get_no_secret() {
    let host = Host::with("graph: none\n");
    let secret = supply(&host, 1, FieldPath::File);
    let silence = Silence::of(&host);
    let mut names = Vec::new();
    let mut graph = Graph::default();
    graph.put("test", "name: sends, changed: true, text: {secret: s1}".to_owned());
    for (spec, field) in fields().filter(|(_, field)| field.receives < Receives::Secrets) {
        let (kind, name, is_map) = (spec.kind, field.name, field.takes == FieldType::TextMap);
        let value = if is_map { "{V: {secret: s1}}" } else { "{secret: s1}" };
        let mut refused = Graph::default();
        refused.put(kind, format!("name: /refused, {name}: {value}"));
        host.graph(&refused.text(&secret));
        let said = silence.ask(&["check"]);
        let is_refused = said.stderr.contains("C405") || said.stdout.contains("C405");
        assert!(said.code != 0 && is_refused, "{kind} {name}\n{said}");
        if field.receives == Receives::Shown && ALONE.contains(&(kind, name)) {
            let name = format!("{kind}-{name}");
            graph.put(kind, format!("name: {name}, recv: {{{}: 'test[sends].text'}}", field.name));
            names.push(format!("{kind}[{name}]"));
        }
    }
    assert_eq!(names.len(), ALONE.len(), "{names:?}");
    host.graph(&graph.text(&secret));
    let applied = silence.ask(&["apply"]);
    for name in names {
        assert!(applied.stdout.contains(&format!("failed {name}")), "{name}\n{applied}");
    }
    silence.holds_in_the_state();
}
