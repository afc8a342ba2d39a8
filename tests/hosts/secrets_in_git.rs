//! The recipes of docs/guide/secrets-in-git.md, with the real tools: age, sops and systemd-creds.

use crate::guide::{Block, blocks};
use crate::host::Host;
use crate::service::GRAPH;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The secrets of the page.
const SECRETS: [&str; 2] = ["correct horse", "t-123"];

/// Returns the program of sops, which a package of Python has.
fn sops() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/get-sops");
    let found = Command::new(script).stderr(Stdio::inherit()).output().expect("runs");
    assert!(found.status.success(), "get-sops said why above");
    PathBuf::from(String::from_utf8(found.stdout).expect("a path").trim())
}

fn boot() -> Host {
    let age = |name: &str| PathBuf::from(format!("/usr/bin/{name}"));
    Host::boot_with(&[
        (age("age"), "/usr/bin/age"),
        (age("age-keygen"), "/usr/bin/age-keygen"),
        (sops(), "/usr/local/bin/sops"),
    ])
}

/// Applies a graph of the page; the file has the secret, and nothing else shows the secret.
fn apply(host: &Host, graph: &str) {
    host.shell("rm -rf /etc/shop.conf /etc/shop.token /run/state");
    host.write(GRAPH, graph);
    let before = host.run(&["steadfast", "plan"]);
    assert_eq!(before.code, Some(0), "{graph}{}{}", before.stdout, before.stderr);
    let done = host.run(&["steadfast", "apply", "--yes"]);
    assert_eq!(done.code, Some(0), "{graph}{}{}", done.stdout, done.stderr);
    assert_eq!(host.read("/etc/shop.conf").as_deref(), Some("password=correct horse\n"));
    assert_eq!(host.shell("stat -c %a /etc/shop.conf"), "600\n");
    let after = host.run(&["steadfast", "plan", "--detailed-exitcode"]);
    assert_eq!(after.code, Some(0), "{}{}", after.stdout, after.stderr);
    let events = host.shell("steadfast events; steadfast history");
    for shown in [&before, &done, &after].map(|it| format!("{}{}", it.stdout, it.stderr)) {
        assert!(!SECRETS.iter().any(|secret| shown.contains(secret)), "{shown}");
    }
    assert!(!SECRETS.iter().any(|secret| events.contains(secret)), "{events}");
    let kept =
        host.run(&["grep", "-rlaF", "correct horse", "/etc/steadfast", "/var/lib/steadfast"]);
    assert_eq!(kept.stdout, "", "files with the secret");
}

/// The blocks of the page in order: commands are run, and each graph is applied.
#[test]
fn the_recipes_work_with_the_real_tools() {
    let host = boot();
    let mut graphs = 0;
    for Block { language, text } in blocks("secrets-in-git.md") {
        match &*language {
            "sh" if text.contains("systemctl restart") => {
                host.write(GRAPH, "graph: empty\nresources: {noop: [{name: a}]}\n");
                host.start();
                host.shell(&text);
            }
            "sh" => drop(host.shell(&text)),
            "yaml" => {
                graphs += 1;
                apply(&host, &text);
                let token = text.contains("token").then_some("t-123");
                assert_eq!(host.read("/etc/shop.token").as_deref(), token);
            }
            other => panic!("a block of {other}"),
        }
    }
    assert_eq!(graphs, 3, "age, sops, systemd-creds");

    // systemd has decrypted the credential for the restarted daemon.
    let page = blocks("secrets-in-git.md");
    let graph = page.iter().rfind(|block| block.language == "yaml").expect("a graph");
    let line = graph.text.lines().find(|line| line.trim_start().starts_with("db: ")).expect("db");
    host.shell("rm -f /etc/shop.conf");
    host.write(GRAPH, &graph.text.replace(line, "  db: { credential: db }"));
    let answer = host.systemctl("reload");
    assert_eq!(answer.code, Some(0), "{}{}", answer.stderr, host.report());
    host.until("the credential to be used", || {
        host.read("/etc/shop.conf").as_deref() == Some("password=correct horse\n")
    });
}

/// A new value in the repository reaches the host at the next check, and a lost key is a failure that says so.
#[test]
fn a_new_value_is_taken_and_a_lost_key_is_named() {
    let host = boot();
    let page = blocks("secrets-in-git.md");
    let commands: Vec<&Block> =
        page.iter().filter(|block| block.language == "sh").take(2).collect();
    for block in &commands {
        host.shell(&block.text);
    }
    let graph = page.iter().find(|block| block.language == "yaml").expect("a graph");
    host.write(GRAPH, &graph.text);
    host.start();
    let has = |content: &str| host.read("/etc/shop.conf").as_deref() == Some(content);
    host.until("the first value", || has("password=correct horse\n"));
    host.shell(&commands[1].text.replace("correct horse", "battery staple"));
    host.shell("steadfast check 'file[/etc/shop.conf]'");
    host.until("the second value", || has("password=battery staple\n"));
    host.shell("rm /etc/steadfast/keys/age.txt; echo x >/etc/shop.conf");
    host.shell("steadfast check 'file[/etc/shop.conf]' || true");
    host.until("the failure to be named", || {
        let said = host.run(&["steadfast", "why", "file[/etc/shop.conf]"]).stdout;
        said.contains("that supplies a secret ended with exit code")
    });
}
