//! The overlay of a plan: each step is checked against the effects of the earlier steps, and nothing is written to
//! the host.

use crate::host::Host;
use crate::plan::{apply, kept};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

/// The first plan of the first example has no unknown step.
#[test]
fn the_first_plan_of_hello_knows_all_steps() {
    let hello = include_str!("../../examples/hello.yaml");
    let host = Host::with(&hello.replace("/tmp/steadfast-hello", "$DIR/hello"));
    let plan = kept(&host);
    let planned = host.plan();
    planned.exits(0).prints("plan: hello: 3 to create, 1 to change, 0 unchanged");
    planned.prints_nothing_of("unknown").prints("+ file[latest]");
    planned.prints("+Welcome. This text is held by steadfast.");
    apply(&host, &plan).exits(0).prints("4 changed");
}

/// `apply --noop` shows the same steps as the plan and writes nothing.
#[test]
fn an_apply_in_noop_sees_what_its_own_steps_make() {
    let hello = include_str!("../../examples/hello.yaml");
    let host = Host::with(&hello.replace("/tmp/steadfast-hello", "$DIR/hello"));
    let shown = host.ask(&["apply", "--noop"]);
    shown.exits(0).prints_nothing_of("unknown until").prints_nothing_of("failed");
    shown.prints_in_order(&[
        "held file[folder]: would change: state",
        "held file[motd]: would change: state",
        "held file[latest]: would change",
    ]);
    shown.prints("held exec[count the changes]: would change: command");
    shown.ends_with_line("done: hello: 4 resources, 0 changed, 4 held");
    assert!(!host.exists("hello"));
    host.ask_daemon(&["history"]).exits(0).prints("no changes are recorded");
    host.apply().exits(0).prints("4 changed");
    host.ask(&["apply", "--noop"]).exits(0).ends_with_line("done: hello: 4 resources, 0 changed");
}

/// A step declared `noop` has no effect in the overlay: its dependents see the host as it is. A certain failure is
/// reported.
#[test]
fn an_apply_in_noop_leaves_out_what_is_declared_noop() {
    let host = Host::with(
        r#"
graph: left
resources:
  file:
  - {name: seen, path: $DIR/seen, symlink: two}
  - {name: kept, path: $DIR/kept/, meta: {noop: true}}
  - {name: below, path: $DIR/kept/below, content: "x\n"}
"#,
    );
    let shown = host.ask(&["apply", "--noop"]);
    shown.exits(1).prints("held file[seen]").prints("held file[kept]").prints("failed file[below]");
    assert!(!host.exists("seen") && !host.exists("kept"));
    host.graph(
        r#"
graph: all
resources:
  file:
  - {name: kept, path: $DIR/kept/, meta: {noop: true}}
  - {name: below, path: $DIR/kept/below, content: "x\n", meta: {noop: true}}
"#,
    );
    host.ask(&["apply", "--noop"]).exits(0).prints("2 held").prints_nothing_of("failed");
    // The real apply gives the same result, since nothing else changes.
    host.apply().exits(0).prints("2 held").prints_nothing_of("failed");
    host.ask(&["drift"]).exits(0).prints("2 held");
    assert!(!host.exists("kept"));
    // Undeclared resources are removed as usual.
    let left = "{name: $DIR/left, content: x, meta: {on_remove: delete}}";
    let kept = "{name: kept, path: $DIR/kept/, meta: {noop: true}}";
    host.graph(&format!("graph: all\nresources: {{file: [{kept}, {left}]}}\n"));
    host.apply().exits(0).prints("1 changed");
    host.graph(&format!("graph: all\nresources: {{file: [{kept}]}}\n"));
    host.apply().exits(0);
    assert!(!host.exists("left") && !host.exists("kept"));
}

/// A file below a directory that the plan creates is planned with its diff.
#[test]
fn a_file_below_a_new_directory_is_created() {
    let host = Host::with(
        r#"
graph: made
resources:
  file:
  - {name: $DIR/new/}
  - {name: $DIR/new/deep/}
  - {name: $DIR/new/deep/file, content: "text\n", mode: 0644}
  - {name: $DIR/new/none, state: absent}
  - {name: $DIR/new/deep/link, symlink: file}
"#,
    );
    let plan = kept(&host);
    let planned = host.plan();
    planned.exits(0).prints("4 to create, 1 unchanged");
    planned.prints_in_order(&["+ file[$DIR/new/deep/file]", "state: absent -> file", "+text"]);
    planned.prints("mode: 0644").prints_nothing_of("file[$DIR/new/none]");
    apply(&host, &plan).exits(0).prints("4 changed");
    assert_eq!(host.read("new/deep/link"), "text\n");
}

