//! `history`, `show --at`, `diff` and `undo` of the real program: replaced, removed, purged and changed files are
//! restored exactly.

use crate::host::{Host, is_root};
use crate::output::Output;
use serde_json::Value;
use std::os::unix::fs::{MetadataExt as _, chown};

const GRAPH: &str = r#"
graph: past
resources:
  file:
  - {name: motd, path: $DIR/motd, content: "declared\n", mode: 0644}
"#;

/// Runs a command on the recorded history of this host.
fn past(host: &Host, words: &[&str]) -> Output {
    let mut command = host.bare(words);
    command.arg("--state-dir").arg(host.path("state"));
    host.finish(command)
}

/// Returns the history entries as JSON.
fn entries(host: &Host, resource: &str) -> Vec<Value> {
    let listed = past(host, &["history", resource, "--json"]);
    listed.exits(0);
    listed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns mode, owner, group and content of a file.
fn seen(host: &Host, name: &str) -> (u32, u32, u32, String) {
    let meta = host.metadata(name);
    (meta.mode(), meta.uid(), meta.gid(), host.read(name))
}

fn everything(host: &Host) {
    host.write("motd", "mine\n").chmod("motd", 0o604).give_away("motd");
    let before = seen(host, "motd");
    host.apply().exits(0);
    let after = seen(host, "motd");
    let listed = entries(host, "file[motd]");
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["what"], &listed[0]["mode"]), (&"content, mode".into(), &"0604".into()));
    past(host, &["history"]).exits(0).prints("file[motd]  content, mode  $DIR/motd (was 0604");
    let number = listed[0]["number"].to_string();
    let at = past(host, &["show", "file[motd]", "--at", &number]);
    assert_eq!((at.code, at.stdout.as_str()), (0, "mine\n"), "{at}");
    let diff = past(host, &["diff", "file[motd]"]);
    diff.exits(0).prints_in_order(&["-mine", "+declared"]);
    past(host, &["undo", "file[motd]"])
        .exits(0)
        .prints("$DIR/motd: content")
        .prints("paused for 2 h");
    assert_eq!(seen(host, "motd"), before);
    past(host, &["undo", "file[motd]"]).exits(0);
    assert_eq!(seen(host, "motd"), after, "an undo can be undone");
    past(host, &["undo", "file[motd]", "--to", &number]).exits(0);
    assert_eq!(seen(host, "motd"), before);
    past(host, &["undo", "file[motd]", "--to", "999"]).exits(1).says("has no number 999");
    past(host, &["undo", "file[none]"]).exits(1).says("no recorded changes of file[none]");
}

/// A replaced file is restored with content, mode and owner; an undo can be undone.
#[test]
fn replaced_files_are_restored() {
    everything(&Host::with(GRAPH));
}

/// A replaced file is restored without root.
#[test]
fn replaced_files_are_restored_without_root() {
    everything(&Host::of_nobody(GRAPH));
}

/// Changes of owner, group and mode alone make entries without content.
#[test]
fn attributes_alone_come_back() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(
        "graph: past\nresources:\n  file: [{name: f, path: $DIR/f, mode: 0755, owner: root, group: root}]\n",
    );
    host.write("f", "same\n").chmod("f", 0o2644);
    chown(host.path("f"), Some(65534), Some(65534)).expect("given away");
    host.chmod("f", 0o2644);
    let before = seen(&host, "f");
    host.apply().exits(0);
    assert_eq!(host.mode("f"), 0o755);
    let listed = entries(&host, "file[f]");
    assert_eq!(listed[0]["what"], "owner, group, mode");
    assert_eq!(listed[0]["kept"], false, "the content was left as it was");
    past(&host, &["undo", "file[f]"]).exits(0).prints("$DIR/f: owner, group, mode");
    assert_eq!(seen(&host, "f"), before);
}

/// A purged tree with a directory and a link is restored whole by one undo, and created files are removed.
#[test]
fn a_purged_tree_comes_back() {
    let host = Host::with(
        "graph: past\nresources:\n  file: [{name: t, path: $DIR/t/, source: from/, recurse: true, purge: true}]\n",
    );
    for name in ["from", "t", "t/deep", "t/deep/er"] {
        host.make_directory(name);
    }
    host.write("from/new", "new\n").write("t/a", "a\n").write("t/deep/er/b", "b\n");
    host.chmod("t/a", 0o755).chmod("t/deep", 0o751);
    std::os::unix::fs::symlink("a", host.path("t/link")).expect("a link");
    let before = ["t/a", "t/deep/er/b"].map(|name| seen(&host, name));
    host.apply().exits(0);
    assert!(host.exists("t/new") && !host.exists("t/a") && !host.exists("t/deep"));
    past(&host, &["undo", "file[t]"]).exits(0);
    assert_eq!(["t/a", "t/deep/er/b"].map(|name| seen(&host, name)), before);
    assert_eq!(host.mode("t/deep"), 0o751);
    assert_eq!(std::fs::read_link(host.path("t/link")).expect("a link").as_os_str(), "a");
    assert!(!host.exists("t/new"), "what was made is gone");
    host.apply().exits(0);
    assert!(host.exists("t/new") && !host.exists("t/a"), "apply puts it back");
}

