//! Tests of contents and of the conditions of a replacement: source, fragments, replace, validate, backup.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;
use std::time::Duration;
use steadfast_resources::{CheckResult, Host, Outcome, Place, WatchSource};
use tokio_util::sync::CancellationToken;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_source_is_copied_and_followed_when_it_changes() {
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    let held = file(&path, &[("source", text(&source))]);
    let words = refused(&host, &held);
    assert!(words.contains("the file does not exist"), "{words}");
    assert!(!path.exists());
    fs::write(&source, "one\n").unwrap();
    chmod(&source, 0o644);
    assert_eq!(made(&host, &held), ["created"]);
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("one\n", 0o644));
    fs::write(&source, "two\n").unwrap();
    let change = change(&host, &held);
    assert_eq!(change.differences[0].diff.as_deref(), Some("@@ -1 +1 @@\n-one\n+two\n"));
    assert_eq!(apply(&host, &held, change), Outcome::Changed(vec!["content".into()]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    fs::remove_file(&source).unwrap();
    fs::create_dir(&source).unwrap();
    let words = refused(&host, &held);
    assert!(words.contains("expected a file, found a directory"), "{words}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n", "what is there stays");
}

/// A copy without a declared mode is readable for no more users than its source, and an executable source
/// gives an executable copy.
#[test]
fn a_new_file_has_the_mode_of_its_source_and_no_wider_one_than_0755() {
    let (host, dir) = (Host::default(), scratch());
    let source = dir.path().join("source");
    for (number, (from, to)) in
        [(0o644, 0o644), (0o600, 0o600), (0o6755, 0o755), (0o440, 0o640), (0o751, 0o751)]
            .into_iter()
            .enumerate()
    {
        fs::write(&source, "x").unwrap();
        chmod(&source, from);
        let path = dir.path().join(number.to_string());
        made(&host, &file(&path, &[("source", text(&source))]));
        assert_eq!(mode(&path), to, "{from:o}");
        chmod(&path, 0o666);
        assert!(matches!(
            check(&host, &file(&path, &[("source", text(&source))])),
            CheckResult::Same
        ));
        fs::remove_file(&source).unwrap();
    }
}

/// S-6: a sensitive file without a declared mode is readable for its owner alone, whatever the source of its
/// content and the earlier mode; a declared mode wins.
#[test]
fn a_new_file_that_is_sensitive_is_its_owners_alone() {
    let (host, dir) = (Host::default(), scratch());
    fs::create_dir_all(dir.path().join("tree")).unwrap();
    let (source, program) = (dir.path().join("tree/source"), dir.path().join("tree/program"));
    fs::write(&source, "canary").unwrap();
    fs::write(&program, "canary").unwrap();
    chmod(&source, 0o644);
    chmod(&program, 0o755);
    let made_with = |name: &str, given: &[(&str, &str)]| {
        let path = dir.path().join(name);
        let given: Vec<_> = given.iter().copied().chain([("sensitive", "true")]).collect();
        made(&host, &file(&path, &given));
        mode(&path)
    };
    assert_eq!(made_with("literal", &[("content", "canary")]), 0o600);
    assert_eq!(made_with("copy", &[("source", text(&source))]), 0o600);
    assert_eq!(made_with("copied-program", &[("source", text(&program))]), 0o700);
    assert_eq!(made_with("joined", &[("fragments", text(&source))]), 0o600);
    let tree = format!("{}/", text(&dir.path().join("tree")));
    made_with("trees/", &[("source", &tree), ("recurse", "true")]);
    assert_eq!(mode(dir.path().join("trees/source")), 0o600);
    assert_eq!(made_with("declared", &[("content", "canary"), ("mode", "0644")]), 0o644);
    fs::write(dir.path().join("there"), "before").unwrap();
    chmod(dir.path().join("there"), 0o640);
    assert_eq!(made_with("there", &[("content", "canary")]), 0o600);
    chmod(dir.path().join("there"), 0o644);
    assert_eq!(made_with("there", &[("content", "canary"), ("mode", "0640")]), 0o640);
}

/// If the source has changed since the check, the apply copies the present source, and never a mixture.
#[test]
fn a_source_that_changes_after_the_check_is_looked_at_again() {
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    fs::write(&source, "one").unwrap();
    let held = file(&path, &[("source", text(&source))]);
    let stale = change(&host, &held);
    fs::write(&source, "another").unwrap();
    assert!(matches!(apply(&host, &held, stale), Outcome::Changed(_)));
    assert_eq!(fs::read_to_string(&path).unwrap(), "another");
}

/// A source that is written all the time is copied in one of its states, or not at all.
#[test]
fn a_source_that_is_written_meanwhile_is_never_copied_in_halves() {
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    let states = ["x".repeat(600_000), "y".repeat(900_000)];
    fs::write(&source, &states[0]).unwrap();
    let held = file(&path, &[("source", text(&source))]);
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                round += 1;
                fs::write(&source, &states[round % 2]).unwrap();
                std::thread::sleep(Duration::from_micros(700 * (round as u64 % 5)));
            }
        });
        let mut copied = 0;
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(4) {
            drop(hold(&host, &held));
            let Ok(found) = fs::read_to_string(&path) else { continue };
            // The writer truncates first, so an empty or partial content is also a state of the source. A mixture is
            // none.
            let first = found.bytes().next().unwrap_or(b'x');
            assert!(found.bytes().all(|byte| byte == first), "{} bytes are a mixture", found.len());
            copied += 1;
        }
        ended.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(copied > 0);
    });
}

