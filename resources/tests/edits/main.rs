//! Tests of the kinds that edit a part of a text file, on real files: several resources of one file, commands that
//! reject the new file, history, secrets, and files of other users.
//!
//! The tests must run as root, because some give files to another user. Reading order: `recorder.rs` (a history in
//! memory), this file, `late.rs` (text of others during an edit, and files that are mount points).

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod late;
mod recorder;
#[path = "../file/support.rs"]
#[expect(dead_code, reason = "these tests need a part of the harness")]
mod support;

use futures_util::FutureExt as _;
use recorder::Recorder;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Fields, Host, KindSet, Outcome, Place, Recorders, Resource,
    Secret, Value,
};
use support::{
    apply_with, build, change, check, hold, made, mode, permit, permit_with, refused, scratch,
};
use tokio_util::sync::CancellationToken;

fn resource(kind: &str, path: &Path, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    build(kind, path.to_str().unwrap(), given).unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

/// Checks resources of one transaction group, and applies all that differ together.
fn hold_together(host: &Host, resources: &[Arc<dyn Resource>]) -> Vec<Outcome> {
    let groups: Vec<_> =
        resources.iter().map(|it| it.footprint().grouping.expect("a group")).collect();
    assert!(groups.windows(2).all(|two| two[0].key == two[1].key), "one group");
    let unite = groups[0].unite;
    let together = unite(groups.into_iter().map(|it| it.part).collect());
    let results = together.check(host, CheckRequest::default()).now_or_never().unwrap();
    let change = |result| match result {
        CheckResult::Differs(change) => Some(change),
        CheckResult::Same => None,
        CheckResult::Unknown(failure) => panic!("{failure}"),
    };
    let changes: Vec<Option<Change>> = results.into_iter().map(change).collect();
    let permit = permit(&CancellationToken::new());
    together.apply(host, &permit, changes).now_or_never().unwrap()
}

#[test]
fn several_resources_write_one_file_once() {
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    std::fs::write(&path, b"a\xff=1\r\n[s]\r\nx=1\r\n# end").unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let before = inode(&path);
    let all = [
        resource("line", &path, &[("line", "one"), ("insert_before", "BOF")]),
        resource("ini", &path, &[("section", "s"), ("key", "x"), ("value", "2")]),
        resource("block", &path, &[("content", "b"), ("marker", "; {mark}")]),
    ];
    let done = hold_together(&host, &all);
    assert!(done.iter().all(|it| matches!(it, Outcome::Changed(_))), "{done:?}");
    let expected = b"one\r\na\xff=1\r\n[s]\r\nx=2\r\n# end\r\n; BEGIN\r\nb\r\n; END";
    assert_eq!(std::fs::read(&path).unwrap(), expected);
    assert_ne!(inode(&path), before, "written as a new file");
    for one in &all {
        assert!(matches!(check(&host, one), CheckResult::Same));
    }
}

/// A program that has opened the file before the edit writes into the replaced file: its line must not be lost. The
/// program writes as soon as it sees the new file; a busy machine may let it come too late.
#[test]
fn a_line_that_another_program_appends_meanwhile_is_kept() {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    let kept = (0..50).any(|_| {
        std::fs::write(&path, "first\n").unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let former = file.metadata().unwrap().ino();
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                while std::fs::metadata(&path).unwrap().ino() == former {
                    std::thread::yield_now();
                }
                file.write_all(b"late\n").unwrap();
            }
        });
        hold(&host, &resource("line", &path, &[("line", "own")]));
        writer.join().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(["first\nown\n", "first\nown\nlate\n"].contains(&text.as_str()), "{text}");
        text.contains("late")
    });
    assert!(kept, "the late line was lost each time");
}

