//! Changes of the directories above a watched file.

use crate::listener::Ears;
use std::fs;
use std::path::Path;

fn edit(path: &Path) {
    fs::write(path, "edited").expect("written");
}

/// F-7: a parent or grandparent is moved away and back, and the file changes in between and afterwards.
#[test]
fn a_parent_moved_away_and_back() {
    let backends = [Ears::new, Ears::through_notify];
    for (moved, ears) in ["a", "a/b", "a/b/c"].into_iter().flat_map(|m| backends.map(|b| (m, b())))
    {
        let path = ears.file("a/b/c/file", "x");
        ears.watch(1, &path);
        let (here, away) = (ears.path(moved), ears.path("away"));
        for _ in 0..3 {
            ears.hears(1, "moved away", || fs::rename(&here, &away).expect("moved"));
            ears.settle();
            assert!(ears.kernel_watches() <= 4);
            ears.hears(1, "moved back", || fs::rename(&away, &here).expect("moved"));
            ears.hears(1, "edited", || edit(&path));
        }
        // A move away and back, faster than a walk.
        ears.hears(1, "moved away and back", || {
            fs::rename(&here, &away).expect("moved");
            fs::rename(&away, &here).expect("moved");
        });
        ears.settle();
        ears.hears(1, "edited", || edit(&path));
        // A new directory in place of the old one, which lives on elsewhere.
        ears.hears(1, "replaced", || {
            fs::rename(&here, &away).expect("moved");
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        });
        ears.settle();
        let old = away.join(path.strip_prefix(&here).expect("below"));
        ears.hears_nothing(1, "the old one edited", || edit(&old));
        ears.hears(1, "the new one made", || edit(&path));
        ears.settle();
        assert_eq!(ears.kernel_watches(), 4, "the old one is not watched any more");
    }
}

/// F-7: parents are removed and created again at every depth, often with the same inode number.
#[test]
fn a_parent_removed_and_made_again() {
    let ears = Ears::new();
    let path = ears.file("a/b/c/file", "x");
    ears.watch(1, &path);
    for round in 0..50 {
        let top = ears.path(["a", "a/b", "a/b/c"][round % 3]);
        ears.hears(1, "removed", || fs::remove_dir_all(&top).expect("removed"));
        ears.hears(1, "made again", || drop(ears.file("a/b/c/file", "y")));
        if round % 2 == 0 {
            ears.settle();
        }
        ears.hears(1, "edited", || edit(&path));
    }
    ears.settle();
    assert_eq!(ears.kernel_watches(), 4);
}

/// A missing path is watched at its nearest existing directory, then step by step.
#[test]
fn missing_parents_appear_step_by_step() {
    let ears = Ears::new();
    let path = ears.path("a/b/c/file");
    ears.watch(1, &path);
    assert_eq!(ears.kernel_watches(), 1);
    for (step, count) in [("a", 2), ("a/b", 3), ("a/b/c", 4)] {
        ears.hears(1, step, || fs::create_dir(ears.path(step)).expect("made"));
        ears.settle();
        assert_eq!(ears.kernel_watches(), count, "{step}");
    }
    ears.hears(1, "made", || edit(&path));
    // All at once: the result does not depend on the order of events.
    fs::remove_dir_all(ears.path("a")).expect("removed");
    ears.hears(1, "all at once", || drop(ears.file("a/b/c/file", "y")));
    ears.settle();
    assert_eq!(ears.kernel_watches(), 4);
    ears.hears(1, "edited", || edit(&path));
    // A file in place of a directory.
    fs::remove_dir_all(ears.path("a/b")).expect("removed");
    ears.hears(1, "a file in the way", || drop(ears.file("a/b", "file")));
    ears.hears(1, "out of the way", || fs::remove_file(ears.path("a/b")).expect("removed"));
    ears.hears(1, "the right thing", || drop(ears.file("a/b/c/file", "z")));
}

fn spin(rounds: u32) {
    for _ in 0..rounds {
        std::hint::spin_loop();
    }
}

