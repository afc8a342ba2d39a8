//! Recursive watches: everything below a directory, new directories included.

use crate::listener::Ears;
use std::path::Path;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;

fn planted(ears: &Ears, path: &Path) {
    ears.hub.arm(VertexId(1), vec![WatchSource::Tree(path.to_owned())]);
    ears.until(1, |heard| heard.established == 1);
}

#[test]
fn every_change_below_is_reported_at_any_depth() {
    let ears = Ears::new();
    let deep = ears.file("tree/a/b/c/file", "x");
    planted(&ears, &ears.path("tree"));
    ears.hears(1, "edited deep below", || std::fs::write(&deep, "y").expect("written"));
    ears.hears(1, "a new file deep below", || drop(ears.file("tree/a/b/new", "x")));
    ears.hears(1, "the mode of a directory deep below", || {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(ears.path("tree/a/b/c"), mode).expect("changed");
    });
    ears.hears(1, "the top itself", || {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(ears.path("tree"), mode).expect("changed");
    });
    ears.hears_nothing(1, "beside it", || drop(ears.file("beside/a", "x")));
    ears.hears_nothing(1, "our own temporary file", || {
        let own = ears.file("tree/a/b/.steadfast-1-2-3.dpkg-tmp", "new");
        std::fs::remove_file(own).expect("removed");
    });
}

/// a change in a new directory before its watch begins is not missed.
#[test]
fn directories_that_come_later_belong_to_it() {
    let ears = Ears::new();
    std::fs::create_dir(ears.path("tree")).expect("made");
    planted(&ears, &ears.path("tree"));
    for round in 0..50 {
        let name = format!("tree/new{round}/below/deep");
        let file = ears.file(&format!("{name}/file"), "x");
        ears.hears(1, "edited in a new directory", || {
            std::fs::write(&file, "y").expect("written");
        });
    }
    ears.hears(1, "a tree moved in", || {
        drop(ears.file("elsewhere/x/y/file", "x"));
        std::fs::rename(ears.path("elsewhere"), ears.path("tree/moved")).expect("moved");
    });
    ears.hears(1, "edited in what was moved in", || {
        std::fs::write(ears.path("tree/moved/x/y/file"), "y").expect("written");
    });
    ears.hears(1, "moved away", || {
        std::fs::rename(ears.path("tree/moved"), ears.path("gone")).expect("moved");
    });
    ears.hears_nothing(1, "edited in what was moved away", || {
        std::fs::write(ears.path("gone/x/y/file"), "z").expect("written");
    });
}

#[test]
fn a_tree_whose_top_comes_later_or_is_replaced() {
    let ears = Ears::new();
    planted(&ears, &ears.path("tree"));
    ears.hears(1, "its top is made", || drop(ears.file("tree/a/file", "x")));
    ears.hears(1, "edited", || std::fs::write(ears.path("tree/a/file"), "y").expect("written"));
    drop(ears.file("other/a/b/file", "x"));
    ears.hears(1, "its top is replaced", || {
        std::fs::rename(ears.path("tree"), ears.path("old")).expect("moved");
        std::fs::rename(ears.path("other"), ears.path("tree")).expect("moved");
    });
    ears.hears(1, "edited in the new one", || {
        std::fs::write(ears.path("tree/a/b/file"), "y").expect("written");
    });
    ears.hears_nothing(1, "edited in the old one", || {
        std::fs::write(ears.path("old/a/file"), "z").expect("written");
    });
}

/// A recursive watch follows no links, and a thousand replaced directories leave no watch behind.
#[test]
fn links_are_not_followed_and_no_watch_is_left_behind() {
    let ears = Ears::new();
    drop(ears.file("tree/a/b/file", "x"));
    let outside = ears.file("outside/file", "x");
    std::os::unix::fs::symlink(ears.path("outside"), ears.path("tree/link")).expect("linked");
    planted(&ears, &ears.path("tree"));
    ears.hears_nothing(1, "behind a link", || std::fs::write(&outside, "y").expect("written"));
    for _ in 0..1000 {
        std::fs::remove_dir_all(ears.path("tree/a")).expect("removed");
        drop(ears.file("tree/a/b/file", "x"));
    }
    ears.hears(1, "edited after all that", || {
        std::fs::write(ears.path("tree/a/b/file"), "y").expect("written");
    });
    // The test's own directory, the tree, and `a` and `b` in the tree.
    ears.settle();
    assert_eq!(ears.kernel_watches(), 4);
    ears.hub.disarm(VertexId(1));
    ears.settle();
    assert_eq!(ears.kernel_watches(), 0);
}

/// A wide and deep tree is watched in one turn.
#[test]
fn thousands_of_directories_are_watched() {
    let ears = Ears::new();
    for one in 0..40 {
        for other in 0..50 {
            let path = ears.path(&format!("tree/{one}/{other}"));
            std::fs::create_dir_all(path).expect("made");
        }
    }
    planted(&ears, &ears.path("tree"));
    ears.hears(1, "in the last of them", || drop(ears.file("tree/39/49/file", "x")));
}
