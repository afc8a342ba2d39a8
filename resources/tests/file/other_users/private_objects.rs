//! A private object of one user that another user moved to a managed path is revealed to nobody. The tests
//! run as root.

use crate::other_users::strangers::{self, STRANGER};
use crate::other_users::takeover::{prior, shared, slash};
use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{CheckResult, Host, Outcome};
use tokio_util::sync::CancellationToken;

/// Another untrusted user, games, who owns the directories; the private objects belong to [`STRANGER`].
const OTHER: u32 = 5;

const REFUSAL: &str = "not readable by others";

fn make_directory_of_other(path: &Path) {
    fs::create_dir(path).unwrap();
    chown(path, Some(OTHER), Some(60)).unwrap();
    chmod(path, 0o755);
}

#[test]
fn a_users_private_file_that_another_user_moved_is_shown_to_nobody() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    make_directory_of_other(&home);
    let path = home.join("managed");
    strangers::write(&path, "private", 0o600);
    for given in [
        vec![("owner", "games"), ("mode", "0644")],
        vec![("owner", "games")],
        vec![("mode", "0644")],
        vec![("owner", "nobody"), ("mode", "0644")],
        vec![("owner", "root"), ("mode", "0644")],
        vec![("group", "games"), ("mode", "0640")],
        vec![("state", "undefined"), ("owner", "games")],
    ] {
        let words = refused(&host, &file(&path, &given));
        assert!(words.contains(REFUSAL), "{given:?}: {words}");
        let told = check(&host, &file(&path, &given));
        assert!(matches!(told, CheckResult::Unknown(_)), "a plan says so");
    }
    for given in [("owner", "games"), ("mode", "u=rwX,go=rX")] {
        let tree = [given, ("recurse", "true")];
        let outcome = hold(&host, &file(slash(&home), &tree));
        let Outcome::Failed { failure, .. } = outcome else { panic!("{outcome:?}") };
        assert!(failure.to_string().contains(REFUSAL), "{failure}");
    }
    let undo = |uid| {
        let permit = permit(&CancellationToken::new());
        host.files().restore(
            &permit,
            (&path, &prior(uid, 0o644, None)),
            &mut RestoredDirectories::default(),
        )
    };
    for uid in [0, OTHER, STRANGER] {
        let fault = undo(uid).unwrap_err();
        assert!(format!("{fault:?}").contains(REFUSAL) && !fault.touched, "{fault:?}");
    }
    assert_eq!((mode(&path), owner(&path)), (0o600, (STRANGER, STRANGER)));
    // A directory that others may not enter.
    let folder = home.join("folder");
    strangers::make_directory(&folder, 0o700);
    let words = refused(&host, &file(slash(&folder), &[("mode", "0755")]));
    assert!(words.contains(REFUSAL), "{words}");
    // A declared content replaces the file; `force` is consent.
    made(&host, &file(&path, &[("content", "x"), ("owner", "games"), ("mode", "0644")]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    strangers::write(&path, "private", 0o600);
    made(&host, &file(&path, &[("owner", "games"), ("force", "true")]));
    assert_eq!(owner(&path).0, OTHER);
}

#[test]
fn a_users_own_private_file_stays_manageable() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o775);
    let path = home.join("a");
    for given in [
        vec![("owner", "nobody"), ("mode", "0644")],
        vec![("mode", "0644")],
        vec![("group", "games"), ("mode", "0640")],
        vec![("owner", "games")],
        vec![("owner", "root"), ("mode", "0644")],
    ] {
        strangers::write(&path, "x", 0o600);
        made(&host, &file(&path, &given));
    }
    strangers::write(&path, "x", 0o600);
    made(&host, &file(slash(&home), &[("mode", "u=rwX,go=rX"), ("recurse", "true")]));
    assert_eq!(mode(&path), 0o644);
    // A sticky directory, with the owner named in the graph.
    let path = shared.join("a");
    strangers::write(&path, "x", 0o600);
    let words = refused(&host, &file(&path, &[("mode", "0644")]));
    assert!(words.contains(REFUSAL), "{words}");
    made(&host, &file(&path, &[("owner", "nobody"), ("mode", "0644")]));
    // An undo of that run.
    chmod(&path, 0o600);
    let permit = permit(&CancellationToken::new());
    host.files()
        .restore(
            &permit,
            (&path, &prior(STRANGER, 0o644, None)),
            &mut RestoredDirectories::default(),
        )
        .unwrap();
    assert_eq!(mode(&path), 0o644);
    // A right to write for a group that may already read.
    let project = dir.path().join("project");
    make_directory_of_other(&project);
    chmod(&project, 0o2770);
    let path = project.join("a");
    strangers::write(&path, "x", 0o640);
    chown(&path, None, Some(60)).unwrap();
    made(&host, &file(slash(&project), &[("mode", "g+rwX,o-rwx"), ("recurse", "true")]));
    assert_eq!(mode(&path), 0o660);
}

