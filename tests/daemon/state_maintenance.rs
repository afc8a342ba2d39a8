//! The state as a whole: exported, imported, repaired and redone, with and without a daemon.

use crate::host::Host;
use nix::sys::signal::Signal::SIGHUP;
use steadfast::store::{Entry, OpaqueText, SqliteStore};

const GRAPH: &str = r#"
graph: g
resources:
  file:
  - {name: made, path: $DIR/made, content: "made\n", meta: {on_remove: delete}}
  - {name: conf, path: $DIR/conf, mode: 0600, recv: {content: "password[secret].password"}}
  password: [{name: secret, length: 40, saved: true}]
  exec:
  - {name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}
"#;

const EMPTIER: &str = "graph: g\nresources: {noop: [{name: stays}]}\n";

fn copies(host: &Host, word: &str) -> usize {
    let names = std::fs::read_dir(host.path("state")).expect("listed").flatten();
    let is_one = |name: &str| name.starts_with("state.db.") && name.contains(word);
    names.filter(|entry| is_one(&entry.file_name().to_string_lossy())).count()
}

/// B-24, B-26: an export can be imported whole, also by another host, with a copy of the replaced state. It contains
/// no secrets.
#[test]
fn exports_can_be_imported() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let secret = host.read("conf");
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0).prints("4 resources written");
    assert_eq!(host.mode("kept.json") & 0o777, 0o600);
    let text = host.read("kept.json");
    assert!(!text.contains(secret.trim_end()), "{text}");
    let printed = host.ask_daemon(&["state", "export"]);
    printed.exits(0);
    assert_eq!(printed.stdout.trim_end(), host.short(text.trim_end()));
    // If it were forgotten, the file would be adopted and the command would run again.
    host.ask_daemon(&["forget", "file[made]", "exec[once]"]).exits(0);
    host.ask_daemon(&["state", "import", "$DIR/kept.json"])
        .exits(0)
        .prints("4 resources imported")
        .prints("backup of the old state: $DIR/state/state.db.before-");
    assert_eq!(copies(&host, "before"), 1);
    assert!(!host.exists("state/import.json"));
    let again = host.ask_daemon(&["state", "export"]);
    assert_eq!(again.exits(0).stdout, printed.stdout, "the same after export, import and export");
    host.ask_daemon(&["state", "verify"]).exits(0).prints("intact: 4 resources");
    host.write("conf", "drifted").apply().exits(0);
    assert_eq!(host.read("conf"), secret, "what is saved here stays");
    host.graph(EMPTIER).apply().exits(0);
    assert!(!host.exists("made"), "it is known to be ours again");
    assert_eq!(host.lines("ran").len(), 1);
}

/// B-24: a daemon imports a state only while it is paused; it continues with the imported state, paused until a
/// resume.
#[test]
fn a_daemon_takes_a_state_in_while_it_is_paused() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    host.ask_daemon(&["forget", "file[made]"]).exits(0);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    let import = ["state", "import", "$DIR/kept.json"];
    host.ask_daemon(&import).exits(1).says("the daemon is not paused");
    assert_eq!(copies(&host, "before"), 0);
    host.ask_daemon(&["pause", "--reason", "somebody works on it"]).exits(0);
    daemon.wait_for("paused");
    host.ask_daemon(&import).exits(0).prints("4 resources imported");
    daemon.wait_for("loaded");
    host.ask_daemon(&["status"]).exits(2).prints("somebody works on it");
    host.ask_daemon(&["resume"]).exits(0);
    daemon.wait_for("converged");
    assert_eq!(host.lines("ran").len(), 1);
    host.graph(EMPTIER);
    daemon.signal(SIGHUP).wait_for_of("removed", "file[made]");
    host.wait_until("what was ours is removed", || !host.exists("made"));
    host.ask_daemon(&["state", "verify"]).exits(0);
}

