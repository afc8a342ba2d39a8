//! Tests of creating and repairing a file with the smallest change. The tests run as root.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use steadfast_resources::{CheckResult, Host, Outcome};
use tokio_util::sync::CancellationToken;

/// The test runs in a process of its own, because the umask belongs to the process.
#[test]
fn a_new_file_is_0644_and_a_new_directory_0755_whatever_the_umask() {
    if let Ok(dir) = std::env::var("STEADFAST_TEST_UMASK") {
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
        let host = Host::default();
        assert_eq!(made(&host, &file(format!("{dir}/a"), &[("content", "hello\n")])), ["created"]);
        assert_eq!(made(&host, &file(format!("{dir}/b/"), &[])), ["created"]);
        return;
    }
    let dir = scratch();
    let test = "held::a_new_file_is_0644_and_a_new_directory_0755_whatever_the_umask";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env("STEADFAST_TEST_UMASK", dir.path());
    assert!(command.output().unwrap().status.success());
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    assert_eq!((fs::read(&a).unwrap(), mode(&a)), (b"hello\n".to_vec(), 0o644));
    assert_eq!((b.is_dir(), mode(&b)), (true, 0o755));
    assert_eq!(names(dir.path()), ["a", "b"], "nothing else is left");
}

#[test]
fn exists_without_content_makes_an_empty_file_and_keeps_what_is_there() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    made(&host, &file(&path, &[]));
    assert_eq!(fs::read(&path).unwrap(), b"");
    fs::write(&path, "mine").unwrap();
    assert!(matches!(check(&host, &file(&path, &[])), CheckResult::Same));
}

#[test]
fn undefined_holds_attributes_only_if_it_is_there() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let held = file(&path, &[("state", "undefined"), ("mode", "0600")]);
    assert!(matches!(check(&host, &held), CheckResult::Same));
    fs::write(&path, "mine").unwrap();
    chmod(&path, 0o644);
    assert_eq!(made(&host, &held), ["mode 0600"]);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    made(&host, &held);
    assert_eq!(mode(&path), 0o600);
    let slash = file(format!("{}/", path.display()), &[("state", "undefined"), ("mode", "0700")]);
    made(&host, &slash);
    fs::remove_dir(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    assert!(refused(&host, &held).contains("link"));
    assert!(refused(&host, &slash).contains("link"));
    let below = dir.path().join("not/there");
    assert!(matches!(
        check(&host, &file(below, &[("state", "undefined"), ("mode", "0600")])),
        CheckResult::Same
    ));
}

#[test]
fn an_edit_is_put_back_and_the_attributes_stay() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let held = file(&path, &[("content", "right\n")]);
    made(&host, &held);
    chmod(&path, 0o4755);
    chown(&path, Some(12), Some(34)).unwrap();
    chmod(&path, 0o4755);
    fs::write(&path, "wrong\n").unwrap();
    chmod(&path, 0o4755);
    let change = change(&host, &held);
    assert_eq!(change.differences.len(), 1);
    assert_eq!(change.differences[0].aspect, "content");
    assert!(!change.destructive);
    let diff = change.differences[0].diff.as_deref().unwrap();
    assert!(diff.contains("-wrong\n+right\n"), "{diff}");
    assert_eq!(apply(&host, &held, change), Outcome::Changed(vec!["content".into()]));
    assert_eq!(fs::read(&path).unwrap(), b"right\n");
    assert_eq!((mode(&path), owner(&path)), (0o4755, (12, 34)));
}

