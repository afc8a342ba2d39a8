//! Text that another program writes into a file during its edit, and edits of files that are mount points.

use crate::resource;
use crate::support::{apply_with, build, change, hold, mount, permit, scratch};
use std::path::Path;
use steadfast_resources::{Host, Outcome};
use tokio_util::sync::CancellationToken;

/// Applies `line: own` to a file while `late` runs as soon as the file was replaced, with the descriptor of the
/// replaced file. Returns the outcome.
fn edit_beside(path: &Path, late: impl FnOnce(&mut std::fs::File) + Send + 'static) -> Outcome {
    use std::os::unix::fs::MetadataExt as _;
    let (host, own) = (Host::default(), resource("line", path, &[("line", "own")]));
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let (former, watched) = (file.metadata().unwrap().ino(), path.to_owned());
    let change = change(&host, &own);
    let writer = std::thread::spawn(move || {
        while std::fs::metadata(&watched).is_ok_and(|it| it.ino() == former) {
            std::thread::yield_now();
        }
        late(&mut file);
    });
    let outcome = apply_with(&host, &own, change, &permit(&CancellationToken::new()));
    writer.join().unwrap();
    outcome
}

/// Late lines come to the end of the file as it is then, once; what cannot be merged is a failure after a change, so
/// that the notification stays owed. The busy machine may let the writer come too late: then nothing is late.
#[test]
fn late_lines_are_merged_or_reported() {
    use std::io::Write as _;
    let folder = scratch();
    let path = folder.path().join("f");
    let (mut merged, mut reported) = (false, false);
    for _ in 0..30 {
        std::fs::write(&path, "first\n").unwrap();
        let new = path.clone();
        let outcome = edit_beside(&path, move |former| {
            former.write_all(b"late\n").unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).open(&new).unwrap();
            file.write_all(b"new\n").unwrap();
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("first\nown\n") && text.matches("late").count() <= 1, "{text}");
        assert!(matches!(outcome, Outcome::Changed(_) | Outcome::Failed { touched: true, .. }));
        merged |= text.contains("late\n") && text.contains("new\n");
        // Both files are written anew: one of the texts is lost.
        std::fs::write(&path, "first\n").unwrap();
        let new = path.clone();
        let outcome = edit_beside(&path, move |former| {
            former.set_len(0).unwrap();
            former.write_all(b"other\n").unwrap();
            std::fs::write(&new, "newer\n").unwrap();
        });
        reported |= matches!(outcome, Outcome::Failed { touched: true, .. });
        if merged && reported {
            return;
        }
    }
    panic!("merged: {merged}, reported: {reported}");
}

/// Late lines come only into a file with the rights of the replaced one: a user could rename a program of root, or a
/// new file of root, to the name.
#[test]
fn late_lines_stay_out_of_files_with_other_rights() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = scratch();
    let (path, other) = (folder.path().join("f"), folder.path().join("other"));
    let mut refused = false;
    for (mode, closes) in [(0o4755, false), (0o600, false), (0o644, true)].repeat(10) {
        std::fs::write(&path, "first\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&other, "program\n").unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(mode)).unwrap();
        let (name, program) = (path.clone(), other.clone());
        let outcome = edit_beside(&path, move |former| {
            if closes {
                former.set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
            } else {
                std::fs::rename(&program, &name).unwrap();
            }
            former.write_all(b"late\n").unwrap();
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("late"), "{mode:o}: {text}");
        refused |= matches!(outcome, Outcome::Failed { touched: true, .. });
    }
    assert!(refused, "the late lines came too late each time");
}

/// Late lines in a large file: the second read must not wait for the memory that the first one holds.
#[test]
fn late_lines_of_a_large_file_do_not_block_the_edit() {
    use std::io::Write as _;
    let folder = scratch();
    let path = folder.path().join("f");
    let text = "a line of some length\n".repeat(150_000);
    let mut merged = false;
    for _ in 0..5 {
        std::fs::write(&path, &text).unwrap();
        let outcome = edit_beside(&path, |former| former.write_all(b"late\n").unwrap());
        assert!(matches!(outcome, Outcome::Changed(_)), "{outcome:?}");
        merged |= std::fs::read_to_string(&path).unwrap().ends_with("own\nlate\n");
    }
    assert!(merged, "the late line came too late each time");
}

/// In a directory that others can write, late lines are lost with a report: a user could put another file of root's at
/// the name for the moment. So is text beyond the limit.
#[test]
fn late_lines_that_may_not_come_in_are_reported() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    for (mode, late, why) in [
        (0o777, "late\n".to_owned(), "other users can swap the file"),
        (0o755, "late\n".repeat(1 << 20), "the text exceeds 4 MiB"),
    ] {
        let folder = scratch();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let path = folder.path().join("f");
        let mut reported = false;
        for _ in 0..10 {
            std::fs::write(&path, "first\n").unwrap();
            let late = late.clone();
            let outcome =
                edit_beside(&path, move |former| former.write_all(late.as_bytes()).unwrap());
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text == "first\nown\n" || text.contains("late\nown"), "{}", text.len());
            if let Outcome::Failed { failure, touched: true } = outcome {
                assert!(failure.what.contains(why), "{failure}");
                reported = true;
            }
        }
        assert!(reported, "{why}: the late text came too late each time");
    }
}

