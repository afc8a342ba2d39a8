//! `kill -9` at random moments with a start after each: no acknowledged entry is lost, and none is partial.

use super::{begin, end};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast::store::{Ended, Entry, Journal, MemoryStore, SqliteStore, Store as _};

/// The limit of unacknowledged entries.
const WINDOW: u64 = 300;

/// Returns entry `k` of the endless log over twenty resources that parent and child share.
fn entry(k: u64) -> Entry {
    let step = k / 2;
    let identity = format!("exec[{}]", step % 20);
    let child = format!("exec[{}]", (step + 7) % 20);
    let stamp = step + 1;
    if k.is_multiple_of(2) {
        return begin(&identity, stamp, &[&child]);
    }
    match step % 5 {
        0 => end(&identity, stamp, Ended::Failed, &[&child], None),
        1 => end(&identity, stamp, Ended::Interrupted, &[], None),
        2 => Entry::Forget(identity.into()),
        _ => end(&identity, stamp, Ended::Well, &[], Some(stamp.saturating_sub(10))),
    }
}

/// The child process: writes the log from a given entry on, and records the last acknowledged number in a file.
#[test]
#[ignore = "the child of the test below"]
fn child() {
    let Ok(directory) = std::env::var("STORE_CRASH_DIRECTORY") else { return };
    let from: u64 = std::env::var("STORE_CRASH_FROM").expect("set").parse().expect("a number");
    let directory = PathBuf::from(directory);
    let store = SqliteStore::open(&directory.join("state")).expect("opened");
    let mut noted = OpenOptions::new()
        .append(true)
        .create(true)
        .open(directory.join("acknowledged"))
        .expect("opened");
    let answered = Arc::new(AtomicU64::new(from));
    let seen = Arc::clone(&answered);
    let journal = Journal::spawn(Box::new(store)).expect("a thread");
    journal.attach(move |tickets, result| {
        result.expect("kept");
        let last = *tickets.last().expect("never empty");
        writeln!(noted, "{last}").expect("noted");
        seen.store(last, Ordering::SeqCst);
    });
    for k in from.. {
        journal.write(entry(k), k, k % 3 != 0);
        while k > answered.load(Ordering::SeqCst) + WINDOW {
            std::thread::yield_now();
        }
    }
}

/// Runs the child and kills it after a moment; returns the last acknowledged entry.
fn run_and_kill(directory: &Path, from: u64, moment: Duration) -> Option<u64> {
    let acknowledged = directory.join("acknowledged");
    drop(std::fs::remove_file(&acknowledged));
    let mut child = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", "crash::child", "--ignored"])
        .env("STORE_CRASH_DIRECTORY", directory)
        .env("STORE_CRASH_FROM", from.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    std::thread::sleep(moment);
    child.kill().expect("SIGKILL");
    child.wait().expect("reaped");
    let text = std::fs::read_to_string(&acknowledged).unwrap_or_default();
    text.lines().last().map(|line| line.parse().expect("a number"))
}

/// B-1, B-10, B-12, F-1 (of the store): after each of many kills, the state equals the log up to some entry, not
/// before the last acknowledged one.
#[test]
fn kill_9_at_any_moment() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut model = MemoryStore::default();
    let mut from = 0;
    let mut acknowledged_at_all = 0;
    let mut seed = u64::from(std::process::id()) | 1;
    for round in 0..40 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let moment = Duration::from_micros(2_000 + seed % 60_000);
        let acknowledged = run_and_kill(directory.path(), from, moment);
        let mut store = SqliteStore::open(&directory.path().join("state")).expect("opened");
        assert!(store.repair_report().lines().is_empty(), "round {round}");
        let told = store.recall().expect("told back");
        let least = acknowledged.map_or(from, |last| last + 1);
        acknowledged_at_all += least - from;
        for k in from..least {
            model.commit(&[entry(k)]).expect("kept");
        }
        let mut next = least;
        loop {
            if model.fork().recall().expect("told back") == told {
                break;
            }
            assert!(
                next <= least + WINDOW + 1,
                "round {round}: no cut of the log gives this state"
            );
            model.commit(&[entry(next)]).expect("kept");
            next += 1;
        }
        assert_eq!(store.recall().expect("told back"), told, "B-12");
        model.recall().expect("told back");
        from = next;
    }
    assert!(acknowledged_at_all > 1000, "the children got to write: {acknowledged_at_all}");
}
