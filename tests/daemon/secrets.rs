//! Canaries in file contents: sensitive content, or content with a private mode, is in no output, log or file of the
//! state.

use crate::host::Host;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The word that must not appear.
const CANARY: &str = "canary-5f1d9";

/// Contents from every source with every message about them; `$SAID` marks them as sensitive or not.
const GRAPH: &str = r#"
graph: secrets
resources:
  file:
  - {name: text, path: $DIR/text, content: "canary-5f1d9 text\n", SECRET}
  - {name: source, path: $DIR/source, source: files/one, SECRET}
  - {name: joined, path: $DIR/joined, fragments: [files/one, files/two], SECRET}
  - {name: tree, path: $DIR/tree/, source: files/tree/, recurse: true, purge: true, SECRET}
  - {name: refused, path: $DIR/refused, content: "canary-5f1d9 refused\n", SECRET,
     validate: [sh, -c, 'cat "$1"; cat "$1" >&2; exit 1', sh, "%s"]}
  - {name: kept, path: $DIR/kept, content: "canary-5f1d9 kept\n", backup: $DIR/backup, SECRET}
  - {name: nowhere, path: $DIR/no/such/place, content: "canary-5f1d9 nowhere\n", SECRET}
  - {name: once, path: $DIR/once, content: "canary-5f1d9 once\n", replace: false, SECRET}
  - {name: replaced, path: $DIR/replaced, content: "harmless\n", SECRET}
"#;

fn host(secret: &str) -> Host {
    let host = Host::with(&GRAPH.replace("SECRET", secret));
    for name in ["files", "files/tree", "files/tree/deep", "backup"] {
        host.make_directory(name);
    }
    host.chmod("backup", 0o700);
    for name in ["files/one", "files/two", "files/tree/a", "files/tree/deep/b", "replaced"] {
        host.write(name, format!("{CANARY} {name}\n"));
    }
    host
}

fn demand_silence(what: &str, text: &str) {
    assert!(!text.contains(CANARY), "{what} tells a secret:\n{text}");
}

/// Asserts that no file below a directory contains the canary.
fn demand_silence_below(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("listed").flatten() {
        if entry.path().is_dir() {
            demand_silence_below(&entry.path());
        } else if entry.file_name() == "graph.json" {
            // The last-good graph contains the text as written, so its file must be private.
            let mode = entry.metadata().expect("seen").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        } else {
            let bytes = std::fs::read(entry.path()).expect("read");
            let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
            assert!(!found, "{} holds a secret", entry.path().display());
        }
    }
}

fn commands_are_silent(host: &Host) {
    for words in [&["check"][..], &["plan"], &["plan", "--json"]] {
        demand_silence(&words.join(" "), &host.ask(words).to_string());
    }
    let mut apply = host.command(&["apply"]);
    apply.env("STEADFAST_LOG", "trace");
    demand_silence("apply", &host.finish(apply).to_string());
    // Drift, and the messages about it.
    for name in ["text", "source", "joined", "tree/a", "kept"] {
        host.append(name, CANARY);
    }
    for words in [&["plan"][..], &["plan", "--json"], &["apply"]] {
        demand_silence(&words.join(" "), &host.ask(words).to_string());
    }
    demand_silence_below(&host.path("state"));
}

fn daemon_is_silent(host: &Host) {
    let log = host.path("log");
    let mut command: Command = host.command(&["run", "--log", "json", "--sweep", "0"]);
    command.env("STEADFAST_LOG", "trace").stdout(Stdio::null());
    command.stderr(std::fs::File::create(&log).expect("a log"));
    let mut child = command.spawn().expect("started");
    host.wait_until("the refused one has failed", || {
        let text = host.read("log");
        let failed = |name: &str| text.lines().any(|l| l.contains(name) && l.contains("failed"));
        failed("file[refused]") && failed("file[nowhere]") && host.exists("tree/deep/b")
    });
    host.append("text", CANARY).append("tree/deep/b", CANARY).append("files/one", CANARY);
    host.wait_until("it is repaired", || {
        host.read("text").lines().count() == 1 && host.read("source").ends_with(CANARY)
    });
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a number"));
    // The arguments of the process are searched as well.
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).expect("it lives");
    demand_silence("its arguments", &String::from_utf8_lossy(&arguments));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it lives");
    child.wait().expect("it ends");
    demand_silence("the log", &host.read("log"));
    demand_silence_below(&host.path("state"));
}

