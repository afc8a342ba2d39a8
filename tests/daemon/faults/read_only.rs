//! An unusable state, in each way of `docs/state.md`: the daemon starts read-only and changes nothing.

use super::full::Mount;
use crate::daemon::Daemon;
use crate::host::Host;
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};
use std::io::Write as _;

/// A file with `on_remove: delete`, and a command that runs once.
const GRAPH: &str = r#"
graph: observed
resources:
  file:
  - {name: conf, path: $DIR/conf, content: "declared\n"}
  - {name: made, path: $DIR/made, content: "made\n", meta: {on_remove: delete}}
  exec:
  - {name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}
"#;

const LESS: &str = "graph: observed\nresources: {file: [{name: conf, path: $DIR/conf, content: \"declared\\n\"}]}\n";

/// A change to the bytes of a database.
type Damage = fn(&mut Vec<u8>);

/// Creates a converged host and causes drift.
fn moved() -> Host {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.write("conf", "mine\n");
    host
}

/// B-22, F-4: starts a daemon and asserts that it is read-only with a reason. `status` shows that first, with the
/// remedy, and ends with 73. Nothing is changed, not by a reload either, and state commands and `apply` are rejected.
#[track_caller]
fn observes(host: &Host, why: &str) -> Daemon {
    observes_at(host, why, &[])
}

#[track_caller]
fn observes_at(host: &Host, why: &str, flags: &[&str]) -> Daemon {
    let before = (host.read("conf"), host.exists("made"), host.lines("ran"));
    let daemon = host.run(&[&["--sweep", "1"], flags].concat());
    let line = daemon.wait_for("read_only");
    assert!(line.message.contains(why), "{line:?}");
    daemon.wait_for_of("held", "file[conf]");
    let mut at: Vec<&str> = vec!["status"];
    at.extend(flags);
    let status = host.ask_daemon(&at);
    status.exits(73).prints(why).prints("hint: ").prints("read-only");
    let mut lines = status.stdout.lines();
    assert!(lines.next().is_some_and(|line| line.contains("read-only")), "{status}");
    assert!(lines.next().is_some_and(|line| line.contains(why)), "right after it: {status}");
    host.graph(LESS);
    daemon.signal(SIGHUP).wait_for("loaded");
    host.graph(GRAPH);
    daemon.signal(SIGHUP).wait_for("loaded");
    let protect: Vec<&str> = ["protect", "file[made]"].iter().chain(flags).copied().collect();
    host.ask_daemon(&protect).exits(1).says("the daemon is read-only, nothing is stored");
    assert_eq!((host.read("conf"), host.exists("made"), host.lines("ran")), before);
    daemon
}

fn stop(mut daemon: Daemon) {
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
}

/// B-22: a damaged state stays as it is, over any starts, until it is repaired, also with a running daemon, which
/// then continues by itself.
#[test]
fn a_damaged_state_is_observed_until_it_is_repaired() {
    let flip = |bytes: &mut Vec<u8>| {
        let name = b"exec[once]";
        let places = bytes.windows(name.len()).enumerate().filter(|(_, part)| part == name);
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        for at in places {
            bytes[at + 6] = b'x';
        }
    };
    let damages: [(&str, Damage); 4] = [
        ("checksum does not match", flip),
        ("is damaged", |bytes| bytes.truncate(bytes.len() / 2)),
        ("is damaged", |bytes| *bytes = b"not a database, but long enough to be one. ".repeat(99)),
        ("the file has only 7 bytes", |bytes| *bytes = b"foreign".to_vec()),
    ];
    for (why, damage) in damages {
        let host = moved();
        let path = host.path("state/state.db");
        let mut bytes = std::fs::read(&path).expect("read");
        damage(&mut bytes);
        std::fs::write(&path, &bytes).expect("written");
        host.apply().exits(73).says(why).says("steadfast state repair");
        stop(observes(&host, why));
        let daemon = observes(&host, why);
        assert_eq!(std::fs::read(&path).expect("read"), bytes, "{why}: left as it is");
        host.ask_daemon(&["state", "repair"]).exits(0).prints("resources");
        daemon.wait_for("converged");
        assert_eq!(host.read("conf"), "declared\n");
        let bad = std::fs::read_dir(host.path("state")).expect("listed").flatten();
        let bad =
            bad.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains(".db.bad-"));
        assert_eq!(std::fs::read(bad.expect("kept beside")).expect("read"), bytes);
        host.ask_daemon(&["status"]).exits(0);
        stop(daemon);
    }
}

