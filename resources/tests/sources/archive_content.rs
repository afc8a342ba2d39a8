//! `archive`: the content of the directory is compared and repaired, and the first unpacking can be undone.

use crate::support::{check, failed, hold, made, refused, resource, shell};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{
    After, CheckResult, FormerValue, KindSet, Outcome, Resource, WatchSource,
};
use tempfile::{TempDir, tempdir};

/// A folder with the archive `a.tgz` and the directory `to`, which is unpacked from it.
struct Unpacked {
    folder: TempDir,
    archive: Arc<dyn Resource>,
}

impl Unpacked {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        shell(
            folder.path(),
            "mkdir -p app/bin app/etc; echo run >app/bin/run; chmod 755 app/bin/run
             echo one >app/etc/conf; echo two >app/etc/other; ln -s ../etc/conf app/bin/conf
             tar czf a.tgz app",
        );
        let archive = declared(folder.path());
        made(&archive);
        Self { folder, archive }
    }

    fn to(&self, below: &str) -> PathBuf {
        self.folder.path().join("to").join(below)
    }

    /// Returns the directory as unpacked from this archive for the user 1000.
    fn of_user(&self, name: &str) -> Arc<dyn Resource> {
        let source = self.folder.path().join(name);
        let given = [("source", source.to_str().unwrap()), ("strip", "1"), ("owner", "1000")];
        resource("archive", &self.folder.path().join("to"), &given)
    }

    /// Runs a script in the unpacked directory.
    fn change(&self, script: &str) {
        shell(&self.to(""), script);
    }

    /// Returns the found value of the only difference, the content.
    fn difference(&self) -> String {
        match check(&self.archive) {
            CheckResult::Differs(change) => {
                assert_eq!(change.differences.len(), 1, "{:?}", change.differences);
                assert_eq!(change.differences[0].aspect, "content");
                change.differences[0].from.clone()
            }
            other => panic!("expected a difference, found {other:?}"),
        }
    }

    /// Undoes the first unpacking: the result of the check, or of the apply.
    fn undo(&self) -> Outcome {
        let identity =
            format!("archive[{}]", self.to("").display().to_string().trim_end_matches('/'));
        let undone = KindSet::of_this_build().restoring(&identity, &[value(None)]).unwrap();
        assert!(undone.by_hand.starts_with("rm -r "), "{}", undone.by_hand);
        hold(&undone.resource)
    }
}

fn declared(folder: &Path) -> Arc<dyn Resource> {
    let source = folder.join("a.tgz");
    let given = [("source", source.to_str().unwrap()), ("strip", "1")];
    resource("archive", &folder.join("to"), &given)
}

fn value(before: Option<&str>) -> FormerValue {
    let before = before.map(str::to_owned);
    FormerValue { field: "archive".to_owned(), before, after: After::Value("new".to_owned()) }
}

#[test]
fn each_changed_entry_is_repaired_alone() {
    let unpacked = Unpacked::new();
    for (script, expected) in [
        ("echo bad >etc/conf", "changed: etc/conf"),
        ("echo bad >etc/conf; touch -r bin/run etc/conf", "changed: etc/conf"),
        ("rm bin/run", "changed: bin/run"),
        ("rm -r etc", "changed: etc"),
        ("chmod 700 bin/run", "changed: bin/run"),
        ("chmod 700 etc", "changed: etc"),
        ("ln -sf other bin/conf", "changed: bin/conf"),
        ("rm bin/conf; echo x >bin/conf", "changed: bin/conf"),
        ("rm -r bin; echo x >bin", "changed: bin"),
        ("rm etc/conf; mkdir etc/conf", "changed: etc/conf"),
        ("chmod 700 .", "changed: the directory itself"),
        ("rm bin/* etc/*", "changed: bin/conf, bin/run, etc/conf and 1 more"),
    ] {
        let inode = fs::metadata(unpacked.to("etc/other")).unwrap().ino();
        fs::write(unpacked.to("own"), "mine").unwrap();
        unpacked.change(script);
        assert_eq!(unpacked.difference(), expected, "{script}");
        made(&unpacked.archive);
        let state = shell(
            &unpacked.to(""),
            "cat bin/run etc/conf etc/other bin/conf; stat -c %a . etc bin/run",
        );
        assert_eq!(state, "run\none\ntwo\none\n755\n755\n755", "{script}");
        assert_eq!(fs::read_to_string(unpacked.to("own")).unwrap(), "mine", "{script}");
        if !script.contains("rm -r etc") && !script.contains("etc/*") {
            let now = fs::metadata(unpacked.to("etc/other")).unwrap().ino();
            assert_eq!(now, inode, "{script}: an unchanged entry is not written");
        }
        assert!(matches!(hold(&unpacked.archive), Outcome::Unchanged), "{script}");
        // Another process knows no states of files.
        let other = declared(unpacked.folder.path());
        assert!(matches!(hold(&other), Outcome::Unchanged), "{script}: another process");
    }
}

