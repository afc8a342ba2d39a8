//! Passwords and secrets by reference: made once, given to whom they are for, and shown nowhere (S-6).

use crate::host::Host;
use std::path::Path;
use std::process::Stdio;

const GRAPH: &str = r#"graph: g
resources:
  password:
  - {name: db, length: 40SAVED}
  file:
  - {name: conf, path: $DIR/conf, mode: 0600, recv: {content: {template: "pw=${p}\n", values: {p: "password[db].password"}}}}
  - {name: switch, path: $DIR/switch, content: "SWITCH", notify: "password[db]"}
"#;

fn host(saved: &str) -> Host {
    Host::with(&graph(saved, "one"))
}

fn graph(saved: &str, switch: &str) -> String {
    GRAPH.replace("SAVED", saved).replace("SWITCH", switch)
}

/// All bytes below a directory.
fn bytes_below(directory: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(directory).expect("listed").flatten();
    entries.flat_map(|entry| std::fs::read(entry.path()).unwrap_or_default()).collect()
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

/// Of one that is not saved there is only a keyed hash: what is as it was made is known, what has drifted is unknown.
#[test]
fn what_is_not_saved_can_be_verified_and_not_restored() {
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
        .prints("the secret that it held is not kept")
        .prints_nothing_of("changed password[db]");
    assert_eq!(host.read("conf"), "drifted");
    host.graph(&graph("", "two"));
    host.apply().exits(0);
    assert!(password(&host).len() == 40 && password(&host) != first);
}

#[test]
fn what_is_saved_is_restored() {
    let host = host(", saved: true");
    host.apply().exits(0);
    let first = password(&host);
    assert!(holds(&bytes_below(&host.path("state")), &first), "it is kept");
    host.write("conf", "drifted");
    host.apply().exits(0);
    assert_eq!(password(&host), first);
    assert_eq!(host.mode("state") & 0o077, 0);
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

/// Canaries in every field that takes secrets, from each sort of supply, on success and on failure.
const SECRETS: &str = r#"graph: secrets
secrets:
  file: {file: secret}
  cred: {credential: token}
  cmd: {command: [cat, $DIR/printed]}
resources:
  test:
  - {name: fails, fail: 100, text: {secret: file}, map: {A: {secret: cred}, B: {secret: cmd}}}
  - {name: panics, panic: true, text: {secret: cred}, map: {A: {secret: file}}}
  - {name: sends, changed: true, text: {secret: cmd}}
  file:
  - {name: one, path: $DIR/one, content: {secret: file}, mode: 0644}
  - {name: two, path: $DIR/two, content: {secret: cred}, mode: 0644}
  - {name: three, path: $DIR/three, mode: 0644, recv: {content: {template: "${a}${b}", values: {a: {secret: cmd}, b: "exec[echoes].output"}}}}
  - {name: received, path: $DIR/received, mode: 0644, recv: {content: "test[sends].text"}}
  - {name: nowhere, path: $DIR/no/such/place, content: {secret: file}}
  - {name: refused, path: $DIR/refused, content: {secret: cmd}, validate: [sh, -c, 'cat "$1"; cat "$1" >&2; exit 1', sh, "%s"]}
  exec:
  - {name: echoes, args: [sh, -c, 'echo "$A"; echo "$A" >&2; cat; cat $DIR/pid > /dev/null 2>&1; true'], env: {A: {secret: file}}, stdin: {secret: cred}}
  - {name: breaks, args: [sh, -c, 'echo "$A"; echo "$A" >&2; cat >&2; exit 3'], env: {A: {secret: cmd}}, stdin: {secret: file}}
  - {name: guarded, args: [sh, -c, 'echo "$A" >&2; tr "\0" " " < /proc/$$/cmdline > $DIR/argv'], env: {A: {secret: cred}}, ifcmd: printenv A, donecmd: printenv A, changed_when: printenv A}
"#;

fn secrets() -> Host {
    let host = Host::with(SECRETS);
    let canary = |number: u32| format!("canary-5f1d9-{number}\n").repeat(14);
    host.write("secret", canary(1)).chmod("secret", 0o600);
    host.write("printed", canary(2));
    host.make_directory("credentials").chmod("credentials", 0o700);
    host.write("credentials/token", canary(3)).chmod("credentials/token", 0o400);
    host
}

fn silent(what: &str, text: &str) {
    assert!(!text.contains("canary-5f1d9"), "{what} tells a secret:\n{text}");
}

fn run(host: &Host, words: &[&str]) -> crate::output::Output {
    let mut command = host.command(words);
    command.env("STEADFAST_LOG", "trace").env("RUST_BACKTRACE", "full");
    command.env("CREDENTIALS_DIRECTORY", host.path("credentials"));
    host.finish(command)
}

/// S-6: in no output, no log, no message, no panic, no state, no argument of a child.
#[test]
fn a_secret_by_reference_is_shown_nowhere() {
    let host = secrets();
    for words in [
        &["check"][..],
        &["graph", "--format", "json"],
        &["plan"],
        &["plan", "--json", "--explain-edges"],
        &["apply", "--json"],
        &["apply"],
        &["drift"],
    ] {
        silent(&words.join(" "), &run(&host, words).to_string());
    }
    assert!(host.read("one").starts_with("canary-5f1d9-1\n"), "it reaches whom it is for");
    assert!(host.read("two").starts_with("canary-5f1d9-3\n"));
    assert!(host.read("three").contains("canary-5f1d9-2") && host.read("three").contains("-1\n"));
    assert_eq!(host.read("received").trim_end(), host.read("printed").trim_end());
    silent("the arguments of a child", &host.read("argv"));
    assert!(host.read("argv").contains("cmdline"), "they were looked at");
    // Drift, repaired by a daemon.
    let log = host.path("log");
    let mut command = host.command(&["run", "--log", "json"]);
    command.env("STEADFAST_LOG", "trace").env("CREDENTIALS_DIRECTORY", host.path("credentials"));
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).expect("a log"));
    let mut child = command.spawn().expect("started");
    host.wait_until("it has failed where it must", || {
        let text = host.read("log");
        ["file[refused]", "exec[breaks]", "test[panics]"]
            .iter()
            .all(|name| text.lines().any(|l| l.contains(name) && l.contains("\"failed\"")))
    });
    host.append("one", "x");
    host.wait_until("it is repaired", || !host.read("one").ends_with('x'));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a number"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it lives");
    child.wait().expect("it ends");
    silent("the log", &host.read("log"));
    assert!(!holds(&bytes_below(&host.path("state")), "canary-5f1d9"), "the state tells a secret");
}

