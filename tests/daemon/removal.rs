//! Undeclared resources: forgotten, removed in order, left alone, protected, taken over, renamed.

use crate::host::{Host, is_root};
use nix::sys::signal::Signal::SIGHUP;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::os::unix::fs::chown;

pub(crate) const DELETE: &str = "meta: {on_remove: delete}";

pub(crate) fn graph(resources: &str) -> String {
    format!("graph: g\nresources:\n  noop: [{{name: stays}}]\n{resources}\n")
}

pub(crate) fn files(all: &[(&str, &str)]) -> String {
    let mut text = "  file:\n".to_owned();
    for (name, more) in all {
        writeln!(text, "  - {{name: {name}, path: $DIR/{name}, content: \"{name}\\n\", {more}}}")
            .expect("written");
    }
    text
}

/// B-17: an undeclared resource is forgotten by default; with `on_remove: delete` it is deleted if the daemon created
/// it.
#[test]
fn created_objects_are_removed_and_adopted_ones_are_not() {
    let host = Host::with(&graph(&files(&[("kept", ""), ("made", DELETE), ("found", DELETE)])));
    host.write("found", "found\n");
    host.apply().exits(0);
    assert!(host.exists("kept") && host.exists("made"));
    host.graph(&graph(""));
    let planned = host.plan();
    planned.exits(0).prints("1 to destroy").prints("- file[made]");
    planned.prints("= file[kept]: the object stays").prints("= file[found]: the object existed");
    let state = host.full("$DIR/state");
    let shown = host.ask(&["graph", "--state-dir", &state]);
    shown.exits(0).prints("1 resource pending removal:\n  - file[made]\n");
    let applied = host.apply();
    applied
        .exits(0)
        .prints("changed file[made]")
        .prints("removed file[made]: removed from the host");
    applied.prints("undeclared file[found]").prints("not removed");
    assert!(host.exists("kept") && host.exists("found") && !host.exists("made"));
    // The record is gone: an object created later by somebody else stays and is adopted when it is declared again.
    host.write("made", "theirs\n");
    host.apply().exits(0).prints_nothing_of("file[made]");
    assert!(host.exists("made"));
    host.graph(&graph(&files(&[("made", DELETE)])));
    host.apply().exits(0);
    host.graph(&graph(""));
    host.apply().exits(0);
    assert!(host.exists("made"), "adopted, so it is not removed");
}

/// S-6: sensitive content is not recorded, and the plan says so before its removal.
#[test]
fn a_plan_says_what_goes_for_good() {
    let private = format!("mode: 0600, {DELETE}");
    let backed = format!("{private}, backup: $DIR/kept");
    let all = [("private", private.as_str()), ("backed", backed.as_str()), ("shown", DELETE)];
    let host = Host::with(&graph(&files(&all)));
    host.make_directory("kept").chmod("kept", 0o700).apply().exits(0);
    host.graph(&graph(""));
    let planned = host.plan();
    planned.exits(0).prints("3 to destroy").prints("- file[shown]").prints("- file[backed]");
    planned.prints_in_order(&["- file[private]", "content: sensitive: not recorded, cannot be"]);
    assert_eq!(planned.stdout.matches("restored").count(), 1, "{planned}");
}

/// B-17: an object that is already missing at its removal is reported as missing.
#[test]
fn missing_objects_are_not_reported_as_removed() {
    let host = Host::with(&graph(&files(&[("made", DELETE), ("other", DELETE)])));
    host.apply().exits(0);
    host.remove("made").graph(&graph(""));
    let applied = host.apply();
    applied.exits(0).prints("undeclared file[made]: was already absent; forgotten");
    applied.prints("removed file[other]: removed from the host");
}