/// A file in a directory that others can write loses its access list with a new content. Its group then has its own
/// rights of the list, and not those of the mask.
#[test]
fn a_lost_access_list_does_not_open_the_file_to_its_group() {
    use std::os::unix::fs::PermissionsExt as _;
    let (host, folder) = (Host::default(), scratch());
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for (kind, given) in [
        ("line", &[("line", "own")][..]),
        ("block", &[("content", "own")]),
        ("ini", &[("key", "k"), ("value", "own")]),
        ("file", &[("content", "own\n")]),
    ] {
        let path = folder.path().join(kind);
        std::fs::write(&path, "a = 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let status =
            std::process::Command::new("setfacl").args(["-m", "u:nobody:rw"]).arg(&path).status();
        assert!(status.unwrap().success(), "setfacl");
        assert_eq!(mode(&path) & 0o777, 0o660, "the mask stands in the place of the group");
        let outcome = hold(&host, &resource(kind, &path, given));
        assert!(matches!(outcome, Outcome::Changed(_)), "{kind}: {outcome:?}");
        assert_eq!(mode(&path) & 0o777, 0o600, "{kind}");
        assert!(matches!(check(&host, &resource(kind, &path, given)), CheckResult::Same), "{kind}");
    }
}

/// A file cannot be created without its directory: the check says so, and a plan with it.
#[test]
fn a_missing_directory_is_named_by_the_check() {
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("missing/f");
    let given = [("line", "own"), ("create", "true")];
    let own = build("line", path.to_str().unwrap(), &given).unwrap();
    let CheckResult::Unknown(failure) = check(&host, &own) else { panic!("no failure") };
    assert!(failure.what.contains("does not exist"), "{failure}");
    std::fs::create_dir(folder.path().join("missing")).unwrap();
    assert!(matches!(check(&host, &own), CheckResult::Differs(_)));
}

/// A program that writes in place truncates the file first. An edit in that moment must not lose its text.
#[test]
fn the_text_of_a_program_that_is_writing_is_not_lost() {
    use std::io::Write as _;
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    for pieces in [["", "first\nlast\n"], ["first", "\nlast\n"]] {
        std::fs::write(&path, "first\nown\nlast\n").unwrap();
        let own = resource("line", &path, &[("line", "own")]);
        let mut file = std::fs::File::create(&path).unwrap();
        let change = change(&host, &own);
        let writer = std::thread::spawn(move || {
            for piece in pieces {
                std::thread::sleep(std::time::Duration::from_millis(150));
                file.write_all(piece.as_bytes()).unwrap();
            }
        });
        let outcome = apply_with(&host, &own, change, &permit(&CancellationToken::new()));
        writer.join().unwrap();
        assert!(matches!(outcome, Outcome::Changed(_)), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first\nlast\nown\n", "{pieces:?}");
    }
}

#[test]
fn a_contradiction_changes_nothing() {
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    std::fs::write(&path, "x=1\n").unwrap();
    let one = resource("line", &path, &[("line", "x=2"), ("match", "^x=")]);
    let two = resource("line", &path, &[("line", "x=3"), ("match", "^x")]);
    for outcome in hold_together(&host, &[one, two]) {
        let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
        assert!(failure.what.contains("is undone by"), "{failure}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x=1\n");
}

#[test]
fn a_rejected_file_is_not_written() {
    let (host, folder) = (Host::default(), scratch());
    for (kind, given, text) in [
        ("line", &[("line", "bad")][..], "a\n"),
        ("block", &[("content", "bad")], "a\n"),
        ("ini", &[("key", "k"), ("value", "bad")], "a=1\n"),
        ("json", &[("key", "k"), ("value", "bad")], "{}"),
        ("yaml", &[("key", "k"), ("value", "bad")], "a: 1\n"),
        ("toml", &[("key", "k"), ("value", "bad")], "a = 1\n"),
    ] {
        let path = folder.path().join(kind);
        std::fs::write(&path, text).unwrap();
        let accepts = |command| {
            let validate = [("validate", command)];
            resource(kind, &path, &[given, &validate].concat())
        };
        let message = refused(&host, &accepts("grep -q good %s"));
        assert!(message.contains("validate rejected the content"), "{message}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        made(&host, &accepts("grep -q bad %s"));
    }
    let path = folder.path().join("hosts");
    std::fs::write(&path, "# c\n").unwrap();
    let given = [("path", path.to_str().unwrap()), ("ip", "::1"), ("validate", "grep -q other %s")];
    let hosts = build("hosts", "db", &given).unwrap();
    assert!(refused(&host, &hosts).contains("validate rejected the content"));
}

#[test]
fn a_missing_file_and_a_link_are_refused() {
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    assert!(refused(&host, &resource("line", &path, &[("line", "a")])).contains("does not exist"));
    let absent = resource("line", &path, &[("line", "a"), ("state", "absent")]);
    assert!(matches!(check(&host, &absent), CheckResult::Same), "absent in a missing file");
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(refused(&host, &resource("line", &path, &[("line", "a")])).contains("symbolic link"));
}

#[test]
fn the_history_has_the_whole_former_file() {
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    std::fs::write(&path, b"{\"a\": 1} // \xfe").unwrap();
    let json = resource("json", &path, &[("key", "a"), ("value", "2")]);
    let recorder = Arc::new(Recorder::default());
    let own = Recorders::One(Arc::<Recorder>::clone(&recorder));
    let permit = permit_with(&CancellationToken::new(), own);
    let done = apply_with(&host, &json, change(&host, &json), &permit);
    assert!(matches!(done, Outcome::Changed(_)), "{done:?}");
    assert_eq!(recorder.contents(&path), [Some(b"{\"a\": 1} // \xfe".to_vec())]);
}

/// Builds a resource with one secret field.
fn with_secret(kind: &str, path: &Path, given: &[(&str, &str)], field: &str) -> Arc<dyn Resource> {
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let name = |name: &str| spec.fields.iter().find(|it| it.name == name).expect("a field").name;
    let mut fields = Fields::default();
    for (key, text) in given {
        let value = if *text == "true" { Value::Bool(true) } else { Value::Text((*text).into()) };
        fields.insert(name(key), value);
    }
    fields.insert(name(field), Value::Secret(Secret::from("hunter2")));
    let place = Place { base: PathBuf::from("/") };
    spec.build_resource(path.to_str().unwrap(), fields, &place).expect("valid")
}

#[test]
fn a_secret_is_written_and_never_shown() {
    let (host, folder) = (Host::default(), scratch());
    for (kind, given, field) in [
        ("line", &[][..], "line"),
        ("block", &[], "content"),
        ("ini", &[("key", "k")], "value"),
        ("json", &[("key", "k")], "value"),
        ("yaml", &[("key", "k")], "value"),
        ("toml", &[("key", "k")], "value"),
    ] {
        let path = folder.path().join(kind);
        let secret = with_secret(kind, &path, &[given, &[("create", "true")]].concat(), field);
        let difference = change(&host, &secret);
        let shown = format!("{secret:?} {difference:?} {:?}", secret.footprint());
        assert!(!shown.contains("hunter2"), "{kind}: {shown}");
        let recorder = Arc::new(Recorder::default());
        let own = Recorders::One(Arc::<Recorder>::clone(&recorder));
        let permit = permit_with(&CancellationToken::new(), own);
        let done = apply_with(&host, &secret, difference, &permit);
        assert!(!format!("{done:?}").contains("hunter2"));
        assert_eq!(mode(&path), 0o600, "{kind}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("hunter2"), "{kind}");
        // The removal hides the secret too, and the history does not record it.
        let Some(removal) = secret.footprint().removal else { continue };
        let spec = KindSet::of_this_build().find(kind).unwrap();
        let absent = spec.build_removal(&removal, path.to_str().unwrap()).unwrap();
        support::chmod(&path, 0o644);
        let gone = change(&host, &absent);
        assert!(!format!("{gone:?}").contains("hunter2"), "{kind}: {gone:?}");
        let done = apply_with(&host, &absent, gone, &permit);
        assert!(matches!(done, Outcome::Changed(_)), "{done:?}");
        assert!(recorder.contents(&path).iter().all(Option::is_none), "{kind}");
    }
}

#[test]
fn foreign_owner_and_mode_stay() {
    support::demand_root();
    let (host, folder) = (Host::default(), scratch());
    let path = folder.path().join("f");
    std::fs::write(&path, "a\n").unwrap();
    std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
    support::chmod(&path, 0o640);
    made(&host, &resource("line", &path, &[("line", "b")]));
    assert_eq!((support::owner(&path), mode(&path)), ((1234, 4321), 0o640));
    assert!(matches!(hold(&host, &resource("line", &path, &[("line", "b")])), Outcome::Unchanged));
}

/// A user puts a file in the place of root's in a shared directory: the secret is not written into it.
#[test]
fn a_secret_is_not_written_into_a_file_that_others_put_there() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let (host, folder) = (Host::default(), scratch());
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    chown(&shared, Some(0), Some(5)).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o2775)).unwrap();
    let path = shared.join("f");
    let put = |owner: u32| {
        std::fs::write(&path, "k=1\n").unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
    };
    put(5);
    for (kind, given, field) in [("line", &[][..], "line"), ("ini", &[("key", "k")], "value")] {
        let said = refused(&host, &with_secret(kind, &path, given, field));
        assert!(said.contains("others can have put it there"), "{kind}: {said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "k=1\n");
    }
    // In a directory of that user, the file is the one that the graph means.
    chown(&shared, Some(5), Some(5)).unwrap();
    support::chmod(&path, 0o600);
    made(&host, &with_secret("line", &path, &[], "line"));
}

/// A user puts a file in the place of root's in a directory of that user: the secret is not written into it, unless the
/// graph declares the user as the owner of the file, and not into one that all users may read.
#[test]
fn a_secret_is_written_only_into_a_file_of_the_declared_owner() {
    use std::os::unix::fs::chown;
    support::demand_root();
    let (host, folder) = (Host::default(), scratch());
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(5), Some(5)).unwrap();
    let path = home.join("f");
    let put = |mode: u32| {
        std::fs::write(&path, "k: 1\n").unwrap();
        chown(&path, Some(5), Some(5)).unwrap();
        support::chmod(&path, mode);
    };
    let created = with_secret("yaml", &path, &[("key", "k"), ("create", "true")], "value");
    let edited = with_secret("yaml", &path, &[("key", "k")], "value");
    let of = |owner: &str| edited.with_file_owner(owner).expect("an edit");
    put(0o600);
    for (edit, words) in [(&created, "belongs to another user"), (&of("0"), "belongs to another")] {
        let said = refused(&host, edit);
        assert!(said.contains(words), "{said}");
    }
    put(0o644);
    for edit in [&edited, &of("5")] {
        let said = refused(&host, edit);
        assert!(said.contains("all users may read it"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "k: 1\n");
    put(0o600);
    made(&host, &created.with_file_owner("5").expect("an edit"));
    assert!(std::fs::read_to_string(&path).unwrap().contains("hunter2"));
    assert_eq!((support::owner(&path), mode(&path)), ((5, 5), 0o600));
}

/// A secret is written into no file that all users may read, whoever owns it, nor into one that a stranger can have put
/// into a sticky directory.
#[test]
fn a_secret_is_written_only_into_a_closed_file() {
    use std::os::unix::fs::chown;
    support::demand_root();
    let (host, folder) = (Host::default(), scratch());
    let own = folder.path().join("own");
    std::fs::write(&own, "k: 1\n").unwrap();
    support::chmod(&own, 0o644);
    let edit = |path: &Path| with_secret("yaml", path, &[("key", "k")], "value");
    assert!(refused(&host, &edit(&own)).contains("all users may read it"));
    support::chmod(&own, 0o640);
    made(&host, &edit(&own));
    let sticky = folder.path().join("sticky");
    std::fs::create_dir(&sticky).unwrap();
    support::chmod(&sticky, 0o1777);
    let theirs = sticky.join("f");
    std::fs::write(&theirs, "k: 1\n").unwrap();
    chown(&theirs, Some(5), Some(5)).unwrap();
    support::chmod(&theirs, 0o600);
    assert!(refused(&host, &edit(&theirs)).contains("others can have put it there"));
    // The group of a user in the directory of that user.
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(5), Some(5)).unwrap();
    let grouped = home.join("f");
    std::fs::write(&grouped, "k: 1\n").unwrap();
    chown(&grouped, Some(0), Some(5)).unwrap();
    support::chmod(&grouped, 0o640);
    assert!(refused(&host, &edit(&grouped)).contains("the group of another user"));
}