#[test]
fn set_id_bits_are_not_handed_to_another_owner_undeclared() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    fs::write(&path, "x").unwrap();
    chown(&path, Some(12), Some(34)).unwrap();
    chmod(&path, 0o6755);
    made(&host, &file(&path, &[("content", "y"), ("owner", "0")]));
    assert_eq!((mode(&path), owner(&path)), (0o755, (0, 0)));
    chown(&path, Some(12), Some(34)).unwrap();
    chmod(&path, 0o6755);
    made(&host, &file(&path, &[("owner", "0")]));
    assert_eq!(mode(&path), 0o755);
    chown(&path, Some(12), Some(34)).unwrap();
    chmod(&path, 0o6755);
    // The former owner can have chosen the program: `force` allows the declared bits all the same.
    let declared = [("owner", "0"), ("mode", "06755")];
    assert!(refused(&host, &file(&path, &declared)).contains("others can have chosen"));
    made(&host, &file(&path, &[&declared[..], &[("force", "true")]].concat()));
    assert_eq!((mode(&path), owner(&path)), (0o6755, (0, 0)));
}

#[test]
fn drift_of_attributes_leaves_the_content_alone() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let given = [("content", "x"), ("mode", "0640"), ("owner", "nobody"), ("group", "root")];
    let held = file(&path, &given);
    made(&host, &held);
    let inode = fs::metadata(&path).unwrap().ino();
    assert_eq!((mode(&path), owner(&path)), (0o640, (65534, 0)));
    chmod(&path, 0o755);
    chown(&path, Some(0), Some(5)).unwrap();
    let done = made(&host, &held);
    assert_eq!(done, ["owner nobody", "group root", "mode 0640"]);
    assert_eq!((mode(&path), owner(&path)), (0o640, (65534, 0)));
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "not written anew");
}

#[test]
fn a_symbolic_mode_is_about_its_bits_only() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let held = file(&path, &[("mode", "u=rwx,g-w")]);
    made(&host, &held);
    assert_eq!(mode(&path), 0o744);
    chmod(&path, 0o667);
    made(&host, &held);
    assert_eq!(mode(&path), 0o747);
}

#[test]
fn extended_attributes_are_kept_and_rights_of_the_old_content_are_not() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    fs::write(&path, "x").unwrap();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    let get = |name: &str| {
        let mut value = vec![0; 100];
        let length = rustix::fs::getxattr(&path, name, &mut value)?;
        value.truncate(length);
        Ok::<_, rustix::io::Errno>(value)
    };
    set("user.note", b"keep me");
    set("trusted.note", b"me too");
    // cap_net_raw=ep, as setcap writes it.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    set("security.capability", &capability);
    // user::rw-, user:12:rw-, group::r--, mask::rw-, other::---
    let mut list = vec![2, 0, 0, 0];
    for (tag, bits, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 6, 12),
        (4, 4, u32::MAX),
        (0x10, 6, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        list.extend(
            tag.to_le_bytes().into_iter().chain(bits.to_le_bytes()).chain(id.to_le_bytes()),
        );
    }
    set("system.posix_acl_access", &list);
    assert_eq!(mode(&path), 0o660, "the group bits are the mask");
    made(&host, &file(&path, &[("content", "y")]));
    assert_eq!(get("user.note").unwrap(), b"keep me");
    assert_eq!(get("trusted.note").unwrap(), b"me too");
    assert_eq!(get("system.posix_acl_access").unwrap(), list);
    assert_eq!(get("security.capability"), Err(rustix::io::Errno::NODATA));
    assert_eq!(mode(&path), 0o660);
}