/// B-17: dependents are removed first, and after all staying resources that came after them; `plan` lists removals
/// last, by name.
#[test]
fn removals_come_last_and_in_reverse_order() {
    let before = format!(
        "{}{}",
        files(&[
            ("one", DELETE),
            ("two", &format!("{DELETE}, after: \"exec[between]\"")),
            ("three", &format!("{DELETE}, after: \"file[two]\"")),
            ("live", "after: \"file[three]\""),
        ]),
        "  exec: [{name: between, args: [\"true\"], after: \"file[one]\"}]\n"
    );
    let host = Host::with(&graph(&before));
    host.apply().exits(0);
    host.graph(&graph(&files(&[("live", ""), ("new", "")]).replace("live\\n", "changed\\n")));
    let planned = host.plan();
    planned.exits(0).prints_in_order(&[
        "file[live]",
        "file[new]",
        "- file[three]",
        "- file[two]",
        "- file[one]",
    ]);
    let applied = host.apply();
    applied.exits(0).prints_in_order(&[
        "changed file[live]",
        "changed file[three]",
        "changed file[two]",
        "changed file[one]",
    ]);
    for name in ["one", "two", "three"] {
        assert!(!host.exists(name), "{name}");
    }
    host.plan().exits(0).prints("0 resources to change");
}

/// B-17: a removal refreshes the resources that were notified, once and after it, in an apply and in a daemon;
/// dependents of a notified resource do not delay the removal.
#[test]
fn a_removal_passes_on_its_notifications() {
    let notifies = format!("notify: \"exec[told]\", {DELETE}");
    let told = "  exec: [{name: told, shell: /bin/sh, refresh_only: true, cmd: \"ls $DIR | grep -c conf >> $DIR/log; true\"}]\n";
    let last = ("last", "after: [\"exec[told]\", \"file[conf1]\"]");
    let after = format!("after: \"file[conf1]\", {notifies}");
    let with = |all: &[(&str, &str)]| graph(&format!("{}{told}", files(all)));
    let all = [("conf1", notifies.as_str()), ("conf2", after.as_str()), last];
    let less = [("last", "after: \"exec[told]\"")];
    let host = Host::with(&with(&all));
    host.apply().exits(0);
    assert_eq!(host.lines("log"), ["2"]);
    host.graph(&with(&less));
    host.plan().exits(0).prints_in_order(&["- file[conf2]", "- file[conf1]"]);
    host.apply().exits(0).prints_in_order(&["changed file[conf1]", "changed exec[told]"]);
    assert_eq!(host.lines("log"), ["2", "0"], "refreshed once, when both are gone");
    host.apply().exits(0).prints_nothing_of("exec[told]");

    // Notifications declared later count as well.
    let bare = [("conf1", DELETE), ("last", "after: \"exec[told]\"")];
    host.graph(&with(&bare));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.graph(&with(&[("conf1", notifies.as_str()), last]));
    host.ask_daemon(&["reload"]).exits(0);
    host.graph(&with(&less));
    host.ask_daemon(&["reload"]).exits(0);
    host.wait_for_lines("log", 3);
    assert_eq!(host.lines("log"), ["2", "0", "0"]);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    assert_eq!(host.lines("log").len(), 3);
}

/// B-10, B-17: the record is deleted last: if only that was lost, the removal is repeated without harm.
#[test]
fn a_removal_whose_end_was_lost_is_done_again() {
    let host = Host::with(&graph(&files(&[
        ("a", DELETE),
        ("b", &format!("{DELETE}, after: \"file[a]\"")),
    ])));
    host.apply().exits(0);
    let database = std::fs::read(host.path("state/state.db")).expect("the state");
    host.graph(&graph(""));
    host.apply().exits(0);
    for log in ["state/state.db-wal", "state/state.db-shm"] {
        if host.exists(log) {
            host.remove(log);
        }
    }
    host.write("state/state.db", database);
    host.write("a", "somebody else\n").remove("a");
    host.apply().exits(0).prints_nothing_of("failed");
    host.plan().exits(0).prints_nothing_of("file[a]").prints_nothing_of("file[b]");
}

