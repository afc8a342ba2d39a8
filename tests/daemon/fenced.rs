//! Two daemons on one state after somebody removed its lock file.

use crate::host::Host;

const GRAPH: &str = "graph: g\nresources:\n  file: [{name: f, path: $DIR/f, content: \"x\\n\"}]\n  \
                     exec: [{name: once, shell: /bin/sh, cmd: \"echo ran >> $DIR/ran\"}]\n";

/// C-10: the older daemon begins nothing more, not even on request, and ends with 1 and a reason. The newer one
/// continues and rejects a third.
#[test]
fn the_older_of_two_daemons_ends() {
    let host = Host::with(GRAPH);
    let mut first = host.run(&["--sweep", "0"]);
    first.wait_for("converged");
    host.remove("state/lock");
    let second = host.run(&["--sweep", "0", "--socket", "$DIR/other.socket"]);
    second.wait_for("converged");
    let mut retry = host.bare(&["retry", "--persist", "exec[once]"]);
    retry.arg("--socket").arg(host.path("state/control.socket"));
    assert_ne!(host.finish(retry).code, 0, "it cannot be kept, or nobody is there any more");
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

/// C-10: an idle daemon notices its successor too.
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
