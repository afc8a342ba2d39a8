//! Tests of the states that are visible during the copy of a tree and during a validation, and of the
//! leftovers of an interruption. The tests run as root.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use steadfast_resources::Host;

/// Examines everything below a directory that a user besides root could reach, again and again.
fn observe(ended: &AtomicBool, top: &Path, look: &mut impl FnMut(&Path, &fs::Metadata)) {
    fn into(path: &Path, look: &mut impl FnMut(&Path, &fs::Metadata)) {
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            // An entry that has gone again was not seen.
            let Ok(meta) = fs::symlink_metadata(entry.path()) else { continue };
            look(&entry.path(), &meta);
            let is_open = meta.mode() & 0o007 != 0 || meta.uid() != 0;
            if meta.is_dir() && is_open {
                into(&entry.path(), look);
            }
        }
    }
    while !ended.load(Ordering::SeqCst) {
        into(top, look);
    }
}

/// S-4: during a copy and a validation, every inode that others can reach has the final owner, no wider mode
/// and the whole content.
#[test]
fn an_observer_of_a_tree_and_of_a_candidate_sees_only_what_is_final() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (source, top) = (dir.path().join("source"), dir.path().join("top"));
    let texts = ["x".repeat(70_000), "y".repeat(90_000)];
    fs::create_dir_all(source.join("deep")).unwrap();
    fs::create_dir(&top).unwrap();
    let rest = [("mode", "u=rwX,g=rX,o="), ("owner", "12"), ("group", "34")];
    let path = source.display().to_string();
    let mut given = vec![("source", path.as_str()), ("recurse", "true")];
    given.extend(rest);
    let tree = file(format!("{}/", top.join("tree").display()), &given);
    let candidates: Vec<_> = texts
        .iter()
        .map(|text| {
            let tried = [("content", text.as_str()), ("validate", "sh\n-c\nsleep 0.002\nsh\n%s")];
            file(top.join("tried"), &[&tried[..], &rest[..]].concat())
        })
        .collect();
    let (ended, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            observe(&ended, &top, &mut |path, meta| {
                let name = path.file_name().unwrap().to_string_lossy();
                let is_hidden = name.starts_with(".steadfast-") && name.ends_with(".dpkg-tmp");
                let (mode, owner) = (meta.mode() & 0o7777, (meta.uid(), meta.gid()));
                looks.fetch_add(1, Ordering::SeqCst);
                if meta.is_dir() {
                    // A new directory belongs to root until it is given away; a private directory of a staged file
                    // stays root's.
                    let is_final = (mode, owner) == (0o750, (12, 34));
                    assert!(is_final || (is_hidden && mode & 0o027 == 0), "{name}: {mode:o}");
                    return;
                }
                assert_eq!((mode, owner), (0o640, (12, 34)), "{name}");
                assert!([70_000, 90_000].contains(&meta.len()), "{name}: {}", meta.len());
            });
        });
        let begun = Instant::now();
        let mut rounds = 0;
        while rounds < 100 && begun.elapsed() < Duration::from_secs(20) {
            for name in ["a", "deep/b"] {
                fs::write(source.join(name), &texts[rounds % 2]).unwrap();
            }
            made(&host, &tree);
            made(&host, &candidates[rounds % 2]);
            if rounds % 7 == 6 {
                fs::remove_dir_all(top.join("tree")).unwrap();
            }
            rounds += 1;
        }
        ended.store(true, Ordering::SeqCst);
    });
    assert!(looks.load(Ordering::SeqCst) > 100, "the observer has observed");
    assert_eq!(names(&top).last().unwrap(), "tried");
}

/// S-4: a staged file under validation is in a directory that only root can enter, whatever the target
/// directory is.
#[test]
fn nobody_else_can_reach_a_candidate() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(65534), Some(65534)).unwrap();
    chmod(&home, 0o2777);
    let seen = dir.path().join("seen");
    fs::write(&seen, "").unwrap();
    chmod(&seen, 0o666);
    // As the user nobody: everything that can be listed or read below nobody's own home.
    let spy = format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups \
         sh -c 'cat $1/.steadfast-*/* $1/.steadfast-* \"$2\"; ls $1/.steadfast-*' sh {} \"$1\" > {} 2>/dev/null; true",
        home.display(),
        seen.display()
    );
    let validate = format!("sh\n-c\n{spy}\nsh\n%s");
    made(&host, &file(home.join("a"), &[("content", "canary"), ("validate", &validate)]));
    let found = fs::read_to_string(&seen).unwrap();
    assert_eq!(found, "", "nobody saw something of the candidate");
    assert_eq!(fs::read_to_string(home.join("a")).unwrap(), "canary");
    assert_eq!(names(&home), ["a"]);
}

