//! Tests of trust (S-11): other users must not be able to change the sources that root copies and the
//! programs that validate for root.

use crate::support::*;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use steadfast_resources::Host;

const NOBODY: u32 = 65534;

/// A change of a trusted `site`, with a description.
type Breakage = (&'static str, fn(&Site));

/// A folder of root with a source, a directory of fragments, a tree and a program, all trusted.
struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        demand_root();
        let site = Self { dir: scratch() };
        fs::create_dir_all(site.path("site/deep/tree/below")).unwrap();
        for name in ["site/deep/one", "site/deep/tree/a", "site/deep/tree/below/b"] {
            fs::write(site.path(name), "content\n").unwrap();
            chmod(site.path(name), 0o644);
        }
        fs::write(site.path("site/deep/judge"), "#!/bin/sh\nexit 0\n").unwrap();
        chmod(site.path("site/deep/judge"), 0o755);
        for name in ["site", "site/deep", "site/deep/tree", "site/deep/tree/below"] {
            chmod(site.path(name), 0o755);
        }
        fs::create_dir(site.path("elsewhere")).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn give(&self, name: &str) {
        std::os::unix::fs::lchown(self.path(name), Some(NOBODY), Some(0)).unwrap();
    }

    fn open(&self, name: &str) {
        chmod(self.path(name), 0o777);
    }

    /// Makes `site/deep` a link of `owner`; its real place is trusted.
    fn by_link(&self, owner: u32) {
        fs::rename(self.path("site/deep"), self.path("elsewhere/deep")).unwrap();
        symlink(self.path("elsewhere/deep"), self.path("site/deep")).unwrap();
        std::os::unix::fs::lchown(self.path("site/deep"), Some(owner), Some(0)).unwrap();
    }

    /// Returns a file resource for one use of an untrusted path, with an owner if given.
    fn held(
        &self,
        way: &str,
        owner: Option<&str>,
    ) -> std::sync::Arc<dyn steadfast_resources::Resource> {
        let text = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let (one, tree) = (text("site/deep/one"), text("site/deep/tree"));
        let judge = format!("{}\n%s", text("site/deep/judge"));
        let tree_source = format!("{tree}/");
        let mut given = match way {
            "source" => vec![("source", one.as_str())],
            "fragments" => vec![("fragments", one.as_str())],
            "directory of fragments" => vec![("fragments", tree.as_str())],
            "tree" => vec![("source", tree_source.as_str()), ("recurse", "true")],
            _ => vec![("content", "x"), ("validate", judge.as_str())],
        };
        given.extend(owner.map(|owner| ("owner", owner)));
        let slash = if way == "tree" { "/" } else { "" };
        file(format!("{}{slash}", text("made")), &given)
    }
}

/// A use, the affected path, and the change that makes the path untrusted.
type Own = (&'static str, &'static str, fn(&Path));

const WAYS: [&str; 5] = ["source", "fragments", "directory of fragments", "tree", "validate"];

/// The changes that affect the paths of all uses.
const ON_THE_WAY: [Breakage; 6] = [
    ("a folder belongs to another user", |site| site.give("site/deep")),
    ("a folder above belongs to another user", |site| site.give("site")),
    ("all may write a folder", |site| site.open("site/deep")),
    ("all may write a folder above", |site| site.open("site")),
    ("a group may write a folder", |site| {
        chown(site.path("site"), Some(0), Some(NOBODY)).unwrap();
        chmod(site.path("site"), 0o775);
    }),
    ("a link on the way is in a folder of somebody else", |site| {
        site.by_link(0);
        site.give("site");
    }),
];

/// S-11: for every use and every untrusted part of a path, root rejects the path and names the owner.
#[test]
fn root_uses_nothing_that_others_could_change() {
    for way in WAYS {
        for (what, breaks) in ON_THE_WAY {
            let site = Site::new();
            breaks(&site);
            let words = refused(&Host::default(), &site.held(way, None));
            let told = words.contains("another user could change the file")
                || words.contains("the link can be changed by a user")
                || words.contains("the path is a link, and links are not followed");
            assert!(told, "{way}, {what}: {words}");
            assert!(!site.path("made").exists(), "{way}, {what}");
        }
    }
    let own: [Own; 6] = [
        ("source", "site/deep/one", |path| chown(path, Some(NOBODY), None).unwrap()),
        ("fragments", "site/deep/one", |path| chmod(path, 0o666)),
        ("directory of fragments", "site/deep/tree/a", |path| chmod(path, 0o666)),
        ("directory of fragments", "site/deep/tree", |path| chmod(path, 0o1777)),
        ("tree", "site/deep/tree/below", |path| chown(path, Some(NOBODY), None).unwrap()),
        ("validate", "site/deep/judge", |path| chmod(path, 0o757)),
    ];
    for (way, name, breaks) in own {
        let site = Site::new();
        breaks(&site.path(name));
        let words = failed(&Host::default(), &site.held(way, None));
        assert!(words.contains(name), "what is wrong is named: {way}: {words}");
    }
    let site = Site::new();
    chown(site.path("site/deep/tree/below/b"), Some(NOBODY), None).unwrap();
    assert!(failed(&Host::default(), &site.held("tree", None)).contains("belongs to uid 65534"));
}

/// S-11: an access list for other users counts, whatever the group bits are.
#[test]
fn an_access_list_is_seen() {
    let site = Site::new();
    let path = site.path("site/deep/one");
    assert!(made(&Host::default(), &site.held("source", None)).contains(&"created".to_owned()));
    // Version 2: the owner, user 1234, the group, the mask, others.
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 6, 1234), (4, 4, u32::MAX), (16, 6, u32::MAX), (32, 4, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    let set = rustix::fs::setxattr(&path, "system.posix_acl_access", &list, flags);
    if set == Err(rustix::io::Errno::OPNOTSUPP) {
        assert!(std::env::var_os("CI").is_none(), "this file system has no access lists");
        return;
    }
    set.unwrap();
    let words = refused(&Host::default(), &site.held("source", None));
    assert!(words.contains("is writable by others (mode"), "{words}");
}

/// S-11: trusted paths are used: sticky folders, links of root, the group of root, and paths of the copy's
/// owner.
#[test]
fn root_uses_what_only_it_or_the_owner_of_the_copy_can_change() {
    let fine: [Breakage; 4] = [
        ("all of root's", |_| {}),
        ("a sticky folder above", |site| chmod(site.path("site"), 0o1777)),
        ("a link of root's", |site| site.by_link(0)),
        ("root's group", |site| chmod(site.path("site/deep"), 0o775)),
    ];
    for way in WAYS {
        for (what, breaks) in fine {
            let site = Site::new();
            breaks(&site);
            let done = made(&Host::default(), &site.held(way, None));
            assert!(!done.is_empty() && site.path("made").exists(), "{way}, {what}");
        }
    }
    let site = Site::new();
    chown(site.path("site/deep"), Some(NOBODY), None).unwrap();
    chown(site.path("site/deep/one"), Some(NOBODY), None).unwrap();
    refused(&Host::default(), &site.held("source", None));
    made(&Host::default(), &site.held("source", Some("65534")));
    assert_eq!(owner(site.path("made")).0, NOBODY);
    // Root runs the program, whoever owns the file.
    chown(site.path("site/deep/judge"), Some(NOBODY), None).unwrap();
    fs::remove_file(site.path("made")).unwrap();
    refused(&Host::default(), &site.held("validate", Some("65534")));
}
