//! The harness for tests of kinds: makes a resource from texts, and checks and applies it like the driver.

use futures_util::FutureExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, FieldType, Fields, Host, Invalid, KindSet, MintKey, Outcome,
    Permit, Place, Recorders, Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// Returns a permit that is valid until the token is cancelled.
pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    permit_with(cancel, Recorders::None)
}

/// Mints a permit with recorders.
pub(crate) fn permit_with(cancel: &CancellationToken, recorders: Recorders) -> Permit {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    let key = KEY.get_or_init(|| MintKey::take().expect("the first who asks"));
    key.mint(cancel.clone(), recorders)
}

/// Builds a resource of a kind, or returns all problems.
pub(crate) fn build(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    build_at(kind, name, given, &Place { base: PathBuf::from("/") })
}

/// Builds a resource for a graph in the folder `base`; a list of texts is given as lines.
pub(crate) fn build_at(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
    place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).expect("a kind of this build");
    let mut fields = Fields::default();
    for (key, text) in given {
        let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
        let value = match field.takes {
            FieldType::Bool => Value::Bool(*text == "true"),
            FieldType::Texts => Value::Texts(text.lines().map(str::to_owned).collect()),
            _ => Value::Text((*text).to_owned()),
        };
        fields.insert(field.name, value);
    }
    (spec.build)(name, fields, place)
}

/// Makes a file resource for a path (with a trailing slash: a directory).
pub(crate) fn file(path: impl AsRef<Path>, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    let name = path.as_ref().to_str().expect("text");
    build("file", name, given).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"))
}

/// Runs one check.
pub(crate) fn check(host: &Host, resource: &Arc<dyn Resource>) -> CheckResult {
    let ask = CheckRequest::default();
    resource.check(host, ask).now_or_never().expect("a check on a thread never waits")
}

/// Runs one check that must find a difference.
pub(crate) fn change(host: &Host, resource: &Arc<dyn Resource>) -> Change {
    match check(host, resource) {
        CheckResult::Differs(change) => change,
        other => panic!("expected a difference, found {other:?}"),
    }
}

/// Runs one apply.
pub(crate) fn apply(host: &Host, resource: &Arc<dyn Resource>, change: Change) -> Outcome {
    let permit = permit(&CancellationToken::new());
    apply_with(host, resource, change, &permit)
}

/// Runs one apply with this permit.
pub(crate) fn apply_with(
    host: &Host,
    resource: &Arc<dyn Resource>,
    change: Change,
    permit: &Permit,
) -> Outcome {
    resource.apply(host, permit, change).now_or_never().expect("an apply on a thread never waits")
}

/// Checks, and applies if there is a difference; an unknown result counts as a failure.
pub(crate) fn hold(host: &Host, resource: &Arc<dyn Resource>) -> Outcome {
    match check(host, resource) {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Differs(change) => apply(host, resource, change),
        CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
    }
}

/// Applies a resource, and asserts that something was changed and the resource is then converged.
pub(crate) fn made(host: &Host, resource: &Arc<dyn Resource>) -> Vec<String> {
    match hold(host, resource) {
        Outcome::Changed(done) => {
            assert!(matches!(check(host, resource), CheckResult::Same), "right after the apply");
            done
        }
        other => panic!("expected a change, found {other:?}"),
    }
}

/// Applies a resource, asserts a failure without a change, and returns its message.
pub(crate) fn refused(host: &Host, resource: &Arc<dyn Resource>) -> String {
    match hold(host, resource) {
        Outcome::Failed { failure, touched: false } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            failure.what
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}

/// Applies a tree that must fail in part, and returns the message.
pub(crate) fn failed(host: &Host, resource: &Arc<dyn Resource>) -> String {
    match hold(host, resource) {
        Outcome::Failed { failure, .. } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            failure.what
        }
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// Returns the permission bits.
pub(crate) fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

/// Returns the owner and the group.
pub(crate) fn owner(path: impl AsRef<Path>) -> (u32, u32) {
    let meta = std::fs::symlink_metadata(path).expect("it is there");
    (meta.uid(), meta.gid())
}

/// Sets the permission bits.
pub(crate) fn chmod(path: impl AsRef<Path>, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

/// Returns all names in a directory, sorted.
pub(crate) fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(path).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Mounts a file system at a path.
pub(crate) fn mount(arguments: &[&str], at: &Path) {
    let status = std::process::Command::new("mount").args(arguments).arg(at).status();
    assert!(status.expect("mount").success(), "mount {arguments:?}");
}

/// Mounts a protected directory under another name: an empty file system of the test, with `bin` and `share`,
/// is mounted over `/usr/local` and at `at`. Only the thread of the test sees these mounts, and they end with
/// the thread.
pub(crate) fn mount_protected(at: &Path) {
    let flags = nix::sched::CloneFlags::CLONE_NEWNS;
    nix::sched::unshare(flags).expect("a mount namespace of its own");
    mount(&["--make-rprivate"], Path::new("/"));
    let protected = Path::new("/usr/local");
    mount(&["-t", "tmpfs", "none"], protected);
    for name in ["bin", "share"] {
        std::fs::create_dir(protected.join(name)).expect("a directory");
    }
    mount(&["--bind", "/usr/local"], at);
    mount(&["-o", "remount,bind,ro"], at);
}

/// Unmounts a path, with retries: a new child process of another test can hold the mount for a moment.
pub(crate) fn unmount(at: &Path) {
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !std::process::Command::new("umount").arg(at).output().expect("umount").status.success() {
        assert!(std::time::Instant::now() < limit, "{} stays busy", at.display());
        std::thread::yield_now();
    }
}

/// Panics unless the test runs as root.
pub(crate) fn demand_root() {
    assert!(nix::unistd::geteuid().is_root(), "this test must run as root");
}

/// Makes a directory for one test that every user may enter.
pub(crate) fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    chmod(scratch.path(), 0o755);
    scratch
}
