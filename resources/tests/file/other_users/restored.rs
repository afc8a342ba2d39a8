//! The directories to which an undo returns objects. The tests run as root.

use crate::other_users::strangers::STRANGER;
use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{
    Enclosure, Host, NotRecorded, PriorContent, PriorEntry, PriorShape, PriorState,
};
use tokio_util::sync::CancellationToken;

/// Another untrusted user, games.
const OTHER: u32 = 5;

fn make_directory(path: &Path, (uid, mode): (u32, u32)) {
    fs::create_dir(path).unwrap();
    chown(path, Some(uid), Some(uid)).unwrap();
    chmod(path, mode);
}

/// Another user gives the name of a private directory to an open one while the undo goes on.
#[test]
fn a_content_returns_only_below_the_directory_that_closed_it() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let (private, path) = (home.join("private"), home.join("private/f"));
    make_directory(&private, (OTHER, 0o700));
    let enclosure = Some(Enclosure { uid: OTHER, gid: OTHER, mode: 0o700 });
    let entry = |shape, mode| PriorEntry {
        shape,
        mode,
        uid: OTHER,
        gid: OTHER,
        extended: Vec::new(),
        enclosure: if mode == 0o700 { None } else { enclosure },
    };
    let folder = PriorState::Thing(entry(PriorShape::Directory, 0o700));
    let content = || PriorShape::File(1, PriorContent::Bytes(b"x".into()));
    let file = PriorState::Thing(entry(content(), 0o644));
    let permit = permit(&CancellationToken::new());
    let restore = |restored: &mut RestoredDirectories, path: &Path, former: &PriorState| {
        host.files().restore(&permit, (path, former), restored).map_err(|it| format!("{it:?}"))
    };
    let swap = |mode| {
        fs::rename(&private, home.join("aside")).unwrap();
        make_directory(&private, (STRANGER, mode));
    };
    let swap_back = || {
        fs::remove_dir(&private).unwrap();
        fs::rename(home.join("aside"), &private).unwrap();
    };
    for mode in [0o755, 0o700] {
        swap(mode);
        let words = restore(&mut RestoredDirectories::default(), &path, &file).unwrap_err();
        assert!(words.contains("closed it to others") && names(&private).is_empty(), "{words}");
        swap_back();
    }
    restore(&mut RestoredDirectories::default(), &path, &file).unwrap();
    assert_eq!((mode(&path), owner(&path).0), (0o644, OTHER));
    fs::remove_dir_all(&private).unwrap();
    // The undo makes the directory; an entry without a record of it returns into this directory alone.
    let public = PriorState::Thing(PriorEntry { enclosure: None, ..entry(content(), 0o644) });
    let mut restored = RestoredDirectories::default();
    restore(&mut restored, &private, &folder).unwrap();
    swap(0o755);
    let words = restore(&mut restored, &path, &public).unwrap_err();
    assert!(words.contains("has taken the place") && names(&private).is_empty(), "{words}");
    swap_back();
    restore(&mut restored, &path, &public).unwrap();
}

/// Another user gives the name of a declared private directory to an open one before a file below is made.
#[test]
fn a_file_is_made_only_below_the_declared_directory_that_is_closed() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let private = home.join("private");
    let directory = file(
        crate::other_users::takeover::slash(&private),
        &[("owner", "games"), ("mode", "0700")],
    );
    let closed = directory.footprint().closed_directory.unwrap();
    assert!(file("/srv/open/", &[("mode", "0711")]).footprint().closed_directory.is_none());
    let below = |name: &str, given: &[(&str, &str)]| {
        let path = private.join(name);
        file(path, given).with_closed_directory(closed.clone()).unwrap()
    };
    made(&host, &directory);
    let content = below("f", &[("content", "x"), ("mode", "0644")]);
    let below_it = [&content, &below("folder/", &[]), &below("l", &[("symlink", "/nowhere")])];
    fs::rename(&private, home.join("aside")).unwrap();
    for mode in [0o755, 0o700] {
        make_directory(&private, (STRANGER, mode));
        for work in below_it {
            let words = refused(&host, work);
            assert!(words.contains("is not the declared one") && names(&private).is_empty());
        }
        fs::remove_dir(&private).unwrap();
    }
    fs::rename(home.join("aside"), &private).unwrap();
    for work in below_it {
        made(&host, work);
    }
    // Nobody else can have put this directory there.
    let own = dir.path().join("own");
    make_directory(&own, (0, 0o755));
    let directory = file(crate::other_users::takeover::slash(&own), &[("mode", "0700")]);
    let directory = directory.footprint().closed_directory;
    let content = file(own.join("f"), &[("content", "x")]);
    made(&host, &content.with_closed_directory(directory.unwrap()).unwrap());
}

