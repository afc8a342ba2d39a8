//! Tests of the kinds `msg` and `print`: their texts and their receivers.

use crate::support::{EVENT, LOOK, REFRESH, apply, build, change, check, differs, run, text, yes};
use std::os::unix::net::UnixDatagram;
use steadfast_resources::{ExecutorKind, Outcome, RunPolicy, Value};

fn said(lines: &[&str]) -> Outcome {
    Outcome::Changed(lines.iter().map(ToString::to_string).collect())
}

#[test]
fn a_message_is_said_when_it_is_asked_for() {
    for kind in ["msg", "print"] {
        let resource = build(kind, []).unwrap();
        assert_eq!(resource.traits().repeat, RunPolicy::Once);
        assert_eq!(resource.traits().executor, ExecutorKind::Command);
        assert!(!differs(&resource, LOOK));
        assert!(differs(&resource, EVENT) && differs(&resource, REFRESH));
        let change = change(check(&resource, EVENT));
        assert_eq!(change.differences[0].to, "/bin/true by-name", "the name is the default");
        assert!(matches!(apply(&resource, change), Outcome::Changed(_)));
    }
}

/// S-13: a message cannot forge a line of the log.
#[test]
fn messages_are_escaped() {
    let msg = build("msg", [text("body", "a\nforged \u{1b}[2J")]).unwrap();
    assert_eq!(run(&msg), said(&[r"msg: a\nforged \u{1b}[2J"]));
    let print = build("print", [text("msg", "one\ntwo\t\u{1b}[2J\n")]).unwrap();
    assert_eq!(run(&print), said(&["one", r"two\t\u{1b}[2J"]));
}

#[test]
fn priorities_and_fields_are_checked() {
    for good in ["Emerg", "emergency", "Err", "Warning", "DEBUG", ""] {
        assert!(build("msg", [text("priority", good)]).is_ok(), "{good}");
    }
    assert!(build("msg", [text("priority", "loud")]).is_err());
    let with = |name: &str| {
        build("msg", [("fields", Value::TextMap(vec![(name.to_owned(), "x".to_owned())]))])
    };
    assert!(with("code_file").is_ok());
    for bad in ["", "_TRUSTED", "a-b", "1A", "MESSAGE", "priority", &"A".repeat(65), "a\nb"] {
        assert!(with(bad).is_err(), "{bad}");
    }
}

/// The journal's socket has a fixed path, so the test runs again in its own mount namespace with a socket
/// there. The test needs root.
#[test]
fn the_journal_gets_one_datagram() {
    let program = std::env::current_exe().unwrap();
    let done = std::process::Command::new("/usr/bin/unshare")
        .args(["--mount", "--"])
        .arg(program)
        .args(["--exact", "messages::with_a_journal", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

#[test]
#[ignore = "run by the_journal_gets_one_datagram"]
fn with_a_journal() {
    let mounted = std::process::Command::new("/bin/mount")
        .args(["-t", "tmpfs", "tmpfs", "/run"])
        .status()
        .unwrap();
    assert!(mounted.success());
    let fields = ("fields", Value::TextMap(vec![("unit_id".into(), "7\nMESSAGE=forged".into())]));
    let given = [text("body", "hello"), text("priority", "Err"), yes("journal"), fields];
    let msg = build("msg", given).unwrap();
    assert_eq!(msg.traits().executor, ExecutorKind::Thread, "the journal may block");
    match run(&msg) {
        Outcome::Failed { failure, touched: false } => {
            assert!(failure.hint.unwrap().contains("/run/systemd/journal/socket"));
        }
        other => panic!("there is no journal: {other:?}"),
    }
    std::fs::create_dir_all("/run/systemd/journal").unwrap();
    let journal = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
    assert_eq!(run(&msg), said(&["msg: hello"]));
    let mut entry = [0; 500];
    let count = journal.recv(&mut entry).unwrap();
    let expected = b"MESSAGE=hello\nPRIORITY=3\nSYSLOG_IDENTIFIER=steadfast\n\
        UNIT_ID\n\x10\0\0\0\0\0\0\x007\nMESSAGE=forged\n";
    assert_eq!(&entry[..count], expected);
}