/// B-17: all protected resources are named at once, the graph is rejected, and the old one goes on.
#[test]
fn protected_resources_never_leave() {
    let protect = "meta: {on_remove: delete, protect: true}";
    let whole = graph(&files(&[("a", protect), ("b", "meta: {protect: true}"), ("c", DELETE)]));
    let host = Host::with(&whole);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(&graph(""));
    let refused = daemon.signal(SIGHUP).wait_for("rejected").message;
    assert!(refused.contains("file[a]") && refused.contains("file[b]"), "{refused}");
    assert!(host.exists("a") && host.exists("b") && host.exists("c"));
    host.write("c", "drift\n");
    daemon.wait_for_of("changed", "file[c]");
    daemon.kill();
    host.apply().exits(65).says("file[a], file[b]");
    host.graph(&graph(&files(&[("a", DELETE), ("b", ""), ("c", DELETE)])));
    host.apply().exits(0);
    host.graph(&graph(""));
    host.apply().exits(0);
    assert!(!host.exists("a") && host.exists("b") && !host.exists("c"));
}

/// B-16: an object that another resource claims is not removed, nor is a directory that contains one.
#[test]
fn objects_claimed_by_others_stay() {
    let directory = "{name: d, path: $DIR/d/, meta: {on_remove: delete}}";
    let inside = "{name: i, path: $DIR/d/i, content: i, meta: {on_remove: delete}}";
    let first = format!("{}  - {directory}\n  - {inside}\n", files(&[("a", DELETE)]));
    let host = Host::with(&graph(&first));
    host.apply().exits(0);
    let moved = format!(
        "  file:\n  - {{name: other, path: $DIR/a, content: \"other\\n\"}}\n  - {inside}\n"
    );
    host.graph(&graph(&moved));
    host.apply()
        .exits(0)
        .prints("undeclared file[a]")
        .prints("the object is not removed while file[i] lies in it");
    assert_eq!(host.read("a"), "other\n");
    host.graph(&graph(""));
    host.apply().exits(0).prints_in_order(&["changed file[i]", "changed file[d]"]);
    assert!(host.exists("a") && !host.exists("d"));
}

/// B-18: a rename moves the records: nothing is removed and created again, no command runs again, and ownership
/// stays.
#[test]
fn a_rename_moves_the_record() {
    let of = |exec: &str, file: &str| {
        format!(
            "  exec: [{{{exec}, shell: /bin/sh, cmd: \"echo x >> $DIR/ran\"}}]\n  file: [{{{file}, path: $DIR/f, content: \"f\\n\", {DELETE}}}]\n"
        )
    };
    let host = Host::with(&graph(&of("name: one", "name: one")));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(&graph(&of("name: two, aliases: one", "name: two, aliases: [one]")));
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert_eq!(host.lines("ran").len(), 1, "while it runs");
    host.graph(&graph(&of("name: two", "name: two")));
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    daemon.kill();
    assert_eq!(host.lines("ran").len(), 1);
    host.graph(&graph(&of("name: three, aliases: [two]", "name: three, aliases: [two]")));
    host.apply().exits(0).prints("0 changed");
    host.graph(&graph(&of("name: three", "name: three")));
    host.apply().exits(0).prints("0 changed");
    assert_eq!((host.lines("ran").len(), host.exists("f")), (1, true));
    host.graph(&graph(""));
    host.apply().exits(0).prints("changed file[three]");
    assert!(!host.exists("f"));
}

/// B-18: an old run under the new name does not prevent the move of the present records to it.
#[test]
fn a_name_that_comes_back_takes_what_is_there_now() {
    const PROTECT: &str = "meta: {on_remove: forget, protect: true}";
    const FORGET: &str = "meta: {on_remove: forget}";
    let one = |name: &str, rest: &str| {
        graph(&format!("  file: [{{name: {name}, path: $DIR/f, {rest}}}]\n"))
    };
    let host = Host::with(&one("second", FORGET));
    host.apply().exits(0);
    host.graph(&one("first", PROTECT));
    host.apply().exits(0);
    host.graph(&one("second", &format!("aliases: [first], {FORGET}")));
    host.apply().exits(0);
    host.graph(&graph(""));
    host.apply().exits(0);
}

