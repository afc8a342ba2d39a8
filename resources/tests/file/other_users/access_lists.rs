//! An access list that is taken away leaves the same marks as a mode: others can have moved objects into the
//! directory, and can have the file open. The tests run as root.

use crate::other_users::strangers::{self, ACCESS, STRANGER};
use crate::other_users::takeover::slash;
use crate::support::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use steadfast_resources::{After, FormerValue, Host, KindSet, Outcome};

/// Makes a directory of root's where the stranger has all rights by an access list.
fn listed_directory(path: &Path) {
    fs::create_dir(path).unwrap();
    strangers::set(path, ACCESS, &strangers::list());
    chmod(path, 0o775);
}

fn private_file(path: PathBuf) -> PathBuf {
    fs::write(&path, "root's").unwrap();
    chmod(&path, 0o600);
    path
}

/// Takes the list away by an undo.
fn undo_list(path: &Path) {
    let former = FormerValue {
        field: "acl".to_owned(),
        before: None,
        after: After::Value("user:65534:rwx".to_owned()),
    };
    let restore =
        KindSet::of_this_build().find("file").and_then(|spec| spec.restore).expect("a restore");
    made(&Host::default(), &restore(path.to_str().unwrap(), &[former]).unwrap().resource);
}

#[test]
fn a_private_file_in_a_directory_that_an_access_list_opened_stays_private() {
    demand_root();
    let dir = scratch();
    for closing in ["acl", "undo", "chmod"] {
        let folder = dir.path().join(closing);
        listed_directory(&folder);
        let path = private_file(folder.join("stolen"));
        match closing {
            "acl" => drop(made(&Host::default(), &file(slash(&folder), &[("acl", "")]))),
            "undo" => undo_list(&folder),
            _ => drop(made(&Host::default(), &file(slash(&folder), &[("mode", "0755")]))),
        }
        let said = refused(&Host::default(), &file(&path, &[("mode", "0644")]));
        assert!(said.contains("only root may read the file"), "{closing}: {said}");
    }
    // A list that only reads opens nothing to moves.
    let folder = dir.path().join("read");
    fs::create_dir(&folder).unwrap();
    let path = private_file(folder.join("own"));
    made(&Host::default(), &file(slash(&folder), &[("acl", "user:nobody:r-x")]));
    made(&Host::default(), &file(slash(&folder), &[("acl", "")]));
    made(&Host::default(), &file(&path, &[("mode", "0644")]));
}

#[test]
fn a_private_directory_in_a_directory_that_an_access_list_opened_is_neither_opened_nor_purged() {
    demand_root();
    let dir = scratch();
    let folder = dir.path().join("d");
    listed_directory(&folder);
    let stolen = folder.join("stolen");
    fs::create_dir(&stolen).unwrap();
    fs::write(stolen.join("key"), "x").unwrap();
    chmod(&stolen, 0o700);
    made(&Host::default(), &file(slash(&folder), &[("acl", "")]));
    for given in
        [[("recurse", "true"), ("mode", "u=rwX,go=rX")], [("recurse", "true"), ("purge", "true")]]
    {
        let outcome = hold(&Host::default(), &file(slash(&stolen), &given));
        assert!(matches!(outcome, Outcome::Failed { .. }), "{given:?}: {outcome:?}");
        assert!(mode(&stolen) == 0o700 && stolen.join("key").exists(), "{given:?}");
    }
}

/// The content is equal; the user who loses the right to write has the file open.
#[test]
fn a_content_that_an_access_list_opened_goes_into_a_new_inode() {
    demand_root();
    let dir = scratch();
    let path = dir.path().join("conf");
    let content = ("content", "conf");
    for runs in [vec![vec![content, ("acl", "")]], vec![vec![("acl", "")], vec![content]]] {
        fs::write(&path, "conf").unwrap();
        strangers::set(&path, ACCESS, &strangers::list());
        chmod(&path, 0o664);
        let inode = fs::metadata(&path).unwrap().ino();
        let mut open = fs::File::options().append(true).open(&path).unwrap();
        for given in &runs {
            made(&Host::default(), &file(&path, given));
        }
        open.write_all(b" evil").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "conf", "{runs:?}");
        assert!(!strangers::has(&path, ACCESS), "{runs:?}");
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
    }
    // An entry more takes nothing, and neither does a list that only reads.
    for (before, after) in
        [("user:nobody:rw-", "user:nobody:rw-\nuser:games:rw-"), ("user:nobody:r--", "")]
    {
        fs::write(&path, "conf").unwrap();
        made(&Host::default(), &file(&path, &[content, ("acl", before)]));
        let inode = fs::metadata(&path).unwrap().ino();
        made(&Host::default(), &file(&path, &[content, ("acl", after)]));
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "{before} to {after}");
    }
    chown(&path, Some(0), Some(STRANGER)).unwrap();
    chmod(&path, 0o664);
    let inode = fs::metadata(&path).unwrap().ino();
    made(&Host::default(), &file(&path, &[content, ("acl", "user:games:rw-\nmask::r--")]));
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode, "a mask takes the right of the group");
}
