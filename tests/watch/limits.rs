//! Lost events, exhausted limits, and file systems without events.

use crate::listener::{Ears, LONG};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;

fn edit(path: &Path) {
    fs::write(path, "edited").expect("written");
}

/// F-5: after an overflow of the event queue everything is suspect, and each path is watched at its present place.
#[test]
fn an_overflow_makes_everything_suspect_and_watched_again() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("read");
    let limit: usize = limit.trim().parse().expect("a number");
    let ears = Ears::new();
    let quiet = ears.file("quiet/file", "x");
    let moved = ears.file("moved/deep/file", "x");
    let made = ears.file("made/deep/file", "x");
    ears.watch(1, &quiet);
    ears.watch(2, &moved);
    ears.watch(3, &made);
    let noisy = ears.file("noisy", "x");
    ears.watch(4, &noisy);
    ears.settle();
    let before = ears.heard(1).suspect;
    let gate = ears.notes.gate.lock().expect("not poisoned");
    // Two events in turn, since the kernel merges equal events.
    for _ in 0..limit {
        fs::write(&noisy, "y").expect("written");
    }
    fs::rename(ears.path("moved"), ears.path("away")).expect("moved");
    ears.file("moved/deep/file", "new");
    fs::remove_dir_all(ears.path("made")).expect("removed");
    ears.file("made/deep/file", "new");
    drop(gate);
    for vertex in 1..=4 {
        ears.until(vertex, |heard| heard.suspect > before);
    }
    for (vertex, path) in [(1, &quiet), (2, &moved), (3, &made), (4, &noisy)] {
        ears.hears(vertex, "edited after the overflow", || fs::write(path, "z").expect("written"));
    }
    ears.settle();
    assert_eq!(ears.kernel_watches(), 1 + 1 + 2 + 2);
}

/// F-5: a flood of events in a directory that others can write makes only the vertices suspect whose path leads
/// through this directory. Root only.
#[test]
fn a_flood_of_others_does_not_touch_the_rest() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("read");
    let limit: usize = limit.trim().parse().expect("a number");
    let ears = Ears::in_trusted_place();
    let ours = ears.file("ours/file", "x");
    let theirs = ears.file("theirs/file", "x");
    let below = ears.file("theirs/deep/file", "x");
    let everyone = fs::Permissions::from_mode(0o777);
    fs::set_permissions(ears.path("theirs"), everyone).expect("changed");
    ears.watch(1, &ours);
    ears.watch(2, &theirs);
    ears.watch(3, &below);
    ears.settle();
    let gate = ears.notes.gate.lock().expect("not poisoned");
    for _ in 0..limit {
        fs::write(&theirs, "y").expect("written");
    }
    edit(&below);
    drop(gate);
    for vertex in [2, 3] {
        ears.until(vertex, |heard| heard.suspect > 0);
    }
    for (vertex, path) in [(1, &ours), (2, &theirs), (3, &below)] {
        ears.hears(vertex, "edited after the overflow", || edit(path));
    }
    assert_eq!(ears.heard(1).suspect, 0);
}

