//! Stored outputs: a test compares a whole output with a file of `tests/daemon/snapshots`. The variable
//! `STEADFAST_RENEW_SNAPSHOTS=1` writes the files anew, on purpose.

use std::path::PathBuf;

/// Asserts that an output equals the stored one.
#[track_caller]
pub(crate) fn matches_snapshot(name: &str, found: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("STEADFAST_RENEW_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(&folder).expect("the folder");
        std::fs::write(&path, found).expect("written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let hint = "run the test with STEADFAST_RENEW_SNAPSHOTS=1 and review the difference";
    assert!(
        stored == found,
        "{} differs: {hint}\n-- stored\n{stored}-- found\n{found}",
        path.display()
    );
}