/// An undo gives a set-id bit back only together with the recorded content: nobody knows who has written the present
/// one.
#[test]
fn a_set_id_bit_returns_only_with_the_recorded_content() {
    const SHADOW: u32 = 42;
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    chmod(dir.path(), 0o755);
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let permit = permit(&CancellationToken::new());
    let recorded = || PriorContent::Bytes(b"recorded".into());
    for (above, (uid, gid), (now, before), content) in [
        (dir.path(), (0, 0), (0o755, 0o4755), None),
        (dir.path(), (STRANGER, STRANGER), (0o755, 0o4755), None),
        (dir.path(), (0, OTHER), (0o775, 0o4775), None),
        (dir.path(), (STRANGER, SHADOW), (0o755, 0o2755), None),
        (&home, (0, 0), (0o755, 0o4755), None),
        (&home, (OTHER, OTHER), (0o755, 0o4755), None),
        (dir.path(), (0, 0), (0o755, 0o4755), Some(recorded())),
        (dir.path(), (STRANGER, STRANGER), (0o755, 0o4755), Some(recorded())),
        (&home, (0, 0), (0o755, 0o4755), Some(recorded())),
    ] {
        let path = above.join("tool");
        fs::write(&path, "x").unwrap();
        chown(&path, Some(uid), Some(gid)).unwrap();
        chmod(&path, now);
        let is_restored = content.is_some();
        let content = content.unwrap_or(PriorContent::NotRecorded(NotRecorded::Same));
        let former = PriorState::Thing(PriorEntry {
            shape: PriorShape::File(1, content),
            mode: before,
            uid,
            gid,
            extended: Vec::new(),
            enclosure: None,
        });
        let done =
            host.files().restore(&permit, (&path, &former), &mut RestoredDirectories::default());
        assert_eq!(done.is_ok(), is_restored, "{uid} {gid} {before:o}: {done:?}");
        assert_eq!(mode(&path), if is_restored { before } else { now });
        let there = fs::read_to_string(&path).unwrap();
        assert_eq!(there, if is_restored { "recorded" } else { "x" });
        fs::remove_file(&path).unwrap();
    }
}

/// A closed directory without a declared owner is root's: nothing is made below one of a stranger's, unless the graph
/// declares that user as the owner of the object.
#[test]
fn a_file_is_made_below_no_closed_directory_of_a_stranger() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let private = home.join("private");
    let directory = file(crate::other_users::takeover::slash(&private), &[("mode", "0700")]);
    let closed = directory.footprint().closed_directory.unwrap();
    make_directory(&private, (STRANGER, 0o700));
    let below = |given: &[(&str, &str)]| {
        file(private.join("f"), given).with_closed_directory(closed.clone()).unwrap()
    };
    let words = refused(&host, &below(&[("content", "x"), ("mode", "0644")]));
    assert!(words.contains("is not the declared one") && names(&private).is_empty(), "{words}");
    made(&host, &below(&[("content", "x"), ("owner", "nobody")]));
    // Nobody else can have put a directory into one of root's.
    let service = dir.path().join("service");
    make_directory(&service, (STRANGER, 0o700));
    let directory = file(crate::other_users::takeover::slash(&service), &[("mode", "0700")]);
    let closed = directory.footprint().closed_directory.unwrap();
    let content = file(service.join("f"), &[("content", "x")]);
    made(&host, &content.with_closed_directory(closed).unwrap());
}