/// S-1: a source is not reached through a link that another user could change.
#[test]
fn a_source_is_reached_only_through_links_that_nobody_else_can_turn() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (home, secret) = (dir.path().join("home"), dir.path().join("secret"));
    fs::create_dir(&home).unwrap();
    fs::write(&secret, "canary").unwrap();
    symlink(&secret, home.join("link")).unwrap();
    let path = dir.path().join("a");
    let held = file(&path, &[("source", text(&home.join("link")))]);
    made(&host, &held);
    fs::remove_file(&path).unwrap();
    chown(&home, Some(65534), None).unwrap();
    let words = refused(&host, &held);
    assert!(words.starts_with("the link \"link\" is not followed"), "{words}");
    chown(&home, Some(0), None).unwrap();
    chmod(&home, 0o777);
    let words = refused(&host, &held);
    assert!(words.starts_with("the link \"link\" is not followed"), "{words}");
    assert!(!path.exists());
}

/// A large source is read and compared in pieces.
#[test]
fn a_large_source_is_copied_in_pieces() {
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    let status = std::process::Command::new("dd")
        .args(["if=/dev/urandom", "bs=1M", "count=200", "status=none"])
        .arg(format!("of={}", source.display()))
        .status();
    assert!(status.unwrap().success());
    let held = file(&path, &[("source", text(&source))]);
    let before = most_memory();
    made(&host, &held);
    let grown = most_memory().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB more for a file of 200 MiB");
    let status = std::process::Command::new("cmp").args([&path, &source]).status();
    assert!(status.unwrap().success());
}

/// Contents that were found equal are read again only after a change; a change that restores the modification
/// time is noticed too.
#[test]
fn equal_content_is_read_again_only_after_a_change() {
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    let content = "x".repeat(10_000_000);
    fs::write(&source, &content).unwrap();
    let held = file(&path, &[("source", text(&source))]);
    let began = std::time::Instant::now();
    made(&host, &held);
    let read_by = |check: &dyn Fn() -> bool| {
        let before = read_so_far();
        assert!(check());
        read_so_far() - before
    };
    let same = || matches!(check(&host, &held), CheckResult::Same);
    let read = read_by(&same);
    // On a slow machine the state is old enough already.
    if began.elapsed() < Duration::from_millis(40) {
        assert!(read > 10_000_000, "so young a state is not trusted");
    }
    std::thread::sleep(Duration::from_millis(60));
    assert!(same());
    assert!(read_by(&same) < 100_000);
    for changed in [&path, &source] {
        let before = fs::metadata(changed).unwrap().modified().unwrap();
        let mut other = content.clone();
        other.replace_range(5_000_000..5_000_001, "y");
        fs::write(changed, &other).unwrap();
        fs::File::options().write(true).open(changed).unwrap().set_modified(before).unwrap();
        assert!(!same(), "{}", changed.display());
        made(&host, &held);
        std::thread::sleep(Duration::from_millis(60));
        assert!(same());
    }
}

/// Returns the number of bytes that this thread has read, from the kernel's counters.
fn read_so_far() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Returns the peak memory of this process in KiB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn fragments_are_joined_in_order_and_those_of_a_directory_by_name() {
    let (host, dir) = (Host::default(), scratch());
    let parts = dir.path().join("parts.d");
    fs::create_dir_all(parts.join("deeper")).unwrap();
    for (name, content) in [
        ("20-b", "b\n"),
        ("10-a", "a\n"),
        (".hidden", "hidden\n"),
        (".steadfast-1-2-3.dpkg-tmp", "ours\n"),
    ] {
        fs::write(parts.join(name), content).unwrap();
    }
    fs::write(dir.path().join("head"), "head\n").unwrap();
    symlink("../head", parts.join("30-link")).unwrap();
    let list = ["head", "parts.d", "head"].map(|name| dir.path().join(name).display().to_string());
    let held = file(dir.path().join("a"), &[("fragments", &list.join("\n"))]);
    made(&host, &held);
    let found = || fs::read_to_string(dir.path().join("a")).unwrap();
    assert_eq!(found(), "head\na\nb\nhead\nhead\n");
    fs::write(parts.join("15-c"), "c\n").unwrap();
    assert_eq!(made(&host, &held), ["content"]);
    assert_eq!(found(), "head\na\nc\nb\nhead\nhead\n");
    fs::remove_file(dir.path().join("head")).unwrap();
    let words = refused(&host, &held);
    assert!(words.contains("head: the file does not exist"), "{words}");
}