/// A secret that changes is given to whom it is for.
#[test]
fn another_secret_is_another_content() {
    let host = secrets();
    let mut command = host.command(&["run", "--log", "json"]);
    command.env("CREDENTIALS_DIRECTORY", host.path("credentials"));
    let daemon = crate::daemon::Daemon::start(command, &host.path(""));
    daemon.wait_for_of("changed", "file[one]");
    host.write("secret", "rotated");
    host.wait_until("it is there", || host.read("one") == "rotated");
}

#[test]
fn what_is_not_kept_to_oneself_is_no_secret() {
    let graph = "graph: g\nsecrets: {s: SUPPLY}\nresources:\n  file:\n  - {name: $DIR/f, content: {secret: s}}\n";
    for (supply, words) in [
        ("{file: open}", "can be read by others"),
        ("{file: missing}", "does not exist"),
        ("{file: folder}", "is no regular file"),
        ("{file: bytes}", "is not UTF-8"),
        ("{credential: token}", "systemd gave no credentials"),
        ("{command: 'false'}", "the command that supplies a secret did not exit with 0"),
        ("{command: 'true'}", "the command that supplies a secret printed nothing"),
    ] {
        let host = Host::with(&graph.replace("SUPPLY", supply));
        host.write("open", "x").chmod("open", 0o640).make_directory("folder");
        host.write("bytes", [0xff, 0xfe]).chmod("bytes", 0o600);
        let mut command = host.command(&["apply"]);
        command.env_remove("CREDENTIALS_DIRECTORY");
        host.finish(command).exits(1).prints(words);
        assert!(!host.exists("f"), "{supply}");
    }
}