/// A new time of change, as after a restored backup, is no change of the content.
#[test]
fn a_touched_file_is_read_and_is_equal() {
    let unpacked = Unpacked::new();
    unpacked.change("cp -p etc/conf new; mv new etc/conf");
    assert!(matches!(check(&unpacked.archive), CheckResult::Same));
}

#[test]
fn a_full_directory_in_the_place_of_a_file_stays() {
    let unpacked = Unpacked::new();
    unpacked.change("rm etc/conf; mkdir etc/conf; echo mine >etc/conf/own");
    let said = refused(&unpacked.archive);
    assert!(said.contains("a directory with content is in the place of an entry"), "{said}");
    assert_eq!(fs::read_to_string(unpacked.to("etc/conf/own")).unwrap(), "mine\n");
}

#[test]
fn a_repair_needs_the_same_archive() {
    let unpacked = Unpacked::new();
    unpacked.change("echo bad >etc/conf");
    fs::remove_file(unpacked.folder.path().join("a.tgz")).unwrap();
    let said = refused(&unpacked.archive);
    assert!(said.contains("the archive does not exist"), "{said}");
    assert_eq!(fs::read_to_string(unpacked.to("etc/conf")).unwrap(), "bad\n");
}

/// `file {path: …/etc/conf}` and `archive` would undo each other for ever.
#[test]
fn paths_of_other_resources_are_left_alone() {
    let unpacked = Unpacked::new();
    let claimed = vec![unpacked.to("etc/conf"), unpacked.to("bin")];
    let archive = unpacked.archive.with_claims(claimed).expect("a resource with claims");
    unpacked.change("echo theirs >etc/conf; rm bin/run; echo bad >etc/other");
    made(&archive);
    let state = shell(&unpacked.to(""), "cat etc/conf etc/other; ls bin");
    assert_eq!(state, "theirs\ntwo\nconf");
}

/// The user who owns the directory writes a list of entries: the list is neither believed nor carried out.
#[test]
fn a_list_of_another_user_is_replaced() {
    let unpacked = Unpacked::new();
    if fs::metadata(unpacked.folder.path()).unwrap().uid() != 0 {
        return;
    }
    let record = unpacked.to(".steadfast-archive");
    assert_eq!(fs::metadata(&record).unwrap().mode() & 0o777, 0o600, "the list is private");
    let text =
        fs::read_to_string(&record).unwrap().replace("f 755 0 0 ./bin/run", "f 4755 0 0 ./bin/run");
    assert!(text.contains("f 4755"), "{text}");
    fs::write(&record, text).unwrap();
    std::os::unix::fs::chown(&record, Some(1000), Some(1000)).unwrap();
    assert_eq!(unpacked.difference(), "changed: .steadfast-archive");
    made(&unpacked.archive);
    assert_eq!(fs::metadata(&record).unwrap().uid(), 0);
    assert_eq!(fs::metadata(unpacked.to("bin/run")).unwrap().mode() & 0o7777, 0o755);
}

/// A directory of root, with its content, is not given to the owner of the unpacked directory who has moved it there.
/// The other entries are repaired.
#[test]
fn a_moved_directory_of_root_is_not_given_away() {
    let unpacked = Unpacked::new();
    if fs::metadata(unpacked.folder.path()).unwrap().uid() != 0 {
        return;
    }
    let (to, archive) = (unpacked.to(""), unpacked.of_user("a.tgz"));
    made(&archive);
    shell(
        &to,
        "mkdir ../roots; echo root >../roots/run; rm -r bin; mv ../roots bin; rm etc/conf; chmod 600 bin/run",
    );
    let (said, touched) = failed(&archive);
    assert!(said.contains("others can have moved it there") && touched, "{said}");
    let state = shell(&to, "stat -c %u bin; stat -c '%u %a' bin/run; cat bin/run");
    assert_eq!(state, "0\n0 600\nroot", "nothing below is changed");
    assert_eq!(fs::metadata(to.join("etc/conf")).unwrap().uid(), 1000, "others are repaired");
    shell(&to, "mv bin ../roots");
    made(&archive);
    assert_eq!(fs::metadata(to.join("bin/run")).unwrap().uid(), 1000);
}

