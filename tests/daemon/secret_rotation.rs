//! Rotated secrets: every receiver gets the new value, and the change does not count as drift.

use crate::host::Host;

/// A changed secret reaches its receivers.
#[test]
fn another_secret_is_another_content() {
    let host = Host::with(
        "graph: g\nsecrets: {s: {file: secret}}\nresources:\n  file:\n  - {name: $DIR/one, content: {secret: s}}\n",
    );
    host.write("secret", "first").chmod("secret", 0o600);
    let daemon = host.run(&[]);
    daemon.wait_for_of("changed", "file[$DIR/one]");
    host.write("secret", "rotated");
    host.wait_until("it is there", || host.read("one") == "rotated");
}

const ROTATED: &str = "graph: g
secrets: {s: {file: secret}}
resources:
  file:
  - {name: one, path: $DIR/one, mode: 0600, content: {secret: s}}
  - {name: other, path: $DIR/other, mode: 0600, template: {text: 'pw={{ p }}'}, values: {p: {secret: s}}}
";

/// A reload runs the command of a secret again, and its receivers get the new output.
#[test]
fn a_reload_reads_the_secrets_of_commands() {
    let host = Host::with(
        "graph: g\nsecrets: {s: {command: [/bin/cat, $DIR/vault]}}\nresources:\n  file:\n  - {name: one, path: $DIR/one, mode: 0600, content: {secret: s}}\n",
    );
    host.write("vault", "first").chmod("vault", 0o600);
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.write("vault", "second");
    host.ask_daemon(&["reload"]).exits(0);
    host.wait_until("the new output is there", || host.read("one") == "second");
    host.wait_until("and told", || daemon.count("changed") >= 2);
    let log = daemon.log();
    let is_repair = |line: &crate::daemon::Line| line.message.contains(", corrective");
    assert!(!log.iter().any(is_repair), "{log:#?}");
}

/// E-20: changes of receivers after a rotation are intentional; foreign changes of the file itself are corrective.
#[test]
fn a_secret_that_is_rotated_is_nobodys_drift() {
    let host = Host::with(ROTATED);
    host.write("secret", "s0").chmod("secret", 0o600);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for number in 1..=3 {
        let new = format!("s{number}");
        host.write("new", &new).chmod("new", 0o600).rename("new", "secret");
        host.wait_until("both have it", || {
            host.read("one") == new && host.read("other") == format!("pw={new}")
        });
    }
    host.wait_until("all is told", || daemon.count("changed") >= 2 + 6);
    let log = daemon.log();
    let changes: Vec<_> = log.iter().filter(|line| line.event == "changed").collect();
    let unmarked = |line: &&crate::daemon::Line| !line.message.contains(", corrective");
    assert!(changes.iter().all(unmarked), "{changes:#?}");
    assert_eq!(daemon.count("contended"), 0);
    host.append("one", "drift");
    host.wait_until("it is repaired", || host.read("one") == "s3");
    host.wait_until("and told", || {
        let of_one = |line: &crate::daemon::Line| {
            line.event == "changed" && line.message.contains(", corrective")
        };
        daemon.log().iter().any(of_one)
    });
}

/// E-20: a file that is its own secret grows with each repair; this is limited like contention, and reported.
#[test]
fn a_self_feeding_secret_is_bounded() {
    let host = Host::with(
        "graph: g\nsecrets: {s: {file: fed}}\nresources:\n  file:\n  - name: fed\n    path: $DIR/fed\n    mode: 0600\n    template: {text: 'x{{ v }}'}\n    values: {v: {secret: s}}\n",
    );
    host.write("fed", "s").chmod("fed", 0o600);
    let daemon = host.run(&[]);
    daemon.wait_for("contended");
    assert!(host.read("fed").len() < 20, "{:?}", host.read("fed"));
}

/// E-20: a rotation without a running daemon is noticed by the stored hash, not by events.
#[test]
fn a_secret_that_was_rotated_meanwhile_is_nobodys_drift() {
    let host = Host::with(ROTATED);
    host.write("secret", "first").chmod("secret", 0o600);
    host.apply().exits(0);
    host.write("secret", "second");
    let again = host.apply();
    again.exits(0).prints("changed file[one]").prints("changed file[other]");
    assert!(!again.stdout.contains("corrective"), "{again}");
    assert_eq!(host.read("one"), "second");
    host.append("one", "drift");
    host.apply().exits(0).prints("changed file[one]: ").prints(", corrective)");
}

