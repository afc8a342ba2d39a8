//! `--log journald`: the entries and fields at the journal's socket.

use crate::host::{Host, is_root};
use std::collections::HashMap;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: journal
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  exec:
  - {name: says, shell: /bin/sh, cmd: "printf 'one\nPRIORITY=0\nMESSAGE=forged' >&2; exit 1"}
"#;

/// Parses the fields of an entry as the journal does: `NAME=value`, or name, length and value.
fn fields(mut entry: &[u8]) -> HashMap<String, String> {
    let mut fields = HashMap::new();
    while let Some(end) = entry.iter().position(|byte| *byte == b'\n') {
        let (line, rest) = (&entry[..end], &entry[end + 1..]);
        let equals = line.iter().position(|byte| *byte == b'=');
        let (name, value, rest) = if let Some(at) = equals {
            (&line[..at], &line[at + 1..], rest)
        } else {
            let (length, rest) = rest.split_at(8);
            let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
            let (value, rest) = rest.split_at(usize::try_from(length).expect("short"));
            (line, value, rest.strip_prefix(b"\n").expect("the end of a value"))
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let before = fields.insert(text(name), text(value));
        assert_eq!(before, None, "each field once: {}", text(name));
        entry = rest;
    }
    fields
}

/// Waits for the next entry of this event.
fn wait_for(journal: &UnixDatagram, event: &str) -> HashMap<String, String> {
    let end = Instant::now() + Duration::from_mins(1);
    let mut bytes = vec![0; 1 << 20];
    while Instant::now() < end {
        let Ok(length) = journal.recv(&mut bytes) else { continue };
        let entry = fields(&bytes[..length]);
        if entry.get("STEADFAST_EVENT").is_some_and(|found| found == event) {
            return entry;
        }
    }
    panic!("no `{event}` has arrived");
}

/// S-13: each line is an entry with its resource, event and level as fields; output of a command is a value and never
/// a field. The daemon sees the test's journal socket in a mount namespace.
#[test]
fn lines_arrive_with_their_fields() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    host.make_directory("journal");
    let journal = UnixDatagram::bind(host.path("journal/socket")).expect("bound");
    journal.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    let enter = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
                 mount --bind \"$0\" /run/systemd/journal && exec \"$@\"";
    let run = host.command(&["run", "--log", "journald"]);
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", enter]);
    command.arg(host.path("journal")).arg(run.get_program()).args(run.get_args());
    command.stdout(Stdio::null()).stderr(Stdio::piped()).env_remove("STEADFAST_LOG");
    let mut daemon = command.spawn().expect("started");
    let failed = wait_for(&journal, "failed");
    let of = |name: &str| failed.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((of("STEADFAST_RESOURCE"), of("PRIORITY")), ("exec[says]", "3"));
    assert_eq!(of("SYSLOG_IDENTIFIER"), "steadfast");
    assert!(of("MESSAGE").starts_with("failed exec[says]: exit 1"), "{failed:?}");
    assert!(of("MESSAGE").contains("stderr: MESSAGE=forged"), "{failed:?}");
    std::fs::write(host.path("a"), "edited").expect("written");
    let changed = wait_for(&journal, "changed");
    let of = |name: &str| changed.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((of("STEADFAST_RESOURCE"), of("PRIORITY")), ("file[a]", "5"));
    assert!(!of("STEADFAST_CLASS").is_empty(), "{changed:?}");
    let data: serde_json::Value = serde_json::from_str(of("STEADFAST_DATA")).expect("JSON");
    assert_eq!(data["class"], of("STEADFAST_CLASS"), "{changed:?}");
    let mut stop = host.bare(&["stop"]);
    stop.arg("--state-dir").arg(host.path("state"));
    host.finish(stop).exits(0);
    assert!(daemon.wait().expect("a child of ours").success());
}

/// Without a journal the daemon says so and logs to standard error.
#[test]
fn without_a_journal_it_logs_all_the_same() {
    assert!(is_root(), "this test must run as root");
    let host =
        Host::with("graph: g\nresources:\n  file:\n  - {name: a, path: $DIR/a, content: x}\n");
    let apply = host.command(&["apply", "--log", "journald"]);
    let mut command = std::process::Command::new("unshare");
    let enter = "mount -t tmpfs none /run && exec \"$@\"";
    command.args(["--mount", "--propagation", "private", "sh", "-c", enter, "sh"]);
    command.arg(apply.get_program()).args(apply.get_args());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    host.finish(command)
        .exits(0)
        .says("warning: the journal cannot be reached")
        .says("changed file[a]: created");
}
