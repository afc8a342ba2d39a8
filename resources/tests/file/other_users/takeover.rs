//! Objects that an untrusted user has prepared give that user no rights after a file has taken them over. The
//! tests run as root.

use crate::other_users::strangers::{self, ACCESS, DEFAULT, STRANGER, can_read, can_write};
use crate::support::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{
    CheckResult, Host, NotRecorded, Outcome, PriorContent, PriorEntry, PriorShape, PriorState,
};
use tokio_util::sync::CancellationToken;

/// Makes a directory where everybody may make files, like /tmp.
pub(crate) fn shared() -> (tempfile::TempDir, PathBuf) {
    demand_root();
    let dir = scratch();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chmod(&shared, 0o1777);
    (dir, shared)
}

pub(crate) fn slash(path: &Path) -> String {
    format!("{}/", path.display())
}

#[test]
fn set_id_bits_stay_dropped_when_a_relative_mode_does_not_name_them() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    let path = shared.join("id");
    for relative in ["go-w", "o-w", "o-rwx", "g+r", "a+X"] {
        for state in ["exists", "undefined"] {
            strangers::write(&path, "x", 0o6777);
            made(&host, &file(&path, &[("state", state), ("owner", "root"), ("mode", relative)]));
            assert_eq!((mode(&path) & 0o6000, owner(&path).0), (0, 0), "{relative}, {state}");
        }
    }
    // The kernel leaves the group's bit if the group may not execute.
    for given in [("owner", "root"), ("group", "shadow")] {
        strangers::write(&path, "x", 0o2644);
        made(&host, &file(&path, &[given]));
        assert_eq!(mode(&path), 0o644, "{given:?}");
    }
    for named in ["06755", "ug+s"] {
        strangers::write(&path, "x", 0o755);
        made(&host, &file(&path, &[("owner", "root"), ("mode", named), ("force", "true")]));
        assert_eq!(mode(&path), 0o6755, "{named}");
    }
}

/// A program of a stranger gets no set-id bits and no capabilities, unless the graph gives its content or `force`.
#[test]
fn a_strangers_program_gets_no_rights() {
    const WHY: &str = "others can have chosen the program";
    let (host, (_dir, shared)) = (Host::default(), shared());
    let path = shared.join("tool");
    for given in [
        vec![("owner", "root"), ("mode", "04755")],
        vec![("owner", "root"), ("group", "shadow"), ("mode", "02755")],
        vec![("group", "shadow"), ("mode", "02755")],
        vec![("state", "undefined"), ("owner", "root"), ("mode", "u+s")],
        vec![("capabilities", "cap_setuid=ep")],
    ] {
        strangers::write(&path, "x", 0o755);
        let words = refused(&host, &file(&path, &given));
        assert!(words.contains(WHY), "{given:?}: {words}");
        assert_eq!(mode(&path) & 0o6000, 0, "{given:?}");
    }
    made(&host, &file(&path, &[("content", "own"), ("owner", "root"), ("mode", "04755")]));
    assert_eq!((mode(&path), owner(&path).0), (0o4755, 0), "a declared content");
}

#[test]
fn set_id_bits_stay_dropped_in_a_tree() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    let tree = shared.join("tree");
    strangers::make_directory(&tree, 0o755);
    strangers::write(&tree.join("id"), "x", 0o4777);
    let given = [("owner", "root"), ("group", "root"), ("mode", "go-w"), ("recurse", "true")];
    made(&host, &file(slash(&tree), &given));
    assert_eq!((mode(tree.join("id")), owner(tree.join("id"))), (0o755, (0, 0)));
}

#[test]
fn a_secret_is_its_owners_alone_also_in_the_place_of_a_wider_file() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let path = dir.path().join("conf");
    for content in ["before", "secret"] {
        fs::write(&path, content).unwrap();
        chmod(&path, 0o644);
        made(&host, &file(&path, &[("content", "secret"), ("sensitive", "true")]));
        assert_eq!(mode(&path), 0o600, "a wide mode is drift");
    }
    chmod(&path, 0o644);
    made(&host, &file(&path, &[("content", "secret"), ("sensitive", "true"), ("mode", "g+r")]));
    assert_eq!(mode(&path), 0o640);
    let path = shared.join("password");
    for (content, given) in [("x", None), ("secret", None), ("x", Some(("mode", "0600")))] {
        strangers::write(&path, content, 0o666);
        let given: Vec<_> =
            [("content", "secret"), ("sensitive", "true")].into_iter().chain(given).collect();
        made(&host, &file(&path, &given));
        assert_eq!((mode(&path), owner(&path)), (0o600, (0, 0)), "{content}");
        assert!(!can_read(&path) && !can_write(&path));
    }
}

