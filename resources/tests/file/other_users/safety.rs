//! Tests of the safety rules in single situations: links, hard links, visible states, leftovers, protected
//! paths. The tests run as root.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_resources::{CheckResult, Host, Outcome};
use tokio_util::sync::CancellationToken;

const NOBODY: u32 = 65534;

/// A directory in which `hold/link` points to `real`; the managed file is below the link.
struct Linked {
    dir: tempfile::TempDir,
}

impl Linked {
    fn new() -> Self {
        demand_root();
        let dir = scratch();
        fs::create_dir(dir.path().join("hold")).unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        chmod(dir.path().join("hold"), 0o755);
        symlink("../real", dir.path().join("hold/link")).unwrap();
        Self { dir }
    }

    fn hold(&self) -> PathBuf {
        self.dir.path().join("hold")
    }

    fn own(&self, hold: u32, link: u32, real: u32) -> &Self {
        chown(self.hold(), Some(hold), None).unwrap();
        lchown(self.hold().join("link"), Some(link), None).unwrap();
        chown(self.dir.path().join("real"), Some(real), None).unwrap();
        self
    }

    #[track_caller]
    fn followed(&self) {
        let held = file(self.hold().join("link/a"), &[("content", "x")]);
        made(&Host::default(), &held);
        fs::remove_file(self.dir.path().join("real/a")).unwrap();
    }

    #[track_caller]
    fn not_followed(&self) {
        let held = file(self.hold().join("link/a"), &[("content", "x")]);
        let words = refused(&Host::default(), &held);
        assert!(words.starts_with("the link \"link\" is not followed"), "{words}");
        assert!(names(self.dir.path().join("real")).is_empty());
    }
}

/// S-1: a link is followed only if nobody but root or the owner of its target could have changed the link.
#[test]
fn links_on_the_way_are_followed_only_where_nobody_else_can_turn_them() {
    let linked = Linked::new();
    linked.followed();
    linked.own(NOBODY, NOBODY, NOBODY).followed();
    linked.own(0, NOBODY, NOBODY).followed();
    linked.own(0, NOBODY, 0).not_followed();
    linked.own(NOBODY, 0, 0).not_followed();
    linked.own(NOBODY, NOBODY, 12).not_followed();
    linked.own(0, 0, 0).followed();
}

/// S-1: a user who can write the directory can change the link, whether the directory is sticky or not.
#[test]
fn links_in_directories_that_others_can_write_are_not_followed() {
    let linked = Linked::new();
    for mode in [0o777, 0o1777, 0o757] {
        chmod(linked.hold(), mode);
        linked.not_followed();
    }
    chmod(linked.hold(), 0o775);
    linked.followed();
    chown(linked.hold(), None, Some(34)).unwrap();
    linked.not_followed();
    chown(linked.hold(), None, Some(0)).unwrap();
    // user::rwx, user:65534:rwx, group::r-x, mask::rwx, other::r-x
    let mut list = vec![2, 0, 0, 0];
    for (tag, bits, id) in [
        (1_u16, 7_u16, u32::MAX),
        (2, 7, NOBODY),
        (4, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 5, u32::MAX),
    ] {
        list.extend(
            tag.to_le_bytes().into_iter().chain(bits.to_le_bytes()).chain(id.to_le_bytes()),
        );
    }
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(linked.hold(), "system.posix_acl_access", &list, flags).unwrap();
    linked.not_followed();
}

/// S-1: a parent directory that another user can write or owns makes everything below untrusted.
#[test]
fn a_directory_of_somebody_else_above_counts_too() {
    let linked = Linked::new();
    chmod(linked.dir.path(), 0o777);
    linked.not_followed();
    chmod(linked.dir.path(), 0o1777);
    linked.followed();
    chmod(linked.dir.path(), 0o755);
    chown(linked.dir.path(), Some(NOBODY), None).unwrap();
    linked.not_followed();
    chown(linked.dir.path(), Some(0), None).unwrap();
    linked.followed();
}

