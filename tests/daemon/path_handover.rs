//! A path that passes from one resource to another takes its ownership record along.

use crate::host::Host;
use crate::removal::{DELETE, graph};

/// Returns a graph with one file for each name and path.
fn at(files: &[(&str, &str)]) -> String {
    let line = |(name, path): &(&str, &str)| {
        format!("  - {{name: {name}, path: $DIR/{path}, content: \"x\\n\", {DELETE}}}\n")
    };
    let lines: String = files.iter().map(line).collect();
    graph(&if lines.is_empty() { lines } else { format!("  file:\n{lines}") })
}

fn reload(host: &Host, text: &str) {
    host.graph(text);
    host.ask_daemon(&["reload"]).exits(0);
    host.wait_until("it is as declared", || host.ask_daemon(&["status"]).code == 0);
}

/// F5, B-16: a resource that takes over the path of an undeclared one owns the file and removes it with `on_remove:
/// delete`.
#[test]
fn a_path_that_we_made_stays_ours() {
    let host = Host::with(&at(&[("own1", "x")]));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    reload(&host, &at(&[("own2", "x")]));
    host.ask_daemon(&["state", "show", "file[own2]"]).exits(0).prints("created by steadfast");
    reload(&host, &at(&[]));
    host.wait_until("it is removed", || !host.exists("x"));
}

/// F5: an adopted file stays adopted, whichever resource claims it.
#[test]
fn an_adopted_path_stays_adopted() {
    let host = Host::with(&at(&[("own1", "x")]));
    host.write("x", "x\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    reload(&host, &at(&[("own2", "x")]));
    reload(&host, &at(&[]));
    daemon.wait_for_of("undeclared", "file[own2]");
    assert!(host.exists("x"));
}

/// F5: two resources that exchange their paths repeatedly keep their ownership records.
#[test]
fn an_exchange_of_paths_loses_nothing() {
    let host = Host::with(&at(&[("own1", "x"), ("own2", "y")]));
    host.write("y", "x\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for turn in 0..5 {
        let paths = if turn % 2 == 0 { ("y", "x") } else { ("x", "y") };
        reload(&host, &at(&[("own1", paths.0), ("own2", paths.1)]));
    }
    reload(&host, &at(&[]));
    host.wait_until("what we made is removed", || !host.exists("x"));
    assert!(host.exists("y"), "the object existed before");
}

/// A resource that names another object leaves the former one on the host, and says so once.
#[test]
fn a_former_object_that_stays_is_named() {
    let declared = |path: &str, line: &str| {
        graph(&format!(
            "  file: [{{name: conf, path: $DIR/{path}, content: \"x\\n\", {DELETE}}}]\n  \
             line: [{{name: setting, path: $DIR/lines, line: {line}, {DELETE}}}]\n"
        ))
    };
    let host = Host::with(&declared("one", "a=1"));
    host.write("lines", "first\n");
    host.apply().exits(0).prints_nothing_of("undeclared");
    host.graph(&declared("two", "a=2"));
    let one = "file[conf]: declared with another object; the former one stays, remove it by hand: $DIR/one";
    host.plan().exits(0).prints("undeclared objects that stay:").prints(one);
    let applied = host.apply();
    applied.exits(0).prints(one).prints("line[setting]").prints("a=1");
    assert!(host.exists("one") && host.exists("two"));
    assert_eq!(host.read("lines"), "first\na=1\na=2\n");
    host.apply().exits(0).prints_nothing_of("the former one");
    // Another resource has the former object.
    let both = format!(
        "  file:\n  - {{name: conf, path: $DIR/three, content: \"x\\n\", {DELETE}}}\n  \
         - {{name: other, path: $DIR/two}}\n"
    );
    host.graph(&graph(&both));
    host.apply().exits(0).prints("file[conf]").prints_nothing_of("the former one");
}
