//! What the tests of kinds share: a resource made of texts, checked and applied as the driver does it.

use futures_util::FutureExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, FieldType, Fields, Host, Invalid, MintKey, Outcome, Permit,
    Place, Resource, Value, registry,
};
use tokio_util::sync::CancellationToken;

/// A permit that holds until the token is cancelled.
pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    KEY.get_or_init(|| MintKey::take().expect("the first who asks")).mint(cancel.clone())
}

/// A resource of that kind, or all that is wrong with it.
pub(crate) fn build(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    build_at(kind, name, given, &Place { base: PathBuf::from("/") })
}

/// The same for a graph in another folder. A list of texts is given by lines.
pub(crate) fn build_at(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
    place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = registry::find(kind).expect("a kind of this build");
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

/// A file at a path (with a slash at its end: a directory).
pub(crate) fn file(path: impl AsRef<Path>, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    let name = path.as_ref().to_str().expect("text");
    build("file", name, given).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"))
}

/// One check.
pub(crate) fn check(host: &Host, resource: &Arc<dyn Resource>) -> CheckResult {
    let ask = CheckRequest::default();
    resource.check(host, ask).now_or_never().expect("a check on a thread never waits")
}

/// One check that must find a difference.
pub(crate) fn change(host: &Host, resource: &Arc<dyn Resource>) -> Change {
    match check(host, resource) {
        CheckResult::Differs(change) => change,
        other => panic!("expected a difference, found {other:?}"),
    }
}

/// One apply.
pub(crate) fn apply(host: &Host, resource: &Arc<dyn Resource>, change: Change) -> Outcome {
    let permit = permit(&CancellationToken::new());
    apply_with(host, resource, change, &permit)
}

/// One apply with this permit.
pub(crate) fn apply_with(
    host: &Host,
    resource: &Arc<dyn Resource>,
    change: Change,
    permit: &Permit,
) -> Outcome {
    resource.apply(host, permit, change).now_or_never().expect("an apply on a thread never waits")
}

/// Check, apply where it differs; what is not known is told as a failure.
pub(crate) fn hold(host: &Host, resource: &Arc<dyn Resource>) -> Outcome {
    match check(host, resource) {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Differs(change) => apply(host, resource, change),
        CheckResult::Unknown(trouble) => Outcome::Failed { trouble, touched: false },
    }
}

/// Holds it, and demands that it was changed and is right then.
pub(crate) fn made(host: &Host, resource: &Arc<dyn Resource>) -> Vec<String> {
    match hold(host, resource) {
        Outcome::Changed(done) => {
            assert!(matches!(check(host, resource), CheckResult::Same), "right after the apply");
            done
        }
        other => panic!("expected a change, found {other:?}"),
    }
}

/// Holds it, and demands that it is refused or fails without a touch; gives the words.
pub(crate) fn refused(host: &Host, resource: &Arc<dyn Resource>) -> String {
    match hold(host, resource) {
        Outcome::Failed { trouble, touched: false } => {
            assert!(trouble.what.lines().next().unwrap().chars().count() <= 100, "{trouble}");
            trouble.what
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}

/// Holds a tree of which a part fails; gives the words.
pub(crate) fn failed(host: &Host, resource: &Arc<dyn Resource>) -> String {
    match hold(host, resource) {
        Outcome::Failed { trouble, .. } => {
            assert!(trouble.what.lines().next().unwrap().chars().count() <= 100, "{trouble}");
            trouble.what
        }
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// Permission bits.
pub(crate) fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

/// Owner and group.
pub(crate) fn owner(path: impl AsRef<Path>) -> (u32, u32) {
    let meta = std::fs::symlink_metadata(path).expect("it is there");
    (meta.uid(), meta.gid())
}

/// Sets permission bits.
pub(crate) fn chmod(path: impl AsRef<Path>, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

/// All names in a directory, sorted.
pub(crate) fn names(path: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(path).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Mounts something at a path.
pub(crate) fn mount(arguments: &[&str], at: &Path) {
    let status = std::process::Command::new("mount").args(arguments).arg(at).status();
    assert!(status.expect("mount").success(), "mount {arguments:?}");
}

/// A protected directory by another name: an empty file system of the test stands for `/usr/local`, with `bin` and
/// `share` in it, and is mounted at that place too. Only the thread of the test sees these mounts, and they end with it.
pub(crate) fn mount_sacred(at: &Path) {
    let flags = nix::sched::CloneFlags::CLONE_NEWNS;
    nix::sched::unshare(flags).expect("a mount namespace of its own");
    mount(&["--make-rprivate"], Path::new("/"));
    let sacred = Path::new("/usr/local");
    mount(&["-t", "tmpfs", "none"], sacred);
    for name in ["bin", "share"] {
        std::fs::create_dir(sacred.join(name)).expect("a directory");
    }
    mount(&["--bind", "/usr/local"], at);
    mount(&["-o", "remount,bind,ro"], at);
}

/// Unmounts it; a child that is being forked for another test can hold it for a moment.
pub(crate) fn unmount(at: &Path) {
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !std::process::Command::new("umount").arg(at).output().expect("umount").status.success() {
        assert!(std::time::Instant::now() < limit, "{} stays busy", at.display());
        std::thread::yield_now();
    }
}

/// Whether this is root; many tests must be.
pub(crate) fn demand_root() {
    assert!(nix::unistd::geteuid().is_root(), "this test must run as root");
}

/// A directory for one test that everybody may enter.
pub(crate) fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    chmod(scratch.path(), 0o755);
    scratch
}