/// B-19: the removal data must match the identity: an edited export removes nothing else.
#[test]
fn edited_exports_remove_nothing_else() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.write("other", "of somebody else");
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    let other = host.path("other").display().to_string();
    let edited = host.read("kept.json").replace(&host.path("made").display().to_string(), &other);
    assert!(edited.contains(&other), "{edited}");
    host.write("kept.json", &edited);
    host.ask_daemon(&["state", "import", "$DIR/kept.json"]).exits(0);
    host.graph(EMPTIER)
        .apply()
        .prints("undeclared; the object cannot be removed: the stored removal data belongs to another object");
    assert_eq!(host.read("other"), "of somebody else");
    assert!(host.exists("made"));
}

/// B-24: an invalid or foreign document is not imported, and all its problems are named.
#[test]
fn unsound_documents_are_not_imported() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let before = host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0).stdout.clone();
    assert!(!before.is_empty());
    let text = host.read("kept.json");
    let wrong = text.replace("exec[once]", "once").replace("file[made]", "made");
    for (bad, says) in [
        ("not JSON".to_owned(), "not an exported state"),
        (text.replace("\"version\": 1", "\"version\": 7"), "expected version 1"),
        (text.replace("steadfast state", "other"), "expected the format"),
        (text.replace("\"stamp\"", "\"stemp\""), "unknown field `stemp`"),
        (wrong, "once: the name is not an identity"),
    ] {
        host.write("bad.json", &bad);
        let refused = host.ask_daemon(&["state", "import", "$DIR/bad.json"]);
        refused.exits(1).prints(says).says("nothing was changed");
    }
    let refused = host.ask_daemon(&["state", "import", "$DIR/bad.json"]);
    refused.prints("made: the name is not an identity");
    host.ask_daemon(&["state", "import", "$DIR/none.json"]).exits(64);
    assert_eq!(copies(&host, "before"), 0);
    host.apply().exits(0).prints(", 0 changed in");
}

/// Returns the end of a successful run.
fn ended(identity: &str) -> Entry {
    Entry::End {
        identity: identity.into(),
        definition: 1,
        outcome: steadfast::store::Ended::Well,
        begun: None,
        stamp: 1,
        owes: Vec::new(),
        paid: None,
    }
}

fn keep(host: &Host, entries: &[Entry]) {
    let mut store = SqliteStore::open(&host.path("state")).expect("opened");
    steadfast::store::Store::commit(&mut store, entries).expect("kept");
}

/// B-19, B-21: a load repairs each broken rule, with a log line and an event for each, and preserves a copy.
#[test]
fn broken_rules_are_repaired_at_the_start() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let taken = Entry::Taken { identity: "file[conf]".into(), hashes: "unreadable".into() };
    keep(&host, &[taken, ended("nothing")]);
    host.ask_daemon(&["state", "verify"]).exits(1).prints("nothing: the name is not an identity");
    host.ask_daemon(&["state", "export"]).exits(1).says("damaged");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let said = daemon.log();
    let lines: Vec<_> = said.iter().filter(|line| line.event == "state_repaired").collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    host.ask_daemon(&["events", "-n", "50"])
        .exits(0)
        .prints(
            "state_repaired: nothing: the name is not an identity: expected kind[name]; left out",
        )
        .prints("state_repaired: file[conf]: the stored received values cannot be read");
    assert_eq!(copies(&host, "bad"), 1);
    host.ask_daemon(&["state", "verify"]).exits(0);
    assert_eq!(host.lines("ran").len(), 1);
}

/// Records of an unknown kind (after a downgrade) stay: they are reported, and neither removed nor forgotten.
#[test]
fn records_of_an_unknown_kind_are_left_alone() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    keep(&host, &[ended("magic[x]")]);
    host.plan().exits(0).prints_nothing_of("magic");
    let daemon = host.run(&[]);
    daemon.wait_for("state_left_alone");
    daemon.wait_for("converged");
    host.graph(EMPTIER);
    daemon.signal(SIGHUP).wait_for_of("removed", "file[made]");
    host.wait_until("what was ours is removed", || !host.exists("made"));
    host.ask_daemon(&["state", "verify"])
        .exits(0)
        .prints("magic[x]: unknown kind `magic`; the record stays unchanged");
    host.ask_daemon(&["state", "show"]).exits(0).prints("magic[x]");
    assert_eq!(copies(&host, "bad"), 0);
}

