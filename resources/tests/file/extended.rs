//! Access lists, extended attributes, capabilities, hard links, and validation at the final path.

use crate::support::{
    build, chmod, demand_root, failed, file, made, mode, permit, refused, scratch,
};
use futures_util::FutureExt as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{
    After, CheckRequest, CheckResult, Fields, FormerValue, Host, KindSet, Outcome, Place,
    PriorEntry, PriorShape, PriorState, Value,
};
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
    // That user can have the file open for writing: the content goes into a new inode.
    assert_eq!(made(&host, &held), ["acl user:daemon:rwx,group:adm:r--", "content"]);
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

/// An entry that the mask had closed is removed before the mode opens the mask: the user never gets its rights.
#[test]
fn a_masked_entry_is_removed_before_the_mode_changes() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    for content in [None, Some("new")] {
        let path = dir.path().join("a");
        fs::write(&path, "private").unwrap();
        shown("setfacl", &["--modify", "user:daemon:rw"], &path);
        chmod(&path, 0o600);
        let mut given = vec![("mode", "0660"), ("acl", "user:bin:rw-")];
        given.extend(content.map(|content| ("content", content)));
        let done = made(&host, &file(&path, &given));
        assert_eq!(done.first().map(String::as_str), Some("acl of undeclared accounts closed"));
        let list = acl_of(&path);
        assert!(list.contains("user:bin:rw-") && !list.contains("user:daemon"), "{list}");
        assert_eq!(mode(&path), 0o660);
        fs::remove_file(&path).unwrap();
    }
}

/// An undo gives back the mask and the rights of the group, which decide what the entries allow.
#[test]
fn an_undo_of_a_list_restores_its_mask() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    fs::write(&path, "private").unwrap();
    chmod(&path, 0o640);
    shown("setfacl", &["--modify", "user:bin:rw"], &path);
    let former = FormerValue {
        field: "acl".to_owned(),
        before: Some("user:daemon:rw-,group::r--,mask::---".to_owned()),
        after: After::Value("user:bin:rw-".to_owned()),
    };
    let restore = KindSet::of_this_build().find("file").and_then(|spec| spec.restore).unwrap();
    made(&host, &restore(path.to_str().unwrap(), &[former]).unwrap().resource);
    let list = acl_of(&path);
    assert!(list.contains("user:daemon:rw-") && !list.contains("user:bin"), "{list}");
    assert!(list.contains("mask::---") && list.contains("group::r--"), "{list}");
    assert_eq!(mode(&path), 0o600, "the mask is the mode of the group");
    let wrong = build("file", "/x", &[("acl", "group::rwx")]).unwrap_err();
    assert!(wrong.iter().any(|it| it.field == Some("acl")), "{wrong:?}");
}

/// With a list, the group bits of a mode are the mask: an undo sets the list together with them.
#[test]
fn an_undo_of_a_mode_sets_the_list_of_before() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("d");
    fs::create_dir(&path).unwrap();
    shown("setfacl", &["--modify", "user:bin:rwx,group::---,mask::rwx"], &path);
    let recorded = acl_of(&path);
    assert_eq!(mode(&path), 0o775);
    let mut list = vec![0; 1000];
    let length = rustix::fs::getxattr(&path, "system.posix_acl_access", &mut list[..]).unwrap();
    list.truncate(length);
    let former = PriorState::Thing(PriorEntry {
        shape: PriorShape::Directory,
        mode: 0o775,
        uid: 0,
        gid: 0,
        extended: vec![(b"system.posix_acl_access".to_vec(), list)],
        enclosure: None,
    });
    shown("setfacl", &["--remove-all"], &path);
    chmod(&path, 0o700);
    let cancel = CancellationToken::new();
    let mut restored = RestoredDirectories::default();
    let done = host.files().restore(&permit(&cancel), (&path, &former), &mut restored);
    assert_eq!(done.ok(), Some(vec!["mode"]));
    assert_eq!(acl_of(&path), recorded);
}

/// A new directory with a declared list has no rights of an inherited one at any time; one without a declared list
/// inherits.
#[test]
fn a_new_directory_with_a_list_inherits_none() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    shown("setfacl", &["--default", "--modify", "user:daemon:rwx"], dir.path());
    for (name, fields, inherits) in [
        ("plain", vec![("mode", "0750")], true),
        ("listed", vec![("mode", "0770"), ("acl", "user:bin:rwx")], false),
    ] {
        let path = dir.path().join(name);
        let given: Vec<(&str, &str)> = fields;
        made(&host, &file(format!("{}/", path.display()), &given));
        let list = acl_of(&path);
        assert_eq!(list.contains("user:daemon"), inherits, "{name}: {list}");
    }
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
    // Capabilities do not come back: the content of the program was not recorded.
    assert!(failed(&host, &restoring.resource).contains("content was not recorded"));
    assert!(!acl_of(&path).contains("bin"));
    assert_eq!(shown("getcap", &[], &path), "");
    assert!(restoring.by_hand.contains("setfacl --remove-all"), "{}", restoring.by_hand);
}