/// The owner of the directory could move objects of others into the former directory while it is removed as a whole, so
/// the entries are replaced one by one. A directory of root is replaced as a whole.
#[test]
fn a_directory_of_a_user_is_not_removed_as_a_whole() {
    let unpacked = Unpacked::new();
    if fs::metadata(unpacked.folder.path()).unwrap().uid() != 0 {
        return;
    }
    let inode = || fs::metadata(unpacked.to("")).unwrap().ino();
    let former = inode();
    made(&next(&unpacked, "b.tgz"));
    assert_ne!(inode(), former);
    for (name, is_same) in [("a.tgz", false), ("b.tgz", true)] {
        let former = inode();
        made(&unpacked.of_user(name));
        assert_eq!(inode() == former, is_same, "{name}");
    }
    assert!(!unpacked.to("etc/other").exists());
}

/// The owner of the directory puts other objects at the names of the record and of entries.
#[test]
fn other_objects_do_not_stop_a_repair() {
    let unpacked = Unpacked::new();
    if fs::metadata(unpacked.folder.path()).unwrap().uid() != 0 {
        return;
    }
    let (to, archive) = (unpacked.to(""), unpacked.of_user("a.tgz"));
    made(&archive);
    for (script, is_refused) in [
        ("rm .steadfast-archive; mkfifo .steadfast-archive", false),
        ("rm etc/conf; mkfifo etc/conf; rm bin/run", false),
        ("ln -sf /etc/passwd .steadfast-archive", false),
        // A second name can be one of a file of root.
        ("ln .steadfast-archive ../link; rm bin/run", true),
        ("rm ../link; ln etc/other ../link; rm etc/conf; echo bad >etc/other", true),
        ("rm ../link", false),
    ] {
        shell(&to, script);
        if is_refused {
            let (said, touched) = failed(&archive);
            assert!(said.contains("hard links") && touched, "{script}: {said}");
        } else {
            made(&archive);
            assert!(matches!(hold(&archive), Outcome::Unchanged), "{script}");
        }
        let state =
            shell(&to, "stat -c %F .steadfast-archive; cat bin/run etc/conf; stat -c %u bin/run");
        assert_eq!(state, "regular file\nrun\none\n1000", "{script}");
    }
}

#[test]
fn everything_below_is_watched() {
    let unpacked = Unpacked::new();
    let path = unpacked.folder.path().join("to");
    let watch = unpacked.archive.footprint().watch;
    assert!(watch.contains(&WatchSource::Tree(path)), "{watch:?}");
}

#[test]
fn an_undo_removes_an_unchanged_directory() {
    let unpacked = Unpacked::new();
    assert!(matches!(unpacked.undo(), Outcome::Changed(_)));
    assert!(!unpacked.to("").exists());
    assert!(matches!(unpacked.undo(), Outcome::Unchanged), "nothing is left to undo");
    assert!(unpacked.folder.path().join("a.tgz").exists());
}

#[test]
fn an_undo_spares_changed_and_added_objects() {
    for (script, expected) in [
        ("echo mine >etc/conf", "changed: etc/conf"),
        ("echo mine >own", "added: own"),
        ("rm .steadfast-archive", "its list of entries .steadfast-archive is missing"),
    ] {
        let unpacked = Unpacked::new();
        unpacked.change(script);
        match unpacked.undo() {
            Outcome::Failed { failure, touched: false } => {
                assert!(failure.what.contains("not as it was unpacked"), "{failure}");
                assert!(failure.what.contains(expected), "{script}: {failure}");
            }
            other => panic!("{script}: {other:?}"),
        }
        assert!(unpacked.to("bin/run").exists(), "{script}");
    }
}

#[test]
fn a_replaced_archive_cannot_come_back() {
    let before = value(Some("sha256:00 strip:1"));
    let undone = KindSet::of_this_build().restoring("archive[/srv/app]", &[before]);
    let failure = undone.unwrap_err();
    assert!(failure.what.contains("the former archive was replaced"), "{failure}");
}

