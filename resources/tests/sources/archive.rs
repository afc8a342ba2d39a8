//! `archive`: every format, replacement, and archives that try to leave their directory.

use crate::support::{Server, check, hold, made, refused, removed, resource, shell, sum};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use steadfast_resources::{CheckResult, Outcome, SentValue, Value};
use tempfile::tempdir;

/// A shell script that makes the tree `app-1/` with a program, a file and a link.
const TREE: &str = "mkdir -p app-1/bin app-1/etc; echo run >app-1/bin/run; chmod 755 app-1/bin/run
    echo one >app-1/etc/conf; ln -s ../etc/conf app-1/bin/conf";

fn is_clean(folder: &Path) -> bool {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().all(|name| !name.to_str().unwrap().starts_with(".steadfast"))
}

#[test]
fn every_format_is_unpacked() {
    let folder = tempdir().unwrap();
    shell(folder.path(), TREE);
    for (name, script) in [
        ("a.tar", "tar cf a.tar app-1"),
        ("a.tar.gz", "tar czf a.tar.gz app-1"),
        ("a.tar.bz2", "tar cjf a.tar.bz2 app-1"),
        ("a.tar.xz", "tar cJf a.tar.xz app-1"),
        ("a.tar.zst", "tar --zstd -cf a.tar.zst app-1"),
        ("a.zip", "zip -q -r --symlinks a.zip app-1"),
    ] {
        shell(folder.path(), script);
        let source = folder.path().join(name);
        let to = folder.path().join(format!("to-{name}"));
        let given = [("source", source.to_str().unwrap()), ("strip", "1"), ("mode", "0750")];
        let archive = resource("archive", &to, &given);
        made(&archive);
        assert_eq!(fs::read_to_string(to.join("bin/conf")).unwrap(), "one\n", "{name}");
        assert_eq!(fs::metadata(to.join("bin/run")).unwrap().mode() & 0o777, 0o755, "{name}");
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o750, "{name}");
        assert!(matches!(hold(&archive), Outcome::Unchanged), "{name}");
        removed("archive", &to, &archive);
    }
    assert!(is_clean(folder.path()));
}

#[test]
fn another_archive_replaces_the_entries_of_the_former_one() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    shell(
        folder.path(),
        &format!(
            "{TREE}\ntar czf 1.tgz app-1; rm app-1/etc/conf app-1/bin/conf; tar czf 2.tgz app-1"
        ),
    );
    let to = folder.path().join("to");
    let archive = |name: &str| {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let (url, checksum) = server.offer(&format!("/{name}"), &bytes);
        resource("archive", &to, &[("url", &url), ("checksum", &checksum)])
    };
    made(&archive("1.tgz"));
    fs::write(to.join("foreign"), "x").unwrap();
    let second = archive("2.tgz");
    let CheckResult::Differs(_) = check(&second) else { panic!("another archive") };
    assert!(to.join("app-1/etc/conf").exists(), "a check changes nothing");
    made(&second);
    assert!(!to.join("app-1/etc").join("conf").exists(), "an entry of the first archive alone");
    assert_eq!(fs::read_to_string(to.join("foreign")).unwrap(), "x", "no archive brought it");
    assert_eq!(server.heads().len(), 2);
    let creates = [("source", "/nonexistent/a.tgz"), ("creates", "app-1/bin/run")];
    assert!(matches!(hold(&resource("archive", &to, &creates)), Outcome::Unchanged));
    assert!(is_clean(folder.path()));
}

#[test]
fn foreign_content_is_never_replaced() {
    let folder = tempdir().unwrap();
    shell(folder.path(), &format!("{TREE}\ntar czf a.tgz app-1; mkdir to; echo mine >to/file"));
    let (source, to) = (folder.path().join("a.tgz"), folder.path().join("to"));
    let archive = resource("archive", &to, &[("source", source.to_str().unwrap())]);
    let said = refused(&archive);
    assert!(said.contains("no archive brought"), "{said}");
    assert_eq!(fs::read_to_string(to.join("file")).unwrap(), "mine\n");
    fs::remove_file(to.join("file")).unwrap();
    made(&archive);
}

