//! S-13: foreign text in the log, the output and the live view forges no line, hides nothing and sends no terminal
//! codes.

use crate::host::Host;
use crate::terminal::Terminal;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

/// The word that marks each foreign text.
const MARK: &str = "FORGED";

/// Foreign texts: line ends, terminal codes (in one byte and in two), changes of direction, and bytes that are no
/// text.
const HOSTILE: &[&[u8]] = &[
    b"x\n2026-01-01T00:00:00.000000Z  INFO converged: FORGED",
    b"x\r\x1b[2J\x1b[31mFORGED\x07",
    b"x\xc2\x9b31m\xe2\x80\xaeFORGED\xe2\x80\xa8\x7f\x00",
    b"x\xff\xfeFORGED\x1b]0;title\x07",
];

/// The foreign text occurs in a command's standard error, in a file name, in a file's content, and in a link's
/// target.
const GRAPH: &str = r#"
graph: forged
resources:
  exec:
  - {name: says, shell: /bin/sh, cmd: "cat $DIR/hostile >&2; exit 1"}
  file:
  - {name: folder, path: $DIR/folder/, recurse: true, purge: true}
  - {name: text, path: $DIR/text, content: "is\nshall\n"}
  - {name: link, path: $DIR/link, symlink: /nowhere}
"#;

/// Returns true for a letter that a terminal or a reader would misinterpret.
fn is_deceptive(letter: char) -> bool {
    letter.is_control() && letter != '\n'
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}' | '\u{200e}'
            | '\u{200f}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

/// Asserts that a text contains no deceptive letter and no forged line.
#[track_caller]
fn is_honest(sink: &str, text: &str) {
    assert!(!text.contains(is_deceptive), "{sink} shows it as it is: {text:?}");
    let forged = text.lines().find(|line| line.starts_with("2026-01-01") || line.starts_with(MARK));
    assert_eq!(forged, None, "{sink} has a line of somebody else's:\n{text}");
}

/// Asserts the same as [`is_honest`] for JSON and for the texts inside.
#[track_caller]
fn is_honest_json(sink: &str, text: &str) {
    is_honest(sink, text);
    for line in text.lines() {
        let parsed: Value =
            serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert!(parsed.is_object() || parsed.is_array(), "{sink}: {line}");
    }
}

/// Prepares a host with foreign texts, and its daemon with this log format.
fn prepare(hostile: &[u8], log: &str) -> (Host, std::process::Child) {
    let host = Host::with(GRAPH);
    host.write("hostile", hostile);
    let words = ["run", "--log", log];
    let mut command = host.command(&words);
    let file = std::fs::File::create(host.path("log")).expect("a log");
    command.stdout(Stdio::null()).stderr(file);
    let child = command.spawn().expect("started");
    host.wait_until("it listens", || host.exists("state/control.socket"));
    host.wait_until("all was tried", || {
        host.ask_daemon(&["status", "--json"]).stdout.contains("\"failed\":1")
    });
    (host, child)
}

/// Causes drift with foreign names and texts, which is repaired and logged.
fn drift(host: &Host, hostile: &[u8]) {
    let name: Vec<u8> = hostile.iter().copied().filter(|byte| ![0, b'/'].contains(byte)).collect();
    let name = std::ffi::OsStr::from_bytes(&name);
    host.wait_until("the folder is there", || host.exists("folder"));
    std::fs::write(host.path("folder").join(name), "").expect("written");
    // One step, so that no repair happens in between.
    std::os::unix::fs::symlink(name, host.path("other")).expect("linked");
    host.rename("other", "link");
    host.wait_until("it is purged", || {
        std::fs::read_dir(host.path("folder")).expect("a folder").next().is_none()
    });
    host.wait_until("the link is right", || {
        std::fs::read_link(host.path("link")).is_ok_and(|to| to.as_os_str() == "/nowhere")
    });
}

fn end(host: &Host, mut child: std::process::Child) -> String {
    host.ask_daemon(&["stop"]).exits(0);
    child.wait().expect("a child of ours");
    host.read("log")
}

/// S-13: the log in text form.
#[test]
fn nothing_forges_the_log() {
    for hostile in HOSTILE {
        let (host, child) = prepare(hostile, "human");
        drift(&host, hostile);
        let log = end(&host, child);
        assert!(log.matches(MARK).count() >= 2, "it is told, from several sources:\n{log}");
        is_honest("the log", &log);
        for line in log.lines() {
            let begins = line.starts_with("20") || line.starts_with("    ");
            assert!(begins, "a line that is neither one of ours nor indented: {line:?}\n{log}");
        }
    }
}

