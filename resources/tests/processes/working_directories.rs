//! Tests of working directories on the way to which somebody else placed a link. The tests need root.

use crate::support::{command, host, output, shell, wait};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast_resources::Failure;
use steadfast_resources::host::{Command, Finished};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const NOBODY: u32 = 65534;
const DAEMON: u32 = 1;

/// Makes a home of nobody (`alice`), and a directory of another user with the directory `docs` and a file `f`.
fn homes(owner: u32, mode: u32) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (alice, other) = (folder.path().join("alice"), folder.path().join("other"));
    fs::create_dir(&alice).unwrap();
    chown(&alice, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::create_dir_all(other.join("docs")).unwrap();
    fs::write(other.join("docs/f"), "closed").unwrap();
    chown(&other, Some(owner), Some(owner)).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(mode)).unwrap();
    (folder, alice, other)
}

fn link(target: &Path, at: &Path, owner: u32) {
    symlink(target, at).unwrap();
    lchown(at, Some(owner), Some(owner)).unwrap();
}

fn within(cwd: &Path, command: Command) -> Command {
    Command { cwd: Some(cwd.to_owned()), ..command }
}

fn as_nobody(command: Command) -> Command {
    Command { user: Some("nobody".to_owned()), ..command }
}

fn asked(command: &Command) -> Result<Finished, Failure> {
    wait(host().query(command, &CancellationToken::new()))
}

fn refused(command: &Command) -> String {
    let failure = asked(command).unwrap_err();
    assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure:?}");
    assert!(failure.hint.is_some(), "{failure:?}");
    failure.what
}

/// S-11: a user's link leads the user's command nowhere that the user could not go.
#[test]
fn another_user_enters_no_closed_directory() {
    let (_folder, alice, other) = homes(DAEMON, 0o700);
    let proj = alice.join("proj");
    link(&other.join("docs"), &proj, NOBODY);
    let read = within(&proj, as_nobody(command(&["cat", "f"])));
    let said = refused(&read);
    assert!(said.contains("user nobody cannot enter cwd "), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    assert!(refused(&Command { no_new_privs: true, ..read.clone() }).contains("cannot enter"));
    let lines = wait(async {
        let lines = host().lines(&read, &CancellationToken::new()).await?;
        lines.ended().await
    });
    assert!(lines.unwrap_err().what.contains("cannot enter"), "a watch");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output(&read), "closed");
    fs::set_permissions(&alice, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(output(&read), "closed", "its own directory may be closed to others");
}

/// A directory with an unusual name is entered as well, and an exit code of 125 stays an exit code.
#[test]
fn another_user_enters_its_own_directory() {
    let (_folder, alice, _) = homes(DAEMON, 0o700);
    let odd = alice.join("a=b '$(id)' ${HOME}\nc");
    fs::create_dir(&odd).unwrap();
    chown(&odd, Some(NOBODY), None).unwrap();
    let seen = output(&within(&odd, as_nobody(command(&["pwd"]))));
    assert_eq!(seen.strip_suffix('\n').unwrap(), odd.to_str().unwrap());
    let ends = within(&odd, as_nobody(shell("echo x >&2; exit 125")));
    assert!(!asked(&ends).unwrap().is_success());
    let gone = within(&alice.join("gone"), as_nobody(command(&["pwd"])));
    assert!(refused(&gone).contains("No such file or directory"));
}

/// S-11: a command of root follows no link that another user could have placed.
#[test]
fn root_follows_no_link_of_another_user() {
    let (folder, alice, vic) = homes(0, 0o700);
    let app = alice.join("app");
    link(&vic.join("docs"), &app, NOBODY);
    let remove = || shell("rm f");
    let said = refused(&within(&app, remove()));
    let named = format!("the link {} belongs to uid {NOBODY}", app.display());
    assert!(said.contains("leads through a link") && said.contains(&named), "{said}");
    let root_user = Command { user: Some("root".to_owned()), ..remove() };
    let group = Command { group: Some("daemon".to_owned()), ..remove() };
    for command in [root_user, group, Command { no_new_privs: true, ..remove() }] {
        assert!(refused(&within(&app, command)).contains(&named));
    }
    let watch = within(&app, remove());
    let lines = wait(host().lines(&watch, &CancellationToken::new()));
    assert!(lines.unwrap_err().what.contains(&named), "a watch");

    // The link is on the way, or belongs to root in a folder of the user.
    fs::remove_file(&app).unwrap();
    link(&vic, &app, NOBODY);
    assert!(refused(&within(&app.join("docs"), remove())).contains(&named));
    fs::remove_file(&app).unwrap();
    link(&vic.join("docs"), &app, 0);
    let said = refused(&within(&app, remove()));
    assert!(said.contains("can be replaced") && said.contains("alice belongs to uid"), "{said}");
    // A link of root leads to the link of the user.
    let outer = folder.path().join("outer");
    link(Path::new("alice/app"), &outer, 0);
    assert!(refused(&within(&outer, remove())).contains("can be replaced"));
    assert!(vic.join("docs/f").exists());
}

/// A plain directory of a user stays allowed, and so do links of root.
#[test]
fn root_enters_directories_of_users_and_links_of_root() {
    let (folder, alice, vic) = homes(0, 0o700);
    let pwd = |cwd: &Path| output(&within(cwd, command(&["pwd"]))).trim().to_owned();
    assert_eq!(pwd(&alice), alice.to_str().unwrap());
    let current = folder.path().join("current");
    link(Path::new("./alice/../other/docs"), &current, 0);
    assert_eq!(pwd(&current), vic.join("docs").to_str().unwrap());
    let absolute = folder.path().join("absolute");
    link(&current, &absolute, 0);
    assert_eq!(pwd(&absolute.join("..")), vic.to_str().unwrap());
    let loops = folder.path().join("loops");
    link(&loops, &loops, 0);
    assert!(refused(&within(&loops, command(&["pwd"]))).contains("cannot be used"));
    for file in ["docs/f", "docs/f/x"] {
        let failure = asked(&within(&vic.join(file), command(&["pwd"]))).unwrap_err();
        assert!(failure.what.contains("not a directory"), "{failure:?}");
    }
    assert!(refused(&within(&vic.join("docs/x"), command(&["pwd"]))).contains("No such file"));
}

/// S-11: the user who swaps a directory and a link while root's command starts gains nothing.
#[test]
fn a_swapped_link_leads_root_nowhere() {
    let (_folder, alice, vic) = homes(0, 0o700);
    let (app, other) = (alice.join("app"), alice.join("link"));
    fs::create_dir(&app).unwrap();
    link(&vic.join("docs"), &other, NOBODY);
    let over = AtomicBool::new(false);
    let seen: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &app, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let runs = (0..200).map(|_| asked(&within(&app, command(&["/bin/pwd", "-P"]))));
        let seen = runs.filter_map(Result::ok).map(|it| it.stdout.text().into_owned()).collect();
        over.store(true, Ordering::Relaxed);
        seen
    });
    assert!(!seen.is_empty(), "at times the directory is in place");
    assert!(!seen.iter().any(|seen| seen.contains("docs")), "{seen:?}");
}
