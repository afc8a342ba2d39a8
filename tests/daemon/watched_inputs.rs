//! `--watch`: every file that the graph is made of is watched, and files that it may be made of.

use crate::daemon::Daemon;
use crate::host::Host;

const GRAPH: &str = r#"
graph: parts
vars_files:
- vars.yaml
- {file: own/vars.yaml, optional: true}
include: [base.yaml, "more/*.yaml"]
modules:
- {use: modules/page, as: one, with: {folder: $DIR}}
resources:
  file:
  - {name: "$DIR/${vars.name}", content: "of vars\n"}
  - {name: $DIR/rendered, template: text.j2}
"#;

const MODULE: &str = r#"
module: page
params: {folder: {type: string}}
resources:
  file:
  - {name: page, path: "${params.folder}/page", template: page.j2}
"#;

fn host() -> Host {
    let host = Host::with(GRAPH);
    for folder in ["own", "more", "modules", "modules/page"] {
        host.make_directory(folder);
    }
    host.write("vars.yaml", "name: first\n");
    host.write("base.yaml", file_of(&host, "base", "one"));
    host.write("more/1.yaml", file_of(&host, "more", "one"));
    host.write("modules/page/module.yaml", MODULE);
    host.write("modules/page/page.j2", "page one\n");
    host.write("text.j2", "text one\n{% include \"part.j2\" %}\n");
    host.write("part.j2", "part one\n");
    host
}

fn file_of(host: &Host, name: &str, content: &str) -> String {
    host.full(&format!(
        "resources: {{file: [{{name: $DIR/{name}.txt, content: \"{content}\\n\"}}]}}\n"
    ))
}

fn started(host: &Host) -> Daemon {
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    daemon
}

fn wait_for_content(host: &Host, name: &str, content: &str) {
    host.wait_until(&format!("{name} has the content {content:?}"), || {
        host.exists(name) && host.read(name) == content
    });
}

/// A change of each file of a graph reloads the graph.
#[test]
fn each_input_is_watched() {
    let host = host();
    let _daemon = started(&host);
    wait_for_content(&host, "rendered", "text one\npart one\n");
    host.write("base.yaml", file_of(&host, "base", "two"));
    wait_for_content(&host, "base.txt", "two\n");
    host.write("more/1.yaml", file_of(&host, "more", "two"));
    wait_for_content(&host, "more.txt", "two\n");
    host.write("modules/page/page.j2", "page two\n");
    wait_for_content(&host, "page", "page two\n");
    host.write("part.j2", "part two\n");
    wait_for_content(&host, "rendered", "text one\npart two\n");
    host.write("text.j2", "text two\n");
    wait_for_content(&host, "rendered", "text two\n");
    host.write("modules/page/module.yaml", MODULE.replace("}/page", "}/sheet"));
    wait_for_content(&host, "sheet", "page two\n");
    host.write("vars.yaml", "name: second\n");
    wait_for_content(&host, "second", "of vars\n");
}

/// A file that did not exist is used when it appears: by a pattern, as an optional file, and in a new folder.
#[test]
fn a_new_input_is_seen() {
    let host = host();
    let _daemon = started(&host);
    host.write("more/2.yaml", file_of(&host, "new", "one"));
    wait_for_content(&host, "new.txt", "one\n");
    host.write("own/vars.yaml", "name: third\n");
    wait_for_content(&host, "third", "of vars\n");
}

/// A graph that is rejected because of an included file is read again when that file is corrected, also at the start.
#[test]
fn a_corrected_input_ends_a_rejection() {
    let host = host();
    let daemon = started(&host);
    host.write("base.yaml", "resources: [\n");
    daemon.wait_for("rejected");
    host.write("base.yaml", file_of(&host, "base", "three"));
    wait_for_content(&host, "base.txt", "three\n");
    host.write("base.yaml", "resources: {file: [{nme: x}]}\n");
    daemon.wait_for("rejected");
    host.write("base.yaml", file_of(&host, "base", "four"));
    wait_for_content(&host, "base.txt", "four\n");
}

/// A change of a file besides the inputs reads nothing: the graph is delivered once.
#[test]
fn other_files_are_not_watched() {
    let host = host();
    let daemon = started(&host);
    daemon.skip_to_now();
    host.write("other.txt", "x");
    host.write("own/other.yaml", "x: 1\n");
    host.write("base.yaml", file_of(&host, "base", "five"));
    wait_for_content(&host, "base.txt", "five\n");
    daemon.wait_for("loaded");
    assert_eq!(daemon.count("loaded"), 2, "the first one, and that of base.yaml");
}

/// Settings that name another, rejected graph are read once for each change and request: the watch of both graphs
/// requests nothing by itself.
#[test]
fn a_rejected_graph_of_new_settings_is_not_read_again_and_again() {
    let host = host();
    let settings =
        |graph: &str| format!("graph: {graph}\nstate_dir: state\nlog: json\nwatch: true\n");
    host.write("steadfast.yaml", settings("graph.yaml"));
    let command = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    let daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    host.write("other.yaml", "graph: other\ninclude: [base.yaml, none.yaml]\n");
    host.write("steadfast.yaml", settings("other.yaml"));
    daemon.wait_for("rejected");
    for _ in 0..4 {
        host.ask_daemon(&["reload"]);
    }
    assert!(daemon.count("rejected") <= 6, "one for the settings, one for the wider watch, four");
    host.write("none.yaml", host.full("resources: {file: [{name: $DIR/last, content: x}]}\n"));
    wait_for_content(&host, "last", "x");
}
