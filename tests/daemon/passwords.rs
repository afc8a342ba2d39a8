//! Passwords and secrets by reference: generated once and given to their receivers. For leaks, see `canaries`.

use crate::host::Host;
use serde_json::Value as Json;
use std::path::Path;
use std::process::Stdio;
use steadfast::store::{Entry, OpaqueText, SqliteStore, Store as _};

const GRAPH: &str = r#"graph: g
resources:
  password:
  - {name: db, length: 40SAVED}
  file:
  - {name: conf, path: $DIR/conf, mode: 0600, template: {text: "pw={{ p }}\n"}, values: {p: "password[db].password"}}
  - {name: switch, path: $DIR/switch, content: "SWITCH", notify: "password[db]"}
"#;

fn host(saved: &str) -> Host {
    Host::with(&graph(saved, "one"))
}

fn graph(saved: &str, switch: &str) -> String {
    GRAPH.replace("SAVED", saved).replace("SWITCH", switch)
}

/// Returns all bytes of the files below a directory.
fn bytes_below(directory: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(directory).expect("listed").flatten().map(|it| it.path());
    let bytes = |path: &Path| {
        // A socket has no content.
        if path.is_dir() { bytes_below(path) } else { std::fs::read(path).unwrap_or_default() }
    };
    entries.flat_map(|path| bytes(&path)).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn password(host: &Host) -> String {
    host.read("conf").trim_end().trim_start_matches("pw=").to_owned()
}

#[test]
fn a_password_is_made_once_and_anew_when_it_is_notified() {
    let host = host("");
    host.apply().exits(0);
    let first = password(&host);
    assert_eq!(first.len(), 40);
    for _ in 0..2 {
        host.ask(&["apply", "--detailed-exitcode"]).exits(0);
        assert_eq!(password(&host), first, "a restart makes no other one");
    }
    host.graph(&graph("", "two"));
    host.apply().exits(0).prints("changed password[db]").prints("changed file[conf]");
    let second = password(&host);
    assert_ne!(second, first);
    host.graph(&graph(", charset: '01'", "two"));
    host.apply().exits(0);
    assert!(password(&host).bytes().all(|byte| b"01".contains(&byte)), "declared otherwise");
}

/// An unsaved password is known by a keyed hash only: an unchanged file is verified, and drift is unknown.
#[test]
fn unsaved_passwords_can_be_verified_and_not_restored() {
    let host = host("");
    host.apply().exits(0);
    let first = password(&host);
    assert!(!holds(&bytes_below(&host.path("state")), &first), "it is in clear in the state");
    host.chmod("conf", 0o644);
    host.apply().exits(0).prints("changed file[conf]");
    assert_eq!((host.mode("conf"), password(&host)), (0o600, first.clone()));
    host.write("conf", "drifted");
    host.apply()
        .exits(1)
        .prints("the former secret is not stored")
        .prints_nothing_of("changed password[db]");
    assert_eq!(host.read("conf"), "drifted");
    host.graph(&graph("", "two"));
    host.apply().exits(0);
    assert!(password(&host).len() == 40 && password(&host) != first);
}

const BESIDE: &str = r#"graph: g
secrets: {s: {file: secret}}
resources:
  password:
  - {name: PW}
  file:
  - {name: conf, path: $DIR/conf, template: {text: "TEXT"}, values: {p: "password[DB].password", s: {secret: s}}}
"#;

/// E-18: a file with other text around an unsaved password is compared by hash: changed text is noticed, equal text
/// stays, also under another name.
#[test]
fn a_text_around_a_password_that_is_not_kept_is_compared() {
    let graph = |name: &str, named: &str, text: &str| {
        BESIDE.replace("PW", name).replace("DB", named).replace("TEXT", text)
    };
    let text = "pw={{ p }} s={{ s }}";
    let host = Host::with(&graph("db", "db", text));
    host.write("secret", "one").chmod("secret", 0o600);
    host.apply().exits(0);
    let first = host.read("conf");
    let unknown = |text: &str, secret: &str| {
        host.graph(&graph("db", "db", text)).write("secret", secret);
        for words in [&["plan"][..], &["apply"]] {
            host.ask(words)
                .prints("the value of `content` was not stored and has never been applied");
        }
        host.apply().exits(1);
        assert_eq!(host.read("conf"), first);
    };
    unknown(text, "two");
    unknown("pw={{ p }} s={{ s }} more", "one");
    unknown("pw={{ s }} s={{ p }}", "one");
    host.graph(&graph("db", "db", text));
    host.ask(&["apply", "--detailed-exitcode"]).exits(0);
    host.graph(&graph("new, aliases: [db]", "new", text));
    host.ask(&["apply", "--detailed-exitcode"]).exits(0);
    host.plan().exits(0).prints("2 unchanged");
    assert_eq!(host.read("conf"), first);
}

/// A password that is not saved and that no receiver got is made anew: nobody knows it. One that a receiver may have
/// got stays.
#[test]
fn an_unsaved_password_that_nobody_got_is_made_anew() {
    let host = Host::with(&graph("", "one").replace("$DIR/conf,", "$DIR/sub/conf,"));
    host.apply().exits(1).prints("changed password[db]");
    std::fs::create_dir(host.path("sub")).expect("made");
    host.apply().exits(0).prints("changed password[db]").prints("changed file[conf]");
    host.ask(&["apply", "--detailed-exitcode"]).exits(0);
    host.write("sub/conf", "drifted");
    host.apply().exits(1).prints_nothing_of("changed password[db]");
    let receiver = r#"graph: g
resources:
  password: [db]
  exec:
  - {name: e, cmd: 'printf %s "$P" > $DIR/got; test -e $DIR/good', recv: {env.P: "password[db].password"}, shell: /bin/sh}
"#;
    let host = Host::with(receiver);
    host.apply().exits(1).prints("changed password[db]");
    let got = host.read("got");
    host.write("good", "").apply().exits(1).prints_nothing_of("changed password[db]");
    assert_eq!((got.len(), host.read("got")), (32, got));
}

/// B-24: an operator can have a new password generated; a restart alone never does.
#[test]
fn an_operator_can_have_another_one_made() {
    let host = host("");
    host.apply().exits(0);
    let mut last = password(&host);
    for order in [&["retry", "--persist"][..], &["forget"]] {
        let mut command = host.bare(&[order, &["password[db]"]].concat());
        command.arg("--state-dir").arg(host.path("state"));
        host.finish(command).exits(0);
        host.apply().exits(0).prints("changed password[db]").prints("changed file[conf]");
        assert_ne!(password(&host), last, "{order:?}");
        last = password(&host);
        host.ask(&["apply", "--detailed-exitcode"]).exits(0);
    }
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["retry", "--persist", "password[db]"]).exits(0);
    host.wait_until("there is another one", || password(&host) != last);
    daemon.wait_for_of("changed", "file[conf]");
}

