//! Tests of trees: copying, setting attributes, and purging undeclared entries.

use crate::support::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{CheckResult, Host, Outcome, Resource};

/// Makes files and their parents: `path` is a file with its path as content, `path/` a directory.
fn plant(top: &Path, paths: &[&str]) {
    for path in paths {
        let at = top.join(path);
        if path.ends_with('/') {
            fs::create_dir_all(&at).unwrap();
        } else {
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, path).unwrap();
        }
    }
}

/// Returns everything below a directory, by path, with type and content.
fn portrait(top: &Path) -> BTreeMap<String, String> {
    fn into(top: &Path, below: &Path, all: &mut BTreeMap<String, String>) {
        for name in names(top.join(below)) {
            let below = below.join(name);
            let path = top.join(&below);
            let meta = fs::symlink_metadata(&path).unwrap();
            let what = if meta.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                into(top, &below, all);
                format!("directory {:o}", mode(&path))
            } else {
                format!("{} {:o}", fs::read_to_string(&path).unwrap_or_default(), mode(&path))
            };
            all.insert(below.display().to_string(), what);
        }
    }
    let mut all = BTreeMap::new();
    into(top, Path::new(""), &mut all);
    all
}

struct Garden {
    dir: tempfile::TempDir,
    host: Host,
}

impl Garden {
    fn new() -> Self {
        demand_root();
        let garden = Self { dir: scratch(), host: Host::default() };
        fs::create_dir(garden.source()).unwrap();
        garden
    }