/// A path through a link that an earlier step replaces is planned behind the new target.
#[test]
fn a_path_behind_a_link_is_planned_at_its_new_target() {
    let host = Host::with(
        r#"
graph: led
resources:
  file:
  - {name: current, path: $DIR/current, symlink: two}
  - {name: same, path: $DIR/current/same, content: "same\n"}
  - {name: gone, path: $DIR/current/gone, state: absent}
  - {name: aside, path: $DIR/one/aside, content: "aside\n"}
  exec:
  - {name: told, args: [touch, $DIR/told], refresh_only: true, subscribe: "file[same]"}
"#,
    );
    host.make_directory("one").make_directory("two");
    host.write("one/same", "same\n").write("one/aside", "aside\n").write("two/gone", "x");
    symlink("one", host.path("current")).expect("a link");
    host.ask(&["drift"]).exits(0).prints("1 resource differing");
    let plan = kept(&host);
    let planned = host.plan();
    planned.exits(0).prints("1 to create, 2 to change, 1 to destroy, 1 unchanged");
    planned.prints_in_order(&["~ file[current]", "+ file[same]", "+same", "~ exec[told]"]);
    planned.prints("- file[gone]").prints_nothing_of("file[aside]");
    let applied = apply(&host, &plan);
    let changed = ["exec[told]", "file[current]", "file[gone]", "file[same]"];
    assert_eq!(applied.exits(0).named_after("changed"), changed, "{applied}");
    assert!(host.read("two/same") == "same\n" && !host.exists("two/gone"));
    assert_eq!(host.read("one/same"), "same\n");
}

/// A second path to a changed file, its copy, and a hard link are planned with the earlier change.
#[test]
fn the_second_of_two_steps_on_one_thing_finds_the_first_done() {
    let host = Host::with(
        r#"
graph: twice
resources:
  file:
  - {name: first, path: $DIR/real/f, content: "new\n"}
  - {name: second, path: $DIR/link/f, content: "new\n", after: "file[first]"}
  - {name: copy, path: $DIR/copy, source: link/f, after: "file[first]"}
  - {name: mode, path: $DIR/name, mode: 0600}
  - {name: other, path: $DIR/alias, mode: 0600, after: "file[mode]"}
"#,
    );
    host.make_directory("real").write("real/f", "old\n").write("copy", "old\n").write("name", "");
    host.chmod("name", 0o644);
    std::fs::hard_link(host.path("name"), host.path("alias")).expect("a second name");
    symlink("real", host.path("link")).expect("a link");
    let plan = kept(&host);
    host.plan().exits(0).prints("3 to change, 2 unchanged").prints_in_order(&[
        "~ file[first]",
        "~ file[copy]",
        "-old",
        "+new",
        "~ file[mode]",
    ]);
    let applied = apply(&host, &plan);
    let changed = ["file[copy]", "file[first]", "file[mode]"];
    assert_eq!(applied.exits(0).named_after("changed"), changed, "{applied}");
    assert_eq!(host.read("copy"), "new\n");
}

/// Two steps on one object without an edge are unknown, since their order is; so is the effect of a command on a
/// file.
#[test]
fn unordered_steps_and_command_results_stay_unknown() {
    let host = Host::with(
        r#"
graph: unknown
resources:
  file:
  - {name: judged, path: $DIR/src, content: "x\n", validate: [/bin/true, "%s"]}
  - {name: copy, path: $DIR/copy, source: src, after: "file[judged]"}
  - {name: one, path: $DIR/real/f, mode: 0600}
  - {name: other, path: $DIR/link/f, mode: 0644}
"#,
    );
    host.make_directory("real").write("real/f", "").write("src", "old\n").chmod("real/f", 0o640);
    symlink("real", host.path("link")).expect("a link");
    let planned = host.plan();
    planned.exits(0).prints("~ file[judged]");
    planned.prints("! file[copy]: unknown until file[judged] is changed");
    planned.prints("unknown until file[o");
}

const MUCH: &str = r#"
graph: much
resources:
  file:
  - {name: $DIR/tree/, source: from/, recurse: true, purge: true}
  - {name: $DIR/gone/, state: absent, force: true}
  - {name: $DIR/new/}
  - {name: $DIR/new/file, content: "x\n"}
  - {name: $DIR/edit, content: "new\n", mode: 0600}
  - {name: $DIR/link, symlink: from}
  - {name: $DIR/become, symlink: edit, force: true}
"#;

fn much() -> Host {
    let host = Host::with(MUCH);
    for name in ["from", "from/in", "tree", "tree/stray", "gone", "gone/deep"] {
        host.make_directory(name);
    }
    for name in ["from/in/a", "from/b", "tree/stray/c", "tree/d", "gone/deep/e", "edit", "become"] {
        host.write(name, name);
    }
    symlink("tree", host.path("link")).expect("a link");
    host
}

/// Returns everything below a folder: inode, times, mode and content of each entry.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let found = path.symlink_metadata().expect("it is there");
        let content = match () {
            () if found.is_dir() => {
                let entries = path.read_dir().expect("listed");
                left.extend(entries.map(|entry| entry.expect("an entry").path()));
                String::new()
            }
            () if found.is_symlink() => format!("{:?}", path.read_link()),
            () => format!("{:?}", std::fs::read(&path).expect("read")),
        };
        let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        let rest = (found.ino(), found.mode(), found.uid(), found.nlink(), times);
        all.insert(path, format!("{rest:?} {content}"));
    }
    all
}