#[test]
fn a_link_or_an_empty_directory_in_the_place_of_a_file_is_replaced() {
    let (host, dir) = (Host::default(), scratch());
    let (path, other) = (dir.path().join("a"), dir.path().join("other"));
    fs::write(&other, "other").unwrap();
    let held = file(&path, &[("content", "x")]);
    symlink(&other, &path).unwrap();
    assert!(change(&host, &held).destructive);
    made(&host, &held);
    assert_eq!(fs::read(&other).unwrap(), b"other", "the link was not followed");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    made(&host, &held);
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn directories_with_content_are_removed_only_with_force() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let slash = format!("{}/", path.display());
    fs::create_dir_all(path.join("deep/er")).unwrap();
    fs::write(path.join("deep/er/file"), "x").unwrap();
    symlink("/etc", path.join("deep/link")).unwrap();
    assert!(refused(&host, &file(&path, &[("content", "x")])).contains("not empty"));
    assert!(refused(&host, &file(&path, &[("symlink", "/y")])).contains("not empty"));
    assert!(refused(&host, &file(&path, &[("state", "absent")])).contains("not empty"));
    let done = made(&host, &file(&path, &[("content", "x"), ("force", "true")]));
    assert_eq!(done, ["removed", "created"]);
    assert!(refused(&host, &file(&slash, &[])).contains("content"));
    assert!(refused(&host, &file(&path, &[("symlink", "/y")])).contains("content"));
    made(&host, &file(&slash, &[("force", "true")]));
    fs::remove_dir(&path).unwrap();
    let socket = UnixListener::bind(&path).unwrap();
    assert!(refused(&host, &file(&path, &[("content", "x")])).contains("socket"));
    assert!(refused(&host, &file(&slash, &[])).contains("socket"));
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    made(&host, &file(&path, &[("content", "x"), ("force", "true")]));
    drop(socket);
    assert!(std::path::Path::new("/etc/passwd").exists());
}

#[test]
fn absent() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let gone = file(&path, &[("state", "absent")]);
    assert!(matches!(check(&host, &gone), CheckResult::Same));
    let nowhere = file(dir.path().join("no/such/place"), &[("state", "absent")]);
    assert!(matches!(check(&host, &nowhere), CheckResult::Same));
    fs::write(&path, "x").unwrap();
    assert!(change(&host, &gone).destructive);
    assert_eq!(made(&host, &gone), ["removed"]);
    symlink("/etc/passwd", &path).unwrap();
    made(&host, &gone);
    fs::create_dir(&path).unwrap();
    made(&host, &gone);
    fs::create_dir_all(path.join("b/c")).unwrap();
    made(&host, &file(&path, &[("state", "absent"), ("force", "true")]));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn links() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let link = file(&path, &[("symlink", "../some where"), ("owner", "12"), ("group", "34")]);
    assert_eq!(made(&host, &link), ["symlink"]);
    assert_eq!(fs::read_link(&path).unwrap().to_str(), Some("../some where"));
    assert_eq!(owner(&path), (12, 34));
    std::os::unix::fs::lchown(&path, Some(0), Some(0)).unwrap();
    made(&host, &link);
    assert_eq!(owner(&path), (12, 34));
    let other = file(&path, &[("symlink", "/else")]);
    let change = change(&host, &other);
    assert_eq!(change.differences[0].aspect, "symlink");
    assert_eq!(change.differences[0].from, "../some where");
    apply(&host, &other, change);
    assert_eq!(owner(&path), (12, 34), "undeclared, it is kept");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    made(&host, &other);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    made(&host, &other);
    made(&host, &file(format!("{}/", path.display()), &[]));
    assert!(fs::symlink_metadata(&path).unwrap().is_dir());
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_missing_directory_is_said_and_not_made() {
    let (host, dir) = (Host::default(), scratch());
    let words = refused(&host, &file(dir.path().join("no/a"), &[("content", "x")]));
    assert!(words.contains("directory does not exist"), "{words}");
    assert!(names(dir.path()).is_empty());
    fs::write(dir.path().join("no"), "").unwrap();
    let words = refused(&host, &file(dir.path().join("no/a"), &[("content", "x")]));
    assert!(words.contains("not a directory"), "{words}");
}

#[test]
fn an_owner_that_nobody_knows_is_said() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let words = refused(&host, &file(&path, &[("owner", "no-such-user")]));
    assert_eq!(words, "the user \"no-such-user\" does not exist on this host");
    assert!(!path.exists());
}

#[test]
fn a_directory_inherits_the_group_bit_only_undeclared() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    chown(dir.path(), None, Some(34)).unwrap();
    chmod(dir.path(), 0o2755);
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    made(&host, &file(format!("{}/", a.display()), &[]));
    made(&host, &file(format!("{}/", b.display()), &[("mode", "0700"), ("owner", "12")]));
    assert_eq!((mode(&a), owner(&a)), (0o2755, (0, 34)));
    assert_eq!((mode(&b), owner(&b)), (0o700, (12, 34)));
}