/// The directory changes its owner in the first run; a file inside is still one that the earlier owner moved
/// there.
#[test]
fn a_users_private_file_stays_refused_in_later_runs() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    for (new, theirs) in [("root", false), ("nobody", false), ("root", true), ("games", true)] {
        let tree = dir.path().join(format!("{new}-{theirs}"));
        if theirs {
            strangers::make_directory(&tree, 0o755);
        } else {
            make_directory_of_other(&tree);
        }
        let path = tree.join("moved");
        strangers::write(&path, "private", 0o600);
        made(&Host::default(), &file(slash(&tree), &[("owner", new), ("mode", "0755")]));
        let opened = file(&path, &[("mode", "0644")]);
        for run in 0..2 {
            let said = format!("{:?}", hold(&Host::default(), &opened));
            // Games could have moved the file there while games owned the directory.
            let is_refused = !theirs || new == "games";
            assert_eq!(said.contains(REFUSAL), is_refused, "{new}, {theirs}, {run}: {said}");
        }
        if new != "games" {
            let own = tree.join("own");
            std::thread::sleep(std::time::Duration::from_millis(50));
            strangers::write(&own, "x", 0o600);
            made(&Host::default(), &file(&own, &[("mode", "0644")]));
        }
    }
}

/// A private directory that another user moved does not lose its contents, even where `force` allows the
/// removal of a directory.
#[test]
fn a_private_directory_that_another_user_moved_is_not_removed() {
    let (host, (dir, shared)) = (Host::default(), shared());
    let (home, own) = (dir.path().join("home"), dir.path().join("own"));
    make_directory_of_other(&home);
    strangers::make_directory(&own, 0o755);
    let gone = |path: &Path| file(path, &[("state", "absent"), ("force", "true")]);
    let fill = |path: &Path, (uid, mode): (u32, u32)| {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("k"), "x").unwrap();
        chown(path, Some(uid), Some(uid)).unwrap();
        chmod(path, mode);
    };
    let path = home.join("managed");
    for (uid, mode) in [(STRANGER, 0o700), (STRANGER, 0o750), (0, 0o700)] {
        fill(&path, (uid, mode));
        for held in [gone(&path), file(&path, &[("content", "x"), ("force", "true")])] {
            let words = refused(&host, &held);
            assert!(words.contains("can have moved it there"), "{words}");
            assert!(path.join("k").exists());
        }
    }
    // A directory that everybody may enter, or that nobody else can have moved, is removed as before.
    for (path, uid, mode) in [
        (&path, 0, 0o755),
        (&path, OTHER, 0o700),
        (&own.join("managed"), STRANGER, 0o700),
        (&shared.join("managed"), STRANGER, 0o700),
        (&dir.path().join("managed"), 0, 0o700),
    ] {
        fill(path, (uid, mode));
        made(&host, &gone(path));
        assert!(!path.exists());
    }
    // A directory that this program made there is recognised, also by another process; a replacement is not.
    let make =
        |path: &Path| made(&host, &file(slash(path), &[("owner", "root"), ("mode", "0700")]));
    make(&path);
    fill(&path, (0, 0o700));
    made(&Host::default(), &gone(&path));
    make(&path);
    fs::rename(&path, home.join("aside")).unwrap();
    fill(&path, (STRANGER, 0o700));
    assert!(refused(&host, &gone(&path)).contains("can have moved it there"));
    fs::remove_dir_all(&path).unwrap();
    let elsewhere = home.join("elsewhere");
    make(&elsewhere);
    fill(&elsewhere, (0, 0o700));
    fs::rename(&elsewhere, &path).unwrap();
    assert!(refused(&host, &gone(&path)).contains("can have moved it there"));
}