/// R-9: the directories are created, removed and moved at every moment of the walk; at the end the file is watched.
#[test]
fn a_way_made_in_a_rush_is_found() {
    let ears = Ears::new();
    for round in 0..400_u32 {
        let (top, path) = (format!("r{round}/a/b/c"), format!("r{round}/a/b/c/d/file"));
        let path = ears.path(&path);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in ["r", "r/a", "r/a/b", "r/a/b/c", "r/a/b/c/d"] {
                    let step = step.replacen('r', &format!("r{round}"), 1);
                    fs::create_dir(ears.path(&step)).expect("made");
                    spin((round % 20) * 50);
                }
                if round % 3 == 0 {
                    fs::rename(ears.path(&top), ears.path(&format!("away{round}"))).expect("moved");
                    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
                }
                if round % 3 == 1 {
                    fs::remove_dir_all(ears.path(&top)).expect("removed");
                    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
                }
            });
            spin((round % 7) * 2000);
            ears.arm(round, &path);
        });
        ears.until(round, |heard| heard.established == 1);
        ears.hears(round, "made at the end of a rush", || edit(&path));
        ears.hub.disarm(steadfast_engine::VertexId(round));
    }
}

/// F-7, R4: a mount over a parent, its unmount, and another mount are reported at once, and later events come from the
/// right place. Root only.
#[test]
fn mounts_over_a_parent_are_reported() {
    let ears = Ears::new();
    let path = ears.file("a/b/file", "x");
    ears.watch(1, &path);
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new(arguments[0]).args(&arguments[1..]).status();
        assert!(status.expect("runs").success(), "this test needs root: {arguments:?}");
    };
    let over = ears.path("a").display().to_string();
    for round in 0..3 {
        let heard = ears.heard(1);
        mount(&["mount", "-t", "tmpfs", "tmpfs", &over]);
        ears.until(1, |now| now.changed + now.suspect > heard.changed + heard.suspect);
        ears.settle();
        ears.hears(1, "made on the mount", || drop(ears.file("a/b/file", "y")));
        ears.settle();
        ears.hears(1, "edited on the mount", || edit(&path));
        let heard = ears.heard(1);
        let lazily = ["umount", "-l", &over];
        if round == 0 {
            mount(&["umount", &over]);
        } else {
            mount(&lazily);
        }
        ears.until(1, |now| now.changed + now.suspect > heard.changed + heard.suspect);
        ears.settle();
        ears.hears(1, "edited below it", || edit(&path));
    }
    ears.settle();
    let before = ears.heard(1);
    ears.hub.walk_all();
    ears.settle();
    assert_eq!(ears.heard(1), before, "a sweep that finds nothing says nothing");
}

/// F-7: many cycles of replacements, moves and removals leak no watch.
#[test]
fn ten_thousand_cycles_leak_nothing() {
    cycles(10_000);
}

/// F-7: a hundred thousand cycles leak no watch; run on request.
#[test]
#[ignore = "takes half a minute"]
fn a_hundred_thousand_cycles_leak_nothing() {
    cycles(100_000);
}

fn cycles(rounds: usize) {
    let ears = Ears::new();
    let path = ears.file("a/b/file", "x");
    ears.watch(1, &path);
    let descriptors = || fs::read_dir("/proc/self/fd").expect("listed").count();
    let before = descriptors();
    for round in 0..rounds {
        let new = ears.file("a/b/.new", "y");
        fs::rename(new, &path).expect("replaced");
        if round % 10 == 0 {
            fs::rename(ears.path("a/b"), ears.path(&format!("old{round}"))).expect("moved");
            ears.file("a/b/file", "z");
        }
        if round % 10 == 5 {
            fs::remove_dir_all(ears.path("a")).expect("removed");
            ears.file("a/b/file", "z");
        }
    }
    ears.settle();
    ears.hears(1, "edited", || edit(&path));
    ears.settle();
    assert_eq!(ears.kernel_watches(), 3, "of {} directories", 1 + 2 + rounds / 10);
    assert!(descriptors() <= before + 1, "a second instance may have come, no more");
}