#[test]
fn a_strangers_access_lists_are_gone_from_what_root_takes_over() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    let app = shared.join("app");
    strangers::make_directory(&app, 0o770);
    strangers::set(&app, ACCESS, &strangers::list());
    strangers::set(&app, DEFAULT, &strangers::list());
    let old = app.join("old");
    strangers::write(&old, "x", 0o660);
    strangers::set(&old, ACCESS, &strangers::list());
    strangers::set(&old, "user.note", b"x");
    let games = [("owner", "root"), ("group", "games")];
    let given = |rest: &[(&'static str, &'static str)]| [&games[..], rest].concat();
    made(&host, &file(slash(&app), &given(&[("mode", "0770")])));
    assert!(!strangers::has(&app, ACCESS) && !strangers::has(&app, DEFAULT));
    for name in ["old", "new"] {
        let path = app.join(name);
        let secret = [("mode", "0660"), ("content", "secret"), ("sensitive", "true")];
        made(&host, &file(&path, &given(&secret)));
        assert!(!strangers::has(&path, ACCESS) && !strangers::has(&path, "user.note"), "{name}");
        assert_eq!((mode(&path), owner(&path)), (0o660, (0, 60)));
        assert!(!can_read(&path) && !can_write(&path));
    }
}

/// The group of a user usually contains that user alone, so its right to write is dropped.
#[test]
fn no_right_of_an_undeclared_group_to_write_comes_from_a_stranger() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    for (before, after) in [(0o775, 0o755), (0o2770, 0o2750), (0o1777, 0o1777)] {
        let app = shared.join("app");
        strangers::make_directory(&app, before);
        made(&host, &file(slash(&app), &[("owner", "root")]));
        assert_eq!((mode(&app), owner(&app).0), (after, 0), "{before:o}");
        fs::remove_dir(&app).unwrap();
    }
    // The mask of an access list is no right of the group.
    let path = shared.join("listed");
    strangers::write(&path, "x", 0o604);
    strangers::set(&path, ACCESS, &strangers::list());
    assert_ne!(mode(&path) & 0o070, 0, "the mask");
    made(&host, &file(&path, &[("owner", "root"), ("group", "games")]));
    assert_eq!(mode(&path), 0o700);
    assert!(!strangers::has(&path, ACCESS));
    // A declared group has the rights of the mode.
    let path = shared.join("games");
    strangers::write(&path, "x", 0o664);
    made(&host, &file(&path, &[("owner", "root"), ("group", "games")]));
    assert_eq!(mode(&path), 0o664);
}

#[test]
fn new_objects_in_a_strangers_directory_inherit_no_list_and_no_group() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    let app = shared.join("app");
    strangers::make_directory(&app, 0o2775);
    strangers::set(&app, DEFAULT, &strangers::list());
    let (new, below) = (app.join("new"), app.join("below"));
    made(&host, &file(&new, &[("content", "x"), ("mode", "0640")]));
    made(&host, &file(slash(&below), &[("mode", "0770")]));
    for path in [&new, &below] {
        assert!(!strangers::has(path, ACCESS) && !strangers::has(path, DEFAULT));
        assert_eq!(owner(path), (0, 0));
    }
    assert!(!can_read(&new));
}

/// An administrator's access lists stay: that of root's file, and the default list of root's directory.
#[test]
fn lists_of_roots_own_stay() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let app = dir.path().join("app");
    fs::create_dir(&app).unwrap();
    chmod(&app, 0o755);
    strangers::set(&app, DEFAULT, &strangers::list());
    let path = app.join("a");
    made(&host, &file(&path, &[("content", "x"), ("mode", "0660")]));
    assert!(strangers::has(&path, ACCESS), "handed down");
    made(&host, &file(&path, &[("content", "y"), ("mode", "0660")]));
    assert!(strangers::has(&path, ACCESS), "kept in a repair");
    made(&host, &file(&path, &[("owner", "games"), ("mode", "0660")]));
    assert!(strangers::has(&path, ACCESS), "kept when root gives it away");
}

