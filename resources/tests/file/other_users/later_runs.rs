//! Objects that an untrusted user has prepared give that user no rights in later runs either. The tests run
//! as root.

use crate::other_users::strangers::{self, ACCESS, STRANGER};
use crate::other_users::takeover::{prior, shared, slash};
use crate::support::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{Host, Outcome};
use tokio_util::sync::CancellationToken;

/// The directory belongs to root after the first run; the file inside is still one that a user moved there.
#[test]
fn a_private_file_of_roots_stays_refused_in_later_runs() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    let (path, below) = (tree.join("stolen"), tree.join("folder"));
    fs::create_dir(&below).unwrap();
    chmod(&below, 0o755);
    for private in [&path, &below.join("stolen")] {
        fs::write(private, "only root reads this").unwrap();
        chmod(private, 0o600);
    }
    let given = [("owner", "root"), ("group", "root"), ("mode", "u=rwX,go=rX")];
    let whole = file(slash(&tree), &[&given[..], &[("recurse", "true")]].concat());
    for run in 0..3 {
        let said = format!("{:?}", hold(&Host::default(), &whole));
        assert!(
            said.contains("only root may read the file, and other users can have moved it there"),
            "run {run}: {said}"
        );
        assert_eq!((mode(&path), mode(below.join("stolen"))), (0o600, 0o600), "run {run}");
    }
    assert_eq!(owner(&tree), (0, 0));
    // The file is not copied for a user either.
    for (field, from) in [("source", path.display().to_string()), ("fragments", slash(&tree))] {
        let copy = file(dir.path().join("copy"), &[(field, &from), ("owner", "nobody")]);
        let said = format!("{:?}", hold(&Host::default(), &copy));
        assert!(
            said.contains("only root may read the file, and other users can have moved it there"),
            "{said}"
        );
    }
    // Root made another file later: nobody else can have moved that one there.
    let own = tree.join("own");
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write(&own, "x").unwrap();
    chmod(&own, 0o600);
    made(&Host::default(), &file(&own, &[("mode", "0644")]));
    made(&Host::default(), &file(&path, &[("mode", "0644"), ("force", "true")]));
    assert_eq!((mode(&own), mode(&path)), (0o644, 0o644));
}

/// An undo that was rejected once is rejected again.
#[test]
fn a_private_file_of_roots_stays_refused_in_a_later_undo() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    let path = tree.join("stolen");
    fs::write(&path, "only root reads this").unwrap();
    chmod(&path, 0o600);
    let owned = [("owner", "root"), ("group", "root"), ("mode", "0755")];
    made(&Host::default(), &file(slash(&tree), &owned));
    for run in 0..2 {
        let host = Host::default();
        let undone = host.files().restore(
            &permit(&CancellationToken::new()),
            (&path, &prior(0, 0o644, None)),
            &mut RestoredDirectories::default(),
        );
        let why = format!("{:?}", undone.expect_err("refused"));
        assert!(
            why.contains("only root may read the file, and other users can have moved it there"),
            "run {run}: {why}"
        );
    }
    assert_eq!(mode(&path), 0o600);
}

/// A run without a declared content leaves the inode in place; a later run with a content does not trust that
/// inode.
#[test]
fn an_inode_that_was_adopted_open_goes_when_a_content_is_declared() {
    let (_host, (dir, shared)) = (Host::default(), shared());
    let rest = [("owner", "root"), ("group", "root"), ("mode", "0644")];
    for prepared in ["theirs", "wide", "listed"] {
        let path = if prepared == "theirs" { shared.join("f") } else { dir.path().join(prepared) };
        match prepared {
            "theirs" => strangers::write(&path, "declared", 0o755),
            _ => fs::write(&path, "declared").unwrap(),
        }
        if prepared == "wide" {
            chmod(&path, 0o666);
        }
        if prepared == "listed" {
            strangers::set(&path, ACCESS, &strangers::list());
        }
        let mut open = fs::OpenOptions::new().append(true).open(&path).unwrap();
        made(&Host::default(), &file(&path, &rest));
        let content = [&rest[..], &[("content", "declared")]].concat();
        made(&Host::default(), &file(&path, &content));
        open.write_all(b" and more").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "declared", "{prepared}");
        assert!(matches!(hold(&Host::default(), &file(&path, &content)), Outcome::Unchanged));
    }
}

/// A private directory that a user renamed is not purged on behalf of that user.
#[test]
fn a_private_directory_that_somebody_moved_is_not_purged() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let project = dir.path().join("project");
    strangers::make_directory(&project, 0o775);
    let web = project.join("web");
    fs::create_dir(&web).unwrap();
    fs::write(web.join("k"), "x").unwrap();
    let purged =
        |path: &std::path::Path| file(slash(path), &[("purge", "true"), ("recurse", "true")]);
    for mode in [0o700, 0o750] {
        chmod(&web, mode);
        let said = format!("{:?}", hold(&host, &purged(&web)));
        assert!(said.contains("can have moved it there"), "{said}");
        assert!(web.join("k").exists());
    }
    // A directory that everybody may enter, or that nobody else can have moved, is purged as before.
    chmod(&web, 0o755);
    made(&host, &purged(&web));
    assert!(!web.join("k").exists());
    for path in [dir.path().join("own"), shared.join("own")] {
        fs::create_dir(&path).unwrap();
        fs::write(path.join("k"), "x").unwrap();
        chmod(&path, 0o700);
        made(&host, &purged(&path));
        assert!(!path.join("k").exists());
    }
    // With consent, everything is removed.
    fs::write(web.join("k"), "x").unwrap();
    chmod(&web, 0o700);
    made(&host, &file(slash(&web), &[("purge", "true"), ("recurse", "true"), ("force", "true")]));
    assert!(!web.join("k").exists());
}

/// A directory that root takes over passes the group of a stranger to nothing that is made in it, and a file of root's
/// with that group in a directory of the stranger's gives it no rights.
#[test]
fn the_group_of_a_stranger_gets_no_rights_later() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    let taken = home.join("taken");
    strangers::make_directory(&taken, 0o2755);
    made(&host, &file(slash(&taken), &[("owner", "root")]));
    assert_eq!(owner(&taken), (0, 0));
    let key = taken.join("key");
    made(&host, &file(&key, &[("content", "x"), ("mode", "0640")]));
    assert_eq!(owner(&key), (0, 0));
    for (name, given) in [
        ("content", &[("content", "x"), ("mode", "0640")][..]),
        ("attributes", &[("owner", "root"), ("mode", "0640")]),
        ("program", &[("content", "x"), ("mode", "04775")]),
    ] {
        let path = home.join(name);
        fs::write(&path, "old").unwrap();
        chown(&path, Some(0), Some(STRANGER)).unwrap();
        made(&host, &file(&path, given));
        assert_eq!(owner(&path), (0, 0), "{name}");
    }
    let inner = home.join("inner");
    fs::create_dir(&inner).unwrap();
    chown(&inner, Some(0), Some(STRANGER)).unwrap();
    made(&host, &file(slash(&inner), &[("owner", "root"), ("mode", "0770")]));
    assert_eq!(owner(&inner), (0, 0));
    // A directory of root's that a group shares passes it on, but not to a program with a set-user-ID bit.
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(0), Some(STRANGER)).unwrap();
    chmod(&shared, 0o2775);
    made(&host, &file(shared.join("f"), &[("content", "x"), ("mode", "0640")]));
    assert_eq!(owner(shared.join("f")), (0, STRANGER));
    made(&host, &file(shared.join("p"), &[("content", "x"), ("mode", "04775")]));
    assert_eq!(owner(shared.join("p")), (0, 0));
}