/// A change to a state directory.
type Loss = fn(&Host);

/// B-22, F-4: a missing or empty state, or one without its key, is not a new state: nothing is adopted, generated or
/// run again before a repair.
#[test]
fn a_state_that_is_gone_is_observed_until_it_is_repaired() {
    let losses: [(&str, Loss, usize); 4] = [
        ("the file is missing, but values.key exists", |host| _ = host.remove("state/state.db"), 2),
        (
            "the file is empty, but values.key exists",
            |host| _ = host.write("state/state.db", ""),
            2,
        ),
        (
            "values.key is damaged: the file is missing",
            |host| _ = host.remove("state/values.key"),
            1,
        ),
        ("found 3", |host| _ = host.write("state/values.key", "cut"), 1),
    ];
    for (why, loss, runs) in losses {
        let host = moved();
        loss(&host);
        host.apply().exits(73).says(why).says("steadfast state repair");
        stop(observes(&host, why));
        let daemon = observes(&host, why);
        host.ask_daemon(&["state", "repair"]).exits(0);
        daemon.wait_for("converged");
        assert_eq!((host.read("conf").as_str(), host.lines("ran").len()), ("declared\n", runs));
        host.ask_daemon(&["status"]).exits(0);
        stop(daemon);
    }
}

/// B-22, F-21: a state of a newer program, or of another one, stays byte for byte, and a repair rejects it too.
#[test]
fn a_newer_or_foreign_state_is_observed() {
    let newer = "PRAGMA user_version = 1000";
    let foreign = "PRAGMA user_version = 0";
    for (sql, why) in [(newer, "newer steadfast (schema 1000"), (foreign, "no version")] {
        let host = moved();
        let path = host.path("state/state.db");
        rusqlite::Connection::open(&path).expect("opened").execute_batch(sql).expect("made so");
        let bytes = std::fs::read(&path).expect("read");
        host.apply().exits(73).says(why);
        let daemon = observes(&host, why);
        if sql == newer {
            host.ask_daemon(&["state", "repair"]).exits(1).says(why);
        }
        stop(daemon);
        if sql == newer {
            host.ask_daemon(&["state", "repair"]).exits(73).says(why);
        }
        assert_eq!(std::fs::read(&path).expect("read"), bytes, "left as it is");
    }
}

/// B-22, F-4: with a full disk the daemon is read-only; with free space it continues by itself. Root only (mounts a
/// tmpfs).
#[test]
fn a_full_state_directory_is_observed_until_there_is_room() {
    let host = Host::with(GRAPH);
    let mount = Mount::new(&host, "state", "size=2m,mode=0700");
    host.apply().exits(0);
    host.write("conf", "mine\n");
    let mut filler = std::fs::File::create(host.path("state/filler")).expect("created");
    for size in [1 << 16, 1 << 12, 1] {
        while filler.write_all(&vec![b'x'; size]).is_ok() {}
    }
    drop(filler);
    let daemon = observes_at(&host, "full", &["--socket", "$DIR/socket"]);
    host.remove("state/filler");
    daemon.wait_for("converged");
    assert_eq!((host.read("conf").as_str(), host.lines("ran").len()), ("declared\n", 1));
    stop(daemon);
    drop(mount);
}

/// B-22, F-4: with a read-only state directory the daemon is read-only; once the directory is writable, it continues
/// by itself. Root only (mounts a tmpfs).
#[test]
fn a_read_only_state_directory_is_observed_until_it_can_be_written() {
    let host = Host::with(GRAPH);
    let mount = Mount::new(&host, "state", "size=2m,mode=0700");
    host.apply().exits(0);
    host.write("conf", "mine\n");
    mount.remount("ro");
    let daemon = observes_at(&host, "Read-only file system", &["--socket", "$DIR/socket"]);
    // The stored state was readable: the one-time command does not run again.
    mount.remount("rw");
    daemon.wait_for("converged");
    assert_eq!((host.read("conf").as_str(), host.lines("ran").len()), ("declared\n", 1));
    stop(daemon);
    drop(mount);
}