/// If the premise of the check has gone, the apply checks again and does the right change.
#[test]
fn apply_looks_again_when_the_premise_moved() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let held = file(&path, &[("content", "x")]);
    let stale = change(&host, &held);
    fs::write(&path, "x").unwrap();
    assert_eq!(apply(&host, &held, stale), Outcome::Unchanged);
    fs::write(&path, "y").unwrap();
    let stale = change(&host, &held);
    fs::remove_file(&path).unwrap();
    fs::create_dir_all(path.join("full")).unwrap();
    let Outcome::Failed { failure, touched: false } = apply(&host, &held, stale) else {
        panic!("must be refused")
    };
    assert!(failure.what.contains("not empty"));
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "z").unwrap();
    chmod(&path, 0o600);
    let stale = change(&host, &held);
    chmod(&path, 0o640);
    assert!(matches!(apply(&host, &held, stale), Outcome::Changed(_)));
    assert_eq!(mode(&path), 0o640, "what it found, not what the check had seen");
}

#[test]
fn a_revoked_permit_stops_the_next_write() {
    let (host, dir) = (Host::default(), scratch());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let revoked = permit(&cancel);
    let (new, old) = (dir.path().join("new"), dir.path().join("old"));
    let full = dir.path().join("full");
    fs::write(&old, "x").unwrap();
    chmod(&old, 0o644);
    fs::create_dir_all(full.join("below")).unwrap();
    for held in [
        file(&new, &[("content", "x")]),
        file(format!("{}/", new.display()), &[]),
        file(&new, &[("symlink", "/y")]),
        file(&old, &[("content", "y")]),
        file(&old, &[("mode", "0600")]),
        file(&old, &[("owner", "12")]),
        file(&old, &[("state", "absent")]),
        file(&full, &[("state", "absent"), ("force", "true")]),
    ] {
        let change = change(&host, &held);
        assert_eq!(apply_with(&host, &held, change, &revoked), Outcome::Interrupted, "{held:?}");
    }
    assert_eq!(names(dir.path()), ["full", "old"]);
    assert!(full.join("below").exists());
    assert_eq!((fs::read(&old).unwrap(), mode(&old)), (b"x".to_vec(), 0o644));
}

/// A bind-mounted file cannot be replaced, so it is written in place, which the note says.
#[test]
fn a_bind_mounted_file_is_written_in_place() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    fs::write(&path, "").unwrap();
    fs::write(&source, "a much longer wrong content").unwrap();
    // A user may have the file open: a mode is never narrowed here.
    fs::set_permissions(&source, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    mount(&["--bind", source.to_str().unwrap()], &path);
    let held = file(&path, &[("content", "right"), ("mode", "0640")]);
    let outcome = hold(&host, &held);
    let second = hold(&host, &held);
    unmount(&path);
    let Outcome::Changed(done) = outcome else { panic!("{outcome:?}") };
    assert_eq!(done, ["content, in place: the path is a mount point"]);
    assert_eq!(second, Outcome::Unchanged);
    assert_eq!((fs::read(&source).unwrap(), mode(&source)), (b"right".to_vec(), 0o640));
    assert_eq!(names(dir.path()), ["a", "source"]);
}

/// A file of another user that root has taken over may be open: nothing is written into this inode, which a mount point
/// retains.
#[test]
fn a_bind_mounted_file_that_others_may_have_open_is_not_written() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, source) = (dir.path().join("a"), dir.path().join("source"));
    fs::write(&path, "").unwrap();
    fs::write(&source, "theirs").unwrap();
    chmod(&source, 0o600);
    chown(&source, Some(65534), Some(65534)).unwrap();
    mount(&["--bind", source.to_str().unwrap()], &path);
    let rights = [("owner", "root"), ("group", "root"), ("mode", "0600")];
    let taken = hold(&host, &file(&path, &rights));
    let mut with_content = rights.to_vec();
    with_content.push(("content", "secret"));
    let written = hold(&host, &file(&path, &with_content));
    unmount(&path);
    assert!(matches!(taken, Outcome::Changed(_)), "{taken:?}");
    let Outcome::Failed { failure, touched: false } = written else { panic!("{written:?}") };
    assert!(failure.what.contains("other users may have the file open"), "{failure:?}");
    assert_eq!(fs::read(&source).unwrap(), b"theirs");
}