/// B-16: a graph without resources is rejected without `--allow-empty`.
#[test]
fn an_empty_graph_needs_an_override() {
    const EMPTY: &str = "graph: g\nresources: {}\n";
    let host = Host::with(&graph(&files(&[("a", DELETE)])));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(EMPTY);
    let refused = daemon.signal(SIGHUP).wait_for("rejected").message;
    assert!(refused.contains("no resources") && refused.contains("--allow-empty"), "{refused}");
    assert!(host.exists("a"));
    let state = host.full("$DIR/state");
    host.finish(host.bare(&["reload", "--allow-empty", "--state-dir", &state])).exits(0);
    daemon.wait_for_of("removed", "file[a]");
    assert!(!host.exists("a"));
    // With nothing left to lose, the empty graph is accepted.
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.kill();
    host.apply().exits(65).says("--allow-empty");
    host.plan().exits(65).says("--allow-empty");
    host.ask(&["plan", "--allow-empty"]).exits(0);
    host.ask(&["apply", "--allow-empty"]).exits(0);
}

/// B-16: a selection removes nothing, and neither does a single apply of another graph.
#[test]
fn selections_and_other_graphs_remove_nothing() {
    let host = Host::with(&graph(&files(&[("a", DELETE), ("b", DELETE)])));
    host.apply().exits(0);
    host.graph(&graph(&files(&[("b", DELETE)])));
    host.ask(&["apply", "--only", "noop"]).exits(0);
    assert!(host.exists("a"));
    host.graph("graph: other\nresources: {noop: [{name: n}]}\n");
    host.apply().exits(0);
    assert!(host.exists("a") && host.exists("b"));
    host.graph(&graph(&files(&[("b", DELETE)])));
    host.apply().exits(0);
    assert!(!host.exists("a") && host.exists("b"));
}

/// E-11, B-17: `--noop` removes nothing, and does not affect the removals of a later apply.
#[test]
fn noop_removes_nothing() {
    let whole = graph(&files(&[("a", DELETE), ("b", DELETE)]));
    let host = Host::with(&whole);
    host.apply().exits(0);
    host.ask(&["apply", "--noop"]).exits(0);
    host.graph(&graph(&files(&[("b", DELETE)])));
    host.ask(&["apply", "--noop"]).exits(0).prints("held file[a]");
    assert!(host.exists("a") && host.exists("b"));
    host.graph(&graph(""));
    host.apply().exits(0);
    assert!(!host.exists("a") && !host.exists("b"));
}

/// A failed removal stays, is shown, and is retried.
#[test]
fn a_removal_that_fails_is_tried_again() {
    let host =
        Host::with(&graph("  file: [{name: d, path: $DIR/d/, meta: {on_remove: delete}}]\n"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.write("d/theirs", "");
    host.graph(&graph(""));
    daemon.signal(SIGHUP).wait_for_of("failed", "file[d]");
    host.remove("d/theirs");
    daemon.signal(SIGHUP).wait_for_of("changed", "file[d]");
    daemon.wait_for_of("removed", "file[d]");
    assert!(!host.exists("d"));
}

/// A private directory that another user has put in place of the daemon's one is not removed with its content.
#[test]
fn another_private_directory_in_the_place_of_ours_stays() {
    let meta = "mode: 0700, force: true, meta: {on_remove: delete}";
    let host = Host::with(&graph(&format!("  file: [{{name: d, path: $DIR/home/d/, {meta}}}]\n")));
    if !is_root() {
        return;
    }
    host.make_directory("home");
    chown(host.path("home"), Some(65534), Some(65534)).expect("given away");
    host.apply().exits(0);
    let rename = |from: &str, to: &str| {
        std::fs::rename(host.path(from), host.path(to)).expect("renamed");
    };
    host.write("home/d/ours", "").make_directory("home/other").write("home/other/theirs", "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(host.path("home/other"), mode).expect("closed");
    rename("home/d", "home/aside");
    rename("home/other", "home/d");
    host.graph(&graph(""));
    host.apply().exits(1).prints(
        "the directory is not accessible to others, and other users can have moved it there",
    );
    assert!(host.exists("home/d/theirs"));
    rename("home/d", "home/other");
    rename("home/aside", "home/d");
    host.apply().exits(0);
    assert!(!host.exists("home/d"));
}

const SLOTS: usize = 3;

/// A resource of the random test: under its first or its second name, optionally with the other one as an alias.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Declared {
    second: bool,
    alias: bool,
    delete: bool,
    protect: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Apply([Option<Declared>; SLOTS]),
    Make(usize),
    Take(usize),
}

/// The expected record of a path.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Record {
    second: bool,
    created: bool,
    delete: bool,
    protect: bool,
}

fn declared() -> impl Strategy<Value = Option<Declared>> {
    let one = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.7), prop::bool::weighted(0.15));
    prop::option::of(one.prop_map(|(second, alias, delete, protect)| Declared {
        second,
        alias,
        delete,
        protect,
    }))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => [declared(), declared(), declared()].prop_map(Step::Apply),
        1 => (0..SLOTS).prop_map(Step::Make),
        1 => (0..SLOTS).prop_map(Step::Take),
    ]
}

