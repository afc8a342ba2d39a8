//! What an undo without a daemon leaves: nothing of it is reverted by the next one, whatever state was declared.

use crate::host::Host;

/// A thing of ours that is declared absent, and one of which only the mode is.
const GRAPH: &str = r"
graph: undone
resources:
  file:
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: whatever, path: $DIR/whatever, state: undefined, mode: 0755}
";

/// F-1: of neither it is kept whose it is; both are paused all the same, and the next daemon leaves them as they were put back.
#[test]
fn what_is_nobodys_is_paused_too() {
    let host = Host::with(GRAPH);
    host.write("gone", "mine\n").write("whatever", "mine\n").chmod("whatever", 0o644);
    host.apply().exits(0);
    assert!(!host.exists("gone") && host.mode("whatever") == 0o755);
    for name in ["file[gone]", "file[whatever]"] {
        let undone = host.ask_daemon(&["undo", name]);
        undone.exits(0).prints("is paused for 2 h").prints_nothing_of("no graph declares it");
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
