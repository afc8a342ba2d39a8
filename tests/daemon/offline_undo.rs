//! An undo without a daemon: the next daemon reverts none of it, for any declared state.

use crate::host::Host;

/// A file declared absent, and one with only its mode declared.
const GRAPH: &str = r"
graph: undone
resources:
  file:
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: whatever, path: $DIR/whatever, state: undefined, mode: 0755}
";

/// F-1: neither file has an ownership record; both are paused, and the next daemon leaves them as restored.
#[test]
fn unowned_files_are_paused_too() {
    let host = Host::with(GRAPH);
    host.write("gone", "mine\n").write("whatever", "mine\n").chmod("whatever", 0o644);
    host.apply().exits(0);
    assert!(!host.exists("gone") && host.mode("whatever") == 0o755);
    for name in ["file[gone]", "file[whatever]"] {
        let undone = host.ask_daemon(&["undo", name]);
        undone.exits(0).prints("is paused for 2 h").prints_nothing_of(
            "no known graph declares the resource; a graph that does would reverse the undo",
        );
    }
    let daemon = host.run(&[]);
    daemon.wait_for("loaded");
    for name in ["file[gone]", "file[whatever]"] {
        host.ask_daemon(&["check", name]).exits(0);
    }
    host.ask_daemon(&["status"]).prints("undone by command");
    assert_eq!((host.read("gone").as_str(), host.mode("whatever")), ("mine\n", 0o644));
    for name in ["file[gone]", "file[whatever]"] {
        host.ask_daemon(&["resume", name]).exits(0);
    }
    host.wait_until("as declared", || !host.exists("gone") && host.mode("whatever") == 0o755);
}

/// An undo over a removal and a re-creation restores the removed file and keeps the directory that it needs (operator
/// B5).
#[test]
fn an_undo_keeps_the_directory_of_what_comes_back() {
    for with_daemon in [false, true] {
        let host =
            Host::with("graph: g\nresources:\n  file: [{name: d, path: $DIR/d/, purge: true}]\n");
        host.make_directory("d").write("d/evil", "x\n");
        host.apply().exits(0);
        assert!(!host.exists("d/evil"));
        std::fs::remove_dir(host.path("d")).expect("removed");
        host.apply().exits(0);
        let daemon = with_daemon.then(|| host.run(&[]));
        if let Some(daemon) = &daemon {
            daemon.wait_for("converged");
        }
        host.ask_daemon(&["undo", "file[d]", "--to", "1"]).exits(0);
        assert_eq!(host.read("d/evil"), "x\n", "with a daemon: {with_daemon}");
    }
}

/// An undo that cannot be completed is rejected before its first step (operator B5).
#[test]
fn an_undo_without_its_directory_changes_nothing() {
    let host =
        Host::with("graph: g\nresources:\n  file: [{name: d, path: $DIR/d/, purge: true}]\n");
    host.make_directory("d").write("d/evil", "x\n").write("d/other", "y\n");
    host.apply().exits(0);
    std::fs::remove_dir(host.path("d")).expect("removed");
    host.ask_daemon(&["undo", "file[d]", "--to", "1"]).exits(1).says("nothing was changed");
    assert!(!host.exists("d"));
}

/// An undo of an access list gives back a mask that closed it: nobody gets rights that the file never gave.
#[test]
fn an_undo_gives_no_masked_right_back() {
    for mode in ["", ", mode: \"0640\""] {
        let host = Host::with(&format!(
            "graph: lists\nresources:\n  file:\n  - {{name: $DIR/p, acl: [\"user:bin:r--\"]{mode}}}\n"
        ));
        host.write("p", "private\n");
        let path = host.path("p");
        let run = |program: &str, words: &[&str]| {
            let output = std::process::Command::new(program).args(words).arg(&path).output();
            let output = output.expect("the program runs");
            assert!(output.status.success(), "{program}: {output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        run("setfacl", &["--modify", "user:daemon:rw,group::r"]);
        host.chmod("p", 0o600);
        let before = run("getfacl", &["--absolute-names", "--numeric"]);
        host.apply().exits(0);
        let name = format!("file[{}]", path.display());
        host.ask_daemon(&["undo", &name]).exits(0);
        assert_eq!(run("getfacl", &["--absolute-names", "--numeric"]), before, "{mode}");
        assert_eq!(host.mode("p"), 0o600);
    }
}

/// A unique bare name selects its resource, also without a daemon.
#[test]
fn a_bare_name_is_undone_without_a_daemon() {
    let host = Host::with("graph: g\nresources:\n  file: [{name: $DIR/f, content: a}]\n");
    host.write("f", "mine\n");
    host.apply().exits(0);
    let path = host.path("f").display().to_string();
    host.ask_daemon(&["undo", &path, "--plan"]).exits(0);
    host.ask_daemon(&["undo", &path]).exits(0).prints("is paused for 2 h");
    assert_eq!(host.read("f"), "mine\n");
}
