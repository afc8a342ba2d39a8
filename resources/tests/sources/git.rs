//! `git`: branches, tags and commits of a real repository.

use crate::support::{build, check, hold, made, refused, removed, resource, shell, wait};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::inspect::{Field, inspectors};
use steadfast_resources::{
    After, CheckResult, FormerValue, Host, KindSet, Outcome, Resource, Value,
};
use tempfile::{TempDir, tempdir};

/// Makes the repository `origin` with the commits `one` (tag v1) and `two` on the branch main.
fn repository() -> TempDir {
    let folder = tempdir().unwrap();
    let script =
        "git init -q -b main origin; cd origin; git config user.name a; git config user.email a@b
        echo one >file; git add file; git commit -q -m one; git tag -a v1 -m v1
        echo two >file; git commit -q -a -m two";
    shell(folder.path(), script);
    folder
}

fn tree(folder: &Path, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    let repo = folder.join("origin");
    let own = [("repo", repo.to_str().unwrap())];
    let all: Vec<_> = own.into_iter().chain(given.iter().copied()).collect();
    resource("git", &folder.join("tree"), &all)
}

fn content(folder: &Path) -> String {
    fs::read_to_string(folder.join("tree/file")).unwrap()
}

#[test]
fn a_tree_follows_its_declared_version() {
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[]));
    assert_eq!(content(at), "two\n");
    made(&tree(at, &[("version", "v1")]));
    assert_eq!(content(at), "one\n");
    let main = tree(at, &[("version", "main")]);
    made(&main);
    assert_eq!(content(at), "two\n");
    shell(at, "cd origin; echo three >file; git commit -q -a -m three");
    assert!(matches!(hold(&main), Outcome::Unchanged), "a check asks no server");
    made(&tree(at, &[("version", "main"), ("update", "true")]));
    assert_eq!(content(at), "three\n");
    let commit = shell(at, "git -C origin rev-parse v1^{commit}");
    made(&tree(at, &[("version", &commit)]));
    assert_eq!(content(at), "one\n");
    removed("git", &at.join("tree"), &main);
}

/// The printed declaration of a tree has the fetched version, or the commit of a foreign tree, and is converged.
#[test]
fn a_tree_is_inspected_with_its_version() {
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[("version", "v1")]));
    let version = |name: &str| {
        let inspector = inspectors().iter().find(|it| it.kind == "git").unwrap();
        let path = at.join(name);
        let found = wait((inspector.one)(&Host::default(), path.to_str().unwrap())).unwrap()?;
        let version = found.fields.iter().find(|(field, _)| *field == "version")?;
        match &version.1 {
            Field::Shown(Value::Text(version)) => Some(version.clone()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(version("tree").as_deref(), Some("v1"));
    shell(at, "git clone -q origin foreign");
    assert_eq!(version("foreign"), Some(shell(at, "git -C origin rev-parse HEAD")));
    assert_eq!(version("none"), None);
}

#[test]
fn a_shallow_tree_has_one_commit() {
    let folder = repository();
    let url = format!("file://{}", folder.path().join("origin").display());
    let path = folder.path().join("tree");
    made(&resource("git", &path, &[("repo", &url), ("depth", "1"), ("version", "main")]));
    assert_eq!(shell(&path, "git rev-list --count HEAD"), "1");
    assert!(shell(&path, "git rev-parse HEAD").len() == 40 && content(folder.path()) == "two\n");
}

#[test]
fn local_changes_are_kept_unless_force_is_set() {
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[]));
    fs::write(at.join("tree/file"), "mine\n").unwrap();
    fs::write(at.join("tree/untracked"), "mine\n").unwrap();
    let said = refused(&tree(at, &[]));
    assert!(said.contains("local changes"), "{said}");
    assert_eq!(content(at), "mine\n");
    made(&tree(at, &[("force", "true")]));
    assert_eq!(content(at), "two\n");
    assert!(at.join("tree/untracked").exists());
}

#[test]
fn hooks_and_monitors_never_run() {
    let folder = repository();
    let at = folder.path();
    let own = tree(at, &[]);
    made(&own);
    shell(at, "cd tree/.git; mkdir -p hooks; printf '#!/bin/sh\\ntouch %s/ran\\n' \"$PWD\" >hooks/post-checkout
        chmod 755 hooks/post-checkout; cp hooks/post-checkout monitor; git config core.fsmonitor \"$PWD/monitor\"");
    made(&tree(at, &[("version", "v1")]));
    assert!(!at.join("tree/.git/ran").exists());
}