/// An unreadable saved password is not generated again without a request: the daemon is read-only.
#[test]
fn a_password_that_cannot_be_read_is_not_drawn_anew() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let first = host.read("conf");
    keep(
        &host,
        &[Entry::Sent { identity: "password[secret]".into(), values: OpaqueText("x".into()) }],
    );
    let why = "password[secret]: the stored sent values cannot be read";
    host.apply().exits(73).says(why).says("steadfast state repair");
    let daemon = host.run(&[]);
    let line = daemon.wait_for("read_only");
    assert!(line.message.contains(why), "{line:?}");
    host.ask_daemon(&["status"]).exits(73).prints(why);
    assert_eq!(host.read("conf"), first);
    host.ask_daemon(&["state", "repair"])
        .exits(0)
        .prints("forgotten: sent values are created again, including saved passwords");
    daemon.wait_for("converged");
    let now = host.read("conf");
    assert!(now != first && now.len() == first.len(), "{now}");
}

/// A host's own export has no secrets; passwords with equal hashes stay, and drift is repaired with the same
/// password.
#[test]
fn an_own_export_loses_no_password() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let first = host.read("conf");
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    assert!(!host.read("kept.json").contains(first.trim_end()));
    host.ask_daemon(&["state", "import", "$DIR/kept.json"]).exits(0).prints_nothing_of("adopted");
    host.write("conf", "drifted\n");
    host.apply().exits(0).prints_nothing_of("changed password[secret]");
    assert_eq!(host.read("conf"), first);
    // Another hash means another password, which is unknown here.
    let text = host.read("kept.json");
    let (before, of) = text.split_once("\"password[secret]\": {").expect("kept");
    let mark = "hash\\\":\\\"";
    let (middle, hash) = of.split_once(mark).expect("a hash");
    let mut hash: Vec<char> = hash.chars().collect();
    hash[0] = if hash[0] == '0' { '1' } else { '0' };
    let hash: String = hash.into_iter().collect();
    host.write("other.json", format!("{before}\"password[secret]\": {{{middle}{mark}{hash}"));
    host.ask_daemon(&["state", "import", "$DIR/other.json"]).exits(0);
    host.write("conf", "drifted\n");
    host.apply();
    assert_ne!(host.read("conf"), first, "another one than that of the hash");
}

/// A pause during read-only operation outlives the repair of the state: the general one, and that of a resource.
#[test]
fn a_pause_outlives_a_repair() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.write("made", "mine\n");
    let break_it = || {
        rusqlite::Connection::open(host.path("state/state.db"))
            .and_then(|database| database.execute_batch("UPDATE whole SET sum = sum + 1"))
            .expect("damaged");
    };
    break_it();
    let daemon = host.run(&[]);
    daemon.wait_for_of("held", "file[made]");
    host.ask_daemon(&["pause", "--reason", "just this one", "file[made]"]).exits(0);
    host.ask_daemon(&["pause", "--reason", "somebody works on it"]).exits(0);
    daemon.wait_for_of("paused", "");
    host.ask_daemon(&["state", "repair"])
        .exits(0)
        .prints("the checksum of the global record does not match");
    daemon.wait_for("loaded");
    host.ask_daemon(&["status"]).exits(2).prints("somebody works on it").prints("just this one");
    host.ask_daemon(&["state", "show"]).exits(0).prints("somebody works on it");
    host.ask_daemon(&["resume"]).exits(0);
    daemon.wait_for_of("resumed", "");
    host.ask_daemon(&["show", "file[made]"]).prints("just this one");
    assert_eq!(host.read("made"), "mine\n", "it is paused by itself");
    host.ask_daemon(&["resume", "file[made]"]).exits(0);
    host.wait_until("it is repaired", || host.read("made") == "made\n");
}

