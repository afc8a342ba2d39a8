//! Access lists, extended attributes, capabilities, hard links, and validation at the final path.

use crate::support::{build, chmod, demand_root, file, made, mode, refused, scratch};
use futures_util::FutureExt as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use steadfast_resources::{After, Fields, FormerValue, Host, KindSet, Place, Value};
use tokio_util::sync::CancellationToken;

/// Returns the output of a program about a path.
fn shown(program: &str, words: &[&str], path: &Path) -> String {
    let output = Command::new(program).args(words).arg(path).output().expect("the program");
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn acl_of(path: &Path) -> String {
    shown("getfacl", &["--absolute-names", "--omit-header", "--no-effective"], path)
}

#[test]
fn an_access_list_is_held_and_removed() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let entries = "user:daemon:rwx\ngroup:adm:r--";
    let held = file(&path, &[("content", "x"), ("acl", entries)]);
    made(&host, &held);
    let list = acl_of(&path);
    assert!(list.contains("user:daemon:rwx") && list.contains("group:adm:r--"), "{list}");
    assert!(list.contains("mask::rwx") && list.contains("group::r--"), "{list}");
    // Somebody removes the list, and somebody adds an entry.
    shown("setfacl", &["--remove-all"], &path);
    made(&host, &held);
    shown("setfacl", &["--modify", "user:bin:rwx"], &path);
    assert_eq!(made(&host, &held), ["acl user:daemon:rwx,group:adm:r--"]);
    assert!(!acl_of(&path).contains("user:bin"));
    // With a declared mode, its group bits bound the rights.
    let bounded = file(&path, &[("content", "x"), ("mode", "0640"), ("acl", entries)]);
    made(&host, &bounded);
    assert_eq!(mode(&path), 0o640);
    assert!(acl_of(&path).contains("mask::r--"));
    // Without entries, the group has its own rights again.
    made(&host, &file(&path, &[("content", "x"), ("acl", "")]));
    assert_eq!((mode(&path), acl_of(&path).contains("mask")), (0o640, false));
}

#[test]
fn a_default_list_is_that_of_a_directory() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("d");
    let name = format!("{}/", path.display());
    let held = file(&name, &[("acl", "user:daemon:r-x\ndefault:user:daemon:rwx")]);
    made(&host, &held);
    fs::write(path.join("below"), "x").unwrap();
    assert!(acl_of(&path.join("below")).contains("user:daemon:rwx"));
    let wrong = build("file", "/x", &[("acl", "user:daemon:q")]).unwrap_err();
    assert!(wrong.iter().any(|it| it.field == Some("acl")), "{wrong:?}");
}

#[test]
fn capabilities_and_attributes_are_held() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("program");
    let given = [("content", "x"), ("mode", "0755"), ("capabilities", "cap_net_raw+ep")];
    let held = file(&path, &given);
    made(&host, &held);
    assert!(shown("getcap", &[], &path).contains("cap_net_raw=ep"));
    // A new content has no capabilities until the same run has given them again.
    fs::write(&path, "other").unwrap();
    made(&host, &held);
    assert!(shown("getcap", &[], &path).contains("cap_net_raw=ep"));
    made(&host, &file(&path, &[("content", "x"), ("mode", "0755"), ("capabilities", "none")]));
    assert_eq!(shown("getcap", &[], &path), "");
}

/// Undo gives back the value before, and removes what the change has added.
#[test]
fn former_values_are_restored() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    fs::write(&path, "x").unwrap();
    chmod(&path, 0o644);
    shown("setfacl", &["--modify", "user:bin:r-x"], &path);
    let former = |field: &str, before: Option<&str>, after: &str| FormerValue {
        field: field.to_owned(),
        before: before.map(ToOwned::to_owned),
        after: After::Value(after.to_owned()),
    };
    let values =
        [former("acl", None, "user:bin:r-x"), former("capabilities", Some("cap_chown=ep"), "")];
    let restore =
        KindSet::of_this_build().find("file").and_then(|spec| spec.restore).expect("a restore");
    let restoring = restore(path.to_str().unwrap(), &values).unwrap();
    made(&host, &restoring.resource);
    assert!(!acl_of(&path).contains("bin"));
    assert!(shown("getcap", &[], &path).contains("cap_chown=ep"));
    assert!(restoring.by_hand.contains("setfacl --remove-all"), "{}", restoring.by_hand);
}

#[test]
fn a_hard_link_names_the_same_file() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    fs::write(&first, "x").unwrap();
    let target = first.to_str().unwrap();
    let held = file(&second, &[("hardlink", target)]);
    made(&host, &held);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(inode(&first), inode(&second));
    // The first name gets another file, and the second one is in the way.
    fs::remove_file(&first).unwrap();
    fs::write(&first, "y").unwrap();
    assert!(refused(&host, &held).contains("another file is there"));
    made(&host, &file(&second, &[("hardlink", target), ("force", "true")]));
    assert_eq!(fs::read_to_string(&second).unwrap(), "y");
    let removal = held.footprint().removal.expect("a removal");
    let spec = KindSet::of_this_build().find("file").expect("the kind");
    made(&host, &removal.build(spec, second.to_str().unwrap()).unwrap());
    assert!(!second.exists() && first.exists());
    let wrong = build("file", "/x", &[("hardlink", "/y"), ("content", "z")]).unwrap_err();
    assert!(wrong.iter().any(|it| it.field == Some("content")), "{wrong:?}");
    fs::remove_file(&first).unwrap();
    assert!(refused(&host, &held).contains("target of the hard link does not exist"));
}

/// A new fragment is judged at its place, and nobody else sees it there before.
#[test]
fn validate_in_place_sees_the_final_path() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("new.conf");
    let script = format!("sh\n-c\ngrep -q good {0} && test -e {0}", path.display());
    let given = |content: &'static str| {
        file(&path, &[("content", content), ("validate", &script), ("in_place", "true")])
    };
    assert!(refused(&host, &given("bad")).contains("validate rejected the content"));
    assert!(!path.exists());
    made(&host, &given("good"));
    // An existing file is covered by the staged one.
    assert!(refused(&host, &given("bad")).contains("validate rejected the content"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "good");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
}

/// A hash would tell a secret: a file with a secret or private content sends none.
#[test]
fn a_file_sends_its_hash_unless_the_content_is_private() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let sent = |content: Value, mode: &str| {
        let mut fields = Fields::default();
        fields.insert("content", content);
        fields.insert("mode", Value::Text(mode.to_owned()));
        let spec = KindSet::of_this_build().find("file").expect("the kind");
        let place = Place { base: "/".into() };
        let held = spec.build_resource(path.to_str().unwrap(), fields, &place).unwrap();
        drop(crate::support::hold(&host, &held));
        let never = CancellationToken::new();
        let read = held.read_sent(&host, &never).expect("a file sends").now_or_never();
        let keys = read.unwrap().unwrap().into_iter().map(|(key, _)| key);
        keys.collect::<Vec<_>>()
    };
    let shown = Value::Text("x".to_owned());
    assert_eq!(sent(shown.clone(), "0644"), ["owner", "group", "mode", "size", "hash"]);
    assert_eq!(sent(shown, "0600"), ["owner", "group", "mode", "size"]);
    assert_eq!(sent(Value::Secret("x".into()), "0644"), ["owner", "group", "mode", "size"]);
}
