//! Drift of every sort is repaired, and afterwards the daemon rests.

use crate::daemon::Daemon;
use crate::host::{Host, is_root};
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: held
resources:
  file:
  - {name: folder, path: $DIR/folder/, mode: 0755}
  - {name: f, path: $DIR/folder/f, content: "declared\n", mode: 0640, after: "file[folder]"}
  - {name: link, path: $DIR/link, symlink: folder/f}
  - {name: gone, path: $DIR/gone, state: absent}
  - {name: sentinel, path: $DIR/sentinel, content: "calm\n"}
"#;

fn held() -> (Host, Daemon) {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    (host, daemon)
}

/// Causes drift and waits until the resource is repaired and the host converged.
#[track_caller]
fn repaired(resource: &str, breaks: impl FnOnce(&Host) -> &Host) {
    let (host, daemon) = held();
    breaks(&host);
    daemon.wait_for_of("changed", resource);
    host.wait_until("everything as declared", || is_right(&host));
    rests(&host, &daemon);
}

fn is_right(host: &Host) -> bool {
    let of = |name: &str| host.path(name).symlink_metadata().ok();
    let f = of("folder/f").filter(std::fs::Metadata::is_file);
    let link = std::fs::read_link(host.path("link"));
    host.read("folder/f") == "declared\n"
        && f.is_some_and(|f| f.mode() & 0o7777 == 0o640 && f.uid() == effective_user())
        && of("folder").is_some_and(|d| d.mode() & 0o7777 == 0o755)
        && link.is_ok_and(|target| target.as_os_str() == "folder/f")
        && !host.exists("gone")
}

fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Asserts that nothing more changes. Events come in order: after the sentinel's events all earlier ones are handled.
#[track_caller]
fn rests(host: &Host, daemon: &Daemon) {
    for _ in 0..2 {
        daemon.skip_to_now();
        host.write("sentinel", "disturbed\n");
        daemon.wait_for_of("changed", "file[sentinel]");
        if daemon.log().iter().any(|line| line.event == "contended") {
            // A resource undone too often is in contention, so its repairs are debug events until a quiet minute has
            // ended it.
            host.wait_until("everything as declared", || is_right(host));
        } else {
            daemon.wait_for("converged");
        }
    }
    let changed: Vec<_> = daemon.unseen().into_iter().filter(|l| l.event == "changed").collect();
    assert!(changed.is_empty(), "at rest nothing is changed: {changed:?}");
    assert!(is_right(host));
}

#[test]
fn a_deleted_file_comes_back() {
    repaired("file[f]", |host| host.remove("folder/f"));
}

#[test]
fn an_edited_file_is_put_back() {
    repaired("file[f]", |host| host.write("folder/f", "mine\n"));
}

#[test]
fn an_appended_line_is_removed() {
    repaired("file[f]", |host| host.append("folder/f", "and mine\n"));
}

#[test]
fn a_changed_mode_is_put_back() {
    repaired("file[f]", |host| host.chmod("folder/f", 0o777));
}

#[test]
fn a_changed_mode_of_a_directory_is_put_back() {
    repaired("file[folder]", |host| host.chmod("folder", 0o700));
}

/// Needs root, since other users cannot give files away.
#[test]
fn a_changed_owner_is_put_back() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(&GRAPH.replace("mode: 0640", "mode: 0640, owner: root, group: 0"));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    chown(host.path("folder/f"), Some(65534), Some(65534)).expect("given away");
    daemon.wait_for_of("changed", "file[f]");
    host.wait_until("the owner is back", || {
        is_right(&host) && host.metadata("folder/f").gid() == 0
    });
    rests(&host, &daemon);
}

#[test]
fn a_link_in_place_of_a_file_is_replaced() {
    repaired("file[f]", |host| {
        host.write("elsewhere", "theirs\n");
        symlink(host.path("elsewhere"), host.path("new")).expect("a link");
        host.rename("new", "folder/f")
    });
}