/// S-5: the private directory of a dead process's staged file is removed with its contents; another directory
/// with such a name is not.
#[test]
fn the_room_of_a_dead_candidate_is_swept_and_no_other_directory() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let name = |number: u32| format!(".steadfast-{}-77-{number}.dpkg-tmp", child.id());
    let room = |number: u32, mode: u32| {
        let path = dir.path().join(name(number));
        fs::create_dir(&path).unwrap();
        chmod(&path, mode);
        path
    };
    let left = room(1, 0o700);
    symlink("ours", left.join(name(1))).unwrap();
    fs::write(left.join("a.conf"), "half").unwrap();
    // A user has renamed a directory of root: nothing inside identifies it as a private directory of this
    // program.
    let renamed = room(2, 0o700);
    fs::write(renamed.join("precious"), "x").unwrap();
    let open = room(3, 0o755);
    symlink("ours", open.join(name(3))).unwrap();
    fs::write(open.join("precious"), "x").unwrap();
    let theirs = room(4, 0o700);
    symlink("ours", theirs.join(name(4))).unwrap();
    fs::write(theirs.join("precious"), "x").unwrap();
    chown(&theirs, Some(12), None).unwrap();
    made(&host, &file(dir.path().join("a"), &[("content", "x")]));
    assert_eq!(names(dir.path()), [name(2), name(3), name(4), "a".to_owned()]);
    for path in [renamed, open, theirs] {
        assert!(path.join("precious").exists());
    }
}

/// S-5: a process that is killed at any instant of a tree with validation leaves no partial file, and no
/// temporary file after the next apply.
#[test]
fn killed_in_the_middle_of_a_tree() {
    demand_root();
    let texts = ["x".repeat(50_000), "y".repeat(80_000)];
    let resources = |dir: &Path| {
        let source = dir.join("source").display().to_string();
        let tree = format!("{}/", dir.join("top/tree").display());
        let tree = file(tree, &[("source", &source), ("recurse", "true"), ("purge", "true")]);
        let tried: Vec<_> = texts
            .iter()
            .map(|text| file(dir.join("top/tried"), &[("content", text), ("validate", "true %s")]))
            .collect();
        (tree, tried)
    };
    if let Ok(dir) = std::env::var("STEADFAST_TEST_TREE") {
        let (host, dir) = (Host::default(), Path::new(&dir));
        let (tree, tried) = resources(dir);
        for round in 0.. {
            for name in ["a", "deep/b", "deep/er/c"] {
                let text = &texts[round % 2];
                // The rename makes the change atomic, so the source always has one of the two contents.
                fs::write(dir.join("new"), text).unwrap();
                fs::rename(dir.join("new"), dir.join("source").join(name)).unwrap();
            }
            hold(&host, &tree);
            hold(&host, &tried[round % 2]);
        }
    }
    let dir = scratch();
    fs::create_dir_all(dir.path().join("source/deep/er")).unwrap();
    fs::create_dir(dir.path().join("top")).unwrap();
    for round in 0..20_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "windows::killed_in_the_middle_of_a_tree", "--test-threads=1"])
            .env("STEADFAST_TEST_TREE", dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(25_000 + 3_370 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in ["tree/a", "tree/deep/b", "tree/deep/er/c", "tried"] {
            let Ok(found) = fs::read_to_string(dir.path().join("top").join(name)) else { continue };
            assert!(texts.contains(&found), "{name}: {} bytes are neither", found.len());
        }
    }
    for name in ["a", "deep/b", "deep/er/c"] {
        fs::write(dir.path().join("source").join(name), "z").unwrap();
    }
    let host = Host::default();
    let (tree, _) = resources(dir.path());
    made(&host, &tree);
    made(&host, &file(dir.path().join("top/tried"), &[("content", "z")]));
    assert_eq!(names(dir.path().join("top")), ["tree", "tried"]);
    assert_eq!(names(dir.path().join("top/tree")), ["a", "deep"]);
    assert_eq!(names(dir.path().join("top/tree/deep")), ["b", "er"]);
    assert_eq!(names(dir.path().join("top/tree/deep/er")), ["c"]);
}
