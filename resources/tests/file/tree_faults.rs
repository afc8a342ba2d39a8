//! Tests of failures in a tree: an object that fails does not stop the others (M3).

use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{CheckResult, Host, Outcome, Resource};

const NOBODY: u32 = 65534;

fn tree(top: &Path, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    file(format!("{}/", top.display()), &[&[("recurse", "true")], given].concat())
}

/// Applies the change of a check, and asserts a failure after something was changed.
fn half_made(host: &Host, held: &Arc<dyn Resource>) -> String {
    let change = change(host, held);
    assert!(change.differences.iter().any(|one| one.aspect == "below"), "{:?}", change.differences);
    match apply(host, held, change) {
        Outcome::Failed { failure, touched: true } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            failure.what
        }
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// Makes a directory of the user nobody with a file of two names, which cannot be changed.
fn linked(top: &Path) {
    fs::create_dir(top).unwrap();
    for name in ["a", "c"] {
        fs::write(top.join(name), name).unwrap();
    }
    fs::hard_link(top.join("a"), top.join("b")).unwrap();
    for path in [top.to_owned(), top.join("a"), top.join("c")] {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    chmod(top.join("a"), 0o666);
    chmod(top.join("c"), 0o666);
}

#[test]
fn attributes_are_held_beside_a_file_that_is_refused() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("home");
    linked(&top);
    let held = tree(&top, &[("owner", "65534"), ("mode", "u=rwX,go=rX")]);
    let words = half_made(&host, &held);
    assert!(words.contains("2 objects in the tree failed"), "{words}");
    assert!(
        words.contains("home/a: the file has 2 hard links")
            && words.contains("home/b: the file has 2 hard links"),
        "{words}"
    );
    assert_eq!((mode(top.join("a")), mode(top.join("c"))), (0o666, 0o644));
    // Only the impossible part is left.
    let CheckResult::Unknown(failure) = check(&host, &held) else { panic!("expected a failure") };
    assert!(failure.what.contains("2 objects in the tree failed"), "{failure}");
    fs::remove_file(top.join("b")).unwrap();
    made(&host, &held);
    assert_eq!(mode(top.join("a")), 0o644);
}

#[test]
fn a_purge_goes_on_beside_a_directory_that_is_too_deep() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("top");
    let mut deep = top.join("aa");
    for _ in 0..205 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    for path in ["aa/stray", "zz"] {
        fs::write(top.join(path), "stray").unwrap();
    }
    let words = half_made(&host, &tree(&top, &[("purge", "true")]));
    assert!(words.contains("deeper than 200"), "{words}");
    assert_eq!((names(&top), names(top.join("aa"))), (vec!["aa".to_owned()], vec!["d".to_owned()]));
}

#[test]
fn the_rest_of_a_source_is_copied() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (source, top) = (dir.path().join("source"), dir.path().join("target"));
    fs::create_dir_all(source.join("deep")).unwrap();
    for name in ["b", "deep/c"] {
        fs::write(source.join(name), name).unwrap();
    }
    let sockets: Vec<PathBuf> = (0..13).map(|n| source.join(format!("a{n:02}"))).collect();
    let _bound: Vec<_> = sockets.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
    let path = source.display().to_string();
    let held = tree(&top, &[("source", &path)]);
    let words = half_made(&host, &held);
    assert_eq!(words.lines().count(), 12, "{words}");
    assert!(words.contains("a09: a socket cannot be copied\nand 3 more"), "{words}");
    assert_eq!(fs::read_to_string(top.join("deep/c")).unwrap(), "deep/c");
    assert_eq!(names(&top), ["b", "deep"]);
    for path in sockets {
        fs::remove_file(path).unwrap();
    }
    assert!(matches!(check(&host, &held), CheckResult::Same));
}

/// A removal checks the protected paths before walking the tree.
#[test]
fn a_protected_directory_is_refused_before_it_is_walked() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    mount(&["-t", "tmpfs", "none"], &top);
    let mut deep = top.clone();
    for _ in 0..205 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let words = ["absent", "exists"].map(|state| {
        let given = [("state", state), ("force", "true")];
        refused(&host, &file(&top, &given))
    });
    unmount(&top);
    for words in words {
        assert!(words.contains("top: the path is a mount point"), "{words}");
    }
}