#[test]
fn wrong_places_and_versions_are_one_clear_failure() {
    let folder = repository();
    let at = folder.path();
    let said = refused(&tree(at, &[("version", "v9")]));
    assert!(said.contains("no branch or tag v9"), "{said}");
    let path = at.join("tree");
    let said = refused(&resource("git", &path, &[("repo", at.join("none").to_str().unwrap())]));
    assert!(said.contains("cannot read the repository"), "{said}");
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    fs::write(path.join("mine"), "").unwrap();
    let said = refused(&tree(at, &[]));
    assert!(said.contains("not empty"), "{said}");
}

#[test]
fn undo_checks_out_the_former_commit() {
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[]));
    let former = shell(at, "git -C tree rev-parse HEAD");
    made(&tree(at, &[("version", "v1")]));
    let value = FormerValue {
        field: "version".to_owned(),
        before: Some(former.clone()),
        after: After::Value("v1".to_owned()),
    };
    let path = at.join("tree");
    let undone =
        KindSet::of_this_build().restoring(&format!("git[{}]", path.display()), &[value]).unwrap();
    made(&undone.resource);
    assert_eq!(shell(at, "git -C tree rev-parse HEAD"), former);
    assert!(undone.by_hand.contains(&former));
}

/// Undoes the first clone of the tree in a folder.
fn undo_clone(at: &Path) -> Outcome {
    let value = FormerValue {
        field: "version".to_owned(),
        before: None,
        after: After::Value("HEAD".to_owned()),
    };
    let identity = format!("git[{}]", at.join("tree").display());
    let undone = KindSet::of_this_build().restoring(&identity, &[value]).unwrap();
    assert!(undone.by_hand.starts_with("rm -r "), "{}", undone.by_hand);
    hold(&undone.resource)
}

/// A first clone on a full file system leaves no part of a repository, which would fail every later run.
#[test]
fn a_first_clone_on_a_full_file_system_succeeds_later() {
    let folder = repository();
    let at = folder.path();
    shell(at, "mkdir full; mount -t tmpfs -o size=64k,mode=755 none full");
    // Each amount of room ends the first clone in another step.
    for left in [0, 1, 2, 4, 8, 12] {
        let path = at.join(format!("full/{left}"));
        let repo = at.join("origin");
        let tree = resource("git", &path, &[("repo", repo.to_str().unwrap())]);
        shell(at, "cat /dev/zero >full/fill 2>/dev/null || true");
        shell(at, &format!("truncate -s -{left}k full/fill"));
        assert!(matches!(hold(&tree), Outcome::Failed { .. }), "{left}");
        shell(at, "rm full/fill; mount -o remount,size=16m full");
        made(&tree);
        shell(at, "rm -rf full/*; mount -o remount,size=64k full");
    }
    shell(at, "umount full");
}

#[test]
fn undo_removes_an_unchanged_clone() {
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[("version", "v1")]));
    made(&tree(at, &[]));
    assert!(matches!(undo_clone(at), Outcome::Changed(_)));
    assert!(!at.join("tree").exists());
    assert!(matches!(undo_clone(at), Outcome::Unchanged), "nothing is left to undo");
}

#[test]
fn undo_spares_a_clone_with_work_of_others() {
    const WHO: &str = "git -C tree config user.name a; git -C tree config user.email a@b; ";
    for (script, expected) in [
        ("echo mine >tree/file", "a file is changed or added: file"),
        ("echo mine >tree/own", "a file is changed or added: own"),
        ("echo own >tree/.gitignore; git -C tree add .gitignore; git -C tree commit -q -m x", ""),
        ("git -C tree branch mine", "a reference that was not fetched: refs/heads/mine"),
        (
            "git -C tree commit -q --allow-empty -m mine; git -C tree checkout -q --detach HEAD^",
            "a commit that was not fetched",
        ),
    ] {
        let folder = repository();
        let at = folder.path();
        made(&tree(at, &[]));
        shell(at, &format!("{WHO}{script}"));
        match undo_clone(at) {
            Outcome::Failed { failure, touched: false } => {
                assert!(failure.what.contains("the working tree has work of others"), "{failure}");
                assert!(failure.what.contains(expected), "{script}: {failure}");
            }
            other => panic!("{script}: {other:?}"),
        }
        assert!(at.join("tree/.git").exists(), "{script}");
    }
}

/// The answers of git do not count for objects of other users: its configuration belongs to the owner of the tree.
#[test]
fn undo_spares_objects_of_other_users() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for script in [
        "mkdir -p tree/private tree/.git/info; echo x >tree/private/f; chown -R 65534 tree/private; \
         echo private >tree/.git/info/exclude",
        "mkdir tree/.git/private; chown 65534 tree/.git/private",
    ] {
        let folder = repository();
        let at = folder.path();
        made(&tree(at, &[]));
        shell(at, script);
        match undo_clone(at) {
            Outcome::Failed { failure, touched: false } => {
                assert!(failure.what.contains("belongs to another user"), "{failure}");
            }
            other => panic!("{script}: {other:?}"),
        }
        assert!(at.join("tree/.git").exists(), "{script}");
    }
}