/// The undo of a creation removes the file first.
#[test]
fn former_values_of_an_absent_object_are_restored() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("a");
    let value = |field: &str, after: &str| FormerValue {
        field: field.to_owned(),
        before: None,
        after: After::Value(after.to_owned()),
    };
    let values = [
        value("acl", "user:bin:r-x"),
        value("xattrs", r#"{"user.origin":"x"}"#),
        value("capabilities", "cap_chown=ep"),
    ];
    let restore =
        KindSet::of_this_build().find("file").and_then(|spec| spec.restore).expect("a restore");
    let restoring = restore(path.to_str().unwrap(), &values).unwrap();
    let found = restoring.resource.check(&host, CheckRequest::default()).now_or_never().unwrap();
    assert!(matches!(found, CheckResult::Same), "{found:?}");
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
    made(&host, &spec.build_removal(&removal, second.to_str().unwrap()).unwrap());
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

/// An edit with a secret sends no hash of its file, and says so at the load.
#[test]
fn an_edit_sends_no_hash_with_a_secret() {
    let (host, dir) = (Host::default(), scratch());
    let path = dir.path().join("lines");
    fs::write(&path, "a\n").unwrap();
    let line = |value: Value| {
        let mut fields = Fields::default();
        fields.insert("path", Value::Text(path.to_str().unwrap().to_owned()));
        fields.insert("line", value);
        let spec = KindSet::of_this_build().find("line").expect("the kind");
        spec.build_resource("one", fields, &Place { base: "/".into() }).unwrap()
    };
    let never = CancellationToken::new();
    let keys = |held: &std::sync::Arc<dyn steadfast_resources::Resource>| {
        let read = held.read_sent(&host, &never).expect("an edit sends").now_or_never();
        read.unwrap().unwrap().into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let shown = line(Value::Text("a".to_owned()));
    assert_eq!((keys(&shown), shown.sends_key("hash")), (vec!["path", "hash"], true));
    let secret = line(Value::Secret("a".into()));
    assert_eq!((keys(&secret), secret.sends_key("hash")), (vec!["path"], false));
}

/// A directory of another user has no validation in place: that user could lead the mounts to other places.
#[test]
fn validate_in_place_needs_directories_of_root() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    let path = theirs.join("new.conf");
    let fields = [("content", "x"), ("validate", "true"), ("in_place", "true")];
    let why = refused(&host, &file(&path, &fields));
    assert!(why.contains("another user could change"), "{why}");
    assert!(!path.exists());
}

/// A link at the final path is not followed, and the command cannot write into the staged file.
#[test]
fn validate_in_place_follows_no_link() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (path, victim) = (dir.path().join("own.conf"), dir.path().join("victim"));
    fs::write(&victim, "safe").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    let script = format!(
        "sh\n-c\ngrep -q good {0}; echo bad >{0}; grep -q safe {1}",
        path.display(),
        victim.display()
    );
    let fields = |force| {
        [("content", "good"), ("validate", script.as_str()), ("in_place", "true"), ("force", force)]
    };
    made(&host, &file(&path, &fields("true")));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "safe");
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    // The file exists now: the staged one covers it, read-only.
    fs::write(&path, "drift").unwrap();
    made(&host, &file(&path, &fields("false")));
    assert_eq!(fs::read_to_string(&path).unwrap(), "good");
}

/// One run judges all changed fragments together: two that need each other are accepted, and a bad one stops both.
#[test]
fn fragments_with_one_command_are_validated_together() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (folder, runs) = (dir.path().join("conf.d"), dir.path().join("runs"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("old.conf"), "old").unwrap();
    let script = format!(
        "echo run >>{runs}\ncd {folder}\ncat *.conf | grep -q bad && {{ cat *.conf >&2; exit 3; }}\n\
         test \"$(cat a.conf b.conf old.conf sub/c.conf)\" = a1b1new",
        runs = runs.display(),
        folder = folder.display()
    );
    let command = format!("sh\n-c\n{}", script.replace('\n', ";").replace(";;", ";"));
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/c.conf"), "").unwrap();
    let given = |name: &str, content: &'static str| {
        let fields = [("content", content), ("validate", &command), ("in_place", "true")];
        file(folder.join(name), &fields)
    };
    let apply = |contents: [(&str, &'static str); 3]| {
        let groups: Vec<_> = contents
            .map(|(name, content)| given(name, content).footprint().grouping.expect("a group"))
            .into();
        assert!(groups.windows(2).all(|two| two[0].key == two[1].key), "one group");
        let unite = groups[0].unite;
        let together = unite(groups.into_iter().map(|it| it.part).collect());
        let results = together.check(&host, CheckRequest::default()).now_or_never().unwrap();
        let changes = results.into_iter().map(|result| match result {
            CheckResult::Differs(change) => Some(change),
            CheckResult::Same => None,
            CheckResult::Unknown(failure) => panic!("{failure}"),
        });
        let permit = permit(&CancellationToken::new());
        together.apply(&host, &permit, changes.collect()).now_or_never().unwrap()
    };
    let done = apply([("a.conf", "a1"), ("b.conf", "bad"), ("old.conf", "new")]);
    for outcome in &done {
        let Outcome::Failed { failure, touched: false } = outcome else { panic!("{outcome:?}") };
        assert!(failure.what.contains("validate rejected the content: exit 3"), "{failure}");
    }
    assert!(!folder.join("a.conf").exists() && !folder.join("b.conf").exists());
    assert_eq!(fs::read_to_string(folder.join("old.conf")).unwrap(), "old");
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n", "one run for all");
    let done = apply([("a.conf", "a1"), ("b.conf", "b1"), ("old.conf", "new")]);
    assert!(done.iter().all(|it| matches!(it, Outcome::Changed(_))), "{done:?}");
    assert_eq!(fs::read_to_string(folder.join("old.conf")).unwrap(), "new");
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\nrun\n");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "nothing is left behind");
    // A file that is as declared has no part in the run, and is judged where it stands.
    let done = apply([("a.conf", "a1"), ("b.conf", "bad"), ("old.conf", "new")]);
    assert!(matches!(done[1], Outcome::Failed { .. }), "{done:?}");
    assert_eq!(fs::read_to_string(folder.join("b.conf")).unwrap(), "b1");
}