#[test]
fn paths_are_relative_to_the_graph_and_watched() {
    let place = Place { base: "/srv/graph".into() };
    let of = |name: &str, given: &[(&str, &str)]| build_at("file", name, given, &place).unwrap();
    let path = |path: &str, below| WatchSource::Path { path: path.into(), below };
    assert_eq!(
        of("/a", &[("source", "files/../a")]).footprint().watch,
        [path("/a", false), path("/srv/graph/a", false)]
    );
    assert_eq!(
        of("/a", &[("fragments", "one\n/two/")]).footprint().watch,
        [path("/a", false), path("/srv/graph/one", true), path("/two", true)]
    );
    assert_eq!(of("/a/", &[("purge", "true")]).footprint().watch, [path("/a", true)]);
    assert_eq!(
        of("/a/", &[("source", "tree/"), ("recurse", "true")]).footprint().watch,
        [WatchSource::Tree("/a".into()), WatchSource::Tree("/srv/graph/tree".into())]
    );
}

#[test]
fn with_replace_false_a_content_is_written_once() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let held = file(&path, &[("content", "first"), ("replace", "false"), ("mode", "0640")]);
    made(&host, &held);
    fs::write(&path, "theirs").unwrap();
    assert!(matches!(check(&host, &held), CheckResult::Same));
    chmod(&path, 0o600);
    assert_eq!(made(&host, &held), ["mode 0640"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    fs::remove_file(&path).unwrap();
    made(&host, &held);
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
}

/// Makes a script that accepts contents with `good` and logs the validated contents.
fn judge(dir: &Path) -> String {
    let script = dir.join("judge");
    let log = dir.join("log");
    let text = format!(
        "#!/bin/sh\necho \"$1 $(stat -c %a:%u \"$1\") $(ls -A \"$(dirname \"$1\")\" | wc -l)\" >> {}\n\
         grep -q good \"$1\" && exit 0\necho \"$1: line 1: $(cat \"$1\")\" >&2\nexit 3\n",
        log.display()
    );
    fs::write(&script, text).unwrap();
    chmod(&script, 0o755);
    format!("{} %s", script.display())
}

#[test]
fn content_rejected_by_validate_is_never_installed() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let validate = judge(dir.path());
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let path = home.join("a.conf");
    let of =
        |content| file(&path, &[("content", content), ("validate", &validate), ("mode", "0644")]);
    let words = refused(&host, &of("bad\n"));
    let lines: Vec<&str> = words.lines().collect();
    assert!(lines[0].ends_with("validate rejected the content: exit 3"), "{words}");
    assert_eq!(lines[1], format!("stderr: {}: line 1: bad", path.display()), "by its real name");
    assert_eq!(names(&home), [""; 0]);
    assert_eq!(made(&host, &of("good\n")), ["created"]);
    let inode = fs::metadata(&path).unwrap().ino();
    refused(&host, &of("bad again\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "good\n");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "the old file stays");
    assert_eq!(names(&home), ["a.conf"]);
    made(&host, &of("good and new\n"));
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    for line in log.lines() {
        assert!(line.contains("/a.conf 644:0 2"), "complete, with its own name: {line}");
        assert!(line.starts_with("/proc/"), "through our descriptor: {line}");
    }
    assert_eq!(log.lines().count(), 4);
    // A check runs no validation.
    fs::write(&path, "x").unwrap();
    drop(change(&host, &of("good\n")));
    assert_eq!(fs::read_to_string(dir.path().join("log")).unwrap(), log);
}

/// S-18: the path of the staged file is one argument, whatever its name is.
#[test]
fn validate_gets_one_argument_whatever_the_name() {
    let (host, dir) = (Host::default(), scratch());
    for name in ["a b", "$(touch pwned)", "-rf", "a;b", "'\"", "%s", "ünï"] {
        let path = dir.path().join(name);
        let argv = "/bin/sh\n-c\n[ $# -eq 1 ] && [ -f \"$1\" ] && grep -q x \"$1\"\nsh\n%s";
        made(&host, &file(&path, &[("content", "x"), ("validate", argv)]));
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(names(dir.path()), [""; 0]);
    let option = format!("{} --file=%s", dir.path().join("judge").display());
    fs::write(dir.path().join("judge"), "#!/bin/sh\ncase $1 in --file=/*) exit 0;; esac\nexit 1\n")
        .unwrap();
    chmod(dir.path().join("judge"), 0o755);
    made(&host, &file(dir.path().join("a"), &[("content", "x"), ("validate", &option)]));
}

#[test]
fn a_validate_that_cannot_run_or_is_cancelled_changes_nothing() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let words =
        refused(&host, &file(&path, &[("content", "x"), ("validate", "no-such-program %s")]));
    assert!(words.starts_with("validate: program \"no-such-program\" not found"), "{words}");
    let held = file(&path, &[("content", "x"), ("validate", "sh\n-c\nsleep 100\nsh\n%s")]);
    let change = change(&host, &held);
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            later.cancel();
        });
        assert_eq!(apply_with(&host, &held, change, &permit(&cancel)), Outcome::Interrupted);
    });
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn replaced_and_removed_files_are_backed_up_within_a_limit() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, kept) = (dir.path().join("a"), dir.path().join("kept"));
    let of = |content: &str| file(&path, &[("content", content), ("backup", text(&kept))]);
    fs::write(&path, "0").unwrap();
    chmod(&path, 0o4755);
    let words = refused(&host, &of("1"));
    assert!(words.contains("the directory does not exist"), "{words}");
    fs::create_dir(&kept).unwrap();
    chmod(&kept, 0o777);
    let words = refused(&host, &of("1"));
    assert!(words.contains("writable or owned by other users"), "{words}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "0", "without a copy nothing is replaced");
    chmod(&kept, 0o700);
    for number in 1..=15 {
        made(&host, &of(&number.to_string()));
    }
    let copies = names(&kept);
    assert_eq!(copies.len(), 10, "{copies:?}");
    let stem = text(&path).strip_prefix('/').unwrap().replace('/', "%");
    let mut contents = Vec::new();
    for name in &copies {
        assert!(name.starts_with(&format!("{stem}~20")), "{name}");
        assert_eq!(mode(kept.join(name)), 0o600, "a copy lends nobody's rights");
        contents.push(fs::read_to_string(kept.join(name)).unwrap());
    }
    contents.sort_by_key(|text| text.parse::<u32>().unwrap());
    assert_eq!(contents, ["5", "6", "7", "8", "9", "10", "11", "12", "13", "14"]);
    fs::write(kept.join(format!("{stem}~mine")), "x").unwrap();
    made(&host, &file(&path, &[("state", "absent"), ("backup", text(&kept))]));
    assert_eq!(names(&kept).len(), 11);
    assert!(kept.join(format!("{stem}~mine")).exists(), "what is not ours stays");
}

