//! The harness for tests of commands.

use std::fs;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};
use steadfast_resources::host::{Command, Finished};
use steadfast_resources::{Host, MintKey, Permit, Recorders};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static KEY: OnceLock<MintKey> = OnceLock::new();

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

pub(crate) fn runtime() -> &'static Runtime {
    &RUNTIME
}

pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    KEY.get_or_init(|| MintKey::take().unwrap()).mint(cancel.clone(), Recorders::None)
}

pub(crate) fn host() -> Host {
    Host::default()
}

pub(crate) fn command(argv: &[&str]) -> Command {
    Command { argv: argv.iter().map(ToString::to_string).collect(), ..Command::default() }
}

pub(crate) fn shell(text: &str) -> Command {
    command(&["/bin/sh", "-c", text])
}

pub(crate) fn query(command: &Command) -> Finished {
    wait(host().query(command, &CancellationToken::new())).unwrap()
}

pub(crate) fn output(command: &Command) -> String {
    let finished = query(command);
    assert!(finished.is_success(), "{finished:?} {:?}", finished.stderr.last_lines(5));
    finished.stdout.text().into_owned()
}

/// Waits for a condition, with a generous time limit.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes, except zombies, whose argument vector contains this word.
pub(crate) fn living(word: &str) -> Vec<i32> {
    processes()
        .filter(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|found| found == word.as_bytes())
        })
        .collect()
}

/// Returns a word (or a number of seconds) that is unique to this test run, by which processes are found.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}{:07}", std::process::id())
}

/// Returns the children of this process that have ended and were not reaped.
pub(crate) fn zombies() -> Vec<String> {
    let own = std::process::id().to_string();
    processes()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok())
        .filter(|stat| {
            let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(&own)
        })
        .collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
}

/// Runs one test of this program again, as the user nobody or with a poisoned environment.
pub(crate) fn again(test: &str, prefix: &[&str], environment: &[(&str, &str)]) {
    let program = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The user nobody may have no access to the build directory. A child process makes the copy: a new child of
    // another test could hold a writing descriptor of this process for a moment, and the program would be busy.
    let copy = folder.path().join("program");
    let copied = std::process::Command::new("/bin/cp").arg(program).arg(&copy).status().unwrap();
    assert!(copied.success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let [first, rest @ ..] = prefix else { panic!("a prefix is expected") };
    let done = std::process::Command::new(first)
        .args(rest)
        .arg(copy)
        .args(["--exact", test, "--ignored", "--test-threads", "1", "--nocapture"])
        .envs(environment.iter().copied())
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

pub(crate) const AS_NOBODY: &[&str] =
    &["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