    fn source(&self) -> PathBuf {
        self.dir.path().join("source")
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    fn held(&self, given: &[(&str, &str)]) -> Arc<dyn Resource> {
        file(format!("{}/", self.target().display()), given)
    }

    fn copied(&self, more: &[(&str, &str)]) -> Arc<dyn Resource> {
        let source = self.source();
        let mut given = vec![("source", source.to_str().unwrap()), ("recurse", "true")];
        given.extend(more);
        self.held(&given)
    }

    fn claiming(&self, held: &Arc<dyn Resource>, claimed: &[&str]) -> Arc<dyn Resource> {
        assert_eq!(held.footprint().purge_root, Some(self.target()));
        let claimed = claimed.iter().map(|path| self.target().join(path)).collect();
        held.with_claims(claimed).expect("it minds")
    }
}

#[test]
fn a_tree_is_copied_and_held() {
    let garden = Garden::new();
    plant(&garden.source(), &["a", "deep/er/b", "deep/c", "empty/"]);
    symlink("../a", garden.source().join("deep/link")).unwrap();
    chmod(garden.source().join("deep/c"), 0o755);
    chmod(garden.source().join("empty"), 0o700);
    let held = garden.copied(&[]);
    let change = change(&garden.host, &held);
    let shown: Vec<String> =
        change.differences.iter().map(|d| format!("{} {}{}", d.aspect, d.from, d.to)).collect();
    assert_eq!(
        shown,
        [
            "state absentdirectory",
            "added a",
            "added deep",
            "added deep/c",
            "added deep/er",
            "added deep/er/b",
            "added deep/link",
            "added empty"
        ]
    );
    assert!(!change.destructive);
    let done = made(&garden.host, &held);
    assert_eq!(done[..2], ["created", "below: 7 added"]);
    assert_eq!(portrait(&garden.target()), portrait(&garden.source()));
    // A changed copy is repaired; entries that the source does not have are left alone.
    fs::write(garden.target().join("a"), "theirs").unwrap();
    fs::remove_file(garden.target().join("deep/er/b")).unwrap();
    fs::remove_file(garden.target().join("deep/link")).unwrap();
    symlink("/etc", garden.target().join("deep/link")).unwrap();
    fs::write(garden.target().join("mine"), "x").unwrap();
    let done = made(&garden.host, &held);
    assert_eq!(done[0], "below: 1 added, 2 changed");
    fs::remove_file(garden.target().join("mine")).unwrap();
    assert_eq!(portrait(&garden.target()), portrait(&garden.source()));
    fs::write(garden.source().join("deep/new"), "new").unwrap();
    fs::write(garden.source().join("a"), "newer").unwrap();
    made(&garden.host, &held);
    assert_eq!(portrait(&garden.target()), portrait(&garden.source()));
}

#[test]
fn attributes_are_held_below_with_x_where_it_belongs() {
    let garden = Garden::new();
    plant(&garden.source(), &["a", "deep/program"]);
    chmod(garden.source().join("deep/program"), 0o700);
    symlink("a", garden.source().join("link")).unwrap();
    let given = [("mode", "u=rwX,g=rX,o="), ("owner", "12"), ("group", "34")];
    let held = garden.copied(&given);
    made(&garden.host, &held);
    let all = portrait(&garden.target());
    assert_eq!(
        all.values().map(String::as_str).collect::<Vec<_>>(),
        ["a 640", "directory 750", "deep/program 750", "-> a"]
    );
    for path in ["", "a", "deep", "deep/program", "link"] {
        assert_eq!(owner(garden.target().join(path)), (12, 34), "{path}");
    }
    // One mode for files and directories: a reader of a directory may enter the directory.
    made(&garden.host, &garden.copied(&[("mode", "0640")]));
    let all = portrait(&garden.target());
    assert_eq!(
        all.values().map(String::as_str).collect::<Vec<_>>(),
        ["a 640", "directory 750", "deep/program 640", "-> a"]
    );
    assert_eq!(mode(garden.target()), 0o750);
}

#[test]
fn without_a_source_all_that_is_there_gets_the_attributes() {
    let garden = Garden::new();
    plant(&garden.target(), &["a", "deep/er/b", "own/x"]);
    symlink("/etc/passwd", garden.target().join("link")).unwrap();
    let before = (owner("/etc/passwd"), mode("/etc/passwd"));
    let held = garden.held(&[
        ("recurse", "true"),
        ("owner", "12"),
        ("mode", "go-rwx"),
        ("excludes", "own"),
    ]);
    let done = made(&garden.host, &held);
    assert_eq!(done[..2], ["owner 12", "mode 0700"]);
    for path in ["", "a", "deep", "deep/er", "deep/er/b", "link"] {
        assert_eq!(owner(garden.target().join(path)).0, 12, "{path}");
    }
    assert_eq!(mode(garden.target().join("deep/er/b")), 0o600);
    assert_eq!((owner("/etc/passwd"), mode("/etc/passwd")), before, "no link is followed");
    assert_eq!(owner(garden.target().join("own")).0, 0, "excluded");
    assert_eq!(owner(garden.target().join("own/x")).0, 0, "and all below it");
}

#[test]
fn purge_removes_what_nobody_declares_and_nothing_else() {
    let garden = Garden::new();
    let top = garden.target();
    plant(
        &top,
        &[
            "stray",
            "declared",
            "deep/stray",
            "deep/declared",
            "deep/gone/x/y/z",
            "other/a/b",
            "kept.log",
            "cache/x",
            "deep/cache/y",
        ],
    );
    symlink("/etc/passwd", top.join("link")).unwrap();
    fs::write(top.join(".steadfast-1-2-3.dpkg-tmp"), "a dead one").unwrap();
    let held = garden.held(&[("purge", "true"), ("recurse", "true"), ("excludes", "*.log\ncache")]);
    let held = garden.claiming(&held, &["declared", "deep/declared", "other/a"]);
    let change = change(&garden.host, &held);
    assert!(change.destructive);
    let shown: Vec<&str> = change.differences.iter().map(|d| d.from.as_str()).collect();
    assert_eq!(
        shown,
        [
            ".steadfast-1-2-3.dpkg-tmp: sensitive: not recorded, cannot be restored",
            "deep/gone/x/y/z",
            "deep/gone/x/y",
            "deep/gone/x",
            "deep/gone",
            "deep/stray",
            "link",
            "stray"
        ]
    );
    assert!(change.differences.iter().all(|d| d.aspect == "removed" && d.to.is_empty()));
    assert_eq!(made(&garden.host, &held)[0], "below: 7 removed", "a sweep takes the dead one");
    let left: Vec<String> = portrait(&top).into_keys().collect();
    assert_eq!(
        left,
        [
            "cache",
            "cache/x",
            "declared",
            "deep",
            "deep/cache",
            "deep/cache/y",
            "deep/declared",
            "kept.log",
            "other",
            "other/a",
            "other/a/b"
        ]
    );
    assert!(Path::new("/etc/passwd").exists());
}

/// Claimed paths and the directories on the way to them stay, whatever is there now.
#[test]
fn purge_without_recurse_is_about_files_and_links_right_in_the_directory() {
    let garden = Garden::new();
    plant(&garden.target(), &["stray", "deep/stray", "deep/er/x"]);
    made(&garden.host, &garden.held(&[("purge", "true")]));
    assert_eq!(
        portrait(&garden.target()).into_keys().collect::<Vec<_>>(),
        ["deep", "deep/er", "deep/er/x", "deep/stray"]
    );
    let socket = UnixListener::bind(garden.target().join("socket")).unwrap();
    assert!(matches!(check(&garden.host, &garden.held(&[("purge", "true")])), CheckResult::Same));
    made(&garden.host, &garden.held(&[("purge", "true"), ("force", "true")]));
    drop(socket);
    assert_eq!(names(garden.target()), ["deep"]);
}

#[test]
fn a_copied_tree_is_purged_of_all_that_the_source_does_not_have() {
    let garden = Garden::new();
    plant(&garden.source(), &["a", "deep/b", "temporary.tmp", "declared"]);
    plant(&garden.target(), &["old", "deep/old/er", "declared", "mine.tmp"]);
    let held = garden.copied(&[("purge", "true"), ("excludes", "*.tmp")]);
    let held = garden.claiming(&held, &["declared", "not/yet/there"]);
    fs::write(garden.target().join("declared"), "by another").unwrap();
    made(&garden.host, &held);
    let left: Vec<String> = portrait(&garden.target()).into_keys().collect();
    assert_eq!(left, ["a", "declared", "deep", "deep/b", "mine.tmp"]);
    let declared = fs::read_to_string(garden.target().join("declared")).unwrap();
    assert_eq!(declared, "by another", "what another resource declares is not copied over");
}

#[test]
fn something_of_another_type_goes_only_with_force_and_never_what_others_declare() {
    let garden = Garden::new();
    plant(&garden.source(), &["a", "deep/b"]);
    plant(&garden.target(), &["a/full", "deep"]);
    let words = failed(&garden.host, &garden.copied(&[]));
    assert!(words.contains("target/a: a directory that is not empty exists"), "{words}");
    let forced = garden.copied(&[("force", "true")]);
    let words = failed(&garden.host, &garden.claiming(&forced, &["a/full"]));
    assert!(words.contains("another resource declares a path below the directory"), "{words}");
    assert!(change(&garden.host, &forced).destructive);
    made(&garden.host, &forced);
    assert_eq!(portrait(&garden.target()), portrait(&garden.source()));
}

#[test]
fn a_backup_keeps_what_a_tree_replaces_and_purges() {
    let garden = Garden::new();
    let kept = garden.dir.path().join("kept");
    fs::create_dir(&kept).unwrap();
    chmod(&kept, 0o700);
    plant(&garden.source(), &["a"]);
    plant(&garden.target(), &["a", "deep/stray"]);
    fs::write(garden.target().join("a"), "old").unwrap();
    let held = garden.copied(&[("purge", "true"), ("backup", kept.to_str().unwrap())]);
    made(&garden.host, &held);
    let mut contents: Vec<String> =
        names(&kept).iter().map(|name| fs::read_to_string(kept.join(name)).unwrap()).collect();
    contents.sort();
    assert_eq!(contents, ["deep/stray", "old"]);
}

/// S-15: neither mounts nor protected directories are purged.
#[test]
fn neither_mounts_nor_protected_directories_are_purged() {
    let garden = Garden::new();
    let top = garden.target();
    plant(&top, &["mount/", "root/", "stray"]);
    mount_protected(&top.join("root"));
    mount(&["-t", "tmpfs", "none"], &top.join("mount"));
    plant(&top.join("mount"), &["precious"]);
    let held = garden.held(&[("purge", "true"), ("recurse", "true")]);
    let outcome = hold(&garden.host, &held);
    let attributes = hold(&garden.host, &garden.held(&[("recurse", "true"), ("owner", "12")]));
    plant(&garden.source(), &["mount/x"]);
    let copied = hold(&garden.host, &garden.copied(&[]));
    let precious = top.join("mount/precious");
    let (left, owned) = (precious.exists(), owner(&precious).0);
    // A directory of the host under another name.
    let root = file(format!("{}/", top.join("root").display()), &[("purge", "true")]);
    let refusal = hold(&garden.host, &root);
    unmount(&top.join("mount"));
    unmount(&top.join("root"));
    assert!(left && owned == 0);
    assert_eq!(outcome, Outcome::Changed(vec!["below: 1 removed".into(), "removed stray".into()]));
    assert!(matches!(attributes, Outcome::Changed(_)), "{attributes:?}");
    let words = |outcome: Outcome| match outcome {
        Outcome::Failed { failure, touched: false } => failure.what,
        other => format!("{other:?}"),
    };
    assert!(words(copied).contains("the path is a mount point"));
    let refusal = words(refusal);
    assert!(refusal.contains("is protected"), "{refusal}");
    for path in ["/", "/etc/", "/usr/", "/usr/bin/", "/home/", "/var/", "/var/lib/"] {
        for given in [vec![("purge", "true")], vec![("recurse", "true"), ("mode", "0644")]] {
            let wrong = build("file", path, &given).unwrap_err();
            assert!(
                wrong.iter().any(|w| w.what.contains("is a protected directory")),
                "{path} {wrong:?}"
            );
        }
    }
    for path in ["/etc/cron.d/", "/etc/sudoers.d/", "/srv/", "/etc/nginx/conf.d/"] {
        assert!(build("file", path, &[("purge", "true")]).is_ok(), "{path}");
    }
}

/// An apply does exactly the planned change; later entries wait for the next check.
#[test]
fn an_apply_does_just_what_the_check_found() {
    let garden = Garden::new();
    plant(&garden.source(), &["a", "b", "deep/c"]);
    plant(&garden.target(), &["gone/x"]);
    let held = garden.copied(&[("purge", "true")]);
    made(&garden.host, &garden.copied(&[]));
    let stale = change(&garden.host, &held);
    plant(&garden.target(), &["gone/later", "later"]);
    fs::remove_file(garden.target().join("b")).unwrap();
    let Outcome::Changed(done) = apply(&garden.host, &held, stale) else { panic!("changed") };
    assert_eq!(done, ["below: 1 removed", "removed gone/x"]);
    assert!(garden.target().join("gone/later").exists() && garden.target().join("later").exists());
    made(&garden.host, &held);
    assert_eq!(portrait(&garden.target()), portrait(&garden.source()));
}

#[test]
fn the_shown_part_of_a_large_tree_is_bounded_and_counted() {
    let garden = Garden::new();
    for number in 0..1500 {
        plant(&garden.source(), &[&format!("{}/{number}", number % 7)]);
    }
    plant(&garden.target(), &["stray"]);
    let held = garden.copied(&[("purge", "true")]);
    let change = change(&garden.host, &held);
    assert_eq!(change.differences.len(), 101);
    let last = change.differences.last().unwrap();
    assert_eq!(last.to, "100 of 1508 shown: 1507 added, 1 removed");
    assert!(change.destructive);
    let Outcome::Changed(done) = apply(&garden.host, &held, change) else { panic!("changed") };
    assert_eq!((done[0].as_str(), done.len()), ("below: 1507 added, 1 removed", 11));
    assert!(matches!(check(&garden.host, &held), CheckResult::Same));
}

/// Trees that are too deep are rejected by name, without an overflow.
#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let garden = Garden::new();
    let mut deep = garden.target();
    fs::create_dir(&deep).unwrap();
    for _ in 0..250 {
        deep.push("d");
        fs::create_dir(&deep).unwrap();
    }
    let words = refused(&garden.host, &garden.held(&[("recurse", "true"), ("mode", "go-w")]));
    assert!(words.contains("deeper than 200"), "{words}");
}

