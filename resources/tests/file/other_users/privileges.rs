//! Set-id bits and capabilities go only to programs whose content no untrusted user can have chosen, whoever can write
//! them now. The tests run as root.

use crate::other_users::strangers::{self, STRANGER};
use crate::other_users::takeover::{prior, slash};
use crate::support::*;
use futures_util::FutureExt as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use steadfast_resources::host::files::{Fault, RestoredDirectories};
use steadfast_resources::{After, CheckRequest, CheckResult, FormerValue, Host, KindSet, Outcome};
use tokio_util::sync::CancellationToken;

const WHY: &str = "others can have chosen the program";
const CAPABILITY: &str = "security.capability";
const ROOT: [(&str, &str); 2] = [("owner", "root"), ("group", "root")];

fn apply_new(path: impl AsRef<Path>, given: &[(&str, &str)]) -> Outcome {
    hold(&Host::default(), &file(path, given))
}

fn made_new(path: impl AsRef<Path>, given: &[(&str, &str)]) {
    made(&Host::default(), &file(path, given));
}

/// Makes a program of root's that the stranger's group can write.
fn write_shared(path: &Path, mode: u32) {
    fs::write(path, "x").unwrap();
    chown(path, Some(0), Some(STRANGER)).unwrap();
    chmod(path, mode);
}

fn undo(path: &Path, mode: u32, content: Option<&str>) -> Result<Vec<&'static str>, Fault> {
    let permit = permit(&CancellationToken::new());
    let former = prior(0, mode, content);
    Host::default().files().restore(&permit, (path, &former), &mut RestoredDirectories::default())
}

/// The first run closes the file; a user can still have it open in the second run.
#[test]
fn a_program_that_others_could_write_gets_no_rights_in_a_later_run() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    for prepared in ["theirs", "shared", "listed"] {
        match prepared {
            "theirs" => strangers::write(&path, "x", 0o755),
            "shared" => write_shared(&path, 0o775),
            _ => {
                fs::write(&path, "x").unwrap();
                strangers::set(&path, strangers::ACCESS, &strangers::list());
            }
        }
        let closing = [("mode", "0755"), ("acl", "")];
        made_new(&path, &[&ROOT[..], &closing].concat());
        for right in [("mode", "04755"), ("mode", "u+s"), ("capabilities", "cap_chown=ep")] {
            let given = [&ROOT[..], &[right]].concat();
            let said = refused(&Host::default(), &file(&path, &given));
            assert!(said.contains(WHY), "{prepared}, {right:?}: {said}");
            assert_eq!((mode(&path), strangers::has(&path, CAPABILITY)), (0o755, false));
        }
        // A declared content goes into a new inode, and `force` consents.
        let declared = [("content", "x"), ("mode", "04755"), ("capabilities", "cap_chown=ep")];
        let inode = fs::metadata(&path).unwrap().ino();
        made_new(&path, &[&ROOT[..], &declared].concat());
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode, "{prepared}");
        assert_eq!((mode(&path), strangers::has(&path, CAPABILITY)), (0o4755, true));
        fs::remove_file(&path).unwrap();
    }
    strangers::write(&path, "x", 0o755);
    made_new(&path, &ROOT);
    made_new(&path, &[("mode", "04755"), ("force", "true")]);
}

/// The file changes hands and gets its capabilities in one run.
#[test]
fn a_strangers_program_gets_no_capabilities_in_one_run() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    let rights = [("mode", "0755"), ("capabilities", "cap_dac_read_search=ep")];
    for prepared in ["theirs", "shared"] {
        match prepared {
            "theirs" => strangers::write(&path, "x", 0o755),
            _ => write_shared(&path, 0o775),
        }
        let said = refused(&Host::default(), &file(&path, &[&ROOT[..], &rights].concat()));
        assert!(said.contains(WHY), "{prepared}: {said}");
        assert!(!strangers::has(&path, CAPABILITY), "{prepared}");
        fs::remove_file(&path).unwrap();
    }
    // With a declared content, the file is another one.
    strangers::write(&path, "x", 0o755);
    made_new(&path, &[&ROOT[..], &rights, &[("content", "x")]].concat());
    assert!(strangers::has(&path, CAPABILITY));
}

