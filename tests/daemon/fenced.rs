//! Two daemons on one state, for somebody has removed the file of its lock.

use crate::host::Host;

const GRAPH: &str = "graph: g\nresources:\n  file: [{name: f, path: $DIR/f, content: \"x\\n\"}]\n  \
                     exec: [{name: once, shell: /bin/sh, cmd: \"echo ran >> $DIR/ran\"}]\n";

/// C-10: the older one begins nothing more, not even what it is asked for by name, says why, and ends with 1; the newer
/// one goes on, and a third is refused by it as ever.
#[test]
fn the_older_of_two_daemons_ends() {
    let host = Host::with(GRAPH);
    let mut first = host.run(&["--sweep", "0"]);
    first.wait_for("converged");
    host.remove("state/lock");
    let second = host.run(&["--sweep", "0", "--socket", "$DIR/other.socket"]);
    second.wait_for("converged");
    let mut redo = host.bare(&["retry", "--persist", "exec[once]"]);
    redo.arg("--socket").arg(host.path("state/control.socket"));
    assert_ne!(host.finish(redo).code, 0, "it cannot be kept, or nobody is there any more");
    let said = first.wait_for("fenced").message;
    assert!(said.contains("another steadfast has taken the state in"), "{said}");
    assert!(said.contains("(epoch 2, ours is 1)"), "{said}");
    assert_eq!(first.ends(), 1);
    assert_eq!(host.lines("ran").len(), 1, "nothing was begun by the older one");
    host.write("f", "mine\n");
    second.wait_for_of("changed", "file[f]");
    host.apply().exits(75).says("another steadfast is running");
    assert_eq!(host.lines("ran").len(), 1);
}

/// C-10: one that has nothing to do finds out too.
#[test]
fn an_idle_daemon_finds_out() {
    let host = Host::with(GRAPH);
    let mut first = host.run(&["--sweep", "0"]);
    first.wait_for("converged");
    host.remove("state/lock");
    host.apply().exits(0);
    first.wait_for("fenced");
    assert_eq!(first.ends(), 1);
}
