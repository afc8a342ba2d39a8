//! `fetch`: downloads, checksums, credentials and failures.

use crate::support::{Server, check, hold, made, refused, removed, resource, shell, sum};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use steadfast_resources::{CheckResult, Outcome};
use tempfile::tempdir;

#[test]
fn a_file_is_downloaded_once_and_replaced_when_its_checksum_changes() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let path = folder.path().join("app");
    let (url, first) = server.offer("/app", b"one");
    let fetch = resource("fetch", &path, &[("url", &url), ("checksum", &first), ("mode", "0640")]);
    let CheckResult::Differs(change) = check(&fetch) else { panic!("the file is missing") };
    assert!(change.creates && !path.exists(), "a check changes nothing");
    made(&fetch);
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert!(matches!(hold(&fetch), Outcome::Unchanged));
    assert_eq!(server.heads().len(), 1, "a check downloads nothing");
    fs::write(&path, "broken").unwrap();
    made(&fetch);
    assert_eq!(fs::read(&path).unwrap(), b"one");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    made(&fetch);
    assert_eq!(server.heads().len(), 2, "a mode is set without a download");
    let (url, second) = server.offer("/app", b"two");
    made(&resource("fetch", &path, &[("url", &url), ("checksum", &second)]));
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640, "an undeclared mode stays");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside");
    removed("fetch", &path, &fetch);
}

#[test]
fn files_and_redirections_are_downloaded() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let (_, checksum) = server.offer("/app", b"one");
    let path = folder.path().join("moved");
    let url = format!("{}/moved/app", server.address);
    made(&resource("fetch", &path, &[("url", &url), ("checksum", &checksum)]));
    let source = folder.path().join("source file");
    fs::write(&source, "local").unwrap();
    let url = format!("file://{}", source.display()).replace(' ', "%20");
    let path = folder.path().join("copy");
    made(&resource("fetch", &path, &[("url", &url), ("checksum", &sum(b"local"))]));
    assert_eq!(fs::read(&path).unwrap(), b"local");
    // Another user could put a file of root there, which would then be copied for all.
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", theirs.join("file")).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    let url = format!("file://{}/file", theirs.display());
    let path = folder.path().join("stolen");
    let why = refused(&resource("fetch", &path, &[("url", &url), ("checksum", &sum(b"local"))]));
    assert!(why.contains("cannot read"), "{why}");
    assert!(!path.exists());
}

/// Another user has written the file with the right checksum, and keeps it open.
#[test]
fn a_file_of_another_user_is_not_adopted() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    assert_eq!(fs::metadata(folder.path()).unwrap().uid(), 0, "this test must run as root");
    let path = folder.path().join("app");
    let (url, checksum) = server.offer("/app", b"one");
    let root = [("owner", "root"), ("group", "root"), ("mode", "0755")];
    let given = [&[("url", url.as_str()), ("checksum", &checksum)][..], &root].concat();
    let fetch = resource("fetch", &path, &given);
    for prepared in ["theirs", "shared", "marked"] {
        fs::write(&path, b"one").unwrap();
        let (uid, mode) = if prepared == "shared" { (0, 0o775) } else { (65534, 0o755) };
        std::os::unix::fs::chown(&path, Some(uid), Some(65534)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut open = fs::File::options().append(true).open(&path).unwrap();
        if prepared == "marked" {
            made(&resource("file", &path, &root));
        }
        made(&fetch);
        open.write_all(b" evil").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one", "{prepared}");
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.uid(), there.gid(), there.mode() & 0o7777), (0, 0, 0o755), "{prepared}");
        fs::remove_file(&path).unwrap();
    }
    // A file of the declared owner stays.
    fs::write(&path, b"one").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    made(&fetch);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

/// The run writes the set-id bits with the verified content, so that no user can exchange the file in between.
#[test]
fn a_new_program_with_set_id_bits_in_a_directory_of_a_user() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    assert_eq!(fs::metadata(folder.path()).unwrap().uid(), 0, "this test must run as root");
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    let (url, checksum) = server.offer("/app", b"one");
    for (mode, wanted) in [("04755", 0o4755), ("u=rwxs,go=rx", 0o4755), ("0644", 0o644)] {
        let path = theirs.join("app");
        let root = [("owner", "root"), ("group", "root"), ("mode", mode)];
        let given = [&[("url", url.as_str()), ("checksum", &checksum)][..], &root].concat();
        let fetch = resource("fetch", &path, &given);
        made(&fetch);
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.uid(), there.mode() & 0o7777), (0, wanted), "{mode}");
        assert!(matches!(hold(&fetch), Outcome::Unchanged));
        fs::remove_file(&path).unwrap();
    }
    // The set-id bits of a file that a user made are not taken over.
    let path = theirs.join("app");
    fs::write(&path, b"other").unwrap();
    std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    let root = [("owner", "root"), ("group", "root"), ("mode", "go+r")];
    made(&resource(
        "fetch",
        &path,
        &[&[("url", url.as_str()), ("checksum", &checksum)][..], &root].concat(),
    ));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}