/// Returns true if any file of the state contains this text: database, its log, events, history or graph.
fn is_in_clear(host: &Host, text: &str) -> bool {
    holds(&bytes_below(&host.path("state")), text)
}

/// Asserts that drift is repaired, since the password is known.
fn demand_known(host: &Host, password: &str) {
    host.write("conf", "drifted");
    host.apply().exits(0).prints_nothing_of("changed password[db]");
    assert_eq!(self::password(host), password);
}

/// Asserts that drift is not repaired and no password is generated, until an operator requests one.
fn demand_unknown(host: &Host, password: &str) {
    host.write("conf", "drifted");
    host.apply().exits(1).prints_nothing_of("changed password[db]");
    assert_eq!(host.read("conf"), "drifted");
    host.graph(&graph(", saved: true", "two"));
    host.apply().exits(0).prints("changed password[db]");
    assert!(self::password(host).len() == 40 && self::password(host) != password);
    demand_known(host, &self::password(host));
}

/// Rewrites the stored sent values with correct checksums.
fn rewrite(host: &Host, change: impl Fn(&mut Json)) {
    let directory = host.path("state");
    let kept = SqliteStore::peek(&directory).expect("sound");
    let sent = kept.resources["password[db]"].sent.as_ref().expect("it has sent");
    let mut json: Json = serde_json::from_str(&sent.0).expect("a text of ours");
    change(&mut json["values"]["password"]);
    let values = OpaqueText(json.to_string().into());
    let sent = Entry::Sent { identity: "password[db]".into(), values };
    SqliteStore::open(&directory).expect("opened").commit(&[sent]).expect("kept");
}