/// A clean end leaves no log beside the database: all data are in one file.
#[test]
fn a_clean_end_leaves_no_log_beside() {
    let host = Host::with(GRAPH);
    host.write("made", "of somebody else\n");
    let left = || {
        let logs = ["state.db", "history/history.db"]
            .map(|name| [format!("state/{name}-wal"), format!("state/{name}-shm")]);
        logs.into_iter().flatten().filter(|name| host.exists(name)).collect::<Vec<_>>()
    };
    host.apply().exits(0);
    assert!(host.exists("state/history/history.db"));
    assert_eq!(left(), Vec::<String>::new());
    host.write("made", "of somebody else again\n");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert_eq!(left(), Vec::<String>::new());
}

/// B-9, B-24: `retry` and `forget` decide an interrupted run that waits for the operator, also without a daemon.
#[test]
fn interrupted_runs_are_decided_without_a_daemon() {
    for order in [&["retry", "--persist"][..], &["forget"]] {
        let host = Host::with(
            "graph: g\nresources:\n  exec: [{name: long, shell: /bin/sh, on_interrupt: ask, cmd: \"echo x >> $DIR/ran; \
             test -e $DIR/go || exec sleep 600\"}]\n",
        );
        let daemon = host.run(&[]);
        host.wait_for_lines("ran", 1);
        daemon.kill_with_children();
        host.write("go", "");
        let daemon = host.run(&[]);
        daemon.wait_for_of("held", "exec[long]");
        daemon.kill();
        host.ask_daemon(&[order, &["exec[long]"]].concat()).exits(0);
        host.apply().exits(0);
        assert_eq!(host.lines("ran").len(), 2, "{order:?}");
    }
}

/// B-24: a stamp that leaves no room for later ones is rejected.
#[test]
fn a_stamp_without_room_is_refused() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    let text = host.read("kept.json");
    let stamp = text.lines().find(|line| line.starts_with("  \"stamp\": ")).expect("a stamp");
    host.write("kept.json", text.replace(stamp, &format!("  \"stamp\": {},", u64::MAX)));
    host.ask_daemon(&["state", "import", "$DIR/kept.json"])
        .exits(1)
        .prints("stamp: expected at most");
    host.apply().exits(0);
}

/// B-24: a daemon imports states one after the other without a pause in between: a requested restart is no failure of
/// the store's worker.
#[test]
fn another_state_is_taken_in_again_and_again() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause"]).exits(0);
    daemon.wait_for("paused");
    for _ in 0..5 {
        host.ask_daemon(&["state", "import", "$DIR/kept.json"]).exits(0);
    }
    let report = host.ask_daemon(&["workers", "--json"]).json();
    let of_store = &report["workers"]["store"];
    assert_eq!(of_store["last_error"].as_str().unwrap_or_default(), "", "{of_store}");
    host.ask_daemon(&["resume"]).exits(0);
    daemon.wait_for("converged");
}

/// B-24: `retry` runs a one-time command again, without a daemon at the next start; ownership is not forgotten.
#[test]
fn redo_repeats_a_finished_run() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.ask_daemon(&["retry", "--persist", "exec[once]", "file[made]"])
        .exits(0)
        .prints("exec[once] runs again when");
    assert_eq!(host.lines("ran").len(), 1);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.lines("ran").len(), 2);
    host.ask_daemon(&["retry", "--persist", "exec[once]"]).exits(0).prints("exec[once] runs again");
    host.wait_until("it runs again", || host.lines("ran").len() == 3);
    host.ask_daemon(&["show", "file[made]"]).exits(0).prints("created by steadfast");
    host.ask_daemon(&["retry", "--persist", "exec[onec]"])
        .exits(64)
        .says("did you mean exec[once]");
}