/// The directory was open until the first run: a user can have given this name to another program.
#[test]
fn a_program_in_a_directory_that_others_could_write_gets_no_rights_in_a_later_run() {
    demand_root();
    let dir = scratch();
    for closing in [vec![("mode", "0755")], vec![("acl", "")]] {
        let folder = dir.path().join("bin");
        fs::create_dir(&folder).unwrap();
        if let [("acl", _)] = closing.as_slice() {
            strangers::set(&folder, strangers::ACCESS, &strangers::list());
        } else {
            chown(&folder, Some(0), Some(STRANGER)).unwrap();
            chmod(&folder, 0o775);
        }
        let path = folder.join("tool");
        fs::write(&path, "x").unwrap();
        chmod(&path, 0o755);
        made_new(slash(&folder), &[("acl", ""), ("mode", "0755")]);
        for right in [("mode", "04755"), ("capabilities", "cap_chown=ep")] {
            let said = refused(&Host::default(), &file(&path, &[right]));
            assert!(said.contains(WHY), "{closing:?}, {right:?}: {said}");
        }
        made_new(&path, &[("content", "x"), ("mode", "04755")]);
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// Declared content and set-id bits in one run: the equal content goes into a new inode.
#[test]
fn set_id_bits_and_declared_content_go_into_a_new_inode() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    fs::write(&path, "x").unwrap();
    chmod(&path, 0o755);
    let inode = fs::metadata(&path).unwrap().ino();
    made_new(&path, &[("content", "x"), ("mode", "04755")]);
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(apply_new(&path, &[("content", "x"), ("mode", "04755")]), Outcome::Unchanged);
}

/// Others could write the file between the recorded change and the undo, and no mark tells it.
#[test]
fn an_undo_of_attributes_gives_no_set_id_bits() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    fs::write(&path, "x").unwrap();
    for (now, touched) in [(0o755, false), (0o700, true)] {
        chmod(&path, now);
        let fault = undo(&path, 0o4755, None).unwrap_err();
        let said = format!("{fault:?}");
        assert!(said.contains("content was not recorded") && said.contains("04755"), "{said}");
        assert_eq!((fault.touched, mode(&path)), (touched, 0o755), "the rest comes back");
    }
    // Bits that the file has stay.
    chmod(&path, 0o4700);
    undo(&path, 0o4755, None).unwrap();
    assert_eq!(mode(&path), 0o4755);
}

/// A user has written the recorded content back and keeps the file open: the undo writes another inode.
#[test]
fn an_undo_gives_set_id_bits_to_a_new_inode_with_the_recorded_content() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    fs::write(&path, "x").unwrap();
    chmod(&path, 0o755);
    let inode = fs::metadata(&path).unwrap().ino();
    undo(&path, 0o4755, Some("x")).unwrap();
    assert_eq!(mode(&path), 0o4755);
    let restored = fs::metadata(&path).unwrap().ino();
    assert_ne!(restored, inode);
    assert!(undo(&path, 0o4755, Some("x")).unwrap().is_empty(), "already in the former state");
    assert_eq!(fs::metadata(&path).unwrap().ino(), restored);
}

/// Others could write the program while it had no capabilities.
#[test]
fn an_undo_gives_no_capabilities() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("tool");
    fs::write(&path, "x").unwrap();
    chmod(&path, 0o755);
    let value = |field: &str, before: &str, after: &str| FormerValue {
        field: field.to_owned(),
        before: Some(before.to_owned()),
        after: After::Value(after.to_owned()),
    };
    let values =
        [value("xattrs", r#"{"user.a":"b"}"#, "{}"), value("capabilities", "cap_chown=ep", "")];
    let restore =
        KindSet::of_this_build().find("file").and_then(|spec| spec.restore).expect("a restore");
    let held = restore(path.to_str().unwrap(), &values).unwrap().resource;
    let host = Host::default();
    let said = failed(&host, &held);
    assert!(said.contains("content was not recorded"), "{said}");
    assert!(!strangers::has(&path, CAPABILITY));
    assert!(strangers::has(&path, "user.a"), "the rest comes back");
    // Capabilities that came back with the recorded content stay.
    strangers::set(
        &path,
        CAPABILITY,
        &[1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    let found = held.check(&host, CheckRequest::default()).now_or_never().unwrap();
    assert!(matches!(found, CheckResult::Same), "{found:?}");
}

/// A declared content with a set-id bit becomes root's in the place of a stranger's file, unless the graph declares the
/// owner: the owner of a program can change it. A file of a tree gets no such bit.
#[test]
fn a_program_with_a_set_id_bit_is_not_left_to_a_stranger() {
    demand_root();
    let dir = scratch();
    let (home, source) = (dir.path().join("home"), dir.path().join("source"));
    strangers::make_directory(&home, 0o755);
    fs::create_dir(&source).unwrap();
    fs::write(source.join("tool"), "x").unwrap();
    let path = home.join("tool");
    let of_source = source.display().to_string();
    for given in ["02755", "04755", "u=rwx,g=rxs,o=rx"] {
        strangers::write(&path, "x", 0o755);
        made_new(&path, &[("content", "x"), ("group", "shadow"), ("mode", given)]);
        assert_eq!(owner(&path), (0, 42), "{given}");
        assert_ne!(mode(&path) & 0o6000, 0, "{given}");
        strangers::write(&path, "other", 0o755);
        let tree = [("source", of_source.as_str()), ("recurse", "true"), ("group", "shadow")];
        let tree = [&tree[..], &[("mode", given), ("force", "true")]].concat();
        if given != "u=rwx,g=rxs,o=rx" {
            made_new(slash(&home), &tree);
            assert_eq!(mode(&path) & 0o6000, 0, "a tree, {given}");
            fs::remove_dir_all(&home).unwrap();
            strangers::make_directory(&home, 0o755);
        }
    }
    strangers::write(&path, "x", 0o755);
    made_new(&path, &[("content", "x"), ("owner", "nobody"), ("mode", "04755")]);
    assert_eq!(owner(&path).0, STRANGER, "as declared");
}
