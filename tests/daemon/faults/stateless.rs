//! A state directory that is full, read-only or failing: no change that could be lost is begun, this is reported, and
//! it heals.

use super::full::Mount;
use super::syscall_tracer::{Act, Call, run};
use crate::host::Host;
use nix::errno::Errno;
use nix::sys::signal::Signal::SIGTERM;
use std::io::Write as _;

const GRAPH: &str = r#"
graph: stateless
resources:
  file:
  - {name: conf, path: $DIR/conf, content: "declared\n"}
  - {name: alone, path: $DIR/alone, content: "x\n"}
  exec:
  - {name: reload, shell: /bin/sh, cmd: "cat $DIR/conf >> $DIR/reloads", refresh_only: true, subscribe: "file[conf]"}
"#;

/// Fills a file system to the last byte.
pub(super) fn fill(host: &Host, name: &str) {
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.append(true).create(true).open(host.path(name)).expect("opened");
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// F-4, B-6: without space for a begin nothing is changed; with free space drift is repaired and owed refreshes are
/// delivered.
#[test]
fn a_full_state_directory_holds_back_what_could_be_lost() {
    let host = Host::with(GRAPH);
    let mount = Mount::new(&host, "state", "size=2m,mode=0700");
    let mut daemon = host.run(&["--sweep", "1"]);
    daemon.wait_for("converged");
    fill(&host, "state/filler");
    host.write("conf", "mine\n");
    let line = daemon.wait_for("state_write_failed");
    assert!(
        line.message.contains("no changes are made") && line.message.contains("full"),
        "{line:?}"
    );
    daemon.wait_for_of("failed", "file[conf]");
    assert_eq!((host.read("conf").as_str(), host.lines("reloads").len()), ("mine\n", 1));
    host.remove("state/filler");
    daemon.wait_for("converged");
    assert_eq!((host.read("conf").as_str(), host.lines("reloads").len()), ("declared\n", 2));
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    drop(mount);
}

/// F-4: an apply without space for its state changes nothing and names the remedy, with or without an earlier state;
/// with free space it continues.
#[test]
fn an_apply_in_a_full_state_directory_is_refused_in_words() {
    for is_new in [true, false] {
        let host = Host::with(GRAPH);
        let mount = Mount::new(&host, "state", "size=2m,mode=0700");
        let runs = usize::from(!is_new);
        if !is_new {
            host.apply().exits(0);
            // Also for changes that a check would find again: a process that has only read the state does not know
            // that it is not writable.
            host.write("conf", "mine\n").remove("alone");
        }
        fill(&host, "state/filler");
        host.ask(&["apply"]).exits(73).says("state.db").says("full");
        assert_eq!((host.read("conf") == "declared\n", host.lines("reloads").len()), (false, runs));
        assert!(!host.exists("alone"));
        host.remove("state/filler").apply().exits(0);
        assert_eq!(
            (host.read("conf").as_str(), host.lines("reloads").len()),
            ("declared\n", runs + 1)
        );
        drop(mount);
    }
}

/// F-4: an apply on a read-only state directory changes nothing and says so.
#[test]
fn an_apply_on_a_read_only_state_directory_is_refused_in_words() {
    let host = Host::with(GRAPH);
    let mount = Mount::new(&host, "state", "size=1m,mode=0700");
    host.apply().exits(0);
    host.write("conf", "mine\n").remove("alone");
    mount.remount("ro");
    host.ask(&["apply"]).exits(73).says("state.db: Read-only file system");
    assert_eq!((host.read("conf").as_str(), host.lines("reloads").len()), ("mine\n", 1));
    assert!(!host.exists("alone"));
    host.ask(&["plan"]).exits(0).prints("file[conf]");
    mount.remount("rw");
    host.apply().exits(0);
    assert_eq!((host.read("conf").as_str(), host.lines("reloads").len()), ("declared\n", 2));
}

/// B-6: an apply whose end cannot be stored gives up after 30 s and says so; the next one knows of the begin. Root
/// only.
#[test]
fn an_apply_does_not_wait_for_ever_to_be_kept() {
    // The log of the database has room for some records, and none for the long output.
    let fills = "cat /dev/zero > $DIR/state/filler; echo ran >> $DIR/ran; yes x | head -c 60000";
    let host = Host::with(&format!(
        "graph: g\nresources:\n  exec: [{{name: fills, shell: /bin/sh, cmd: \"{fills}\", on_interrupt: skip}}]\n  \
         value: [{{name: output, recv: {{text: \"exec[fills].stdout\"}}}}]\n"
    ));
    let mount = Mount::new(&host, "state", "size=2m,mode=0700");
    host.ask(&["apply"])
        .exits(73)
        .says("aborted: the state database was not writable for 30 s")
        .says("full");
    host.remove("state/filler").ask(&["apply"]);
    assert_eq!(host.lines("ran").len(), 1, "it was begun, and is skipped");
    drop(mount);
}

/// Returns true for a call of a thread that stores state or prepares that.
fn keeps(call: &Call) -> bool {
    call.thread != "steadfast-work"
}

/// Returns the distance between failing calls; 1 with `STEADFAST_KILLING=all`.
fn step() -> usize {
    if std::env::var_os("STEADFAST_KILLING").is_some_and(|value| value == "all") { 1 } else { 11 }
}

/// Lets calls fail in turn, each once; returns the number of calls. A permanent failure does not fit `apply`, which
/// waits until its results can be stored (B-6).
fn refused_at_each(error: Errno) -> usize {
    let mut point = 0;
    loop {
        let host = Host::with(GRAPH);
        host.write("conf", "old\n");
        let (mut count, mut hit) = (0, None);
        let refused = run(&host.command(&["apply"]), &host.path(""), |call| {
            if !keeps(call) {
                return Act::Pass;
            }
            count += 1;
            if count != point + 1 {
                return Act::Pass;
            }
            hit = Some(call.clone());
            Act::Fail(error)
        });
        let Some(hit) = hit else { return point };
        let at = format!("{error} at {point}: {hit:?}: {}", refused.said);
        assert!(!refused.said.contains("panicked"), "{at}");
        let code = refused.code.unwrap_or_else(|| panic!("it died: {at}"));
        assert!([0, 1, 73, 77].contains(&code), "code {code}: {at}");
        let conf = host.read("conf");
        assert!(["old\n", "declared\n"].contains(&conf.as_str()), "{at}");
        if code != 0 {
            assert!(refused.said.contains("state") || refused.said.contains("failed"), "{at}");
        }
        if code == 0 {
            assert_eq!(conf, "declared\n", "{at}");
        }
        let healed = host.apply();
        assert_eq!(healed.code, 0, "{at}: {healed}");
        assert_eq!(host.read("conf"), "declared\n", "{at}");
        let paid = host.lines("reloads");
        assert!(paid.contains(&"declared".to_owned()), "{at}: a refresh is lost: {healed}");
        // The stored state is whole: nothing runs a third time.
        host.apply().exits(0).prints(", 0 changed in");
        point += step();
    }
}

/// F-3, F-4, B-6: each call that stores state fails; nothing is lost, and the next run heals it.
#[test]
fn every_call_that_keeps_state_fails() {
    for error in [Errno::ENOSPC, Errno::EIO, Errno::EROFS] {
        let points = refused_at_each(error);
        assert!(points >= 11, "{error}: {points} only");
    }
}