#[test]
fn a_stranger_who_has_it_open_writes_into_an_inode_that_is_no_longer_there() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let path = shared.join("sudoers");
    let rest = [("owner", "root"), ("group", "root"), ("mode", "0440")];
    for (content, declared) in [("declared\n", Some("declared\n")), ("", Some("")), ("", None)] {
        strangers::write(&path, content, 0o644);
        let mut open = fs::File::options().append(true).open(&path).unwrap();
        let mut given = rest.to_vec();
        given.extend(declared.map(|text| ("content", text)));
        made(&host, &file(&path, &given));
        open.write_all(b"nobody ALL=(ALL) NOPASSWD: ALL\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{declared:?}");
        assert_eq!((mode(&path), owner(&path)), (0o440, (0, 0)));
    }
    // Other users also lose access that root's own file gave by a wide mode.
    let path = dir.path().join("wide");
    fs::write(&path, "declared\n").unwrap();
    chmod(&path, 0o666);
    let inode = fs::metadata(&path).unwrap().ino();
    made(&host, &file(&path, &[("content", "declared\n"), ("mode", "0644")]));
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
}

/// A lease by the file's owner does not delay the replacement of the file.
#[test]
fn a_strangers_lease_delays_nothing() {
    let (host, (_dir, shared)) = (Host::default(), shared());
    let path = shared.join("leased");
    strangers::write(&path, "same", 0o644);
    let lease = strangers::Lease::take(&path);
    made(&host, &file(&path, &[("content", "same"), ("owner", "root")]));
    assert_eq!(owner(&path), (0, 0));
    drop(lease);
}

#[test]
fn a_private_file_of_roots_that_a_user_renamed_is_not_given_away() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    let path = home.join("managed");
    fs::write(&path, "only root reads this").unwrap();
    chmod(&path, 0o600);
    for given in [
        vec![("owner", "nobody"), ("mode", "0644")],
        vec![("owner", "nobody")],
        vec![("mode", "0644")],
        vec![("group", "nogroup"), ("mode", "0640")],
        vec![("state", "undefined"), ("owner", "nobody")],
    ] {
        let words = refused(&host, &file(&path, &given));
        assert!(
            words.contains("only root may read the file, and other users can have moved it there"),
            "{words}"
        );
        assert!(
            matches!(check(&host, &file(&path, &given)), CheckResult::Unknown(_)),
            "a plan says so"
        );
    }
    let tree = [("owner", "nobody"), ("recurse", "true")];
    let outcome = hold(&host, &file(slash(&home), &tree));
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert_eq!((mode(&path), owner(&path)), (0o600, (0, 0)));
    // A tree of root with private files is given to a user by consent only.
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    chmod(&tree, 0o755);
    fs::write(tree.join("private"), "x").unwrap();
    chmod(tree.join("private"), 0o600);
    let given = [("owner", "nobody"), ("recurse", "true")];
    assert!(matches!(hold(&host, &file(slash(&tree), &given)), Outcome::Failed { .. }));
    assert_eq!(owner(tree.join("private")).0, 0);
    made(&host, &file(slash(&tree), &[&given[..], &[("force", "true")]].concat()));
    assert_eq!(owner(tree.join("private")).0, STRANGER);
    // With a declared content, a new file takes the place and reveals nothing else.
    let theirs = [("content", "x"), ("owner", "nobody"), ("mode", "0644")];
    made(&host, &file(&path, &theirs));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    chown(&path, Some(0), Some(0)).unwrap();
    chmod(&path, 0o600);
    made(&host, &file(&path, &theirs));
    chown(&path, Some(0), Some(0)).unwrap();
    chmod(&path, 0o600);
    made(&host, &file(&path, &[("owner", "nobody"), ("force", "true")]));
    assert_eq!(owner(&path).0, STRANGER);
}