/// S-1: absolute links, links to links, `..` and loops.
#[test]
fn links_of_root_lead_where_they_say() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("real/deep")).unwrap();
    symlink(at("real/deep"), at("absolute")).unwrap();
    symlink("absolute/../deep/./../../absolute", at("winding")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    made(&host, &file(at("winding/a"), &[("content", "x")]));
    assert!(at("real/deep/a").exists());
    assert!(refused(&host, &file(at("loop/a"), &[])).contains("symbolic link"));
    assert!(refused(&host, &file(at("dangling/a"), &[])).contains("does not exist"));
}

/// S-2: a file of root that a user linked into the user's own directory is not managed there.
#[test]
fn a_hard_link_to_a_file_of_roots_is_refused_in_a_directory_of_a_user() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (home, secret) = (dir.path().join("home"), dir.path().join("secret"));
    fs::create_dir(&home).unwrap();
    fs::write(&secret, "x").unwrap();
    chmod(&secret, 0o600);
    let path = home.join("a");
    fs::hard_link(&secret, &path).unwrap();
    chown(&home, Some(NOBODY), None).unwrap();
    for given in [("mode", "0666"), ("owner", "nobody"), ("group", "nogroup"), ("content", "mine")]
    {
        let words = refused(&host, &file(&path, &[given]));
        assert!(words.contains("2 hard links"), "{words}");
    }
    assert_eq!((mode(&secret), owner(&secret)), (0o600, (0, 0)));
    assert_eq!(fs::read(&secret).unwrap(), b"x");
    made(&host, &file(&path, &[("state", "absent")]));
    assert!(secret.exists());
    fs::hard_link(&secret, &path).unwrap();
    chown(&home, Some(0), None).unwrap();
    made(&host, &file(&path, &[("mode", "0640")]));
}

/// S-2: such a file is not copied from there either, as a source, a fragment or within a tree, if only root
/// may read the file. A user's own file may have several names.
#[test]
fn a_hard_link_to_a_file_of_roots_is_not_copied_from_a_directory_of_a_user() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (home, secret) = (dir.path().join("home"), dir.path().join("secret"));
    let (copy, joined) = (dir.path().join("copy"), dir.path().join("joined"));
    fs::create_dir(&home).unwrap();
    fs::write(&secret, "x").unwrap();
    chmod(&secret, 0o600);
    fs::hard_link(&secret, home.join("a")).unwrap();
    let (source, home_text) = (home.join("a").display().to_string(), home.display().to_string());
    let tree = format!("{}/", dir.path().join("tree").display());
    // Without the source's owner as the owner of the copy, no copy is made (S-11).
    let theirs = ("owner", "65534");
    let held = [
        file(&copy, &[("source", &source), ("mode", "0644"), theirs]),
        file(&joined, &[("fragments", &home_text), ("mode", "0644"), theirs]),
        file(&tree, &[("source", &home_text), ("recurse", "true"), theirs]),
    ];
    let both = [(0o755, NOBODY), (0o1777, 0)];
    for (bits, owner) in both {
        chown(&home, Some(owner), None).unwrap();
        chmod(&home, bits);
        for held in &held {
            let said = format!("{:?}", hold(&host, held));
            // A directory that others may write is rejected as a source before its entries are examined.
            let is_open = bits == 0o1777 && said.contains("is writable by others (mode");
            assert!(said.contains("2 hard links") || is_open, "{said}");
        }
        assert!(!copy.exists() && !joined.exists() && !Path::new(&tree).join("a").exists());
        let words = refused(&host, &file(home.join("a"), &[("mode", "0666")]));
        assert!(words.contains("2 hard links"), "{words}");
    }
    chown(&home, Some(NOBODY), None).unwrap();
    chmod(&home, 0o755);
    chown(&secret, Some(NOBODY), None).unwrap();
    for held in &held {
        made(&host, held);
    }
}

/// S-2: a link that is made between the check and the apply is rejected too.
#[test]
fn a_hard_link_made_after_the_check_is_refused_too() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), None).unwrap();
    let (path, secret) = (home.join("a"), dir.path().join("secret"));
    fs::write(&path, "x").unwrap();
    fs::write(&secret, "x").unwrap();
    chmod(&secret, 0o600);
    let held = file(&path, &[("mode", "0666")]);
    let change = change(&host, &held);
    fs::remove_file(&path).unwrap();
    fs::hard_link(&secret, &path).unwrap();
    assert!(matches!(apply(&host, &held, change), Outcome::Failed { touched: false, .. }));
    assert_eq!(mode(&secret), 0o600);
}

