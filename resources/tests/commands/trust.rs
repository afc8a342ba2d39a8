//! Tests of the trust in programs (S-11): programs that other users could change cause warnings.

use crate::support::{EVENT, build, check, exec, run, text, texts};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::PathBuf;
use steadfast_resources::{CheckResult, Outcome, Value};

const NOBODY: u32 = 65534;

/// S-11: programs that another user could change are reported and run all the same, because the operator may
/// have chosen them on purpose. A command of another user may have a program of that user. The test needs
/// root.
#[test]
fn programs_of_somebody_else_are_named_and_run() {
    assert!(nix::unistd::geteuid().is_root(), "this test must run as root");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("program");
    fs::copy("/bin/true", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&program, Some(NOBODY), None).unwrap();
    let argv = || texts("args", &[program.to_str().unwrap(), "word"]);
    let trusts = |given: Vec<_>| build("exec", given).unwrap().footprint().trusts;
    assert_eq!(trusts(vec![argv()]), vec![program.clone()]);
    assert_eq!(trusts(vec![argv(), text("user", "nobody")]), Vec::<PathBuf>::new());
    assert_eq!(trusts(vec![texts("args", &["true"])]), Vec::<PathBuf>::new(), "from PATH");
    assert!(matches!(run(&exec([argv()])), Outcome::Changed(_)));
    assert!(matches!(run(&exec([argv(), text("user", "nobody")])), Outcome::Changed(_)));
}

/// A relative program, or one from a declared PATH, is reported like one with an absolute path.
#[test]
fn programs_from_the_folder_and_from_a_declared_path_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    fs::copy("/bin/true", &program).unwrap();
    let folder = dir.path().to_str().unwrap();
    let trusts = |given: Vec<_>| build("exec", given).unwrap().footprint().trusts;
    let here = |name| vec![texts("args", &[name]), text("cwd", folder)];
    assert_eq!(trusts(here("./program")), vec![dir.path().join("./program")]);
    assert_eq!(trusts(here("program")), Vec::<PathBuf>::new(), "the folder is not in PATH");
    let path = format!("relative:/nowhere:{folder}:/bin");
    let declared = || ("env", Value::TextMap(vec![("PATH".to_owned(), path.clone())]));
    assert_eq!(trusts(vec![texts("args", &["program"]), declared()]), vec![program]);
    assert_eq!(trusts(vec![texts("args", &["missing"]), declared()]), Vec::<PathBuf>::new());
}

/// S-11: a guard whose directory cannot be entered, or must not be, gives no answer. The test needs root.
#[test]
fn guards_have_the_same_directory_as_the_command() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (home, closed) = (dir.path().join("home"), dir.path().join("closed"));
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), None).unwrap();
    fs::create_dir_all(closed.join("docs")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let link = home.join("link");
    symlink(closed.join("docs"), &link).unwrap();
    lchown(&link, Some(NOBODY), None).unwrap();
    let cwd = link.to_str().unwrap();
    for [guard, folder] in [["ifcmd", "ifcwd"], ["nifcmd", "nifcwd"], ["ifcmd", "cwd"]] {
        for (user, said) in [("nobody", "cannot enter"), ("", "belongs to uid 65534")] {
            let guarded = exec([text(guard, "true"), text(folder, cwd), text("user", user)]);
            let CheckResult::Unknown(failure) = check(&guarded, EVENT) else { panic!("{guard}") };
            assert!(failure.what.contains(said), "{guard} {user}: {failure:?}");
        }
    }
    let outcome = run(&exec([text("cmd", "rm -rf cache"), text("cwd", cwd)]));
    assert!(matches!(outcome, Outcome::Failed { touched: false, .. }), "{outcome:?}");
}