/// Stores the password in clear text, as an older program did.
fn put_in_clear(host: &Host, password: &str) {
    rewrite(host, |value| {
        let value = value.as_object_mut().expect("a map");
        value.remove("encrypted").expect("it was encrypted");
        value.insert("secret".to_owned(), password.into());
    });
}

/// B-26: a saved password is in no file of the state in clear text, and is known after a restart.
#[test]
fn saved_passwords_are_restored() {
    let host = host(", saved: true");
    host.apply().exits(0);
    let first = password(&host);
    assert!(!is_in_clear(&host, &first), "it is in clear in the state");
    demand_known(&host, &first);
    assert!(!is_in_clear(&host, &first), "it is in clear in the state");
    assert_eq!(host.mode("state") & 0o077, 0);
}

/// B-26: a saved password is known after `kill -9`, with the database's log still there, and under another name.
#[test]
fn saved_passwords_outlive_a_kill_and_a_rename() {
    let host = host(", saved: true");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let first = password(&host);
    daemon.kill();
    assert!(!is_in_clear(&host, &first), "it is in clear in the state");
    demand_known(&host, &first);
    let renamed = graph(", saved: true, aliases: [db]", "one").replace("{name: db", "{name: it");
    host.graph(&renamed.replace("password[db]", "password[it]"));
    host.apply().exits(0);
    host.write("conf", "drifted");
    host.apply().exits(0).prints_nothing_of("changed password[it]");
    assert_eq!(password(&host), first, "for its new name");
    assert!(!is_in_clear(&host, &first), "it is in clear in the state");
}

/// B-26: a password stored in clear text by an older program is known and encrypted at the first write; nothing else
/// changes.
#[test]
fn passwords_stored_in_clear_text_are_encrypted() {
    let host = host(", saved: true");
    host.apply().exits(0);
    let first = password(&host);
    put_in_clear(&host, &first);
    assert!(is_in_clear(&host, &first), "as it was kept before");
    host.ask(&["apply", "--detailed-exitcode"]).exits(0);
    assert!(!is_in_clear(&host, &first), "it is in clear in the state");
    demand_known(&host, &first);
}

/// B-26: after the encryption, neither the database's log nor its free pages contain the password, wherever the
/// encryption was interrupted.
#[test]
fn of_what_was_in_clear_nothing_is_left() {
    let mut number = 1;
    while !wiped_but_for(number) {
        number += 1;
    }
    assert!(number > 8, "{number} writes to the log and the database");
}

/// Kills an `apply` at this write of the encryption, and asserts that the next one leaves no clear text; returns true
/// if the apply finished before the kill.
fn wiped_but_for(number: usize) -> bool {
    let host = host(", saved: true");
    host.apply().exits(0);
    let first = password(&host);
    put_in_clear(&host, &first);
    let open = rusqlite::Connection::open(host.path("state/state.db")).expect("opened");
    open.execute_batch("PRAGMA secure_delete=OFF; CREATE TABLE t (x)")
        .expect("as a program of before");
    open.execute("INSERT INTO t VALUES (?1)", [first.repeat(500)]).expect("written");
    open.execute_batch("DROP TABLE t").expect("freed, and not wiped");
    drop(open);
    let inner = host.command(&["apply"]);
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null"]);
    strace
        .arg("-P")
        .arg(host.path("state/state.db-wal"))
        .arg("-P")
        .arg(host.path("state/state.db"));
    strace.args(["-e", "trace=pwrite64", "-e"]);
    strace.arg(format!("inject=pwrite64:signal=KILL:when={number}"));
    strace.arg(inner.get_program()).args(inner.get_args());
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_through = strace.status().expect("strace runs").code() == Some(0);
    host.apply().exits(0);
    assert!(!is_in_clear(&host, &first), "killed at write {number}: it is in clear in the state");
    demand_known(&host, &first);
    is_through
}