/// A reader of a mounted file keeps it open: nothing that the mode denies to that user is written into it later.
#[test]
fn a_bind_mounted_file_that_was_readable_takes_no_secret() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    for (before, rights) in
        [(0o644, vec![("mode", "0600")]), (0o640, vec![("group", "daemon"), ("mode", "0640")])]
    {
        let (path, source) = (dir.path().join("a"), dir.path().join("source"));
        fs::write(&path, "").unwrap();
        fs::write(&source, "known").unwrap();
        chown(&source, Some(0), Some(65534)).unwrap();
        chmod(&source, before);
        mount(&["--bind", source.to_str().unwrap()], &path);
        let first = hold(&host, &file(&path, &rights));
        let mut with_content = rights.clone();
        with_content.push(("content", "secret"));
        let second = hold(&host, &file(&path, &with_content));
        unmount(&path);
        assert!(matches!(first, Outcome::Changed(_)), "{first:?}");
        assert!(matches!(second, Outcome::Failed { touched: false, .. }), "{second:?}");
        assert_eq!(fs::read(&source).unwrap(), b"known");
        fs::remove_file(&source).unwrap();
    }
}

/// S-19: no content is shown if the mode denies it to others or the graph declares it sensitive.
#[test]
fn secrets_only_differ() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let shown = |given: &[(&str, &str)]| {
        let held = file(&path, given);
        let change = change(&host, &held);
        let text = format!("{change:?}");
        let difference = change.differences.iter().find(|one| one.aspect == "content").cloned();
        assert_eq!(text.contains("canary"), difference.as_ref().unwrap().diff.is_some());
        assert!(!format!("{held:?}").contains("canary"));
        difference.unwrap().diff.is_some()
    };
    assert!(shown(&[("content", "new canary")]));
    assert!(!shown(&[("content", "new canary"), ("mode", "0600")]));
    assert!(!shown(&[("content", "new canary"), ("sensitive", "true")]));
    fs::write(&path, "old canary").unwrap();
    chmod(&path, 0o644);
    assert!(shown(&[("content", "new canary")]));
    assert!(!shown(&[("content", "new canary"), ("mode", "0640")]));
    chmod(&path, 0o640);
    assert!(!shown(&[("content", "new canary"), ("mode", "0644")]), "what is there is a secret");
}

#[test]
fn large_files_are_compared_to_the_last_byte() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    for size in [16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 3_000_000] {
        let content = "x".repeat(size);
        let held = file(&path, &[("content", &content)]);
        fs::write(&path, format!("{}y", "x".repeat(size - 1))).unwrap();
        made(&host, &held);
        assert_eq!(fs::metadata(&path).unwrap().len(), size as u64);
    }
}

/// F-3: on a full file system the resource fails without a change or leftovers, and converges after space is
/// free.
#[test]
fn a_full_file_system_changes_nothing() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    mount(&["-t", "tmpfs", "-o", "size=64k,mode=755", "none"], dir.path());
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    let held = file(&path, &[("content", &"x".repeat(200_000))]);
    let change = change(&host, &held);
    let outcome = apply(&host, &held, change);
    let (content, left) = (fs::read_to_string(&path).unwrap(), names(dir.path()));
    mount(&["-o", "remount,size=1m"], dir.path());
    let healed = hold(&host, &held);
    unmount(dir.path());
    let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
    assert!(failure.what.contains("no space left"), "{failure}");
    assert_eq!((content.as_str(), left), ("old", vec!["a".to_owned()]));
    assert_eq!(healed, Outcome::Changed(vec!["content".into()]));
}