#[test]
fn a_private_file_is_not_opened_to_others() {
    let folder = tempdir().unwrap();
    shell(folder.path(), "mkdir app; echo key >app/key; chmod 600 app/key; tar czf a.tgz app");
    let archive = declared(folder.path());
    made(&archive);
    let key = folder.path().join("to/key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    made(&archive);
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
}

/// The archive `b.tgz` lacks `etc/other` and `bin/conf`, and changes `etc/conf`; `c.tgz` brings `data.db` and a file
/// `bin`.
fn next(unpacked: &Unpacked, name: &str) -> Arc<dyn Resource> {
    shell(
        unpacked.folder.path(),
        "rm -rf app; mkdir -p app/bin app/etc; echo run >app/bin/run; chmod 755 app/bin/run
         echo new >app/etc/conf; tar czf b.tgz app
         rm -r app/bin; echo file >app/bin; echo theirs >app/data.db; tar czf c.tgz app",
    );
    let source = unpacked.folder.path().join(name);
    let given = [("source", source.to_str().unwrap()), ("strip", "1")];
    resource("archive", &unpacked.folder.path().join("to"), &given)
}

/// `archive` and `file {path: …/own.conf}` fill one directory, and an application stores its data there.
#[test]
fn another_archive_spares_added_changed_and_declared_objects() {
    let unpacked = Unpacked::new();
    unpacked
        .change("echo data >data.db; echo mine >own.conf; echo mine >etc/other; echo x >bin/run");
    let next = next(&unpacked, "b.tgz").with_claims(vec![unpacked.to("own.conf")]).unwrap();
    made(&next);
    let state = shell(&unpacked.to(""), "cat data.db own.conf etc/other bin/run etc/conf; ls bin");
    assert_eq!(state, "data\nmine\nmine\nrun\nnew\nrun");
    assert!(matches!(hold(&next), Outcome::Unchanged));
}

#[test]
fn another_archive_replaces_no_object_that_no_archive_brought() {
    for (script, expected) in [("echo data >data.db", "data.db"), ("echo own >bin/own", "bin/own")]
    {
        let unpacked = Unpacked::new();
        unpacked.change(script);
        let before = shell(&unpacked.to(""), "find . -type f -exec cat {} + | sort");
        let said = refused(&next(&unpacked, "c.tgz"));
        assert!(said.contains("no archive brought") && said.contains(expected), "{said}");
        let after = shell(&unpacked.to(""), "find . -type f -exec cat {} + | sort");
        assert_eq!(after, before, "nothing is changed");
    }
    let unpacked = Unpacked::new();
    unpacked.change("echo own >own");
    made(&next(&unpacked, "c.tgz"));
    assert_eq!(shell(&unpacked.to(""), "cat bin data.db own; ls etc"), "file\ntheirs\nown\nconf");
}

#[test]
fn a_missing_record_is_written_again() {
    let unpacked = Unpacked::new();
    unpacked.change("rm .steadfast-archive; echo mine >own");
    let inode = fs::metadata(unpacked.to("etc/conf")).unwrap().ino();
    made(&unpacked.archive);
    assert_eq!(fs::metadata(unpacked.to("etc/conf")).unwrap().ino(), inode);
    assert_eq!(fs::read_to_string(unpacked.to("own")).unwrap(), "mine\n");
    unpacked.change("rm .steadfast-archive; echo bad >etc/conf");
    let said = refused(&unpacked.archive);
    assert!(said.contains("no archive brought"), "{said}");
}

#[test]
fn a_removal_spares_changed_and_added_objects() {
    for (script, expected) in
        [("echo mine >etc/conf", "changed: etc/conf"), ("echo mine >data.db", "added: data.db")]
    {
        let unpacked = Unpacked::new();
        unpacked.change(script);
        let path = unpacked.folder.path().join("to");
        let absent = resource("archive", &path, &[("state", "absent")]);
        let said = refused(&absent);
        assert!(said.contains(expected), "{script}: {said}");
        assert!(unpacked.to("bin/run").exists(), "{script}");
        unpacked.change("rm -f data.db; echo one >etc/conf");
        made(&absent);
        assert!(!path.exists(), "{script}");
    }
}