#[test]
fn unsafe_archives_are_rejected() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("outside"), "safe").unwrap();
    for (script, expected) in [
        ("ln -s /etc/passwd x/link", "leads out"),
        ("ln -s ../../outside x/link", "leads out"),
        ("mkdir -p x/d/e; ln -s ../.. x/d/e/up; ln -s d/e/up/../outside x/link", "leads out"),
        ("mkfifo x/fifo", "a device, a socket or a FIFO"),
        (
            "printf 'a\\tb' >/dev/null; ln -s \"$(printf 'b\\t/etc/passwd')\" x/ok; ln -s /etc \"$(printf 'x/a\\tb')\"",
            "leads out",
        ),
    ] {
        shell(folder.path(), &format!("rm -rf x; mkdir x; {script}; tar -C x -cf bad.tar ."));
        let (source, to) = (folder.path().join("bad.tar"), folder.path().join("to"));
        let said = refused(&resource("archive", &to, &[("source", source.to_str().unwrap())]));
        assert!(
            said.contains("the archive is not safe") && said.contains(expected),
            "{script}: {said}"
        );
        assert!(!to.exists());
    }
    // tar itself drops set-id bits and rejects names that lead out.
    shell(
        folder.path(),
        "rm -rf x; mkdir x; echo a >x/file; chmod 6755 x/file; tar -C x -cf ok.tar .",
    );
    let (source, to) = (folder.path().join("ok.tar"), folder.path().join("plain"));
    made(&resource("archive", &to, &[("source", source.to_str().unwrap())]));
    assert_eq!(fs::metadata(to.join("file")).unwrap().mode() & 0o7777, 0o755);
    shell(
        folder.path(),
        "rm -rf x; mkdir x; echo bad >x/e; tar -C x -P --transform='s,e,../outside,' -cf bad.tar e",
    );
    let (source, to) = (folder.path().join("bad.tar"), folder.path().join("to"));
    refused(&resource("archive", &to, &[("source", source.to_str().unwrap())]));
    assert_eq!(fs::read_to_string(folder.path().join("outside")).unwrap(), "safe");
    assert!(is_clean(folder.path()));
}

#[test]
fn a_wrong_checksum_and_a_damaged_archive_change_nothing() {
    let folder = tempdir().unwrap();
    shell(folder.path(), &format!("{TREE}\ntar czf a.tgz app-1; head -c 40 a.tgz >half.tgz"));
    let to = folder.path().join("to");
    let (whole, half) = (folder.path().join("a.tgz"), folder.path().join("half.tgz"));
    let wrong = sum(b"other");
    let said = refused(&resource(
        "archive",
        &to,
        &[("source", whole.to_str().unwrap()), ("checksum", &wrong)],
    ));
    assert!(said.contains("does not have its checksum"), "{said}");
    let said = refused(&resource("archive", &to, &[("source", half.to_str().unwrap())]));
    assert!(said.contains("tar ended with code"), "{said}");
    assert!(!to.exists() && is_clean(folder.path()));
}

/// The parent is closed, and its own place can be exchanged by the owner of the directory above.
#[test]
fn a_way_that_another_user_can_change_is_refused() {
    let folder = tempdir().unwrap();
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        return;
    }
    shell(folder.path(), &format!("{TREE}\ntar cf a.tar app-1; mkdir -p theirs/inner"));
    let theirs = folder.path().join("theirs");
    std::os::unix::fs::chown(&theirs, Some(1000), Some(1000)).unwrap();
    let source = folder.path().join("a.tar");
    let to = theirs.join("inner/to");
    let what = refused(&resource("archive", &to, &[("source", source.to_str().unwrap())]));
    assert!(what.contains("another user could change"), "{what}");
    assert!(is_clean(&theirs.join("inner")) && !to.exists());
}