/// Runs a test again in user and mount namespaces of its own, so that lower limits and mounts affect nobody else.
fn in_a_namespace(test: &str, prepare: &str) {
    let own = std::env::current_exe().expect("our own path");
    let script = format!("{prepare} && exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(own)
        .env("WATCH_LIMITED", "1")
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn is_limited() -> bool {
    std::env::var_os("WATCH_LIMITED").is_some()
}

/// F-6: without free watches, the affected vertices are reported with a remedy; the others go on, and the watch is
/// retried.
#[test]
fn the_limit_of_watches_is_told_and_tried_again() {
    if !is_limited() {
        let lower = "echo 40 > /proc/sys/user/max_inotify_watches";
        return in_a_namespace("limits::the_limit_of_watches_is_told_and_tried_again", lower);
    }
    let ears = Ears::new();
    for vertex in 0..100 {
        ears.arm(vertex, &ears.file(&format!("d{vertex}/file"), "x"));
    }
    let answered = |ears: &Ears, vertex| {
        ears.until(vertex, |heard| heard.established + heard.absent.len() > 0)
    };
    let absent: Vec<u32> =
        (0..100).filter(|vertex| !answered(&ears, *vertex).absent.is_empty()).collect();
    assert!((60..100).contains(&absent.len()), "{} of 100", absent.len());
    for vertex in &absent {
        let why = &ears.heard(*vertex).absent[0];
        assert!(why.contains("fs.inotify.max_user_watches") && why.contains("/d"), "{why}");
    }
    let established = (0..100).find(|vertex| !absent.contains(vertex)).expect("some");
    let path = ears.path(&format!("d{established}/file"));
    let before = ears.heard(established).news();
    fs::write(path, "y").expect("written");
    ears.until(established, |heard| heard.news() > before);
    // Freed watches are used by the next sweep.
    for vertex in 0..100 {
        if !absent.contains(&vertex) {
            ears.hub.disarm(VertexId(vertex));
        }
    }
    ears.hub.try_failed();
    let healed = absent[0];
    let heard = ears.until(healed, |heard| heard.established == 1);
    assert!(heard.suspect >= 1, "what happened before is not known");
    let path = ears.path(&format!("d{healed}/file"));
    fs::write(path, "y").expect("written");
    ears.until(healed, |heard| heard.changed > 0);
}

/// F-6: a missing inotify instance is reported.
#[test]
fn the_limit_of_instances_is_told() {
    if !is_limited() {
        let lower = "echo 0 > /proc/sys/user/max_inotify_instances";
        return in_a_namespace("limits::the_limit_of_instances_is_told", lower);
    }
    let ears = Ears::new();
    ears.arm(1, &ears.file("file", "x"));
    let heard = ears.until(1, |heard| !heard.absent.is_empty());
    assert!(heard.absent[0].contains("fs.inotify.max_user_instances"), "{heard:?}");
    fs::write("/proc/sys/user/max_inotify_instances", "10").expect("raised");
    ears.hub.try_failed();
    ears.until(1, |heard| heard.established == 1);
}

/// A file system without events is reported: only sweeps find changes there.
#[test]
fn silent_file_systems_are_absent() {
    let ears = Ears::new();
    // The kernel marks this file itself. Its directory is watched then, and reports no other file.
    ears.arm(5, Path::new("/proc/swaps"));
    let swaps = ears.until(5, |heard| heard.established == 1);
    assert!(swaps.absent.is_empty(), "{swaps:?}");
    for (vertex, path) in [(1, "/proc/loadavg"), (2, "/sys/kernel/mm/ksm/run")] {
        ears.arm(vertex, Path::new(path));
        let heard = ears.until(vertex, |heard| !heard.absent.is_empty());
        assert!(heard.absent[0].contains("reports no changes"), "{heard:?}");
    }
    // Writes of programs to a parameter of the kernel have events all the same.
    let parameter = "/proc/sys/net/ipv4/ip_default_ttl";
    ears.arm(4, Path::new(parameter));
    ears.until(4, |heard| heard.established == 1);
    let value = fs::read(parameter).expect("read");
    fs::write(parameter, value).expect("only root may write a parameter of the kernel");
    let limit = Instant::now() + LONG;
    while ears.heard(4).news() == 0 {
        assert!(Instant::now() < limit);
    }
    // A link to such a file system, and its replacement by a file, are noticed too.
    let link = ears.path("link");
    std::os::unix::fs::symlink("/proc/self/mounts", &link).expect("linked");
    ears.arm(3, &link);
    ears.until(3, |heard| !heard.absent.is_empty());
    fs::remove_file(&link).expect("removed");
    fs::write(&link, "x").expect("written");
    let limit = Instant::now() + LONG;
    while ears.heard(3).news() == 0 {
        assert!(Instant::now() < limit);
    }
}

/// A file that is a mount point changes without an event of its directory: it is reported, and polled then.
#[test]
fn a_file_that_is_a_mount_point_is_absent() {
    if !is_limited() {
        return in_a_namespace("limits::a_file_that_is_a_mount_point_is_absent", "true");
    }
    let ears = Ears::new();
    let (file, real) = (ears.file("file", "x"), ears.file("real", "x"));
    let mounted = Command::new("mount").arg("--bind").args([&real, &file]).status();
    assert!(mounted.expect("mount runs").success());
    ears.arm(1, &file);
    let heard = ears.until(1, |heard| !heard.absent.is_empty());
    let why = "a file that is a mount point reports no changes";
    assert!(heard.absent[0].contains(why), "{heard:?}");
}

/// L5: a tree uses at most its share of the watches, however many directories it gets; the excess is reported, and
/// the tree recovers.
#[test]
fn a_tree_has_a_share_of_the_watches() {
    let ears = Ears::new();
    ears.hub.bound_trees(10);
    for number in 0..8 {
        fs::create_dir_all(ears.path(&format!("tree/{number}"))).expect("made");
    }
    let tree = WatchSource::Tree(ears.path("tree"));
    ears.hub.arm(VertexId(1), vec![tree]);
    ears.until(1, |heard| heard.established == 1);
    for number in 0..300 {
        fs::create_dir_all(ears.path(&format!("tree/1/{number}"))).expect("made");
    }
    let heard = ears.until(1, |heard| !heard.absent.is_empty());
    assert!(heard.absent[0].contains("more than 10 directories"), "{heard:?}");
    ears.settle();
    // The test's own directory is watched besides the tree.
    assert!(ears.kernel_watches() <= 11, "{}", ears.kernel_watches());
    let other = ears.file("other/file", "x");
    ears.watch(2, &other);
    ears.hears(2, "edited beside it", || edit(&other));
    fs::remove_dir_all(ears.path("tree/1")).expect("removed");
    ears.settle();
    ears.hub.walk_all();
    ears.until(1, |heard| heard.established == 2);
}