#[test]
fn a_private_file_of_roots_that_a_user_renamed_is_not_copied_for_that_user() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    let source = home.join("source");
    strangers::make_directory(&source, 0o755);
    fs::write(source.join("a"), "only root reads this").unwrap();
    chmod(source.join("a"), 0o600);
    let out = dir.path().join("out");
    let (one, all) = (source.join("a").display().to_string(), slash(&source));
    let ways = [("source", &one, "out"), ("fragments", &all, "out"), ("source", &all, "out/")];
    for (field, from, to) in ways {
        let to = format!("{}/{to}", dir.path().display());
        let mut given = vec![(field, from.as_str()), ("owner", "nobody")];
        given.extend(to.ends_with('/').then_some(("recurse", "true")));
        let said = format!("{:?}", hold(&host, &file(&to, &given)));
        assert!(
            said.contains("only root may read the file, and other users can have moved it there"),
            "{said}"
        );
        assert!(!out.is_file() && !out.join("a").exists());
        given.push(("force", "true"));
        if out.is_dir() {
            fs::remove_dir(&out).unwrap();
        }
        made(&host, &file(&to, &given));
        assert!(can_read(if out.is_file() { out.clone() } else { out.join("a") }.as_path()));
        drop(fs::remove_file(&out));
    }
}

#[test]
fn a_second_name_is_refused_when_the_directory_was_open_before() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let (two, secret) = (dir.path().join("two"), dir.path().join("secret"));
    fs::write(&secret, "x").unwrap();
    chmod(&secret, 0o600);
    strangers::make_directory(&two, 0o755);
    fs::hard_link(&secret, two.join("f")).unwrap();
    made(&host, &file(slash(&two), &[("owner", "root"), ("group", "root"), ("mode", "0755")]));
    for given in [("mode", "0644"), ("mode", "0400"), ("content", "mine")] {
        let words = refused(&host, &file(two.join("f"), &[given]));
        assert!(words.contains("2 hard links"), "{words}");
    }
    // Another process knows the second name too.
    for given in [("mode", "0644"), ("mode", "0400"), ("content", "mine")] {
        let words = refused(&Host::default(), &file(two.join("f"), &[given]));
        assert!(words.contains("2 hard links"), "{words}");
    }
    assert_eq!((mode(&secret), owner(&secret)), (0o600, (0, 0)));
}

#[test]
fn a_second_name_is_refused_in_a_directory_that_a_list_opens() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let (listed, secret) = (dir.path().join("listed"), dir.path().join("secret"));
    fs::write(&secret, "x").unwrap();
    fs::create_dir(&listed).unwrap();
    strangers::set(&listed, ACCESS, &strangers::list());
    fs::hard_link(&secret, listed.join("f")).unwrap();
    let words = refused(&host, &file(listed.join("f"), &[("mode", "0600")]));
    assert!(words.contains("2 hard links"), "{words}");
}

#[test]
fn a_second_name_of_any_object_but_a_directory_is_refused() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    let at = |name: &str| dir.path().join(name);
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
    std::os::unix::fs::symlink("/nowhere", at("link")).unwrap();
    for name in ["fifo", "socket", "link"] {
        fs::hard_link(at(name), home.join(name)).unwrap();
        let held = if name == "link" {
            file(home.join(name), &[("symlink", "/nowhere"), ("owner", "nobody")])
        } else {
            file(home.join(name), &[("state", "undefined"), ("owner", "nobody"), ("force", "true")])
        };
        let words = refused(&host, &held);
        assert!(words.contains("2 hard links"), "{words}");
        assert_eq!(owner(at(name)), (0, 0));
    }
}

pub(crate) fn prior(uid: u32, mode: u32, content: Option<&str>) -> PriorState {
    let content = match content {
        Some(text) => PriorContent::Bytes(text.into()),
        None => PriorContent::NotRecorded(NotRecorded::Same),
    };
    let shape = PriorShape::File(1, content);
    PriorState::Thing(PriorEntry {
        shape,
        mode,
        uid,
        gid: uid,
        extended: Vec::new(),
        enclosure: None,
    })
}