/// A user who owns the directory of the source leads it to a private archive of root, to a device, a FIFO, or a huge
/// sparse file. Nothing is unpacked.
#[test]
fn a_source_that_another_user_leads_elsewhere_is_refused() {
    let folder = tempdir().unwrap();
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        return;
    }
    shell(
        folder.path(),
        &format!(
            "{TREE}\nmkdir -m 700 private; mkdir theirs; tar cf private/a.tar app-1; chmod 600 private/a.tar"
        ),
    );
    let theirs = folder.path().join("theirs");
    std::os::unix::fs::chown(&theirs, Some(1000), Some(1000)).unwrap();
    let (source, to) = (theirs.join("a.tar"), folder.path().join("to"));
    for (script, expected) in [
        ("ln -s ../private/a.tar theirs/a.tar; chown -h 1000 theirs/a.tar", "is not followed"),
        ("ln -s /dev/zero theirs/a.tar; chown -h 1000 theirs/a.tar", "is not followed"),
        ("mkfifo theirs/a.tar; chown 1000 theirs/a.tar", "not a regular file"),
        ("truncate -s 30G theirs/a.tar; chown 1000 theirs/a.tar", "larger than 1 GiB"),
    ] {
        shell(folder.path(), &format!("rm -f theirs/a.tar; {script}"));
        // With `creates` the source is read for the unpacking alone.
        let checksum = sum(b"");
        let given = [
            ("source", source.to_str().unwrap()),
            ("creates", "app-1/bin/run"),
            ("checksum", &checksum),
        ];
        let said = refused(&resource("archive", &to, &given));
        assert!(said.contains(expected), "{script}: {said}");
        assert!(!to.exists() && is_clean(folder.path()), "{script}");
    }
    // The owner of the unpacked files may choose them, and not the time that it takes.
    shell(
        folder.path(),
        "rm -f theirs/a.tar; truncate -s 30G theirs/a.tar; chown 1000 theirs/a.tar",
    );
    let given =
        [("source", source.to_str().unwrap()), ("creates", "app-1/bin/run"), ("owner", "1000")];
    let said = refused(&resource("archive", &to, &given));
    assert!(said.contains("larger than 1 GiB"), "{said}");
    // A plain file of the user is unpacked if its checksum is declared, or for the user.
    shell(folder.path(), "rm theirs/a.tar; cp private/a.tar theirs/a.tar; chown 1000 theirs/a.tar");
    let given = ("source", source.to_str().unwrap());
    let said = refused(&resource("archive", &to, &[given]));
    assert!(said.contains("another user can change the archive"), "{said}");
    assert!(!to.exists() && is_clean(folder.path()));
    let checksum = sum(&fs::read(&source).unwrap());
    made(&resource("archive", &to, &[given, ("checksum", &checksum)]));
    let home = folder.path().join("home");
    made(&resource("archive", &home, &[given, ("owner", "1000")]));
    assert_eq!(fs::metadata(home.join("app-1")).unwrap().uid(), 1000);
    // A private archive of root that the user has moved there is not unpacked for the user.
    shell(folder.path(), "rm theirs/a.tar; mv private/a.tar theirs/a.tar");
    let said =
        refused(&resource("archive", &folder.path().join("other"), &[given, ("owner", "1000")]));
    assert!(said.contains("only root may read the file"), "{said}");
}

/// The checksum of a source is sent, whether it is declared or not: of the unpacked archive, and with `creates` of the
/// source.
#[test]
fn the_checksum_of_a_source_is_sent() {
    let folder = tempdir().unwrap();
    shell(folder.path(), &format!("{TREE}\ntar cf a.tar app-1"));
    let source = folder.path().join("a.tar");
    let expected = sum(&fs::read(&source).unwrap());
    let given = ("source", source.to_str().unwrap());
    for (name, more) in [
        ("plain", None),
        ("declared", Some(("checksum", expected.as_str()))),
        ("created", Some(("creates", "app-1/bin/run"))),
    ] {
        let to = folder.path().join(name);
        let all: Vec<_> = [given].into_iter().chain(more).collect();
        let archive = resource("archive", &to, &all);
        made(&archive);
        assert!(matches!(check(&archive), CheckResult::Same), "{name}");
        let sent = archive.sends().into_iter().find(|(key, _)| *key == "checksum");
        let text = SentValue::Shown(Value::Text(expected.clone()));
        assert_eq!(sent, Some(("checksum", text)), "{name}");
    }
}
