//! S-11: whose programs a command may be, and what is said of it.

use crate::support::{build, exec, run, text, texts};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;
use steadfast_resources::Outcome;

const NOBODY: u32 = 65534;

/// S-11: which programs nobody else should be able to change is told, and they are run all the same: the operator may have put them
/// there on purpose. What runs as another user may be that user's. Needs root.
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
    let trusts = |given: Vec<_>| build("exec", given).unwrap().trusts();
    assert_eq!(trusts(vec![argv()]), [program.clone()]);
    assert_eq!(trusts(vec![argv(), text("user", "nobody")]), [PathBuf::new(); 0]);
    assert_eq!(trusts(vec![texts("args", &["true"])]), [PathBuf::new(); 0], "from PATH");
    assert!(matches!(run(&exec([argv()])), Outcome::Changed(_)));
    assert!(matches!(run(&exec([argv(), text("user", "nobody")])), Outcome::Changed(_)));
}
