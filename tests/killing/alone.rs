//! Commands that change the host without a daemon, killed at each of their changing calls.

use crate::calls::{is_whole, report};
use crate::host::Host;
use crate::syscall_tracer::{self, Act};
use steadfast::store::SqliteStore;
use steadfast_resources::host::files::is_temporary;

const GRAPH: &str = r#"
graph: killed
resources:
  file: [{name: f, path: $DIR/f, content: "declared\n"}]
"#;

/// The result of a killed command.
struct Found {
    /// The call at which the command was killed; none if it had finished before.
    call: Option<&'static str>,
    is_put_back: bool,
    is_paused: bool,
}

/// Undoes a replacement, and kills the command before or after one of its calls.
fn undone_until(number: usize, after: bool) -> Found {
    let host = Host::with(GRAPH);
    host.write("f", "mine\n").apply().exits(0);
    let mut command = host.bare(&["undo", "file[f]"]);
    command.arg("--state-dir").arg(host.path("state"));
    let (mut count, mut struck) = (0, None);
    let traced = syscall_tracer::run(&command, &host.path(""), |call| {
        count += 1;
        match (count == number, after) {
            (false, _) => return Act::Pass,
            (true, _) => struck = Some(call.name),
        }
        if after { Act::KillAfter } else { Act::Kill }
    });
    let at = format!("call {number} ({struck:?}), after: {after}");
    assert!(struck.is_some() || traced.code == Some(0), "{at}: {}", traced.said);
    let content = host.read("f");
    assert!(["mine\n", "declared\n"].contains(&content.as_str()), "{at}: torn: {content:?}");
    let kept = SqliteStore::peek(&host.path("state")).expect("told back");
    let found = Found {
        call: struck,
        is_put_back: content == "mine\n",
        is_paused: kept.resources["file[f]"].pause.is_some(),
    };
    assert!(found.is_paused || !found.is_put_back, "{at}: the next daemon would revert it");
    // The next daemon acts on the result.
    let mut daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("loaded");
    if found.is_paused {
        host.ask_daemon(&["check", "file[f]"]).exits(0);
        host.ask_daemon(&["status"]).prints("undone by command");
    } else {
        daemon.wait_for("converged");
    }
    assert_eq!(host.read("f"), content, "{at}");
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0, "{at}");
    let beside = std::fs::read_dir(host.path("")).expect("listed");
    let names = beside.map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = names.filter(|name| is_temporary(name)).collect();
    assert!(left.is_empty(), "{at}: {left:?}");
    found
}

/// F-1, S-5: the next daemon does not revert an undo, wherever the command was killed; no temporary name is left.
#[test]
fn an_undo_by_itself() {
    let step = if is_whole() { 1 } else { 3 };
    let (mut kills, mut between, mut number, mut turn) = (0, 0, 1, 0_usize);
    loop {
        let sides = if is_whole() { &[false, true][..] } else { &[[false, true][turn % 2]] };
        let found: Vec<Found> = sides.iter().map(|after| undone_until(number, *after)).collect();
        kills += found.iter().filter(|found| found.call.is_some()).count();
        between += found.iter().filter(|found| found.is_paused && !found.is_put_back).count();
        if found.iter().all(|found| found.call.is_none()) {
            break;
        }
        (number, turn) = (number + step, turn + 1);
    }
    report(&format!("an undo by itself: {kills} kills, {between} between the pause and the deed"));
    assert!(kills > 10 && between > 0, "{kills} kills, {between} in between");
}

const FORCED: &str = r#"
graph: killed
resources:
  file: [{name: d, path: $DIR/d, content: "now\n", force: true}]
"#;

const INSIDE: [&str; 3] = ["d/a", "d/b", "d/c"];

fn is_whole_again(host: &Host) -> bool {
    INSIDE.iter().all(|name| host.exists(name) && host.read(name) == *name)
}

/// Kills the undo of a directory that a file has replaced, and repeats the undo. Returns the call of the kill, and
/// true if the undo was incomplete.
fn cut_off_at(number: usize) -> (Option<&'static str>, bool) {
    let host = Host::with(FORCED);
    host.make_directory("d");
    for name in INSIDE {
        host.write(name, name);
    }
    host.apply().exits(0);
    assert_eq!(host.read("d"), "now\n");
    let undo = || {
        let mut command = host.bare(&["undo", "file[d]"]);
        command.arg("--state-dir").arg(host.path("state"));
        command
    };
    let (mut count, mut struck) = (0, None);
    syscall_tracer::run(&undo(), &host.path(""), |call| {
        count += 1;
        if count != number {
            return Act::Pass;
        }
        struck = Some(call.name);
        Act::Kill
    });
    let at = format!("call {number} ({struck:?})");
    let was_whole = is_whole_again(&host);
    let is_begun = !host.path("d").is_file();
    let told = host.ask_daemon(&["history", "file[d]"]);
    let says = told.stdout.contains("was interrupted");
    assert!(says || was_whole || !is_begun, "{at}: nobody knows of it\n{told}");
    let again = host.finish(undo());
    again.exits(0);
    // A command that was killed at the very end may have finished.
    assert!(is_whole_again(&host) || (was_whole && !says), "{at}: {again}");
    let told = host.ask_daemon(&["history", "file[d]"]);
    assert!(!told.stdout.contains("was interrupted"), "{at}: {told}");
    host.finish(undo()).exits(0);
    let is_undone = host.path("d").is_file() && host.read("d") == "now\n";
    assert!(is_undone || (was_whole && !says), "{at}: undone whole");
    (struck, is_begun && !was_whole)
}

/// F-1: an interrupted undo is recorded, completed by the next undo, and reverted as one change.
#[test]
fn an_undo_that_is_cut_off_is_completed() {
    let step = if is_whole() { 1 } else { 7 };
    let (mut kills, mut half, mut number) = (0, 0, 1);
    loop {
        let (struck, is_half) = cut_off_at(number);
        if struck.is_none() {
            break;
        }
        (kills, half, number) = (kills + 1, half + usize::from(is_half), number + step);
    }
    report(&format!("an undo of a tree: {kills} kills, {half} half way"));
    assert!(kills > 10 && half > 2, "{kills} kills, {half} half way");
}
