//! The whole output of `plan`, with stored snapshots, and the question of `apply` on a terminal.

use crate::host::Host;
use crate::snapshots::matches_snapshot;
use crate::terminal::Terminal;

const ALL: &str = r#"
graph: shown
resources:
  file:
  - {name: made, path: $DIR/made, content: "made\n"}
  - {name: edit, path: $DIR/edit, content: "new\n", mode: 0644}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: kept, path: $DIR/kept, content: "kept\n", meta: {noop: true}}
  - {name: copied, path: $DIR/copied, source: written}
  exec:
  - {name: write, args: [touch, $DIR/written], creates: $DIR/written, before: "file[copied]"}
"#;

const EARLIER: &str = r#"
graph: shown
resources:
  file:
  - {name: left, path: $DIR/left, content: "left\n"}
  - {name: deleted, path: $DIR/deleted, content: "x\n", meta: {on_remove: delete}}
"#;

fn prepared() -> Host {
    let host = Host::with(EARLIER);
    host.apply().exits(0);
    host.graph(ALL).write("edit", "old\n").chmod("edit", 0o644).write("gone", "x");
    host
}

/// Counts come first and destruction last; each sign, and undeclared resources that stay, are in the output.
#[test]
fn the_whole_plan_is_as_stored() {
    let host = prepared();
    let planned = host.plan();
    planned.exits(0);
    matches_snapshot("plan", &planned.stdout);
    assert_eq!(planned.stderr, "");
    let json = host.ask(&["plan", "--json"]).exits(0).json();
    assert_eq!(json["create"], 1, "{json}");
    assert_eq!(json["stays"][0]["resource"], "file[left]", "{json}");
    assert!(host.exists("deleted") && host.exists("gone"));
}

/// A converged host needs two lines at most.
#[test]
fn an_empty_plan_is_short() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/a}]}\n");
    host.apply().exits(0);
    assert_eq!(host.plan().exits(0).stdout, "plan: g: 0 resources to change, 1 unchanged\n");
}

/// Colours are for terminals only, unless they are requested.
#[test]
fn colours_follow_the_flag_and_the_terminal() {
    let host = prepared();
    let is_coloured = |words: &[&str]| host.ask(words).stdout.contains("\u{1b}[32m+ file[made]");
    assert!(is_coloured(&["plan", "--color", "always"]));
    assert!(!is_coloured(&["plan"]));
    let on_terminal = |no_colour: bool| {
        let mut command = host.command(&["plan"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        if no_colour {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::start(&command, 50, 200);
        terminal.wait_for("existing objects that would be removed");
        assert_eq!(terminal.ends(), 0);
        terminal.raw().contains("\u{1b}[32m")
    };
    assert!(on_terminal(false));
    assert!(!on_terminal(true));
}

/// On a terminal, `apply` shows what it removes and asks. Without a yes nothing is changed.
#[test]
fn apply_asks_before_it_removes() {
    let host = prepared();
    let start = |flags: &[&str]| {
        let words: Vec<&str> = ["apply"].iter().chain(flags).copied().collect();
        let mut command = host.command(&words);
        command.env("TERM", "xterm");
        Terminal::start(&command, 50, 200)
    };
    let mut terminal = start(&[]);
    terminal.wait_for("- file[gone]").wait_for("remove 2 existing objects? [y/N]");
    terminal.type_in("n\r");
    assert_eq!(terminal.ends(), 1);
    terminal.wait_for("no changes made: the removal was not confirmed");
    assert!(host.exists("gone") && !host.exists("made"));
    let mut terminal = start(&[]);
    terminal.wait_for("[y/N]").type_in("y\r");
    assert_eq!(terminal.ends(), 0);
    assert!(!host.exists("gone") && !host.exists("deleted") && host.exists("made"));
    assert!(host.exists("left"), "undeclared, and stays");
    // Nothing is removed any more, so nothing is asked; with --yes neither.
    host.remove("made");
    assert_eq!(start(&[]).ends(), 0);
    host.write("gone", "x");
    assert_eq!(start(&["--yes"]).ends(), 0);
    assert!(!host.exists("gone") && host.exists("made"));
}
