//! Symbolic links inside a path and at its end.

use crate::listener::Ears;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn edit(path: &Path) {
    fs::write(path, "edited").expect("written");
}

fn point(link: &Path, target: &str) {
    let new = link.with_extension("new");
    symlink(target, &new).expect("linked");
    fs::rename(new, link).expect("renamed");
}

#[test]
fn a_linked_component_is_followed_and_its_change_noticed() {
    let ears = Ears::new();
    let (one, two) = (ears.file("one/file", "1"), ears.file("deep/two/file", "2"));
    let link = ears.path("current");
    symlink("one", &link).expect("linked");
    ears.watch(1, &ears.path("current/file"));
    ears.hears(1, "edited where it leads", || edit(&one));
    ears.hears(1, "pointed elsewhere", || point(&link, "deep/two"));
    ears.settle();
    ears.hears_nothing(1, "edited where it led", || edit(&one));
    ears.hears(1, "edited where it leads now", || edit(&two));
    ears.hears(1, "what it leads through is moved", || {
        fs::rename(ears.path("deep"), ears.path("deeper")).expect("moved");
    });
    ears.hears(1, "pointed after it", || {
        point(&link, ears.path("deeper/two").to_str().expect("text"));
    });
    ears.settle();
    ears.hears(1, "edited", || edit(&ears.path("deeper/two/file")));
    ears.hears(1, "removed", || fs::remove_file(&link).expect("removed"));
    ears.hears(1, "a directory in its place", || drop(ears.file("current/file", "3")));
    ears.settle();
    ears.hears(1, "edited", || edit(&ears.path("current/file")));
    ears.settle();
    assert_eq!(ears.kernel_watches(), 2);
}

#[test]
fn a_link_at_the_end_is_followed_too() {
    let ears = Ears::new();
    let target = ears.file("targets/a", "1");
    ears.file("targets/b", "2");
    fs::create_dir(ears.path("links")).expect("made");
    let link = ears.path("links/link");
    symlink("../targets/a", &link).expect("linked");
    ears.watch(1, &link);
    ears.hears(1, "the target edited", || edit(&target));
    ears.hears(1, "pointed elsewhere", || point(&link, "../targets/b"));
    ears.settle();
    ears.hears_nothing(1, "the old target edited", || edit(&target));
    ears.hears(1, "the new target edited", || edit(&ears.path("targets/b")));
    ears.hears(1, "a link to a link", || {
        symlink("a", ears.path("targets/c")).expect("linked");
        point(&link, "../targets/c");
    });
    ears.settle();
    ears.hears(1, "through both", || edit(&target));
    ears.hears(1, "to what is missing", || point(&link, "../nowhere/at/all"));
    ears.settle();
    ears.hears(1, "it appears", || drop(ears.file("nowhere/at/all", "3")));
    ears.hears(1, "a file", || {
        fs::remove_file(&link).expect("removed");
        edit(&link);
    });
    ears.settle();
    ears.hears_nothing(1, "nowhere", || edit(&ears.path("nowhere/at/all")));
    assert_eq!(ears.kernel_watches(), 2);
}

/// Cycles of links, at the end of a path and inside, neither hang nor leak watches.
#[test]
fn rings_lead_nowhere() {
    let ears = Ears::new();
    symlink("b", ears.path("a")).expect("linked");
    symlink("c", ears.path("b")).expect("linked");
    symlink("a", ears.path("c")).expect("linked");
    symlink("self", ears.path("self")).expect("linked");
    ears.watch(1, &ears.path("a"));
    ears.watch(2, &ears.path("self/below"));
    ears.watch(3, &ears.path("self"));
    ears.hears(1, "touched in the ring", || point(&ears.path("b"), "elsewhere"));
    ears.hears(2, "resolved", || {
        fs::remove_file(ears.path("self")).expect("removed");
        ears.file("self/below", "x");
    });
    for vertex in [1, 2, 3] {
        ears.hub.disarm(steadfast_engine::VertexId(vertex));
    }
    ears.settle();
    ears.settle();
    assert_eq!(ears.kernel_watches(), 0);
}

/// Two names of one directory, by a link and by a bind mount, share one kernel watch. Both vertices get events, also
/// after one name is gone. Root only.
#[test]
fn two_names_for_one_directory() {
    let ears = Ears::new();
    let path = ears.file("real/file", "x");
    symlink("real", ears.path("link")).expect("linked");
    fs::create_dir(ears.path("bound")).expect("made");
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new(arguments[0]).args(&arguments[1..]).status();
        assert!(status.expect("runs").success(), "this test needs root: {arguments:?}");
    };
    let (real, bound) = (ears.path("real"), ears.path("bound").display().to_string());
    mount(&["mount", "--bind", real.to_str().expect("text"), &bound]);
    ears.watch(1, &path);
    ears.watch(2, &ears.path("link/file"));
    ears.watch(3, &ears.path("bound/file"));
    assert_eq!(ears.kernel_watches(), 2);
    for vertex in [1, 2, 3] {
        ears.hears(vertex, "edited", || edit(&path));
    }
    for gone in [1, 3] {
        ears.hub.disarm(steadfast_engine::VertexId(gone));
        ears.settle();
        ears.hears(2, "edited after another name went", || edit(&path));
    }
    mount(&["umount", &bound]);
    ears.hears(2, "edited after the mount went", || edit(&path));
}