/// An undo gives no rights to an object that an untrusted user may have put there since.
#[test]
fn an_undo_lends_nothing_to_what_it_finds() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let path = shared.join("a");
    let undo = |former: &PriorState| {
        host.files().restore(
            &permit(&CancellationToken::new()),
            (&path, former),
            &mut RestoredDirectories::default(),
        )
    };
    strangers::write(&path, "theirs", 0o755);
    strangers::set(&path, ACCESS, &strangers::list());
    let fault = undo(&prior(0, 0o4755, None)).unwrap_err();
    assert!(format!("{fault:?}").contains("set-id") && !fault.touched, "{fault:?}");
    assert_eq!(owner(&path).0, STRANGER);
    undo(&prior(0, 0o640, None)).unwrap();
    assert_eq!((mode(&path), owner(&path)), (0o640, (0, 0)));
    assert!(!strangers::has(&path, ACCESS));
    // With a stored content, the file is restored whole, as another inode.
    strangers::write(&path, "roots", 0o755);
    let inode = fs::metadata(&path).unwrap().ino();
    undo(&prior(0, 0o4755, Some("roots"))).unwrap();
    assert_eq!((mode(&path), owner(&path)), (0o4755, (0, 0)));
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
    // A file that only root may read is not given to a user.
    chmod(&path, 0o600);
    assert!(undo(&prior(STRANGER, 0o644, None)).is_err());
    let home = dir.path().join("private");
    fs::create_dir(&home).unwrap();
    chmod(&home, 0o755);
    fs::write(home.join("a"), "x").unwrap();
    chmod(home.join("a"), 0o600);
    let permit = permit(&CancellationToken::new());
    host.files()
        .restore(
            &permit,
            (&home.join("a"), &prior(STRANGER, 0o644, None)),
            &mut RestoredDirectories::default(),
        )
        .unwrap();
    assert_eq!(owner(home.join("a")).0, STRANGER, "where nobody else can have put it");
}

/// A content that others may not read is not given to an untrusted owner of the file.
#[test]
fn a_closed_content_is_given_to_no_stranger() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let secret = dir.path().join("secret");
    fs::write(&secret, "only root reads this").unwrap();
    chmod(&secret, 0o600);
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::copy(&secret, tree.join("f")).unwrap();
    chmod(tree.join("f"), 0o600);
    let (secret, from) = (secret.display().to_string(), slash(&tree));
    let path = shared.join("f");
    let ways: [&[(&'static str, &str)]; 6] = [
        &[("content", "password"), ("mode", "0600")],
        &[("content", "password"), ("mode", "0640")],
        &[("source", &secret)],
        &[("source", &secret), ("mode", "0600")],
        &[("fragments", &secret)],
        &[("content", "password"), ("mode", "o-r")],
    ];
    for given in ways {
        for mode in [0o600, 0o644, 0o666] {
            strangers::write(&path, "x", mode);
            made(&host, &file(&path, given));
            assert_eq!(owner(&path).0, 0, "{given:?} over {mode:o}");
            assert!(!can_read(&path), "{given:?} over {mode:o}");
            fs::remove_file(&path).unwrap();
        }
    }
    // An untrusted user's file below the target directory of a copied tree.
    let copy = dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    chmod(&copy, 0o777);
    strangers::write(&copy.join("f"), "x", 0o644);
    made(&host, &file(slash(&copy), &[("source", &from), ("recurse", "true")]));
    assert_eq!(owner(copy.join("f")).0, 0);
    assert!(!can_read(&copy.join("f")));
    // The owner stays if the content is public.
    strangers::write(&path, "x", 0o644);
    made(&host, &file(&path, &[("content", "public")]));
    assert_eq!(owner(&path).0, STRANGER);
}

/// A private folder of root protects its files after a user has renamed the folder, whatever the modes of the
/// files are.
#[test]
fn a_file_in_a_private_folder_of_roots_is_not_copied_for_a_user_who_renamed_the_folder() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    let folder = home.join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("k"), "only root reads this").unwrap();
    chmod(folder.join("k"), 0o644);
    chmod(&folder, 0o700);
    let from = folder.join("k").display().to_string();
    let out = dir.path().join("out");
    for field in ["source", "fragments"] {
        let said =
            format!("{:?}", hold(&host, &file(&out, &[(field, &from), ("owner", "nobody")])));
        assert!(
            said.contains("only root may read the file, and other users can have moved it there"),
            "{said}"
        );
        assert!(!out.exists());
    }
    made(&host, &file(&out, &[("source", &from), ("owner", "nobody"), ("force", "true")]));
}