#[test]
fn uncopyable_entries_are_named() {
    let garden = Garden::new();
    plant(&garden.source(), &["a"]);
    let _socket = UnixListener::bind(garden.source().join("socket")).unwrap();
    let words = failed(&garden.host, &garden.copied(&[]));
    assert!(words.contains("source/socket: a socket cannot be copied"), "{words}");
    let excluding = garden.copied(&[("excludes", "socket")]);
    assert!(matches!(check(&garden.host, &excluding), CheckResult::Same));
}

/// Links in a source that a user may write are copied and not followed.
#[test]
fn links_in_a_source_are_copied_as_links() {
    let garden = Garden::new();
    symlink("/etc/shadow", garden.source().join("a")).unwrap();
    symlink("/etc", garden.source().join("b")).unwrap();
    chown(garden.source(), Some(65534), None).unwrap();
    // The owner of the source is the owner of the copy (S-11).
    made(&garden.host, &garden.copied(&[("owner", "65534")]));
    let all = portrait(&garden.target());
    assert_eq!(all.values().collect::<Vec<_>>(), ["-> /etc/shadow", "-> /etc"]);
}

#[test]
fn a_revoked_permit_stops_a_tree_between_two_steps() {
    let garden = Garden::new();
    for number in 0..200 {
        plant(&garden.source(), &[&number.to_string()]);
    }
    let held = garden.copied(&[]);
    fs::create_dir(garden.target()).unwrap();
    let change = change(&garden.host, &held);
    let cancel = tokio_util::sync::CancellationToken::new();
    let (later, target) = (cancel.clone(), garden.target());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while names(&target).len() < 5 {
                std::thread::yield_now();
            }
            later.cancel();
        });
        let outcome = apply_with(&garden.host, &held, change, &permit(&cancel));
        assert_eq!(outcome, Outcome::Interrupted);
    });
    assert!(names(garden.target()).len() < 200);
    made(&garden.host, &held);
    assert_eq!(names(garden.target()).len(), 200);
}
