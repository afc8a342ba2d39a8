//! The command `steadfast facts`, and `explain facts`.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

fn steadfast(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast")).args(arguments).output().unwrap()
}

fn standard_output(arguments: &[&str]) -> String {
    let output = steadfast(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn facts_are_printed_as_text_and_json() {
    let json: serde_json::Value =
        serde_json::from_str(&standard_output(&["facts", "--json"])).unwrap();
    assert!(json["cpu"]["count"].as_i64().unwrap() > 0, "{json}");
    let text = standard_output(&["facts"]);
    assert!(text.contains("\nkernel.name"), "{text}");
    assert_eq!(standard_output(&["facts", "kernel.name"]), "Linux\n");
    assert_eq!(standard_output(&["facts", "facts.kernel.name", "--json"]), "\"Linux\"\n");
    assert!(standard_output(&["facts", "kernel"]).starts_with("kernel.name     Linux\n"));
}

#[test]
fn an_unknown_fact_is_a_usage_error() {
    let output = steadfast(&["facts", "hostnam"]);
    assert_eq!(output.status.code(), Some(64));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: no fact is named `hostnam`"), "{message}");
    assert_eq!(steadfast(&["facts", "local.no_such"]).status.code(), Some(1));
}

#[test]
fn facts_are_explained() {
    let all = standard_output(&["explain", "facts"]);
    assert!(all.contains("os.codename") && all.contains("string, watched, optional."), "{all}");
    let one = standard_output(&["explain", "facts.memory.total_mb"]);
    assert!(one.contains("MiB") && one.contains("fixed until reboot"), "{one}");
    assert!(standard_output(&["explain", "facts.os"]).contains("os.id"));
    assert_eq!(steadfast(&["explain", "facts.nothing"]).status.code(), Some(64));
}

/// Only root sees the machine id: another user may give the output to others.
#[test]
fn private_facts_are_shown_to_root_alone() {
    use std::os::unix::process::CommandExt as _;
    if !std::path::Path::new("/etc/machine-id").exists() || !rustix::process::geteuid().is_root() {
        return;
    }
    assert!(standard_output(&["facts", "--json"]).contains("machine_id"));
    // The program lies in a folder that only root can enter: it is opened before the user changes.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("steadfast");
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    for words in [&["facts", "--json"][..], &["facts"]] {
        let output = Command::new(&program).args(words).uid(65534).gid(65534).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!String::from_utf8(output.stdout).unwrap().contains("machine_id"));
    }
}