/// A kill in the middle of a checkout leaves files of two versions, and its lock. Work of others is not discarded.
#[test]
fn a_checkout_that_was_cut_off_is_completed() {
    let folder = repository();
    let at = folder.path();
    let first = tree(at, &[("version", "v1")]);
    made(&first);
    let cut = "git -C tree config steadfast.checkout \"$(git -C origin rev-parse main)\"; echo two >tree/file";
    shell(at, cut);
    made(&first);
    assert_eq!(content(at), "one\n");
    shell(at, "echo mine >tree/file");
    assert!(refused(&first).contains("local changes"));
    shell(at, "git -C tree checkout -q file");
    // The lock of a killed git counts for a minute.
    shell(at, &format!("{cut}; touch tree/.git/index.lock"));
    match hold(&tree(at, &[("version", "main")])) {
        Outcome::Failed { failure, .. } => assert!(failure.passes, "{failure}"),
        other => panic!("{other:?}"),
    }
    shell(at, "rm tree/.git/index.lock");
    made(&tree(at, &[("version", "main")]));
    assert_eq!(content(at), "two\n");
}

/// A user moves the tree of root away, and puts a link to another tree of root in its place.
#[test]
fn a_link_of_another_user_is_not_followed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = repository();
    let at = folder.path();
    shell(
        at,
        "git clone -q origin victim; echo mine >victim/file; mkdir theirs; git clone -q origin theirs/tree",
    );
    let repo = at.join("origin");
    let given = [("repo", repo.to_str().unwrap()), ("force", "true")];
    let declared = resource("git", &at.join("theirs/tree"), &given);
    hold(&declared);
    shell(
        at,
        "chown 65534 theirs; mv theirs/tree theirs/old; ln -s ../victim theirs/tree; chown -h 65534 theirs/tree",
    );
    let said = refused(&declared);
    assert!(said.contains("another user could change"), "{said}");
    let of_root = [&given[..], &[("user", "root")]].concat();
    let said = refused(&resource("git", &at.join("theirs/tree"), &of_root));
    assert!(said.contains("another user could change"), "{said}");
    assert_eq!(fs::read_to_string(at.join("victim/file")).unwrap(), "mine\n");
}

/// In a shared directory, another user can exchange the path of a working tree for another tree, also during a clone.
#[test]
fn a_shared_directory_is_no_place_for_a_tree() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = repository();
    let at = folder.path();
    shell(at, "mkdir shared; chgrp 65534 shared; chmod 775 shared");
    let repo = at.join("origin");
    let given = [("repo", repo.to_str().unwrap()), ("force", "true"), ("user", "root")];
    let declared = resource("git", &at.join("shared/tree"), &given);
    let said = refused(&declared);
    assert!(said.contains("another user could change"), "the first clone: {said}");
    shell(at, "git clone -q origin shared/tree; echo mine >shared/tree/file");
    let said = refused(&declared);
    assert!(said.contains("another user could change"), "{said}");
    assert_eq!(fs::read_to_string(at.join("shared/tree/file")).unwrap(), "mine\n");
    shell(at, "chmod 755 shared");
    made(&declared);
    assert_eq!(fs::read_to_string(at.join("shared/tree/file")).unwrap(), "two\n");
}

/// The configuration of a repository names programs that git runs, such as filters.
#[test]
fn a_configuration_that_others_can_change_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[]));
    for (break_it, mend_it) in [
        ("chgrp 65534 tree/.git/config; chmod 664 tree/.git/config", "chmod 644 tree/.git/config"),
        ("chgrp 65534 tree/.git; chmod 775 tree/.git", "chmod 755 tree/.git"),
        ("chgrp 65534 tree; chmod 775 tree", "chmod 755 tree"),
        ("setfacl -m u:65534:rw tree/.git/config", "setfacl -b tree/.git/config"),
    ] {
        shell(at, break_it);
        shell(
            at,
            "printf '[filter \"x\"]\\n\\tclean = touch ran; cat\\n' >>tree/.git/config
             mkdir -p tree/.git/info; echo '* filter=x' >tree/.git/info/attributes; echo oops >tree/file",
        );
        let said = refused(&tree(at, &[("force", "true")]));
        assert!(said.contains("another user can change the configuration"), "{break_it}: {said}");
        assert!(!at.join("tree/ran").exists(), "{break_it}");
        shell(at, mend_it);
    }
}