/// S-6: content declared sensitive is shown nowhere, on success and on failure.
#[test]
fn a_sensitive_content_is_shown_nowhere() {
    let host = host("sensitive: true, mode: 0644");
    commands_are_silent(&host);
    daemon_is_silent(&host);
}

/// S-19: content of a file with a private mode is shown nowhere, without any declaration.
#[test]
fn a_content_that_others_may_not_read_is_shown_nowhere() {
    for mode in ["mode: 0600", "mode: 'u=rw,go='"] {
        // A tree of private files: one mode serves files and directories.
        let host = host(mode);
        commands_are_silent(&host);
        daemon_is_silent(&host);
    }
}

/// S-19: content is also hidden if only its source, or the replaced file, is private.
#[test]
fn formerly_secret_content_is_not_shown() {
    let host = host("mode: 0644");
    let silent = |names: &[&str], output: &str| {
        for name in names {
            let canary = format!("{CANARY} {name}");
            assert!(!output.contains(&canary), "{name} is told:\n{output}");
        }
    };
    host.chmod("files/one", 0o600).chmod("files/tree/a", 0o640).chmod("replaced", 0o600);
    silent(&["files/one", "files/tree/a", "replaced"], &host.plan().to_string());
    silent(&["files/one", "files/tree/a", "replaced"], &host.apply().to_string());
    host.write("source", "x").write("tree/a", "x").write("joined", "x");
    silent(&["files/one", "files/tree/a", "replaced"], &host.plan().to_string());
    // The counter-check: public content is shown, so the canaries of this test would be found.
    assert!(host.plan().to_string().contains(CANARY), "what is public is shown");
}

/// S-6: a message about a graph shows the wrong line, but no line with a secret.
#[test]
fn a_mistake_beside_a_secret_does_not_show_it() {
    for (fields, code) in [
        ("sensitive: true, content: canary-5f1d9, symlink: x", 2),
        ("mode: 0600, content: canary-5f1d9, state: undefined", 2),
        ("sensitive: true, content: canary-5f1d9, state: present", 2),
        ("mode: 0600, content: canary-5f1d9, source: x", 2),
    ] {
        // Each field on its own line.
        let lines = fields.replace(", ", "\n    ");
        let graph = format!("graph: g\nresources:\n  file:\n  - name: $DIR/a\n    {lines}\n");
        let host = Host::with(&graph);
        let output = host.check();
        assert_ne!(output.code, 0, "{code} {output}");
        demand_silence("check", &output.to_string());
    }
}

/// M4: a graph is rejected for a slip beside a secret; neither log nor status, nor a check whose output is stored,
/// shows its lines.
#[test]
fn a_rejected_graph_shows_no_source_text() {
    let good = "graph: g\nresources:\n  file: [{name: a, path: $DIR/a, content: x}]\n";
    let host = Host::with(good);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(
        r#"graph: g
resources:
  file:
  - {name: a, path: $DIR/a, sensitive: true, content: "CANARY", mod: 0600}
  exec:
  - {name: e, cmd: id, usr: x, stdin: CANARY, env: {PASSWORD: CANARY}}
  - {name: f, cmd: id, env: CANARY}
  - {name: h, cmd: id, env: {"A=CANARY": x}}
  - {name: i, cmd: id, args: "one WORD"}
  - {name: j, cmd: id, stdin: {secret: CANARY}}
  svc: WORD
secrets:
  db: CANARY
  api: {file: {x: CANARY}}
"#,
    );
    let reload = host.ask_daemon(&["reload"]);
    reload.exits(65).says("unknown key `mod`");
    let status = host.ask_daemon(&["status", "--json"]);
    status.prints("unknown key `mod`");
    let events = host.ask_daemon(&["events", "--json"]);
    let check = host.check();
    check.exits(65).says(":4:").says("unknown key `usr`").says("should be a map of strings");
    let json = host.ask(&["check", "--json"]);
    for answer in [&reload, &status, &events, &check, &json] {
        let all = answer.stdout.clone() + &answer.stderr;
        assert!(!all.contains("CANARY"), "{answer}");
    }
    // Only `check`, which reads the file itself, shows its lines.
    json.prints("WORD");
    for answer in [&reload, &status, &events] {
        let all = answer.stdout.clone() + &answer.stderr;
        assert!(!all.contains("WORD"), "{answer}");
    }
    let log = daemon.log();
    let shows = |line: &crate::daemon::Line| {
        line.message.contains("CANARY") || line.message.contains("WORD")
    };
    assert!(!log.iter().any(shows), "{log:?}");
}