/// A run that fails after making its backup is repeated: the repetitions must not push out older copies.
#[test]
fn the_same_content_is_kept_once() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, kept) = (dir.path().join("a"), dir.path().join("kept"));
    fs::create_dir(&kept).unwrap();
    chmod(&kept, 0o700);
    fs::write(&path, "old").unwrap();
    let held =
        file(&path, &[("content", "new"), ("backup", text(&kept)), ("validate", "false %s")]);
    for _ in 0..20 {
        refused(&host, &held);
    }
    assert_eq!(names(&kept).len(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

/// A bind-mounted file cannot be replaced by a rename, so it is written in place, also from a source and
/// after a validation, and has the same inode afterwards.
#[test]
fn a_mounted_file_is_written_in_place_from_a_source_after_validation() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, other) = (dir.path().join("a"), dir.path().join("other"));
    let source = dir.path().join("source");
    fs::write(&path, "").unwrap();
    fs::write(&other, "a longer content than the new one").unwrap();
    fs::write(&source, "good").unwrap();
    let validate = judge(dir.path());
    mount(&["--bind", text(&other)], &path);
    let inode = fs::metadata(&path).unwrap().ino();
    let held = file(&path, &[("source", text(&source)), ("validate", &validate)]);
    let done = hold(&host, &held);
    fs::write(&source, "bad").unwrap();
    let refused = hold(&host, &held);
    let (after, found) = (fs::metadata(&path).unwrap().ino(), fs::read_to_string(&other).unwrap());
    unmount(&path);
    assert_eq!(done, Outcome::Changed(vec!["content, in place: the path is a mount point".into()]));
    assert!(matches!(refused, Outcome::Failed { touched: false, .. }), "{refused:?}");
    assert_eq!((after, found.as_str()), (inode, "good"));
    assert_eq!(names(dir.path()), ["a", "judge", "log", "other", "source"]);
}
