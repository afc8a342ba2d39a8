//! A state directory that is removed or replaced under a running daemon.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::output::Output;
use std::process::Command;
use std::time::{Duration, Instant};

const GRAPH: &str = "
graph: g
resources:
  file: [{name: f, path: $DIR/f, content: \"x\\n\"}]
  exec:
  - {name: once, shell: /bin/sh, cmd: \"echo ran >> $DIR/ran\"}
";

/// Starts a daemon with a socket outside its state directory and frequent checks of the state files.
fn run(host: &Host) -> Daemon {
    let mut command =
        host.command(&["run", "--log", "json", "--sweep", "0", "--socket", "$DIR/control"]);
    command.env("STEADFAST_TEST_SILENCE", "3000");
    let daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    daemon
}

fn ask(host: &Host, words: &[&str]) -> Output {
    let mut command = host.bare(words);
    command.arg("--socket").arg(host.path("control"));
    host.finish(command)
}

/// Runs a shell script that must succeed. Its `remove` repeats `rm -rf`, since the daemon may write meanwhile.
fn shell(host: &Host, script: &str) {
    let remove = r#"remove() { until rm -rf "$@"; do sleep 0.01; done; }; "#;
    let script = format!("{remove}{script}");
    let done = Command::new("sh").arg("-ec").arg(host.full(&script)).status().expect("run");
    assert!(done.success(), "{script}");
}

/// Asserts that nothing more is begun, `status` fails with the reason, and no state command succeeds.
#[track_caller]
fn is_noticed(host: &Host, daemon: &Daemon) {
    let said = daemon.wait_for("state_lost").message;
    assert!(
        said.contains("was removed or replaced") && said.contains("no changes are started"),
        "{said}"
    );
    let read_only = || {
        let status = ask(host, &["status"]);
        status.code != 0 && status.stdout.contains("was removed or replaced")
    };
    host.wait_until("status shows it", read_only);
    host.write("f", "drift\n");
    for words in [&["protect", "file[f]"][..], &["pause"], &["pause", "file[f]", "--for", "1h"]] {
        let answer = ask(host, words);
        assert!(answer.code != 0 && answer.stderr.contains("removed or replaced"), "{answer}");
    }
    assert_eq!(host.read("f"), "drift\n", "nothing is repaired");
}

/// F3: the directory is removed.
#[test]
fn a_removed_directory_is_noticed() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    shell(&host, "remove $DIR/state");
    is_noticed(&host, &daemon);
    assert_eq!(host.lines("ran").len(), 1);
}

/// F3: the directory is replaced by a backup. A new daemon runs on the backup; the first one writes nothing more and
/// ends.
#[test]
fn a_restored_directory_is_noticed() {
    let host = Host::with(GRAPH);
    let mut first = run(&host);
    shell(&host, "cp -a $DIR/state $DIR/backup; remove $DIR/state; cp -a $DIR/backup $DIR/state");
    is_noticed(&host, &first);
    let second = host.run(&["--sweep", "0", "--socket", "$DIR/other"]);
    second.wait_for("converged");
    first.wait_for("fenced");
    assert_eq!(first.ends(), 1);
    assert_eq!(host.lines("ran").len(), 1, "nothing ran twice");
    assert_eq!(host.read("f"), "x\n");
}

/// F3: one file is removed.
#[test]
fn a_removed_file_of_the_state_is_noticed() {
    for file in ["state.db", "lock"] {
        let host = Host::with(GRAPH);
        let daemon = run(&host);
        host.remove(&format!("state/{file}"));
        is_noticed(&host, &daemon);
    }
}

/// F3: a change before the next check of the state files fails at its begin: nothing is done that must be known after
/// a crash.
#[test]
fn a_repair_after_a_removal_is_not_begun() {
    let told =
        "{name: told, shell: /bin/sh, cmd: \"echo told >> $DIR/told\", subscribe: \"file[f]\"}";
    let host = Host::with(&format!("{GRAPH}  - {told}\n"));
    let daemon = host.run(&["--sweep", "0", "--socket", "$DIR/control"]);
    daemon.wait_for("converged");
    shell(&host, "remove $DIR/state");
    host.remove("f");
    daemon.wait_for("state_lost");
    assert!(!host.exists("f"), "it was begun");
    assert_eq!(host.lines("told").len(), 1);
}

/// R2: a repair that owes nothing is refused as well before the next check of the state files, because its prior state
/// could not be found later.
#[test]
fn a_repair_without_its_history_entry_is_refused() {
    let host = Host::with(
        "
graph: g
resources:
  file:
  - {name: changed, path: $DIR/changed, content: \"x\\n\"}
  - {name: absent, path: $DIR/absent, content: \"x\\n\"}
  - {name: mode, path: $DIR/mode, content: \"x\\n\", mode: 0644}
",
    );
    let daemon = host.run(&["--sweep", "0", "--socket", "$DIR/control"]);
    daemon.wait_for("converged");
    host.write("changed", "earlier drift\n");
    host.wait_until("the history is open", || host.read("changed") == "x\n");
    shell(
        &host,
        "remove $DIR/state; echo drift > $DIR/changed; rm $DIR/absent; chmod 600 $DIR/mode",
    );
    daemon.wait_for("state_lost");
    assert_eq!(host.read("changed"), "drift\n", "overwritten without an entry in the history");
    assert!(!host.exists("absent"), "created without an entry in the history");
    assert_eq!(host.mode("mode"), 0o600, "changed without an entry in the history");
}

/// F3: repairs that are due at the removal do not block the driver, with or without a durable begin (`g` owes a
/// refresh): `status` replies and names the missing files.
#[test]
fn repairs_that_are_due_do_not_hold_the_driver() {
    let host = Host::with(
        "
graph: g
resources:
  file:
  - {name: f, path: $DIR/f, content: \"x\\n\"}
  - {name: g, path: $DIR/g, content: \"y\\n\"}
  exec:
  - {name: told, shell: /bin/sh, cmd: \"echo told >> $DIR/told\", subscribe: \"file[g]\"}
",
    );
    let daemon = run(&host);
    shell(&host, "remove $DIR/state $DIR/f $DIR/g");
    daemon.wait_for("state_lost");
    let began = Instant::now();
    let read_only = || {
        let status = ask(&host, &["status"]);
        status.code != 0 && status.stdout.contains("was removed or replaced")
    };
    host.wait_until("status shows it", read_only);
    assert!(began.elapsed() < Duration::from_secs(10), "it was held: {:?}", began.elapsed());
    assert!(!host.exists("g"), "it was begun");
    assert_eq!(host.lines("told").len(), 1);
}

/// F3: a daemon whose state was taken by another one ends at once, also with a repair due.
#[test]
fn a_fenced_daemon_does_not_wait_for_a_repair() {
    let host = Host::with(GRAPH);
    let mut first = run(&host);
    shell(&host, "cp -a $DIR/state $DIR/backup; remove $DIR/state; cp -a $DIR/backup $DIR/state");
    let began = Instant::now();
    let second = host.run(&["--sweep", "0", "--socket", "$DIR/other"]);
    second.wait_for("converged");
    host.remove("f");
    first.wait_for("fenced");
    assert_eq!(first.ends(), 1);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// H2 of a fault run: the history is removed while in use: the next repair is recorded in a new one.
#[test]
fn a_removed_history_is_made_anew() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    host.write("f", "first\n");
    host.wait_until("it is repaired", || host.read("f") == "x\n");
    shell(&host, "remove $DIR/state/history");
    host.write("f", "precious\n");
    host.wait_until("it is repaired", || host.read("f") == "x\n");
    daemon.wait_for("history_lost");
    ask(&host, &["undo", "file[f]"]).exits(0);
    assert_eq!(host.read("f"), "precious\n");
}

/// M3 of a fault run: the key is removed while in use: it is written again, so no saved password is lost.
#[test]
fn a_removed_key_is_written_again() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    let key = std::fs::read(host.path("state/values.key")).expect("a key");
    shell(&host, "remove $DIR/state/values.key $DIR/state/values.key.check");
    daemon.wait_for("key_restored");
    assert_eq!(std::fs::read(host.path("state/values.key")).expect("a key"), key);
    host.wait_until("the check value is back", || host.exists("state/values.key.check"));
    // A truncated key is as good as a removed one.
    for damage in ["", "short"] {
        host.write("state/values.key", damage);
        daemon.wait_for("key_restored");
        assert_eq!(std::fs::read(host.path("state/values.key")).expect("a key"), key);
    }
}

/// A write-ahead log contains the last commits. Those of a removed one are saved in the database, so that a kill loses
/// neither records nor events.
#[test]
fn a_removed_write_ahead_log_loses_nothing() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    for database in ["state.db", "events.db"] {
        for part in ["wal", "shm"] {
            host.remove(&format!("state/{database}-{part}"));
        }
    }
    let is_saved = |database: &str| {
        let part = format!("{database}-wal was removed");
        daemon.log().iter().any(|line| line.event == "log_saved" && line.message.contains(&part))
    };
    host.wait_until("the state is saved", || is_saved("state.db"));
    host.write("f", "drift\n");
    host.wait_until("the events are saved", || is_saved("events.db"));
    host.wait_until("repaired", || host.read("f") == "x\n");
    let numbers = |host: &Host| -> Vec<u64> {
        let events = ask(host, &["events", "--since", "1", "--json", "--debug"]);
        let numbers = events.stdout.lines().filter_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("an event");
            event["number"].as_u64()
        });
        numbers.collect()
    };
    let before = numbers(&host);
    daemon.kill();
    let second = run(&host);
    assert_eq!(host.lines("ran").len(), 1, "the command ran once more");
    assert_eq!(second.count("read_only") + second.count("events_lost"), 0);
    let after = numbers(&host);
    assert_eq!(before.first(), Some(&1));
    assert_eq!(after.get(..before.len()), Some(&before[..]));
    assert!(after.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{after:?}");
}

/// The running graph stays while its file is rejected, also when the state directory is removed; the rejection is
/// reported on.
#[test]
fn the_running_graph_outlives_its_state_while_its_file_is_rejected() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    host.graph("graph: [");
    let said = ask(&host, &["reload"]);
    assert_eq!(said.code, 65, "{said}");
    shell(&host, "remove $DIR/state");
    daemon.wait_for("state_lost");
    host.wait_until("the graph is held by a read-only daemon", || {
        let status = ask(&host, &["status"]);
        status.stdout.contains("read-only") && !status.stdout.contains("0 of 0")
    });
    let status = ask(&host, &["status"]).stdout;
    assert!(status.contains("rejected"), "{status}");
    let shown = ask(&host, &["show", "file[f]"]);
    assert_eq!(shown.code, 0, "{shown}");
}

/// A database that somebody empties is noticed like a removed one: its content would be lost with the process.
#[test]
fn a_truncated_database_is_noticed() {
    let host = Host::with(GRAPH);
    let daemon = run(&host);
    shell(&host, ": > $DIR/state/state.db");
    is_noticed(&host, &daemon);
    assert!(ask(&host, &["status"]).stdout.contains("`state.db` was truncated"));
}

/// The write-ahead logs are truncated or overwritten while in use: this is noticed and reported, and a kill loses
/// nothing.
#[test]
fn an_overwritten_write_ahead_log_loses_nothing() {
    for damage in ["truncate -s 0", "dd status=none conv=notrunc if=/dev/zero bs=20000 count=1 of="]
    {
        let host = Host::with(GRAPH);
        let daemon = run(&host);
        host.write("f", "drift\n");
        host.wait_until("repaired", || host.read("f") == "x\n");
        let is_noticed = |event: &str, database: &str| {
            let part = format!("{database}-wal was truncated or overwritten");
            daemon.log().iter().any(|line| line.event == event && line.message.contains(&part))
        };
        // The state loses nothing after its last commit, the other two after a quiet second.
        std::thread::sleep(Duration::from_millis(300));
        let space = if damage.ends_with('=') { "" } else { " " };
        shell(&host, &format!("{damage}{space}$DIR/state/state.db-wal"));
        host.wait_until("the state is noticed", || is_noticed("state_repaired", "state.db"));
        std::thread::sleep(Duration::from_millis(2500));
        for file in ["events.db-wal", "history/history.db-wal"] {
            shell(&host, &format!("{damage}{space}$DIR/state/{file}"));
        }
        for database in ["events.db", "history.db"] {
            host.wait_until("it is noticed", || is_noticed("log_saved", database));
        }
        ask(&host, &["events", "--debug"]).exits(0).prints("nothing is lost");
        daemon.kill();
        let second = run(&host);
        assert_eq!(host.lines("ran").len(), 1, "the command ran once more");
        for lost in ["read_only", "events_lost", "history_lost"] {
            assert_eq!(second.count(lost), 0, "{lost}");
        }
        ask(&host, &["undo", "file[f]"]).exits(0);
        assert_eq!(host.read("f"), "drift\n");
    }
}