/// A user wrote the configuration before root took the tree over, and git runs the programs that it names.
#[test]
fn a_configuration_of_before_a_takeover_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = repository();
    let at = folder.path();
    made(&tree(at, &[]));
    shell(at, "git -C tree config filter.x.clean 'touch ran; cat'; chown -R 65534:65534 tree");
    let path = format!("{}/", at.join("tree").display());
    let owned = build("file", &path, &[("owner", "root"), ("recurse", "true")]).unwrap();
    assert!(matches!(hold(&owned), Outcome::Changed(_)));
    let said = refused(&tree(at, &[("force", "true")]));
    assert!(said.contains("another user can change the configuration"), "{said}");
    assert!(!at.join("tree/ran").exists());
    // Nor is the configuration of another repository.
    shell(at, "mv tree/.git/config away; echo ../../theirs/.git >tree/.git/commondir");
    assert!(refused(&tree(at, &[("force", "true")])).contains("commondir"));
    shell(at, "rm tree/.git/commondir; mv away tree/.git/config");
    // A new configuration is root's.
    shell(at, "git -C tree config --unset filter.x.clean");
    assert!(matches!(check(&tree(at, &[])), CheckResult::Same));
}

/// Git would work in the repository above, whose tree is another.
#[test]
fn a_broken_tree_is_not_replaced_by_a_repository_above() {
    let folder = repository();
    let broken = folder.path().join("origin/below");
    fs::create_dir_all(broken.join(".git")).unwrap();
    let repo = folder.path().join("origin");
    let what = refused(&resource("git", &broken, &[("repo", repo.to_str().unwrap())]));
    assert!(what.contains("not a git repository"), "{what}");
}

/// `verify` checks out only a commit or a tag with a good signature of a known key.
#[test]
fn only_signed_versions_are_checked_out_with_verify() {
    let folder = repository();
    let at = folder.path();
    shell(
        at,
        "ssh-keygen -q -t ed25519 -N '' -C ada -f key
         echo \"ada@example.org $(cat key.pub)\" >signers
         cd origin; git config gpg.format ssh; git config user.signingkey ../key",
    );
    let main = tree(at, &[("version", "main"), ("verify", "true"), ("update", "true")]);
    let unsigned = |tree: &Arc<dyn Resource>| match hold(tree) {
        Outcome::Failed { failure, .. } => failure.what.contains("has no good signature"),
        _ => false,
    };
    assert!(unsigned(&main));
    assert!(!at.join("tree/file").exists(), "nothing is checked out");
    shell(at, "cd origin; echo signed >file; git commit -q -a -S -m signed");
    assert!(unsigned(&main), "the key is unknown");
    shell(at, "git -C tree config gpg.ssh.allowedSignersFile $PWD/signers");
    made(&main);
    assert_eq!(content(at), "signed\n");
    shell(at, "cd origin; git tag -s v2 -m v2 v1^{commit}");
    made(&tree(at, &[("version", "v2"), ("verify", "true")]));
    assert_eq!(content(at), "one\n", "a signed tag names an unsigned commit");
    // An old signed tag under a new name, and a tree that was checked out without `verify`.
    shell(at, "git -C origin update-ref refs/tags/v3 refs/tags/v2");
    let moved = tree(at, &[("version", "v3"), ("verify", "true")]);
    let Outcome::Failed { failure, .. } = hold(&moved) else { panic!("a moved tag") };
    assert!(failure.what.contains("the signed tag is v2, expected v3"), "{failure}");
    made(&tree(at, &[("version", "v1")]));
    assert!(unsigned(&tree(at, &[("version", "v1"), ("verify", "true")])));
}

#[test]
fn a_removal_spares_work_unless_force_is_set() {
    let folder = repository();
    let at = folder.path();
    let path = at.join("tree");
    let absent = resource("git", &path, &[("state", "absent")]);
    for (script, expected) in [
        ("echo mine >file", "a file is changed or added: file"),
        ("echo mine >untracked", "a file is changed or added: untracked"),
        ("git -c user.name=x -c user.email=x commit -q --allow-empty -m own", "not fetched"),
    ] {
        let own = tree(at, &[]);
        made(&own);
        shell(&path, script);
        let said = refused(&absent);
        assert!(said.contains(expected), "{script}: {said}");
        assert!(path.join("file").exists(), "{script}");
        removed("git", &path, &tree(at, &[("force", "true")]));
    }
    // A plain clone has a branch of its own, without a commit of its own.
    shell(at, "git clone -q origin tree");
    made(&absent);
    assert!(!path.exists());
}
