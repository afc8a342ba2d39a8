//! S-11: what root runs, nobody else may be able to change.

use crate::support::{exec, run, text, texts};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use steadfast_resources::Outcome;

const NOBODY: u32 = 65534;

/// S-11: a program of somebody else is not run by root, also through a link in their directory; it is run as that user. Needs root.
#[test]
fn root_runs_no_program_that_others_could_change() {
    assert!(nix::unistd::geteuid().is_root(), "this test must run as root");
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(dir.path(), 0o755);
    let (home, program) = (dir.path().join("home"), dir.path().join("home/program"));
    fs::create_dir(&home).unwrap();
    fs::copy("/bin/true", &program).unwrap();
    mode(&program, 0o755);
    let argv = |path: &std::path::Path| texts("args", &[path.to_str().unwrap()]);
    assert!(matches!(run(&exec([argv(&program)])), Outcome::Changed(_)), "root's own");
    for path in [&home, &program] {
        chown(path, Some(NOBODY), None).unwrap();
    }
    let refused = |path: &std::path::Path| match run(&exec([argv(path)])) {
        Outcome::Failed { trouble, touched: false } => trouble.what,
        other => panic!("a refusal is expected, found {other:?}"),
    };
    let words = refused(&program);
    assert!(words.contains("somebody else could change it\n"), "{words}");
    assert!(words.contains("home belongs to uid 65534"), "{words}");
    // The program is root's, and the link to it can be turned.
    symlink("/bin/true", home.join("link")).unwrap();
    assert!(refused(&home.join("link")).contains("somebody else"));
    mode(&home, 0o777);
    chown(&home, Some(0), None).unwrap();
    assert!(refused(&home.join("link")).contains("may be written by others (mode 0777)"));
    mode(&home, 0o755);
    chown(&home, Some(NOBODY), None).unwrap();
    let done = run(&exec([argv(&program), text("user", "nobody")]));
    assert!(matches!(done, Outcome::Changed(_)), "as its owner: {done:?}");
}