/// S-4: every visible inode has the final owner and mode and the whole content; temporary names have a form
/// that run-parts, cron, sudo and logrotate ignore.
#[test]
fn an_observer_never_sees_more_than_the_final_mode() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let rest = [("mode", "0640"), ("owner", "12"), ("group", "34")];
    let content = ["x".repeat(70_000), "y".repeat(90_000)];
    let held: Vec<_> = content
        .iter()
        .map(|text| {
            let mut given = vec![("content", text.as_str())];
            given.extend(rest);
            file(&path, &given)
        })
        .collect();
    let (ended, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(&ended, dir.path(), |name, meta| {
                let seen = (meta.mode() & 0o7777, meta.uid(), meta.gid());
                assert_eq!(seen, (0o640, 12, 34), "{name}");
                assert!([70_000, 90_000].contains(&meta.len()), "{name}: {}", meta.len());
                let is_hidden = name.starts_with('.') && name.ends_with(".dpkg-tmp");
                assert!(name == "a" || is_hidden, "{name}");
                looks.fetch_add(1, Ordering::SeqCst);
            });
        });
        let begun = std::time::Instant::now();
        let mut rounds = 0;
        while rounds < 400 && begun.elapsed() < Duration::from_secs(20) {
            made(&host, &held[rounds % 2]);
            if rounds % 7 == 6 {
                fs::remove_file(&path).unwrap();
            }
            rounds += 1;
        }
        ended.store(true, Ordering::SeqCst);
    });
    assert!(looks.load(Ordering::SeqCst) > 100, "the observer has observed");
}

/// Examines all visible entries of the directory again and again.
fn until(ended: &AtomicBool, path: &Path, mut look: impl FnMut(&str, &fs::Metadata)) {
    while !ended.load(Ordering::SeqCst) {
        for entry in fs::read_dir(path).unwrap().flatten() {
            // An entry that has gone again was not seen.
            if let Ok(meta) = fs::symlink_metadata(entry.path()) {
                look(&entry.file_name().to_string_lossy(), &meta);
            }
        }
    }
}

/// S-4: a directory is visible with its final owner and mode only.
#[test]
fn an_observer_never_sees_an_unfinished_directory() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let slash = format!("{}/", path.display());
    let held = file(&slash, &[("mode", "0550"), ("owner", "12"), ("group", "34")]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(&ended, dir.path(), |name, meta| {
                let seen = (meta.mode() & 0o7777, meta.uid(), meta.gid());
                if name == "a" {
                    assert_eq!(seen, (0o550, 12, 34));
                } else {
                    assert_eq!(seen.0 & !0o550, 0, "{name}: {:o}", seen.0);
                }
            });
        });
        for _ in 0..300 {
            made(&host, &held);
            fs::remove_dir(&path).unwrap();
        }
        ended.store(true, Ordering::SeqCst);
    });
}

