//! Resources dropped by a start or an automatic reload stay on the host until an operator requests their removal.

use crate::host::Host;
use crate::removal::{DELETE, files, graph};
use nix::sys::signal::Signal::SIGHUP;
use steadfast::config::Vertex;
use steadfast::store::{Entry, SqliteStore, Store as _, Verb};

/// B-16: only an explicit reload removes: an automatic one by `--watch` reports the removals and waits. An invalid
/// graph removes nothing.
#[test]
fn an_automatic_reload_never_deletes() {
    let whole = graph(&files(&[("a", DELETE), ("b", DELETE)]));
    let host = Host::with(&whole);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.graph(&graph(&files(&[("a", DELETE)])));
    daemon.wait_for_of("undeclared", "file[b]");
    daemon.wait_for("converged");
    assert!(host.exists("b"));
    host.graph("graph: g\nresources: {file: [{nam: x}]}\n");
    daemon.wait_for("rejected");
    daemon.signal(SIGHUP).wait_for("rejected");
    assert!(host.exists("a") && host.exists("b"));
    host.graph(&graph(""));
    daemon.wait_for_of("undeclared", "file[a]");
    daemon.wait_for("loaded");
    daemon.skip_to_now();
    daemon.signal(SIGHUP);
    daemon.wait_for_all("changed", &["file[a]", "file[b]"]);
    host.wait_until("both are gone", || !host.exists("a") && !host.exists("b"));
    // A removed resource is no longer enforced: the file of somebody else stays.
    daemon.wait_for("converged");
    host.write("a", "theirs\n");
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert!(host.exists("a"));
}

/// B-16: a start removes nothing, whether the resource was dropped before or while no daemon ran: a host can boot in
/// the middle of a deployment. The start reports the removals, `status` names them with the command, and that command
/// removes them.
#[test]
fn a_start_removes_nothing() {
    let whole = graph(&files(&[("a", DELETE), ("b", DELETE), ("c", "")]));
    let host = Host::with(&whole);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.graph(&graph(&files(&[("b", DELETE), ("c", "")])));
    daemon.wait_for_of("undeclared", "file[a]");
    daemon.wait_for("converged");
    daemon.kill();
    host.graph(&graph(&files(&[("c", "")])));
    // Two starts: the first one must not forget anything.
    for _ in 0..2 {
        let daemon = host.run(&[]);
        for name in ["file[a]", "file[b]"] {
            let said = daemon.wait_for_of("undeclared", name).message;
            assert!(
                said.contains("undeclared; pending removal: `steadfast reload` removes the object"),
                "{said}"
            );
        }
        daemon.wait_for("converged");
        host.ask_daemon(&["status"])
            .exits(0)
            .prints("pending removal: file[a], file[b] (`steadfast reload` removes");
        assert!(host.exists("a") && host.exists("b"));
        daemon.kill();
    }
    // The deployment is over: all resources are declared again and continue.
    host.graph(&whole);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("pending removal");
    daemon.kill();
    host.graph(&graph(&files(&[("c", "")])));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_all("changed", &["file[a]", "file[b]"]);
    host.wait_until("both are gone", || !host.exists("a") && !host.exists("b"));
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("pending removal");
    assert!(host.exists("c"));
}

/// B-16, B-10: a removal requested by an operator and interrupted by a crash is completed by a start, unless the
/// resource is declared again; removals not begun wait for the operator.
#[test]
fn a_start_ends_a_removal_that_was_cut_off() {
    for comes_back in [false, true] {
        let both = graph(&files(&[("a", DELETE), ("b", DELETE)]));
        let host = Host::with(&both);
        host.apply().exits(0);
        let path = host.path("state");
        let begin = |name: &str| {
            let kept = SqliteStore::peek(&path).expect("read");
            let owned = kept.resources[name].owned.clone().expect("ours");
            let text = owned.removal.clone().expect("how it is removed");
            let definition = Vertex::removal_definition(name, &text);
            let (stamp, owes) = (kept.stamp + 1, Vec::new());
            let begin = Entry::Begin {
                identity: name.into(),
                definition,
                stamp,
                verb: Verb::Update,
                owes,
                pays: None,
            };
            SqliteStore::open(&path).and_then(|mut store| store.commit(&[begin])).expect("kept");
        };
        begin("file[a]");
        host.graph(&if comes_back { both } else { graph("") });
        let daemon = host.run(&[]);
        if !comes_back {
            daemon.wait_for_of("changed", "file[a]");
        }
        daemon.wait_for("converged");
        assert_eq!((host.exists("a"), host.exists("b")), (comes_back, true));
        if comes_back {
            // The request is done: a later start without the resource asks again.
            host.ask_daemon(&["stop"]).exits(0);
            drop(daemon);
            host.graph(&graph(""));
            let daemon = host.run(&[]);
            daemon.wait_for_of("undeclared", "file[a]");
            daemon.wait_for("converged");
            assert!(host.exists("a"), "nobody has asked for it");
        }
    }
}

/// B-16: objects created under another graph name stay, also if that graph was loaded automatically and the operator
/// then reloads it.
#[test]
fn objects_of_another_graph_stay_its_own() {
    let host = Host::with(
        "graph: one\nresources: {file: [{name: f, path: $DIR/f, content: x, meta: {on_remove: delete}}]}\n",
    );
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    host.graph("graph: two\nresources: {file: [{name: g, path: $DIR/g, content: x}]}\n");
    daemon.wait_for_of("changed", "file[g]");
    daemon.skip_to_now();
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for("loaded");
    host.ask_daemon(&["wait", "--for", "converged"]).exits(0);
    assert!(host.exists("f"), "it was made under the graph `one`");
    // A later load of the first graph knows it as created.
    let first = |resource: &str| host.graph(&format!("graph: one\nresources: {{{resource}}}\n"));
    first("file: [{name: f, path: $DIR/f, content: x, meta: {on_remove: delete}}]");
    host.ask_daemon(&["reload"]).exits(0);
    first("noop: [{name: n}]");
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_of("removed", "file[f]");
    assert!(!host.exists("f"));
}
