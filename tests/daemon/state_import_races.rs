//! Imports of a state while another import runs or a daemon starts.

use crate::host::{Host, LIMIT, is_root};
use nix::sys::signal::Signal::SIGTERM;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Child, Command};

const GRAPH: &str = r#"
graph: g
resources:
  file: [{name: made, path: $DIR/made, content: "made\n", meta: {on_remove: delete}}]
  exec: [{name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}]
"#;

fn of_state(host: &Host, words: &[&str]) -> Command {
    let mut command = host.bare(words);
    command.arg("--state-dir").arg(host.path("state"));
    command
}

/// Exports two different states.
fn two_states(host: &Host) -> [String; 2] {
    host.ask_daemon(&["state", "export", "$DIR/one.json"]).exits(0);
    host.ask_daemon(&["forget", "file[made]"]).exits(0);
    host.ask_daemon(&["state", "export", "$DIR/two.json"]).exits(0);
    let texts = [host.read("one.json"), host.read("two.json")];
    assert_ne!(texts[0], texts[1]);
    texts.map(|text| text.trim_end().to_owned())
}

/// Returns for each child: true if its import was done, false if it was rejected.
#[track_caller]
fn both(mut children: [Child; 2]) -> [bool; 2] {
    std::array::from_fn(|at| {
        let code = crate::host::ends(&mut children[at], LIMIT);
        // A daemon that has just imported a state is not found paused and at rest yet, and rejects another one.
        assert!([0, 1, 75].contains(&code), "{code}");
        code == 0
    })
}

#[track_caller]
fn is_one_of_those_done(host: &Host, texts: &[String; 2], done: [bool; 2]) {
    let now = host.ask_daemon(&["state", "export"]);
    let now = now.exits(0).stdout.trim_end();
    let said = texts.iter().zip(done).filter(|(_, done)| *done);
    assert!(said.clone().any(|(text, _)| host.short(text) == now), "{done:?}: {now}");
    host.ask_daemon(&["state", "verify"]).exits(0);
    assert!(!host.exists("state/import.json"), "nothing is left lying");
}

/// B-24: of two simultaneous imports each is done whole or rejected, and the state is that of a successful one.
#[test]
fn two_imports_at_once_are_one_after_the_other() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let texts = two_states(&host);
    for _ in 0..8 {
        let start =
            |name: &str| of_state(&host, &["state", "import", name]).spawn().expect("started");
        let done = both([start("$DIR/one.json"), start("$DIR/two.json")]);
        assert!(done[0] || done[1], "one of them is done");
        is_one_of_those_done(&host, &texts, done);
    }
}

/// B-24: a paused daemon executes two imports one after the other.
#[test]
fn a_daemon_takes_in_one_after_the_other() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause"]).exits(0);
    daemon.wait_for("paused");
    let texts = two_states(&host);
    // The exported state contains the pause, and so does the replaced one.
    for round in 0..4 {
        let before = host.ask_daemon(&["state", "export"]).exits(0).stdout.clone();
        let start =
            |name: &str| of_state(&host, &["state", "import", name]).spawn().expect("started");
        let done = both([start("$DIR/one.json"), start("$DIR/two.json")]);
        if done[0] || done[1] {
            is_one_of_those_done(&host, &texts, done);
            daemon.wait_for("loaded");
        } else {
            assert_ne!(round, 0, "it is paused and at rest");
            assert_eq!(host.ask_daemon(&["state", "export"]).stdout, before, "nothing was changed");
        }
    }
    host.ask_daemon(&["resume"]).exits(0);
    daemon.wait_for("converged");
    assert_eq!(host.lines("ran").len(), 1);
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
}

/// B-24, C-10: an import during the start of a daemon is done before the daemon reads the state, or rejected; the
/// daemon runs with the whole state, or ends with the name of the holder.
#[test]
fn an_import_while_a_daemon_starts_is_done_or_refused() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let texts = two_states(&host);
    for round in 0..8 {
        host.ask_daemon(&["state", "import", "$DIR/two.json"]).exits(0);
        let mut import = of_state(&host, &["state", "import", "$DIR/one.json"]);
        let (mut daemon, mut import) = if round % 2 == 0 {
            let daemon = host.run(&["--sweep", "0"]);
            (daemon, import.spawn().expect("started"))
        } else {
            let import = import.spawn().expect("started");
            (host.run(&["--sweep", "0"]), import)
        };
        let code = crate::host::ends(&mut import, LIMIT);
        let runs = daemon.line_or_end("converged", |line| line.event == "converged").is_some();
        if runs {
            daemon.signal(SIGTERM);
        }
        assert_eq!(daemon.ends(), if runs { 0 } else { 75 });
        assert!(code == 0 || runs, "one of them has it");
        // Rejected by the lock, or by the daemon, which is not paused.
        assert!([0, 1, 75].contains(&code), "{code}");
        let now = host.ask_daemon(&["state", "export"]);
        let owned = now.exits(0).stdout.contains("\"origin\": \"created\"");
        assert_eq!(owned, code == 0, "{code}: {now}");
        host.ask_daemon(&["state", "verify"]).exits(0);
        assert!(!host.exists("state/import.json"), "nothing is left lying");
        assert_eq!(host.lines("ran").len(), 1, "it is known to have run");
    }
    drop(texts);
}

/// S-11: root imports no file that others could change.
#[test]
fn a_state_of_others_is_not_taken_in() {
    let host = Host::with(GRAPH);
    if !is_root() {
        return;
    }
    host.apply().exits(0);
    let _texts = two_states(&host);
    let import = || host.ask_daemon(&["state", "import", "$DIR/one.json"]);
    let kept = || host.ask_daemon(&["state", "export"]).stdout;
    let before = kept();
    let refused = "$DIR/one.json was not imported: another user could change the file";
    chown(host.path("one.json"), Some(65534), None).expect("given away");
    import().exits(1).says(refused).says("belongs to uid 65534");
    chown(host.path("one.json"), Some(0), None).expect("taken back");
    std::fs::set_permissions(host.path("one.json"), Permissions::from_mode(0o666)).expect("set");
    import().exits(1).says(refused).says("is writable by others (mode");
    assert_eq!(kept(), before);
    std::fs::set_permissions(host.path("one.json"), Permissions::from_mode(0o600)).expect("set");
    import().exits(0);
    assert_ne!(kept(), before);
}