fn dead_process() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// S-5: the first write into a directory removes the temporary files of dead processes, and nothing else.
#[test]
fn leftovers_of_the_dead_are_swept_and_only_they() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let at = |name: &str| dir.path().join(name);
    let dead = dead_process();
    let ours = |number: u32| at(&format!(".steadfast-{dead}-77-{number}.dpkg-tmp"));
    fs::write(ours(1), "x").unwrap();
    symlink("/etc", ours(2)).unwrap();
    fs::create_dir(ours(3)).unwrap();
    fs::write(ours(4), "given to its owner; nobody else can put it here").unwrap();
    chown(ours(4), Some(12), None).unwrap();
    fs::create_dir_all(ours(5).join("full")).unwrap();
    fs::write(at(".steadfast-note.dpkg-tmp"), "not a name of ours").unwrap();
    fs::write(at(".other-1-2-3.dpkg-tmp"), "not a name of ours").unwrap();
    fs::write(at(&format!(".steadfast-{dead}-77-9.dpkg-new")), "nor this").unwrap();
    let stat = fs::read_to_string("/proc/1/stat").unwrap();
    let began = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let living = format!(".steadfast-1-{began}-5.dpkg-tmp");
    fs::write(at(&living), "its maker lives").unwrap();
    assert!(matches!(check(&host, &file(at("a"), &[("content", "x")])), CheckResult::Differs(_)));
    assert!(ours(1).exists(), "a check changes nothing");
    made(&host, &file(at("a"), &[("content", "x")]));
    for number in [1, 2, 3, 4] {
        assert!(fs::symlink_metadata(ours(number)).is_err(), "{number} is swept");
    }
    assert_eq!(names(dir.path()).len(), 6, "{:?}", names(dir.path()));
    // In a directory that others can write, only files of this process's user or of the directory's owner are
    // removed.
    chmod(dir.path(), 0o1777);
    for (number, owner) in [(6, 12), (7, 0)] {
        fs::write(ours(number), "x").unwrap();
        chown(ours(number), Some(owner), None).unwrap();
    }
    let none = permit(&CancellationToken::new());
    assert_eq!(host.files().sweep(&none, dir.path()).unwrap(), 1, "not that of somebody else");
    assert!(ours(6).exists());
    let gone = permit(&CancellationToken::new());
    fs::write(ours(1), "x").unwrap();
    assert_eq!(host.files().sweep(&gone, dir.path()).unwrap(), 1, "when it is asked for");
}

/// S-5 and F-1: a process that is killed at any instant leaves the old or the new content whole, and no
/// temporary file after the next write.
#[test]
fn killed_at_any_instant() {
    demand_root();
    let contents = ["x".repeat(50_000), "y".repeat(80_000)];
    if let Ok(path) = std::env::var("STEADFAST_TEST_WRITER") {
        let host = Host::default();
        let held: Vec<_> =
            contents.iter().map(|content| file(&path, &[("content", content)])).collect();
        loop {
            for held in &held {
                hold(&host, held);
            }
        }
    }
    let dir = scratch();
    let path = dir.path().join("a");
    fs::write(&path, &contents[0]).unwrap();
    for round in 0..25_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "safety::killed_at_any_instant", "--test-threads=1"])
            .env("STEADFAST_TEST_WRITER", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(15_000 + 1_370 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = fs::read_to_string(&path).unwrap();
        assert!(contents.contains(&found), "{} bytes are neither", found.len());
    }
    made(&Host::default(), &file(&path, &[("content", "z")]));
    assert_eq!(names(dir.path()), ["a"]);
}

/// S-15: a protected directory is also recognised by its inode, and nothing is removed across a mount, even
/// with `force`.
#[test]
fn protected_directories_and_mounts_are_not_removed_even_by_force() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let gone = [("state", "absent"), ("force", "true")];
    let (root, tree) = (dir.path().join("root"), dir.path().join("tree"));
    fs::create_dir(&root).unwrap();
    fs::create_dir_all(tree.join("x/mount")).unwrap();
    mount_protected(&root);
    mount(&["-t", "tmpfs", "none"], &tree.join("x/mount"));
    fs::write(tree.join("x/mount/precious"), "x").unwrap();
    let words: Vec<String> =
        [root.clone(), root.join("bin"), root.join("share"), tree.join("x/mount"), tree.clone()]
            .iter()
            .map(|path| refused_or_words(&host, path, &gone))
            .collect();
    let precious = tree.join("x/mount/precious").exists();
    unmount(&root);
    unmount(&tree.join("x/mount"));
    assert!(precious);
    for word in &words[..4] {
        assert!(word.contains("is protected") || word.contains("is a mount point"), "{word}");
    }
    assert!(words[1].contains("is protected"), "{}", words[1]);
    assert!(words[4].contains("a file system is mounted below the directory"), "{}", words[4]);
    made(&host, &file(&tree, &gone));
}

fn refused_or_words(host: &Host, path: &Path, given: &[(&str, &str)]) -> String {
    match hold(host, &file(path, given)) {
        Outcome::Failed { failure, .. } => failure.what,
        other => format!("{other:?}"),
    }
}
