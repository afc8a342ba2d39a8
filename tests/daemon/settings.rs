//! `/etc/steadfast/steadfast.yaml`: what holds where the command line says nothing.

use crate::daemon::Daemon;
use crate::host::Host;
use nix::sys::signal::Signal;

const GRAPH: &str = r#"
graph: by-settings
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// A daemon that is told nothing but its settings; the command line wins where it says something.
#[test]
fn settings_take_the_place_of_flags() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", "graph: graph.yaml\nstate_dir: state\nlog: json\nwatch: true\n");
    let config = ["--config", "$DIR/steadfast.yaml"];
    let command = host.bare(&[&["run"][..], &config].concat());
    let mut daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "x");
    assert!(host.exists("state/state.db"));
    // It watches its graph.
    host.graph(&GRAPH.replace('x', "y"));
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "y");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);

    host.finish(host.bare(&[&["check"][..], &config].concat())).exits(0).prints("by-settings");
    let plan = host.finish(host.bare(&[&["plan"][..], &config].concat()));
    plan.exits(0);
    host.write("a", "broken");
    host.write("steadfast.yaml", "graph: graph.yaml\nstate_dir: state\ndefaults: {noop: true}\n");
    host.finish(host.bare(&[&["apply"][..], &config].concat()));
    assert_eq!(host.read("a"), "broken", "held by the defaults");
    let apply = [&["apply"][..], &config, &["$DIR/other.yaml"]].concat();
    host.write("other.yaml", host.full(&GRAPH.replace("a, path: $DIR/a", "b, path: $DIR/b")));
    host.finish(host.bare(&apply)).exits(0);
    assert!(!host.exists("b"), "named on the command line, with the defaults of the settings");
}

/// Wrong settings are refused before anything is done, with their place.
#[test]
fn wrong_settings_start_nothing() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", "graph: graph.yaml\nsweeep: 3\n");
    let run = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    host.finish(run).exits(65).says("$DIR/steadfast.yaml:2:1").says("did you mean `sweep`?");
    assert!(!host.exists("a"));
    let run = host.bare(&["run", "--config", "$DIR/none.yaml"]);
    host.finish(run).exits(65).says("there is no such file");
}
