//! `plan`: equal to the apply that follows, without changes and without a lock.

use crate::host::Host;
use std::path::Path;

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

/// F-16: the plan and the apply are equal.
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

/// F-16: after drift, the plan and the repair are equal.
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
        "plan: mixed: 1 to create, 4 to change, 2 to destroy, 2 unchanged",
        "~ file[edit]",
        "-old",
        "+new",
        "~ exec[told]",
        "existing objects that would be removed:",
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
    host.plan().exits(0).prints("plan: mixed: 0 resources to change, 9 unchanged");
    host.apply().exits(75);
}

#[test]
fn an_uncheckable_step_is_reported_and_fails_the_plan() {
    let host = Host::with(
        "graph: g\nresources: {file: [{name: $DIR/file/below, content: x}, {name: $DIR/ok}]}\n",
    );
    host.write("file", "not a directory");
    host.plan()
        .exits(1)
        .prints("1 could not be checked")
        .prints("! file[$DIR/file/below]: ")
        .prints("+ file[$DIR/ok]");
}

pub(crate) fn kept(host: &Host) -> String {
    let plan = host.path("plan.json").display().to_string();
    host.ask(&["plan", "--out", &plan]).exits(0).says("apply --plan");
    plan
}

pub(crate) fn apply(host: &Host, plan: &str) -> crate::output::Output {
    let mut command = host.bare(&["apply", "--plan", plan]);
    command.arg("--state-dir").arg(host.path("state"));
    host.finish(command)
}

/// A saved plan is applied exactly; its file is private and not overwritten.
#[test]
fn a_plan_that_is_kept_is_done() {
    let host = mixed();
    let (before, plan) = (planned(&host), kept(&host));
    assert_eq!(host.mode("plan.json"), 0o600);
    host.ask(&["plan", "--out", &plan]).exits(1).says("the file exists");
    let applied = apply(&host, &plan);
    assert_eq!(before, applied.exits(0).named_after("changed"), "{applied}");
    apply(&host, &plan).exits(1).says("not as planned: ").says("file[make]: now converged");
}

/// A saved plan is rejected whole if anything has changed, with the name of the change.
#[test]
fn a_plan_is_refused_when_the_world_has_moved() {
    let host = mixed();
    let plan = kept(&host);
    host.chmod("mode", 0o640);
    apply(&host, &plan)
        .exits(1)
        .says("not as planned: file[mode]: mode: was 0644, is now 0640")
        .says("hint: nothing was changed");
    assert!(!host.exists("make"), "nothing was begun");
    host.chmod("mode", 0o644).write("edit", "odl\n");
    apply(&host, &plan).exits(1).says("file[edit]: content: changed since the plan");
    host.write("edit", "old\n").write("same", "other\n");
    apply(&host, &plan).exits(1).says("file[same]: it was converged, but differs now: content");
    host.write("same", "same\n");
    apply(&host, &plan).exits(0);
}

/// A saved plan also notices hidden differences: another content of the same size.
#[test]
fn a_plan_is_refused_when_what_it_does_not_show_has_moved() {
    let host = Host::with(
        "graph: g\nresources: {file: [{name: b, path: $DIR/b, content: \"x\\n\", sensitive: true}]}\n",
    );
    host.write("b", "one\n");
    let plan = kept(&host);
    host.write("b", "two\n");
    apply(&host, &plan).exits(1).says("file[b]: content: changed since the plan");
    assert_eq!(host.read("b"), "two\n");
}

#[test]
fn a_plan_is_refused_when_the_graph_is_another() {
    let host = mixed();
    let plan = kept(&host);
    host.graph(
        &MIXED
            .replace("new\\n", "newer\\n")
            .replace("name: make", "name: made")
            .replace("file[make]", "file[made]"),
    );
    apply(&host, &plan)
        .exits(1)
        .says("file[edit]: the declaration has changed")
        .says("file[make]: no longer in the graph")
        .says("file[made]: new in the graph");
}

/// Malformed plan files are rejected: not a plan, half a plan, another version, extra fields.
#[test]
fn malformed_plans_are_rejected() {
    let host = mixed();
    let plan = kept(&host);
    let text = host.read("plan.json");
    for (bad, says) in [
        (String::new(), "is not a plan of this steadfast"),
        ("[]".to_owned(), "is not a plan of this steadfast"),
        (text.chars().take(text.len() / 2).collect(), "is not a plan of this steadfast"),
        (text.replacen("\"program\":\"", "\"program\":\"9", 1), "made by 9"),
        (text.replacen('{', "{\"more\":1,", 1), "unknown field `more`"),
    ] {
        host.write("plan.json", bad);
        apply(&host, &plan).exits(64).says(says);
    }
    host.remove("plan.json");
    apply(&host, &plan).exits(64).says("No such file or directory");
    assert!(!host.exists("make"));
}