/// A plan with all steps in its overlay leaves the host equal, times in nanoseconds included.
#[test]
fn a_plan_writes_nothing() {
    let host = much();
    let before = tree(&host.path(""));
    let planned = host.plan();
    planned.exits(0).prints_nothing_of("unknown").prints("- file[$DIR/gone/]");
    assert_eq!(tree(&host.path("")), before);
}

/// A plan makes no system call that changes a file on the host.
#[test]
fn a_plan_makes_no_system_call_that_writes_a_file() {
    let host = much();
    let calls = host.path("calls");
    let planned = host.command(&["plan"]);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=%file,%desc", "-o"]).arg(&calls);
    traced.arg(planned.get_program()).args(planned.get_args());
    traced.current_dir(planned.get_current_dir().unwrap_or_else(|| Path::new("/")));
    for (name, value) in planned.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    let traced = traced.output().expect("strace of Debian's package strace runs");
    assert!(traced.status.success(), "{traced:?}");
    let text = std::fs::read_to_string(&calls).expect("read");
    let writing = [
        "mkdir",
        "unlink",
        "rmdir",
        "rename",
        "symlink",
        "link(",
        "linkat(",
        "truncate",
        "chmod",
        "chown",
        "setxattr",
        "removexattr",
        "pwrite",
        "fallocate",
        "utime",
        "mknod",
        "fsync",
        "O_CREAT",
        "O_TRUNC",
        "O_TMPFILE",
    ];
    let is_ours = |line: &&str| writing.iter().any(|call| line.contains(call));
    let folder = host.path("").display().to_string();
    let wrong: Vec<&str> = text
        .lines()
        .filter(is_ours)
        .filter(|line| {
            !line.contains("readlink") && (line.contains(&folder) || !line.contains('"'))
        })
        .collect();
    assert!(text.lines().count() > 100 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The overlay is limited; a step that depends on more than its limit is unknown, with the reason.
#[test]
fn steps_beyond_the_overlay_limit_are_unknown() {
    let host = Host::with(
        r#"
graph: large
resources:
  file:
  - {name: first, path: $DIR/first, source: large}
  - {name: second, path: $DIR/second, source: first, after: "file[first]"}
  - {name: small, path: $DIR/small, content: "x\n"}
"#,
    );
    let large = std::fs::File::create(host.path("large")).expect("made");
    large.set_len((64 << 20) + 1).expect("room");
    let planned = host.plan();
    planned.exits(0).says("the simulated changes exceed 64 MiB").prints("+ file[first]");
    planned.prints("! file[second]: unknown until file[first] is changed");
    planned.prints("+ file[small]");
}

/// `resume --plan` of single resources shows their changes with the effects of earlier steps.
#[test]
fn changes_of_a_partial_resume_are_shown_in_order() {
    let host = Host::with(
        r#"
graph: rests
resources:
  file:
  - {name: folder, path: $DIR/folder/}
  - {name: below, path: $DIR/folder/below, content: "text\n"}
"#,
    );
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let both = ["file[below]", "file[folder]"];
    host.ask_daemon(&["pause", both[0], both[1]]).exits(0);
    std::fs::remove_dir_all(host.path("folder")).expect("removed");
    let planned = host.ask_daemon(&["resume", "--plan", both[0], both[1]]);
    planned.exits(0).prints("2 resources will be changed");
    planned.prints_in_order(&["file[folder]", "file[below]", "+text"]);
    // `show` compares with the present host instead.
    host.ask_daemon(&["show", both[0]]).exits(0).prints_nothing_of("+text");
    assert!(!host.exists("folder"));
    host.ask_daemon(&["resume", both[0], both[1]]).exits(0).prints("2 resources will be changed");
    host.wait_until("it is made again", || host.exists("folder/below"));
}

/// `resume --plan` shows each change with the effects of earlier steps, and makes none.
#[test]
fn changes_of_a_resume_are_shown_in_order() {
    let host = Host::with(
        r#"
graph: rests
resources:
  file:
  - {name: folder, path: $DIR/folder/}
  - {name: below, path: $DIR/folder/below, content: "text\n"}
"#,
    );
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause"]).exits(0);
    std::fs::remove_dir_all(host.path("folder")).expect("removed");
    host.wait_until("both are to be changed", || {
        host.ask_daemon(&["resume", "--plan"]).stdout.contains("2 resources will be changed")
    });
    let planned = host.ask_daemon(&["resume", "--plan"]);
    planned.exits(0).prints_in_order(&["file[folder]", "file[below]", "+text"]);
    assert!(!host.exists("folder"));
    host.ask_daemon(&["resume"]).exits(0).prints("2 resources will be changed");
    host.wait_until("it is made again", || host.exists("folder/below"));
}
