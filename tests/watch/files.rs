//! Changes of a watched file itself.

use crate::listener::Ears;
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;

/// F-7: each sort of file change is reported, with either backend.
#[test]
fn every_change_of_a_file_is_heard() {
    every_change_is_heard(&Ears::new());
    every_change_is_heard(&Ears::through_notify());
}

fn every_change_is_heard(ears: &Ears) {
    let path = ears.file("etc/motd", "welcome");
    ears.watch(1, &path);
    ears.hears(1, "edited", || std::fs::write(&path, "moved").expect("written"));
    ears.hears(1, "appended", || {
        let mut file = OpenOptions::new().append(true).open(&path).expect("opened");
        file.write_all(b"more").expect("written");
    });
    ears.hears(1, "truncated", || {
        OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(1)).expect("cut");
    });
    ears.hears(1, "chmod", || {
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
    });
    ears.hears(1, "chown", || std::os::unix::fs::chown(&path, Some(1), Some(1)).expect("changed"));
    ears.hears(1, "replaced", || {
        let new = ears.file("etc/motd.new", "other");
        std::fs::rename(new, &path).expect("renamed");
    });
    ears.hears(1, "edited after it was replaced", || std::fs::write(&path, "x").expect("written"));
    ears.hears(1, "deleted", || std::fs::remove_file(&path).expect("removed"));
    ears.hears(1, "made again", || drop(File::create(&path).expect("made")));
    ears.hears(1, "moved away", || std::fs::rename(&path, ears.path("gone")).expect("moved"));
    ears.hears(1, "a directory in its place", || std::fs::create_dir(&path).expect("made"));
    ears.hears(1, "chmod of the directory", || {
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("changed");
    });
    ears.hears(1, "removed", || std::fs::remove_dir(&path).expect("removed"));
    ears.hears(1, "hard link in its place", || {
        std::fs::hard_link(ears.path("gone"), &path).expect("linked");
    });
}

/// E-20: a change of a source file is reported as such, through links too, and is not mistaken for the echo of a
/// write to its receiver.
#[test]
fn supplied_and_held_files_are_told_apart() {
    for ears in [Ears::new(), Ears::through_notify()] {
        let (own, secret) = (ears.file("etc/conf", "held"), ears.file("keys/v1", "one"));
        let named = ears.path("secret");
        std::os::unix::fs::symlink("keys/v1", &named).expect("linked");
        let sources =
            vec![WatchSource::Path { path: own.clone(), below: false }, WatchSource::Supply(named)];
        ears.hub.arm(VertexId(1), sources);
        ears.until(1, |heard| heard.established == 1);
        std::fs::write(&secret, "two").expect("written");
        ears.until(1, |heard| heard.supplied > 0);
        assert_eq!(ears.heard(1).changed, 0, "it is not its own");
        std::fs::write(&own, "moved").expect("written");
        ears.until(1, |heard| heard.changed > 0);
    }
}

/// A-loop: the daemon's reads cause no event; neither do neighbours or its own temporary names.
#[test]
fn reading_and_neighbours_are_not_heard() {
    let ears = Ears::new();
    let path = ears.file("etc/motd", "welcome");
    ears.watch(1, &path);
    let below = WatchSource::Path { path: ears.path("etc"), below: true };
    ears.hub.arm(VertexId(2), vec![below]);
    ears.until(2, |heard| heard.established == 1);
    for vertex in [1, 2] {
        ears.hears_nothing(vertex, "reading", || {
            for _ in 0..100 {
                std::fs::read(&path).expect("read");
                std::fs::symlink_metadata(&path).expect("there");
                assert_eq!(std::fs::read_dir(ears.path("etc")).expect("listed").count(), 1);
                drop(OpenOptions::new().read(true).open(&path).expect("opened"));
            }
        });
        ears.hears_nothing(vertex, "our own temporary file", || {
            let own = ears.file("etc/.steadfast-1234.dpkg-tmp", "new");
            std::fs::remove_file(own).expect("removed");
        });
        ears.hears_nothing(vertex, "elsewhere", || drop(ears.file("elsewhere", "x")));
    }
    ears.hears_nothing(1, "a neighbour", || drop(ears.file("etc/neighbour", "x")));
    ears.hears(2, "an entry below", || drop(ears.file("etc/other", "x")));
    ears.hears(2, "an entry below is gone", || {
        std::fs::remove_file(ears.path("etc/other")).expect("removed");
    });
    ears.hears(2, "the directory's own mode", || {
        std::fs::set_permissions(ears.path("etc"), Permissions::from_mode(0o700)).expect("changed");
    });
}

#[test]
fn many_vertices_on_one_path_and_one_vertex_on_many() {
    let ears = Ears::new();
    let path = ears.file("shared", "x");
    for vertex in 0..200 {
        ears.watch(vertex, &path);
    }
    let watches = ears.kernel_watches();
    assert_eq!(watches, 1, "one directory is one watch");
    ears.settle();
    std::fs::write(&path, "y").expect("written");
    for vertex in 0..200 {
        ears.until(vertex, |heard| heard.news() > 0);
    }
    let many =
        (0..10).map(|n| WatchSource::Path { path: ears.path(&format!("m{n}")), below: false });
    ears.hub.arm(VertexId(500), many.collect());
    ears.until(500, |heard| heard.established == 1);
    for n in 0..10 {
        ears.hears(500, "one of many", || drop(ears.file(&format!("m{n}"), "x")));
    }
    // Half of the vertices are disarmed; the others still get events.
    for vertex in 0..100 {
        ears.hub.disarm(VertexId(vertex));
    }
    ears.hears(150, "after others left", || std::fs::write(&path, "z").expect("written"));
    ears.hears_nothing(50, "after it left", || std::fs::write(&path, "z").expect("written"));
}

/// F-8 (of the hub): a disarmed vertex leaves no kernel watch and no table entry behind, also behind links.
#[test]
fn disarming_gives_everything_back() {
    let ears = Ears::new();
    std::os::unix::fs::symlink("b/real", ears.path("link")).expect("linked");
    for round in 0..20 {
        for vertex in 0..50 {
            let path = ears.file(&format!("a/{vertex}/f"), "x");
            ears.arm(vertex, &path);
        }
        ears.file("b/real/deep/file", "x");
        std::os::unix::fs::symlink("deep/file", ears.path("b/real/entry")).unwrap_or_default();
        ears.arm(50, &ears.path("link/entry"));
        ears.arm(51, &ears.path("missing/way/file"));
        for vertex in 0..52 {
            ears.until(vertex, |heard| heard.established == round + 1);
        }
        assert_eq!(ears.kernel_watches(), 1 + 1 + 50 + 3);
        for vertex in 0..52 {
            ears.hub.disarm(VertexId(vertex));
        }
        ears.settle();
        ears.settle();
        assert_eq!(ears.kernel_watches(), 0, "round {round}");
    }
    ears.unsettle();
    let empty = format!("{:?}", ears.hub);
    let sentinel = "Hub { vertices: 0, ";
    assert!(empty.starts_with(sentinel), "{empty}");
}

/// A vertex that is armed again has only its new sources.
#[test]
fn arming_again_replaces() {
    let ears = Ears::new();
    let (old, new) = (ears.file("old", "x"), ears.file("new", "x"));
    ears.watch(1, &old);
    ears.arm(1, &new);
    ears.until(1, |heard| heard.established == 2);
    ears.hears_nothing(1, "the old one", || std::fs::write(&old, "y").expect("written"));
    ears.hears(1, "the new one", || std::fs::write(&new, "y").expect("written"));
}