/// S-13: the log as JSON.
#[test]
fn nothing_forges_the_log_as_json() {
    for hostile in HOSTILE {
        let (host, child) = prepare(hostile, "json");
        drift(&host, hostile);
        let log = end(&host, child);
        assert!(log.matches(MARK).count() >= 2, "it is told, from several sources:\n{log}");
        is_honest_json("the log", &log);
    }
}

/// S-13: all replies of a running daemon, in text and JSON.
#[test]
fn nothing_forges_an_answer() {
    for hostile in HOSTILE {
        let (host, child) = prepare(hostile, "json");
        drift(&host, hostile);
        let reason = String::from_utf8_lossy(hostile).replace('\0', "");
        host.ask_daemon(&["pause", "--reason", &reason, "file[text]"]).exits(0);
        host.wait_until("its drift is noticed", || {
            host.write("text", [b"is\n", *hostile].concat());
            host.ask_daemon(&["show", "file[text]"]).stdout.contains("differs")
        });
        for (words, is_told) in [
            (&["status"][..], true),
            (&["show", "exec[says]"], true),
            (&["show", "file[text]"], true),
            (&["why", "exec[says]"], true),
            (&["events"], true),
            (&["resume", "--plan", "file[text]"], false),
            (&["workers"], false),
        ] {
            let output = host.ask_daemon(words);
            assert!(!is_told || output.stdout.contains(MARK), "{words:?} tells it:\n{output}");
            is_honest(&format!("{words:?}"), &(output.stdout.clone() + &output.stderr));
        }
        for (words, is_told) in [
            (&["status", "--json"][..], true),
            (&["show", "--json", "exec[says]"], true),
            (&["why", "--json", "exec[says]"], true),
            (&["events", "--json"], true),
        ] {
            let output = host.ask_daemon(words);
            assert!(!is_told || output.stdout.contains(MARK), "{words:?} tells it:\n{output}");
            is_honest_json(&format!("{words:?}"), &output.stdout);
        }
        end(&host, child);
    }
}

/// S-13: the live view draws all its panes and nothing else.
#[test]
fn nothing_forges_the_live_view() {
    for hostile in HOSTILE {
        let (host, child) = prepare(hostile, "json");
        drift(&host, hostile);
        let mut command = host.bare(&["top", "--state-dir"]);
        command.arg(host.path("state")).env("TERM", "xterm").env_remove("NO_COLOR");
        let mut terminal = Terminal::start(&command, 24, 300);
        terminal.wait_for("failed    exec[says]");
        is_honest("the table", &terminal.screen());
        for (key, title) in [("\r", "needs: "), ("e", "events, newest first")] {
            terminal.type_in(key).wait_for(title).wait_for(MARK);
            is_honest(title, &terminal.screen());
            terminal.type_in("q");
        }
        terminal.type_in("q");
        assert_eq!(terminal.ends(), 0);
        let raw = terminal.raw();
        for code in ["\u{1b}]0;title", "\u{1b}[31mFORGED", "\u{202e}", "\u{7}"] {
            assert!(!raw.contains(code), "{code:?} has reached the terminal");
        }
        end(&host, child);
    }
}

/// S-13: the commands that need no daemon.
#[test]
fn nothing_forges_a_plan() {
    for hostile in HOSTILE {
        let host = Host::with(GRAPH);
        host.write("hostile", hostile).make_directory("folder").write("text", hostile);
        let name: Vec<u8> = hostile.iter().copied().filter(|b| ![0, b'/'].contains(b)).collect();
        let name = std::ffi::OsStr::from_bytes(&name);
        std::fs::write(host.path("folder").join(name), "").expect("written");
        std::os::unix::fs::symlink(name, host.path("link")).expect("linked");
        for words in [&["plan"][..], &["drift"], &["apply"]] {
            let output = host.ask(words);
            let all = output.stdout.clone() + &output.stderr;
            assert!(all.contains(MARK), "{words:?} tells it:\n{output}");
            is_honest(&format!("{words:?}"), &all);
        }
        host.remove("link").write("text", hostile);
        std::os::unix::fs::symlink(name, host.path("link")).expect("linked");
        for words in [&["plan", "--json"][..], &["drift", "--json"], &["apply", "--json"]] {
            is_honest_json(&format!("{words:?}"), &host.ask(words).stdout);
        }
    }
}
