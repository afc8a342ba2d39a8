//! Tests of the kind `file` without root: each test runs itself again as the user nobody.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use steadfast_resources::{CheckResult, Host, Outcome};

const NOBODY: u32 = 65534;

/// Prepares `home` (of nobody) and `roots` (of root) and runs the test again as nobody; in that second run,
/// returns the directory.
fn as_nobody(test: &str, prepare: impl FnOnce(&Path)) -> Option<PathBuf> {
    if let Ok(dir) = std::env::var("STEADFAST_TEST_NOBODY") {
        assert_eq!(nix::unistd::geteuid().as_raw(), NOBODY);
        return Some(dir.into());
    }
    demand_root();
    let dir = scratch();
    for name in ["home", "roots"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        chmod(dir.path().join(name), 0o755);
    }
    chown(dir.path().join("home"), Some(NOBODY), Some(NOBODY)).unwrap();
    prepare(dir.path());
    // The user nobody may have no access to the build directory.
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    chmod(&program, 0o755);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args([
            "--exact",
            &format!("other_users::unprivileged::{test}"),
            "--nocapture",
            "--test-threads=1",
        ])
        .env("STEADFAST_TEST_NOBODY", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let shouted = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{shouted}");
    None
}

#[test]
fn own_files_are_applied() {
    let Some(dir) = as_nobody("own_files_are_applied", |_| {}) else { return };
    let (host, home) = (Host::default(), dir.join("home"));
    let path = home.join("a");
    let held = file(&path, &[("content", "x\n"), ("mode", "0640")]);
    assert_eq!(made(&host, &held), ["created"]);
    assert_eq!((mode(&path), owner(&path)), (0o640, (NOBODY, NOBODY)));
    fs::write(&path, "y\n").unwrap();
    assert_eq!(made(&host, &held), ["content"]);
    chmod(&path, 0o000);
    let undeclared = file(&path, &[("content", "x\n")]);
    let verdict = check(&host, &undeclared);
    assert!(matches!(verdict, CheckResult::Unknown(_)), "what cannot be read is not known");
    assert!(!made(&host, &held).is_empty(), "one's own is written anew with a mode to read it by");
    assert_eq!((mode(&path), fs::read_to_string(&path).unwrap()), (0o640, "x\n".to_owned()));
    made(&host, &file(&path, &[("mode", "0644")]));
    made(&host, &file(home.join("d/"), &[("mode", "0300")]));
    made(&host, &file(home.join("d/in"), &[("content", "x")]));
    made(&host, &file(home.join("l"), &[("symlink", "a"), ("owner", "nobody")]));
    made(&host, &file(home.join("d/in"), &[("state", "absent")]));
    chmod(home.join("d"), 0o700);
    made(&host, &file(home.join("d"), &[("state", "absent")]));
    assert_eq!(names(&home), ["a", "l"]);
    symlink("deep", home.join("link")).unwrap();
    fs::create_dir(home.join("deep")).unwrap();
    made(&host, &file(home.join("link/a"), &[("content", "x")]));
    assert!(home.join("deep/a").exists(), "one's own link is followed");
}

#[test]
fn an_unwritable_file_is_one_clear_failure() {
    let Some(dir) = as_nobody("an_unwritable_file_is_one_clear_failure", |dir| {
        fs::write(dir.join("roots/a"), "x").unwrap();
        chmod(dir.join("roots/a"), 0o644);
        fs::create_dir(dir.join("roots/d")).unwrap();
        fs::create_dir(dir.join("roots/closed")).unwrap();
        chmod(dir.join("roots/closed"), 0o700);
    }) else {
        return;
    };
    let host = Host::default();
    let roots = dir.join("roots");
    let denied = |path: PathBuf, given: &[(&str, &str)], doing: &str| {
        let words = refused(&host, &file(&path, given));
        assert!(words.contains("user nobody (65534)"), "{words}");
        assert!(words.contains(path.to_str().unwrap().trim_end_matches('/')), "{words}");
        assert!(words.starts_with(&format!("cannot {doing}")), "{words}");
    };
    denied(roots.join("a"), &[("content", "y")], "write");
    denied(roots.join("new"), &[("content", "y")], "write");
    denied(roots.join("new/"), &[], "create");
    denied(roots.join("new"), &[("symlink", "y")], "create");
    denied(roots.join("a"), &[("mode", "0600")], "change the mode of");
    denied(roots.join("a"), &[("owner", "nobody")], "change the owner of");
    denied(roots.join("a"), &[("state", "absent")], "remove");
    denied(roots.join("d"), &[("state", "absent")], "remove");
    denied(roots.join("closed/a"), &[("content", "y")], "look at");
    denied(dir.join("home/mine"), &[("owner", "root")], "give to its owner");
    assert_eq!(names(&roots), ["a", "closed", "d"]);
    assert!(names(dir.join("home")).is_empty());
}

#[test]
fn a_writable_file_in_a_closed_directory_is_written_in_place() {
    let Some(dir) = as_nobody("a_writable_file_in_a_closed_directory_is_written_in_place", |dir| {
        fs::write(dir.join("roots/a"), "a longer content").unwrap();
        chmod(dir.join("roots/a"), 0o666);
        fs::write(dir.join("home/roots"), "x").unwrap();
        chmod(dir.join("home/roots"), 0o666);
    }) else {
        return;
    };
    let host = Host::default();
    let path = dir.join("roots/a");
    let inode = fs::metadata(&path).unwrap().ino();
    let held = file(&path, &[("content", "short")]);
    assert_eq!(made(&host, &held), ["content, in place: the directory is not writable"]);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    // A file of root in nobody's own directory: its undeclared owner stays.
    let kept = dir.join("home/roots");
    assert_eq!(
        made(&host, &file(&kept, &[("content", "short")])),
        ["content, in place: the owner must not change"]
    );
    assert_eq!(owner(&kept), (0, 0));
    let outcome = hold(&host, &file(&path, &[("content", "other"), ("mode", "0600")]));
    assert!(matches!(outcome, Outcome::Failed { touched: false, .. }), "{outcome:?}");
    assert_eq!(fs::read(&path).unwrap(), b"short");
}

#[test]
fn trees_candidates_and_copies_need_no_root() {
    let Some(dir) = as_nobody("trees_candidates_and_copies_need_no_root", |dir| {
        fs::create_dir_all(dir.join("roots/tree/deep")).unwrap();
        for name in ["roots/tree/a", "roots/tree/deep/b"] {
            fs::write(dir.join(name), "x").unwrap();
            chmod(dir.join(name), 0o644);
        }
        for name in ["roots/tree", "roots/tree/deep"] {
            chmod(dir.join(name), 0o755);
        }
        fs::create_dir(dir.join("roots/kept")).unwrap();
    }) else {
        return;
    };
    let (host, home) = (Host::default(), dir.join("home"));
    let source = dir.join("roots/tree").display().to_string();
    let top = format!("{}/", home.join("tree").display());
    let tree = file(&top, &[("source", &source), ("recurse", "true"), ("purge", "true")]);
    made(&host, &tree);
    fs::write(home.join("tree/deep/stray"), "x").unwrap();
    fs::remove_file(home.join("tree/deep/b")).unwrap();
    made(&host, &tree);
    assert_eq!(names(home.join("tree/deep")), ["b"]);
    fs::create_dir(home.join("kept")).unwrap();
    let kept = home.join("kept").display().to_string();
    let path = home.join("a");
    fs::write(&path, "old").unwrap();
    let given = |kept| [("content", "new"), ("validate", "grep -q new %s"), ("backup", kept)];
    let roots = dir.join("roots/kept").display().to_string();
    let words = refused(&host, &file(&path, &given(&roots)));
    assert!(words.contains("the directory is writable or owned by other users"), "{words}");
    made(&host, &file(&path, &given(&kept)));
    assert_eq!((names(home.join("kept")).len(), fs::read(&path).unwrap()), (1, b"new".to_vec()));
    let words = refused(&host, &file(&path, &[("content", "x"), ("validate", "false %s")]));
    assert!(words.contains("exit 1"), "{words}");
    // A file with a validation is not written in place where no staged file can be made.
    let closed = dir.join("roots/tree/a");
    let words = refused(&host, &file(&closed, &[("content", "y"), ("validate", "true %s")]));
    assert!(words.contains("permission denied"), "{words}");
}