/// S-1: the target of a link is not touched.
#[test]
fn the_target_of_a_replaced_link_is_left_alone() {
    let (host, daemon) = held();
    host.write("elsewhere", "theirs\n").chmod("elsewhere", 0o604);
    symlink(host.path("elsewhere"), host.path("new")).expect("a link");
    host.rename("new", "folder/f");
    daemon.wait_for_of("changed", "file[f]");
    host.wait_until("everything as declared", || is_right(&host));
    assert_eq!((host.read("elsewhere").as_str(), host.mode("elsewhere")), ("theirs\n", 0o604));
}

#[test]
fn an_empty_directory_in_place_of_a_file_is_replaced() {
    repaired("file[f]", |host| host.make_directory("new").exchange("new", "folder/f"));
}

#[test]
fn a_changed_link_is_put_back() {
    repaired("file[link]", |host| {
        symlink("elsewhere", host.path("new")).expect("a link");
        host.rename("new", "link")
    });
}

#[test]
fn objects_declared_absent_are_removed() {
    repaired("file[gone]", |host| host.write("gone", "here again\n"));
}

#[test]
fn a_file_renamed_over_it_is_replaced() {
    repaired("file[f]", |host| host.write("new", "mine\n").rename("new", "folder/f"));
}

/// S-15: a directory with content is removed only with `force` in the graph.
#[test]
fn a_directory_with_content_needs_force() {
    let (host, daemon) = held();
    host.make_directory("full").write("full/theirs", "precious\n").exchange("full", "folder/f");
    let line = daemon.wait_for_of("failed", "file[f]");
    assert!(line.message.contains("force"), "it says what to do: {line:?}");
    assert_eq!(host.read("folder/f/theirs"), "precious\n");
    let graph = GRAPH.replace("mode: 0640", "mode: 0640, force: true");
    host.graph(&graph);
    daemon.signal(nix::sys::signal::Signal::SIGHUP).wait_for("loaded");
    daemon.wait_for_of("changed", "file[f]");
    daemon.wait_for("converged");
    rests(&host, &daemon);
}

#[test]
fn a_parent_moved_away_is_made_again() {
    repaired("file[f]", |host| host.rename("folder", "moved"));
}

/// F-7: the parent moves away and back, before or while the daemon creates another one.
#[test]
fn a_parent_moved_away_and_back_is_held_again() {
    let (host, daemon) = held();
    for round in 0..5 {
        host.rename("folder", "moved").write("moved/f", format!("round {round}\n"));
        if host.path("folder").exists() {
            drop(std::fs::remove_dir_all(host.path("folder")));
        }
        while std::fs::rename(host.path("moved"), host.path("folder")).is_err() {
            drop(std::fs::remove_dir_all(host.path("folder")));
        }
        host.wait_until("everything as declared", || is_right(&host));
    }
    host.write("folder/f", "and the watch is where the file is\n");
    host.wait_until("everything as declared", || is_right(&host));
    rests(&host, &daemon);
}

/// E-4, E-5: after many edits the declared content is restored, and then nothing more happens.
#[test]
fn a_hundred_edits_in_a_second() {
    let (host, daemon) = held();
    let began = Instant::now();
    for n in 0..100_u64 {
        std::fs::write(host.path("folder/f"), format!("edit {n}\n")).expect("written");
        // Real time on purpose: the edits are spread over a second.
        let due = began + Duration::from_millis(10 * (n + 1));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    host.wait_until("everything as declared", || is_right(&host));
    rests(&host, &daemon);
    let repairs =
        daemon.log().iter().filter(|l| l.event == "changed" && l.resource == "file[f]").count();
    assert!((2..=101).contains(&repairs), "one repair for each edit at most: {repairs}");
}

/// E-8: a repair touches no other resource.
#[test]
fn neighbours_are_not_touched() {
    let (host, daemon) = held();
    let before = [host.metadata("sentinel"), host.metadata("link"), host.metadata("folder")];
    host.append("folder/f", "mine\n");
    daemon.wait_for_of("changed", "file[f]");
    daemon.wait_for("converged");
    let after = [host.metadata("sentinel"), host.metadata("link"), host.metadata("folder")];
    for (before, after) in before.iter().zip(&after).take(2) {
        assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
    }
    assert_eq!(before[2].ino(), after[2].ino());
    let changed = daemon.log().iter().filter(|line| line.event == "changed").count();
    assert_eq!(changed, 5, "four at the start (one was absent already), one repair");
}