/// B-26: with another key, or after any change, the stored password is unknown, and never a different one.
#[test]
fn undecryptable_values_are_unknown() {
    for with_key in [true, false] {
        let host = host(", saved: true");
        host.apply().exits(0);
        let first = password(&host);
        if with_key {
            host.remove("state/values.key.check").write("state/values.key", [7; 32]);
        } else {
            rewrite(&host, |value| {
                let mut text = value["encrypted"].as_str().expect("a text").to_owned();
                let last = if text.pop() == Some('0') { '1' } else { '0' };
                text.push(last);
                value["encrypted"] = text.into();
            });
        }
        demand_unknown(&host, &first);
    }
}

#[test]
fn a_running_daemon_repairs_what_is_not_saved() {
    let host = host("");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let first = password(&host);
    host.write("conf", "drifted");
    daemon.wait_for_of("changed", "file[conf]");
    daemon.wait_for("converged");
    assert_eq!(password(&host), first);
}

/// An unsaved password that is lost before its receiver got it (a kill in between) is made anew by the next start:
/// nobody knows the old one. A further start makes no other.
#[test]
fn an_unsaved_password_that_a_kill_lost_is_made_anew() {
    let between = "template: {text: \"pw={{ p }}\\n\"}, values: {p: \"password[db].password\"}, after: \"exec[between]\"}";
    let command = "  exec:\n  - {name: between, shell: /bin/sh, cmd: \"echo runs >> $DIR/runs; while ! test -e $DIR/go; do $DIR/sleep 0.01; done\", after: \"password[db]\", on_interrupt: rerun}\n";
    let of = |switch: &str| {
        let (before, _) = GRAPH.split_once("template:").expect("a receiver");
        let (_, after) = GRAPH.split_once("password[db].password\"}}").expect("a receiver");
        let graph = format!("{before}{between}{after}{command}");
        graph.replace("SAVED", "").replace("SWITCH", switch)
    };
    let host = Host::with(&of("one"));
    let daemon = host.run(&[]);
    // The change is reported once the password's record is durable.
    daemon.wait_for_of("changed", "password[db]");
    host.wait_for_lines("runs", 1);
    daemon.kill_with_children();
    assert!(!host.exists("conf"));
    host.write("go", "");
    let daemon = host.run(&[]);
    assert!(daemon.wait_for("value_lost").message.contains("password[db]: no receiver has got"));
    daemon.wait_for("converged");
    let first = password(&host);
    daemon.kill();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!((first.len(), password(&host), daemon.count("value_lost")), (40, first, 0));
}

#[test]
fn unusable_secret_supplies_are_rejected() {
    let graph = "graph: g\nsecrets: {s: SUPPLY}\nresources:\n  file:\n  - {name: $DIR/f, content: {secret: s}}\n";
    for (supply, words) in [
        ("{file: open}", "is readable by others"),
        ("{file: missing}", "does not exist"),
        ("{file: empty}", "is empty"),
        ("{file: folder}", "is not a regular file"),
        ("{file: bytes}", "is not UTF-8"),
        ("{credential: token}", "systemd gave no credentials"),
        ("{command: 'false'}", "the command `false` that supplies a secret ended with exit code 1"),
        ("{command: 'true'}", "the command `true` that supplies a secret printed nothing"),
    ] {
        let host = Host::with(&graph.replace("SUPPLY", supply));
        host.write("open", "x").chmod("open", 0o640).make_directory("folder");
        host.write("bytes", [0xff, 0xfe]).chmod("bytes", 0o600);
        host.write("empty", "").chmod("empty", 0o600);
        let mut command = host.command(&["apply"]);
        command.env_remove("CREDENTIALS_DIRECTORY");
        host.finish(command).exits(1).prints(words);
        assert!(!host.exists("f"), "{supply}");
    }
}