const DEED: &str = r#"graph: g
secrets: {s: SUPPLY}
resources:
  exec:
  - name: deed
    cmd: /bin/sh
    args: ['-c', 'printf "%s " "$S" >> $DIR/done']
    env: {S: {secret: s}}
"#;

fn deed(supply: &str) -> Host {
    let host = Host::with(&DEED.replace("SUPPLY", supply));
    host.write("secret", "s0").chmod("secret", 0o600);
    host
}

/// R-12: a command without a check notices a rotated secret by its hash; a touched secret file causes no run.
#[test]
fn a_deed_is_done_again_for_a_secret_that_was_rotated_meanwhile() {
    let host = deed("{file: secret}");
    host.apply().exits(0).prints("changed exec[deed]");
    host.write("secret", "s0");
    host.apply().exits(0).prints_nothing_of("changed exec");
    assert_eq!(host.read("done"), "s0 ");
    host.write("secret", "s1");
    host.plan().exits(0).prints("~ exec[deed]");
    let again = host.apply();
    again.exits(0).prints("changed exec[deed]");
    assert!(!again.stdout.contains("corrective"), "{again}");
    host.apply().exits(0).prints_nothing_of("changed exec");
    assert_eq!(host.read("done"), "s0 s1 ");
}

/// F-17: a secret from a command can differ each time; a command without a check does not run again for it.
#[test]
fn a_deed_is_done_once_for_what_a_command_supplies() {
    let host = deed("{command: [/bin/cat, /proc/sys/kernel/random/uuid]}");
    for _ in 0..3 {
        host.apply().exits(0);
    }
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.read("done").split_whitespace().count(), 1);
}

/// R-12: a daemon notices a rotation at its start and while running; a touched secret file causes no run.
#[test]
fn a_daemon_does_a_deed_once_for_each_secret() {
    let host = deed("{file: secret}");
    host.apply().exits(0);
    host.write("secret", "s1");
    let daemon = host.run_telling_starts(&["--sweep", "0"]);
    let mut all = "s0 s1 ".to_owned();
    host.wait_until("found at the start", || host.read("done") == all);
    daemon.wait_for("converged");
    for number in 2..=4 {
        let before = daemon.count("secrets_unchanged");
        host.write("secret", format!("s{}", number - 1));
        host.wait_until("it was only touched", || daemon.count("secrets_unchanged") > before);
        assert_eq!(host.read("done"), all);
        let new = format!("s{number}");
        if number == 3 {
            host.write("new", &new).chmod("new", 0o600).rename("new", "secret");
        } else {
            host.write("secret", &new);
        }
        all.push_str(&format!("{new} "));
        host.wait_until("heard", || host.read("done") == all);
    }
}

/// B-9: an interrupted command that waits for the operator, or is skipped, does not run for a rotated secret either.
#[test]
fn a_policy_for_what_was_cut_off_holds_for_a_rotated_secret() {
    for policy in ["ask", "skip"] {
        let graph = DEED
            .replace("SUPPLY", "{file: secret}")
            .replace("    cmd: /bin/sh", &format!("    on_interrupt: {policy}\n    cmd: /bin/sh"));
        let waits = ">> $DIR/done; while [ -e $DIR/wait ]; do sleep 0.02; done'";
        let host = Host::with(&graph.replace(">> $DIR/done'", waits));
        host.write("secret", "s0").chmod("secret", 0o600);
        host.apply().exits(0);
        host.write("secret", "s1").write("wait", "");
        let daemon = host.run(&[]);
        host.wait_until("it runs", || host.read("done") == "s0 s1 ");
        daemon.kill_with_children();
        host.remove("wait");
        for _ in 0..2 {
            let daemon = host.run_telling_starts(&[]);
            host.wait_until("its secrets were read", || daemon.count("secrets_unchanged") > 0);
            assert_eq!(host.read("done"), "s0 s1 ", "{policy}");
        }
    }
}