/// Resources that an apply would hold are planned as held: `noop`, closed windows, and those that lose a refresh
/// through them.
#[test]
fn held_resources_are_planned_as_held() {
    let host = Host::with(
        r#"
graph: held
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n", meta: {noop: true}, notify: "exec[e]"}
  exec:
  - {name: e, args: [touch, $DIR/e], refresh_only: true}
"#,
    );
    host.plan().exits(0).prints("0 resources to change, 1 held").prints("= file[a]: held: noop");
    host.apply().exits(0).prints_nothing_of("changed ").prints("held file[a]");
}

/// F-16: a changed removal rejects the plan and is named: another content of the same size, in the file or anywhere
/// below a directory removed by `force`.
#[test]
fn a_plan_is_refused_when_what_it_removes_has_changed() {
    let host = Host::with(
        "graph: g\nresources: {file: [{name: f, path: $DIR/f, state: absent}, \
         {name: tree, path: $DIR/tree, state: absent, force: true}, \
         {name: become, path: $DIR/become, symlink: other, force: true}]}\n",
    );
    host.make_directory("tree").make_directory("tree/deep");
    host.write("f", "one\n").write("tree/deep/file", "one\n").write("become", "one\n");
    let plan = kept(&host);
    let refused = |name: &str, resource: &str| {
        let before = host.read(name);
        host.write(name, "two\n");
        let refused = apply(&host, &plan);
        refused.exits(1).says(&format!("{resource}: content: changed since the plan"));
        assert!(host.exists("f") && host.exists("tree/deep/file"), "nothing was begun");
        assert_eq!(before, "one\n");
    };
    refused("f", "file[f]");
    refused("tree/deep/file", "file[tree]");
    refused("become", "file[become]");
    host.remove("plan.json");
    let plan = kept(&host);
    host.write("tree/new", "");
    apply(&host, &plan).exits(1).says("file[tree]: content: changed since the plan");
    host.remove("tree/new");
    apply(&host, &plan).exits(0);
    assert!(!host.exists("f") && !host.exists("tree"));
    assert!(host.path("become").is_symlink());
}

/// F-16, B-17: changed content of an undeclared resource rejects the plan too; an earlier removal below a directory
/// is part of the plan.
#[test]
fn a_plan_of_removals_holds_for_what_has_left() {
    let made = "{name: d, path: $DIR/d/, force: true, meta: {on_remove: delete}}, \
                {name: i, path: $DIR/d/i, content: \"i\\n\", meta: {on_remove: delete}}";
    let graph =
        |files: &str| format!("graph: g\nresources: {{file: [{files}], noop: [{{name: n}}]}}\n");
    let host = Host::with(&graph(made));
    host.apply().exits(0);
    host.graph(&graph(""));
    let plan = kept(&host);
    host.write("d/i", "j\n");
    apply(&host, &plan).exits(1).says("file[i]: content: changed since the plan");
    assert!(host.exists("d/i"));
    host.remove("plan.json");
    let plan = kept(&host);
    apply(&host, &plan).exits(0).prints("changed file[i]").prints("changed file[d]");
    assert!(!host.exists("d"));
}