/// S-11: root trusts the program of a secret only if nobody else could change it: otherwise the load warns and the
/// run rejects it. Needs root.
#[test]
fn only_protected_secret_programs_are_trusted() {
    assert!(rustix::process::geteuid().is_root(), "this test must run as root");
    let host = Host::with(
        "graph: g\nsecrets: {s: {command: $DIR/deep/show}}\nresources:\n  file:\n  - {name: $DIR/f, content: {secret: s}}\n",
    );
    host.make_directory("deep").chmod("deep", 0o755);
    host.write("deep/show", host.full("#!/bin/sh\ntouch $DIR/ran; echo secret\n"));
    host.chmod("deep/show", 0o755);
    for (name, mode) in [("deep/show", 0o757), ("deep", 0o777)] {
        host.chmod(name, mode);
        let check = host.check();
        check.exits(0).says(
            "the secret `s`: another user could change a file that the resource reads or runs",
        );
        check
            .says("[C902]")
            .says("graph.yaml:2:")
            .says(&format!("is writable by others (mode {mode:04o})"));
        let applied = host.apply();
        applied.exits(1).prints("secret: program ").prints("another user could change the file");
        assert!(!host.exists("ran") && !host.exists("f"), "{applied}");
        host.chmod(name, 0o755);
    }
    assert!(host.check().exits(0).stderr.is_empty());
    host.apply().exits(0);
    assert_eq!(host.read("f"), "secret");
}

/// S-19: a file with a secret and without a declared mode is created for its owner alone. An existing or declared
/// mode is preserved, with a warning if it exposes the secret.
#[test]
fn a_secret_is_written_for_its_owner_alone_unless_asked() {
    let host = Host::with(
        r#"graph: g
secrets: {s: {file: secret}}
resources:
  password:
  - {name: p}
  exec:
  - {name: ask, args: [printenv, S], env: {S: {secret: s}}}
  file:
  - {name: sent, path: $DIR/sent, recv: {content: "password[p].password"}}
  - {name: supplied, path: $DIR/supplied, content: {secret: s}}
  - {name: mixed, path: $DIR/mixed, template: {text: "p={{ p }}\n"}, values: {p: "password[p].password"}}
  - {name: printed, path: $DIR/printed, recv: {content: "exec[ask].output"}}
  - {name: there, path: $DIR/there, content: {secret: s}}
  - {name: plus, path: $DIR/plus, mode: g+r, content: {secret: s}}
  - {name: open, path: $DIR/open, mode: 0644, content: {secret: s}}
  - {name: sent-open, path: $DIR/sent-open, mode: "go=r", recv: {content: "password[p].password"}}
  - {name: plain, path: $DIR/plain, content: x}
"#,
    );
    host.write("secret", "canary").chmod("secret", 0o600);
    host.write("there", "before").chmod("there", 0o640);
    let check = host.check();
    check.exits(0);
    let told: Vec<&str> = check.stderr.lines().filter(|line| line.contains("[C902]")).collect();
    assert_eq!(told.len(), 2, "{check}");
    for (line, place, name) in [(told[0], ":15:", "open"), (told[1], ":16:", "sent-open")] {
        assert!(line.contains(place), "{check}");
        let what = format!("file[{name}]: the secret in the file is readable by others [C902]");
        assert!(line.ends_with(&what), "{check}");
    }
    host.apply().exits(0);
    for name in ["sent", "supplied", "mixed", "printed"] {
        assert_eq!(host.mode(name) & 0o777, 0o600, "{name}");
    }
    for (name, mode) in
        [("there", 0o600), ("plus", 0o640), ("open", 0o644), ("sent-open", 0o644), ("plain", 0o644)]
    {
        assert_eq!(host.mode(name) & 0o777, mode, "{name}");
    }
    // A new file has the private mode again.
    host.remove("supplied");
    host.apply().exits(0);
    assert_eq!(host.mode("supplied") & 0o777, 0o600);
}

/// R8: a damaged key of the right length is named, and the password stays as it is.
#[test]
fn a_damaged_key_is_named_and_rotates_nothing() {
    let host = host(", saved: true");
    host.apply().exits(0);
    let first = password(&host);
    let mut key = std::fs::read(host.path("state/values.key")).expect("read");
    key[3..8].iter_mut().for_each(|byte| *byte = !*byte);
    host.write("state/values.key", key);
    let answer = host.apply();
    assert!(
        answer.code != 0
            && answer.stderr.contains("values.key is damaged")
            && answer.stderr.contains("from one backup"),
        "{answer}"
    );
    assert_eq!(password(&host), first, "the password was rotated");
}