fn text(all: &[Option<Declared>; SLOTS]) -> String {
    let mut text = "  file:\n".to_owned();
    for (slot, one) in all.iter().enumerate() {
        let Some(one) = one else { continue };
        let names = [format!("n{slot}"), format!("m{slot}")];
        let (name, other) = (&names[usize::from(one.second)], &names[usize::from(!one.second)]);
        let alias = if one.alias { format!("aliases: [{other}], ") } else { String::new() };
        let remove = if one.delete { "delete" } else { "forget" };
        let protect = one.protect;
        writeln!(
            text,
            "  - {{name: {name}, path: $DIR/f{slot}, {alias}meta: {{on_remove: {remove}, protect: {protect}}}}}"
        ).expect("written");
    }
    if all.iter().all(Option::is_none) { graph("") } else { graph(&text) }
}

/// Returns true if the graph must be accepted, and updates the expected objects and records.
fn expect(
    all: &[Option<Declared>; SLOTS],
    there: &mut [bool; SLOTS],
    kept: &mut [Option<Record>; SLOTS],
) -> bool {
    let stays = |record: &Record, one: &Option<Declared>| {
        one.is_some_and(|one| one.second == record.second || one.alias)
    };
    let leaves = |slot: usize| kept[slot].filter(|record| !stays(record, &all[slot]));
    if (0..SLOTS).any(|slot| leaves(slot).is_some_and(|record| record.protect)) {
        return false;
    }
    for slot in 0..SLOTS {
        // Another resource takes over the path with its ownership.
        let mut is_handed_over = false;
        if let Some(record) = kept[slot].filter(|record| !stays(record, &all[slot])) {
            is_handed_over = record.created;
            if record.delete && record.created && all[slot].is_none() {
                there[slot] = false;
            }
            kept[slot] = None;
        }
        if let Some(Declared { second, delete, protect, .. }) = all[slot] {
            let created =
                kept[slot].map_or(is_handed_over || !there[slot], |record| record.created);
            there[slot] = true;
            kept[slot] = Some(Record { second, created, delete, protect });
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// B-16, B-17, B-18, B-23: random sequences of graphs and foreign changes leave exactly the expected objects and
    /// records.
    #[test]
    fn random_graphs_leave_what_they_should(steps in prop::collection::vec(step(), 1..7)) {
        let host = Host::with(&graph(""));
        let (mut there, mut kept) = ([false; SLOTS], [None; SLOTS]);
        for step in steps {
            match step {
                Step::Make(slot) => {
                    host.write(&format!("f{slot}"), "theirs\n");
                    there[slot] = true;
                }
                Step::Take(slot) if there[slot] => {
                    host.remove(&format!("f{slot}"));
                    there[slot] = false;
                }
                Step::Take(_) => {}
                Step::Apply(all) => {
                    let taken = expect(&all, &mut there, &mut kept);
                    host.graph(&text(&all));
                    host.apply().exits(if taken { 0 } else { 65 });
                }
            }
            let found: Vec<bool> = (0..SLOTS).map(|slot| host.exists(&format!("f{slot}"))).collect();
            prop_assert_eq!(&found[..], &there[..], "{:?}", kept);
        }
    }
}