/// F-16: a resource held in the plan stays held even if its window opens during the apply.
#[test]
fn held_resources_stay_held_if_their_window_opens() {
    const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    assert!(Path::new(FAKETIME).exists(), "Debian's package faketime is needed");
    let far = crate::contention::day(3);
    let host = Host::with(&format!(
        "graph: g\nresources:\n  exec:\n  - {{name: e, shell: /bin/sh, cmd: \"echo +3d > $DIR/clock\"}}\n  \
         file:\n  - {{name: f, path: $DIR/f, content: x, after: \"exec[e]\", meta: {{when_allowed: {far}}}}}\n"
    ));
    host.write("clock", "+0");
    let plan = kept(&host);
    let mut command = host.bare(&["apply", "--plan", &plan]);
    command.arg("--state-dir").arg(host.path("state"));
    command
        .env("LD_PRELOAD", FAKETIME)
        .env("FAKETIME_TIMESTAMP_FILE", host.path("clock"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let applied = host.finish(command);
    applied.exits(1).prints("changed exec[e]");
    applied.prints("not as planned: planned: held (changes are allowed");
    assert!(!host.exists("f"));
}

/// F-16: new directories and modes, their content and removals are planned as known if no link is involved.
#[test]
fn paths_without_links_stay_known() {
    let host = Host::with(
        r#"
graph: plain
resources:
  file:
  - {name: old, path: $DIR/old/, mode: 0700}
  - {name: in, path: $DIR/old/in, content: "new\n"}
  - {name: same, path: $DIR/old/same, content: "same\n"}
  - {name: new, path: $DIR/new/}
  - {name: none, path: $DIR/new/none, state: absent}
  - {name: tree, path: $DIR/tree/, recurse: true, purge: true}
  - {name: leaf, path: $DIR/tree/leaf, content: "leaf\n"}
"#,
    );
    host.make_directory("old").make_directory("tree");
    host.write("old/in", "old\n").write("old/same", "same\n").write("tree/stray", "");
    host.chmod("old", 0o755);
    let plan = kept(&host);
    let planned = host.plan();
    planned.exits(0).prints_nothing_of("unknown until").prints_nothing_of("file[none]");
    for changed in ["~ file[old]", "~ file[in]", "+ file[new]", "+ file[leaf]", "- file[tree]"] {
        planned.prints(changed);
    }
    apply(&host, &plan).exits(0).prints_nothing_of("file[none]");
}

/// F-16: an uncertain step is still bound to its plan: a file that appears after the plan in a removed or purged
/// directory is not removed; the plan names the removals.
#[test]
fn uncertain_removals_remove_nothing_new() {
    let gone = "graph: g\nresources:\n  file:\n  - {name: d, path: $DIR/opt/, state: absent, force: true}\n  - {name: f, path: $DIR/opt/own, state: absent}\n";
    let purged = "graph: g\nresources:\n  file:\n  - {name: a, path: $DIR/src/3, content: new}\n  - {name: c, path: $DIR/out/, source: src/, recurse: true, purge: true}\n";
    for (graph, directory, names) in [(gone, "opt", "file[d]"), (purged, "out", "file[c]")] {
        let host = Host::with(graph);
        for name in ["opt/own", "src/3", "out/old"] {
            host.make_directory(name.split('/').next().unwrap_or_default()).write(name, "it");
        }
        let planned = host.ask(&["plan", "--out", "$DIR/plan.json"]);
        planned.prints("existing objects that would be removed:");
        let (_, would_go) = planned.stdout.split_once("would be removed:").expect("said");
        assert!(would_go.contains(names), "{}", planned.stdout);
        host.make_directory(&format!("{directory}/precious"));
        host.write(&format!("{directory}/precious/p"), "data");
        apply(&host, &host.path("plan.json").display().to_string())
            .exits(1)
            .says("nothing was changed");
        assert_eq!(host.read(&format!("{directory}/precious/p")), "data");
        host.ask(&["plan", "--out", "$DIR/again.json"]);
        apply(&host, &host.path("again.json").display().to_string()).exits(0);
        assert!(!host.exists(&format!("{directory}/precious")), "it was planned then");
    }
}

/// F-16: a guard that reads or runs another step's output is unknown until that step is done.
#[test]
fn a_guard_may_read_the_output_of_another_step() {
    let host = Host::with(
        r#"
graph: guarded
resources:
  file: [{name: v, path: $DIR/v, content: "exit 1\n"}]
  exec:
  - {name: run, cmd: /bin/true, ifcmd: "sh $DIR/v", after: "file[v]"}
  - {name: skip, cmd: "touch $DIR/done", nifcmd: "test -e $DIR/done || sh $DIR/v", nifshell: /bin/sh, after: "file[v]"}
  - {name: known, cmd: "touch $DIR/known", nifcmd: "test -e $DIR/known", after: "file[v]"}
"#,
    );
    host.write("v", "exit 0\n");
    let plan = kept(&host);
    host.plan()
        .prints("! exec[run]: unknown until file[v] is changed")
        .prints("! exec[skip]: unknown until file[v] is changed")
        .prints("~ exec[known]");
    let applied = apply(&host, &plan);
    let changed = ["exec[known]", "exec[skip]", "file[v]"];
    assert_eq!(applied.exits(0).named_after("changed"), changed, "{applied}");
}

/// B1: a graph that `apply` rejects is rejected by `plan` as well, with the same text and exit code, and no plan is
/// written.
#[test]
fn a_plan_of_a_rejected_graph_fails_like_apply() {
    let both = "graph: p\nresources:\n  file:\n  - {name: $DIR/a, content: x}\n";
    let protected = "  - {name: $DIR/b, content: x, meta: {protect: true}}\n";
    let host = Host::with(&format!("{both}{protected}"));
    host.apply().exits(0);
    host.graph(&both.replace("content: x", "content: y"));
    let applied = host.apply();
    let hint = "hint: declare the resources again; or first load a graph that declares file[$DIR/b] with `protect: false`";
    applied
        .exits(65)
        .says("protected resources are missing from the new graph: file[$DIR/b]")
        .says(hint);
    assert!(!applied.stderr.contains("unprotect"), "it was not protected by command: {applied}");
    for flags in [&[][..], &["--json"], &["--detailed-exitcode"], &["--out", "$DIR/plan"]] {
        let planned = host.ask(&[&["plan"], flags].concat());
        planned.exits(65);
        assert_eq!((planned.stdout.as_str(), &planned.stderr), ("", &applied.stderr));
    }
    assert!(!host.exists("plan"));
    host.graph("graph: p\n");
    let applied = host.apply();
    applied.exits(65);
    let planned = host.plan();
    planned.exits(65);
    assert_eq!(planned.stderr, applied.stderr);
    host.graph("graph: q\n");
    host.ask(&["plan", "--allow-empty"]).exits(0).prints("plan: q: 0 resources to change");
}