/// A user who owns the directory puts a huge sparse file at the path, which is not read for its sum.
#[test]
fn a_huge_file_of_another_user_is_not_read() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        return;
    }
    let (url, checksum) = server.offer("/app", b"one");
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    shell(&theirs, "truncate -s 8T app");
    let given = [("url", url.as_str()), ("checksum", &checksum)];
    let said = refused(&resource("fetch", &theirs.join("app"), &given));
    assert!(said.contains("it is larger than 1 GiB"), "{said}");
}

#[test]
fn credentials_reach_the_server_and_no_argument() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let (url, checksum) = server.offer("/app", b"one");
    let path = folder.path().join("a");
    let given = [
        ("url", url.as_str()),
        ("checksum", &checksum),
        ("username", "me"),
        ("password", "secret:p\"w\\"),
    ];
    let fetch = resource("fetch", &path, &given);
    assert!(!format!("{fetch:?}").contains("p\\\"w"), "{fetch:?}");
    made(&fetch);
    // The base64 of me:p"w\ by another program.
    let expected = shell(folder.path(), r#"printf '%s' 'me:p"w\' | base64"#);
    let head = server.heads().pop().unwrap();
    assert!(head.contains(&format!("Authorization: Basic {expected}")), "{head}");
    let path = folder.path().join("b");
    let given = [("url", url.as_str()), ("checksum", &checksum), ("token", "secret:abc")];
    made(&resource("fetch", &path, &given));
    let head = server.heads().pop().unwrap();
    assert!(head.contains("Authorization: Bearer abc"), "{head}");
}

#[test]
fn a_failed_download_changes_nothing() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    let (url, _) = server.offer("/app", b"one");
    let path = folder.path().join("app");
    fs::write(&path, "old").unwrap();
    let wrong = sum(b"other");
    let fetch = |url: &str, more: &[(&'static str, &'static str)]| {
        let given = [("url", url), ("checksum", wrong.as_str())].into_iter();
        resource("fetch", &path, &given.chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let said = refused(&fetch(&url, &[]));
    assert!(said.contains("does not have its checksum") && said.contains(&sum(b"one")), "{said}");
    let said = refused(&fetch(&format!("{}/missing?token=x", server.address), &[]));
    assert!(said.contains("404") && !said.contains("token=x"), "{said}");
    let said = refused(&fetch("http://127.0.0.1:1/app", &[]));
    assert!(said.contains("cannot download"), "{said}");
    let said = refused(&fetch(&format!("{}/hangs", server.address), &[("timeout", "1")]));
    assert!(said.contains("too slow"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let said = refused(&fetch(&url, &[]));
    assert!(said.contains("not a regular file"), "{said}");
}

/// A file of another user at the path gets no download that is closed to others, and no set-id bits, as its own.
#[test]
fn a_guarded_download_becomes_roots() {
    let (server, folder) = (Server::start(), tempdir().unwrap());
    assert_eq!(fs::metadata(folder.path()).unwrap().uid(), 0, "this test must run as root");
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    let path = theirs.join("app");
    let (url, checksum) = server.offer("/app", b"one");
    for (mode, content, owner) in
        [("0600", "", 0), ("0640", "one", 0), ("02755", "one", 0), ("0644", "", 65534)]
    {
        fs::write(&path, content).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        let given = [("url", url.as_str()), ("checksum", &checksum), ("mode", mode)];
        let fetch = resource("fetch", &path, &given);
        made(&fetch);
        let there = fs::metadata(&path).unwrap();
        assert_eq!(there.uid(), owner, "{mode}");
        assert!(owner != 0 || there.gid() == 0, "{mode}");
        assert_eq!(fs::read(&path).unwrap(), b"one", "{mode}");
        assert!(matches!(hold(&fetch), Outcome::Unchanged), "{mode}");
        fs::remove_file(&path).unwrap();
    }
}