/// A directory removed by `force` is restored with its content.
#[test]
fn the_content_of_a_removed_directory_is_restored() {
    let host = Host::with(
        "graph: past\nresources:\n  file: [{name: d, path: $DIR/d, state: absent, force: true}]\n",
    );
    for name in ["d", "d/e"] {
        host.make_directory(name);
    }
    host.write("d/one", "1\n").write("d/e/two", "2\n");
    host.apply().exits(0);
    assert!(!host.exists("d"));
    past(&host, &["undo", "file[d]"]).exits(0);
    assert_eq!((host.read("d/one"), host.read("d/e/two")), ("1\n".to_owned(), "2\n".to_owned()));
}

/// With a running daemon, an undo pauses the resource, so that the undo lasts; a resume makes it as declared again.
#[test]
fn an_undo_beside_a_daemon_lasts_until_it_is_resumed() {
    let host = Host::with(GRAPH);
    host.write("motd", "mine\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.read("motd"), "declared\n");
    let done = past(&host, &["undo", "file[motd]", "--for", "1h"]);
    done.exits(0).prints("paused for 1 h").prints("steadfast resume");
    assert_eq!(host.read("motd"), "mine\n");
    daemon.wait_for("undone");
    past(&host, &["check", "file[motd]"]).exits(0);
    past(&host, &["status"]).prints("undone by command");
    assert_eq!(host.read("motd"), "mine\n", "looked at, and left alone");
    past(&host, &["undo", "file[motd]"]).exits(0);
    assert_eq!(host.read("motd"), "declared\n", "undone once more");
    past(&host, &["undo", "file[motd]"]).exits(0);
    past(&host, &["undo", "file[motd]", "--to", "999"]).exits(1).says("no number 999");
    past(&host, &["resume", "file[motd]"]).exits(0);
    host.wait_until("it is as declared", || host.read("motd") == "declared\n");
    let causes: Vec<Value> =
        entries(&host, "file[motd]").iter().map(|e| e["cause"].clone()).collect();
    assert_eq!(causes.first(), Some(&"load".into()));
    assert_eq!(causes.iter().filter(|cause| **cause == "undo").count(), 3, "{causes:?}");
}

/// F-1: after a kill at the moment when the new content appears, the old content is always recorded.
#[test]
fn replaced_content_survives_an_immediate_kill() {
    let host = Host::with(GRAPH);
    for round in 0..10 {
        let mine = format!("mine {round}\n");
        host.write("motd", &mine);
        let daemon = host.run(&[]);
        host.wait_until("it is replaced", || host.read("motd") == "declared\n");
        daemon.kill();
        let last = entries(&host, "file[motd]").pop().expect("an entry");
        let number = last["number"].to_string();
        let at = past(&host, &["show", "file[motd]", "--at", &number]);
        assert_eq!(at.stdout, mine, "round {round}\n{at}");
    }
}

/// S-6, S-19: no sensitive content is in any output or file of the state, packed or not; the change itself is
/// reported.
#[test]
fn secrets_are_not_kept() {
    const CANARY: &str = "canary-30b2";
    let host = Host::with(
        r#"
graph: past
resources:
  file:
  - {name: declared, path: $DIR/declared, content: "canary-30b2 new\n", sensitive: true}
  - {name: denied, path: $DIR/denied, content: "canary-30b2 new\n", mode: 0600}
  - {name: gone, path: $DIR/gone, state: absent}
"#,
    );
    for name in ["declared", "denied", "gone"] {
        host.write(name, format!("{CANARY} old\n"));
    }
    host.chmod("gone", 0o640);
    host.apply().exits(0);
    for name in ["declared", "denied", "gone"] {
        let resource = format!("file[{name}]");
        let listed = entries(&host, &resource);
        assert_eq!((listed.len(), &listed[0]["kept"]), (1, &false.into()), "{listed:?}");
        let number = listed[0]["number"].to_string();
        for words in [
            &["history", &resource][..],
            &["show", &resource, "--at", &number],
            &["diff", &resource],
            &["undo", &resource],
        ] {
            let told = past(&host, words);
            assert!(!told.to_string().contains(CANARY), "{told}");
            assert!(words[0] == "history" || told.code == 1, "{told}");
            assert!(
                told.to_string()
                    .contains("the content was not recorded: sensitive, or not readable by others"),
                "{told}"
            );
        }
    }
    assert!(!host.exists("gone"), "nothing was put back");
}

/// `sensitive: false` shows the differences of a file whose mode denies access to others, but not after the mode alone
/// was closed.
#[test]
fn a_closed_file_that_is_not_sensitive_has_a_difference() {
    let host = Host::with(
        r#"
graph: past
resources:
  file:
  - {name: shown, path: $DIR/shown, content: "new\n", mode: 0440, sensitive: false}
  - {name: later, path: $DIR/later, content: "new\n"}
"#,
    );
    host.write("shown", "old\n").chmod("shown", 0o440);
    host.write("later", "old\n").chmod("later", 0o644);
    host.apply().exits(0);
    past(&host, &["diff", "file[shown]"]).exits(0).prints_in_order(&["-old", "+new"]);
    host.chmod("later", 0o600);
    past(&host, &["diff", "file[later]"]).exits(1).says("may be sensitive");
}

/// The settings limit the history or turn it off; a read-only command writes nothing.
#[test]
fn settings_bound_it() {
    let host = Host::with(GRAPH);
    let apply = |settings: &str, words: &[&str]| {
        host.write("settings.yaml", settings);
        host.finish(host.command(&[&["apply", "--config", "$DIR/settings.yaml"], words].concat()))
    };
    host.write("motd", "mine\n");
    apply("history: {max_total: 0}\n", &[]).exits(0);
    past(&host, &["history"]).exits(0).prints("no changes are recorded");
    host.write("motd", "mine, and long\n");
    apply("history: {max_file: 10}\n", &["--noop"]).exits(0);
    assert!(!host.exists("state/history"), "a dry run keeps nothing");
    apply("history: {max_file: 10}\n", &[]).exits(0);
    past(&host, &["history"]).exits(0).prints("too large");
    past(&host, &["undo", "file[motd]"]).exits(1).says("too large");
    apply("history: {max_fil: 10}\n", &[]).exits(65).says("found `max_fil`");
    apply("history: {max_age: 10y}\n", &[]).exits(65).says("found `10y`");
    past(&host, &["history", "--limit", "1"]).exits(0);
}

/// A rejected change leaves no entry, however often it is retried.
#[test]
fn rejected_changes_leave_no_entry() {
    let host = Host::with(
        r#"
graph: past
resources:
  file: [{name: f, path: $DIR/f, content: "new\n", validate: [sh, -c, "exit 1", sh, "%s"], meta: {retry: 2, delay: 100}}]
"#,
    );
    host.write("f", "mine\n");
    host.apply().exits(1);
    assert_eq!(host.read("f"), "mine\n");
    past(&host, &["history"]).exits(0).prints("no changes are recorded");
}

/// Entries encrypted with a lost key are reported as such; later entries are listed, shown and restored as usual.
#[test]
fn entries_of_a_lost_key_are_passed_over() {
    let host = Host::with(GRAPH);
    host.write("motd", "first\n").apply().exits(0);
    host.write("motd", "second\n").apply().exits(0);
    host.remove("state/values.key");
    host.ask_daemon(&["state", "repair"]).exits(0);
    host.write("motd", "third\n").apply().exits(0);
    host.write("motd", "fourth\n").apply().exits(0);
    past(&host, &["history"]).exits(0).prints_in_order(&[
        "1  unreadable: damaged, or written with another values.key",
        "2  unreadable: damaged, or written with another values.key",
        "3  ",
        "(was 0644",
        "4  ",
    ]);
    let listed = entries(&host, "file[motd]");
    assert_eq!(listed.len(), 4);
    assert!(listed[0]["unreadable"].is_string() && listed[2]["unreadable"].is_null(), "{listed:?}");
    let at = past(&host, &["show", "file[motd]", "--at", "3"]);
    assert_eq!((at.code, at.stdout.as_str()), (0, "third\n"), "{at}");
    let lost = "change 2 cannot be read";
    past(&host, &["show", "file[motd]", "--at", "2"]).exits(73).says(lost);
    past(&host, &["undo", "file[motd]", "--to", "2"]).exits(1).says(lost);
    assert_eq!(host.read("motd"), "declared\n", "nothing was put back");
    past(&host, &["undo", "file[motd]", "--to", "3"]).exits(0);
    assert_eq!(host.read("motd"), "third\n");
}

/// A history that is removed, or replaced by an older one, between two sessions is reported once, and its numbers go
/// on.
#[test]
fn a_history_that_is_lost_between_two_sessions_is_reported() {
    let host = Host::with(GRAPH);
    let last = |host: &Host| {
        entries(host, "file[motd]").iter().filter_map(|entry| entry["number"].as_u64()).max()
    };
    host.write("motd", "one\n").apply().exits(0);
    let shell = |script: &str| {
        let script = host.full(script);
        assert!(
            std::process::Command::new("sh").arg("-ec").arg(script).status().unwrap().success()
        );
    };
    shell("cp -a $DIR/state/history $DIR/older");
    host.write("motd", "two\n").apply().exits(0);
    let mut before = last(&host);
    for loss in ["", "; cp -a $DIR/older $DIR/state/history"] {
        shell(&format!("rm -r $DIR/state/history{loss}"));
        let daemon = host.run(&[]);
        let said = daemon.wait_for("history_lost").message;
        assert!(said.contains("numbers continue at"), "{said}");
        daemon.wait_for("converged");
        host.ask_daemon(&["events"]).exits(0).prints("numbers continue at");
        host.write("motd", "three\n");
        host.wait_until("repaired", || host.read("motd") == "declared\n");
        host.wait_until("recorded", || last(&host) > before);
        before = last(&host);
        daemon.kill();
        let again = host.run(&[]);
        again.wait_for("converged");
        assert_eq!(again.count("history_lost"), 0, "it is reported once");
        again.kill();
    }
}
