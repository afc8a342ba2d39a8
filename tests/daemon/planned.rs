//! `plan`: it says what `apply` then does, changes nothing, and needs nobody's leave.

use crate::host::Host;

const MIXED: &str = r#"
graph: mixed
resources:
  file:
  - {name: old, path: $DIR/old, state: absent}
  - {name: edit, path: $DIR/edit, content: "new\n", mode: 0644}
  - {name: mode, path: $DIR/mode, mode: 0600}
  - {name: make, path: $DIR/make, content: "made\n"}
  - {name: same, path: $DIR/same, content: "same\n"}
  - {name: become, path: $DIR/become, symlink: same, force: true}
  exec:
  - {name: once, args: [touch, $DIR/once]}
  - {name: guarded, args: [touch, $DIR/guarded], creates: $DIR/same}
  - {name: told, args: [touch, $DIR/told], refresh_only: true, subscribe: "file[make]"}
"#;

fn mixed() -> Host {
    let host = Host::with(MIXED);
    host.write("old", "x").write("edit", "old\n").write("mode", "").write("same", "same\n");
    host.write("become", "x").chmod("edit", 0o644).chmod("mode", 0o644);
    host
}

fn planned(host: &Host) -> Vec<String> {
    let json = host.ask(&["plan", "--json"]).exits(0).json();
    let steps = json["resources"].as_array().expect("a list");
    let mut names: Vec<String> =
        steps.iter().map(|step| step["resource"].as_str().unwrap_or_default().to_owned()).collect();
    names.sort();
    names
}

/// F-16: what is planned is what is done.
#[test]
fn a_plan_equals_what_apply_then_does() {
    let host = mixed();
    let before = planned(&host);
    let applied = host.apply();
    assert_eq!(before, applied.exits(0).named_after("changed"), "{applied}");
    assert_eq!(
        before.len(),
        7,
        "all but what is as declared and what its guard forbids: {before:?}"
    );
    assert_eq!(planned(&host), [""; 0]);
    host.apply().exits(0).prints_nothing_of("changed file");
}

#[test]
fn a_plan_changes_nothing_at_all() {
    let host = mixed();
    let look = || {
        let entries = std::fs::read_dir(host.path("")).expect("the folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        (names, host.read("edit"), host.mode("mode"), host.read("become"))
    };
    let before = look();
    host.plan().exits(0);
    assert_eq!(look(), before, "also no state directory is made");
}

/// F-16: what apply is asked with one part broken is as planned too.
#[test]
fn a_plan_of_what_moved_equals_the_repair() {
    let host = mixed();
    host.apply().exits(0);
    host.remove("make").append("edit", "more");
    let before = planned(&host);
    let applied = host.apply();
    assert_eq!(before, applied.exits(0).named_after("changed"), "{applied}");
    assert_eq!(before, ["exec[told]", "file[edit]", "file[make]"]);
}

#[test]
fn deletions_come_last_and_by_name() {
    let host = mixed();
    host.plan().exits(0).prints_in_order(&[
        "plan: mixed: 5 resources to change, 2 to be removed or replaced, 2 as declared",
        "~ file[edit]",
        "-old",
        "+new",
        "~ exec[told]",
        "what exists and would be gone:",
        "- file[old]",
        "- file[become]",
    ]);
}

/// C-10: a plan needs no lock.
#[test]
fn a_plan_runs_beside_a_daemon() {
    let host = mixed();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.plan().exits(0).prints("plan: mixed: 0 resources to change, 9 as declared");
    host.apply().exits(75);
}

#[test]
fn what_cannot_be_checked_is_told_and_fails_the_plan() {
    let host = Host::with(
        "graph: g\nresources: {file: [{name: $DIR/file/below, content: x}, {name: $DIR/ok}]}\n",
    );
    host.write("file", "not a directory");
    host.plan()
        .exits(1)
        .prints("1 could not be checked")
        .prints("? file[$DIR/file/below]: ")
        .prints("~ file[$DIR/ok]");
}