/// A file that is a mount point can only be written in place. An interruption would leave a part of it, and lines that
/// others append meanwhile would be lost: edits are refused.
#[test]
fn edits_of_a_mounted_file_are_refused() {
    let (host, folder) = (Host::default(), scratch());
    with_own_mounts();
    for (kind, given, text) in [
        ("line", &[("line", "own")][..], "first\n"),
        ("ini", &[("key", "k"), ("value", "own")], "a = 1\n"),
        ("yaml", &[("key", "b"), ("value", "2")], "a: 1\n"),
    ] {
        let (path, real) = (folder.path().join(kind), folder.path().join(format!("{kind}.real")));
        std::fs::write(&real, text).unwrap();
        std::fs::write(&path, "").unwrap();
        mount(&["--bind", real.to_str().unwrap()], &path);
        let outcome = hold(&host, &resource(kind, &path, given));
        let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
        assert!(failure.what.contains("the path is a mount point"), "{failure}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{kind}");
    }
}

/// A write in place that finds no room changes nothing: the rest of the old content would be lost.
#[test]
fn a_mounted_file_on_a_full_file_system_stays_whole() {
    let (host, folder) = (Host::default(), scratch());
    with_own_mounts();
    let (disk, path) = (folder.path().join("disk"), folder.path().join("f"));
    std::fs::create_dir(&disk).unwrap();
    mount(&["-t", "tmpfs", "-o", "size=256k", "none"], &disk);
    let text = "a line of others\n".repeat(5000);
    std::fs::write(disk.join("real"), &text).unwrap();
    drop(std::fs::write(disk.join("filler"), vec![b'x'; 1 << 20]));
    std::fs::write(&path, "").unwrap();
    mount(&["--bind", disk.join("real").to_str().unwrap()], &path);
    let content = "long".repeat(2000) + &text;
    let own = build("file", path.to_str().unwrap(), &[("content", &content)]).unwrap();
    let outcome = hold(&host, &own);
    let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
    assert!(failure.what.contains("reserve room") && failure.passes, "{failure}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    std::fs::remove_file(disk.join("filler")).unwrap();
    assert!(matches!(hold(&host, &own), Outcome::Changed(_)));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
}

/// A user who had a file open keeps it open if the file is written in place: the program closes no such file, and gives
/// it no set-id bits.
#[test]
fn a_mounted_file_is_not_closed_and_gets_no_set_id_bits() {
    use std::os::unix::fs::PermissionsExt as _;
    let (host, folder) = (Host::default(), scratch());
    with_own_mounts();
    let (path, real) = (folder.path().join("f"), folder.path().join("real"));
    for (found, wanted, why) in [
        (0o666, "0755", "other users may have the file open"),
        (0o644, "0600", "other users may have the file open"),
        (0o755, "04755", "set-id bits go to new files only"),
    ] {
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(found)).unwrap();
        std::fs::write(&path, "").unwrap();
        mount(&["--bind", real.to_str().unwrap()], &path);
        let given = [("content", "new"), ("mode", wanted), ("sensitive", "false")];
        let own = build("file", path.to_str().unwrap(), &given).unwrap();
        let outcome = hold(&host, &own);
        let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
        assert!(failure.what.contains(why), "{failure}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        crate::support::unmount(&path);
    }
}

/// Makes mounts of this thread invisible to others.
fn with_own_mounts() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
    mount(&["--make-rprivate"], Path::new("/"));
}
