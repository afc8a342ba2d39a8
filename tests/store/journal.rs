//! The journal: order, group commit, one reply for each ticket, and recovery from errors.

use super::{begin, end};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use steadfast::store::{
    Ended, Entry, Journal, MemoryStore, SqliteStore, Store, StoreError, StoredState,
};

type Answer = (Vec<u64>, Result<(), String>);

fn spawn(store: impl Store + 'static) -> (Journal, Receiver<Answer>) {
    let (sender, answers) = channel();
    let journal = Journal::spawn(Box::new(store)).expect("a thread");
    journal.attach(move |tickets, result| {
        let result = result.map_err(ToString::to_string);
        sender.send((tickets.to_vec(), result)).expect("the test listens");
    });
    (journal, answers)
}

/// A store that waits or fails on request and records each batch.
#[derive(Clone, Default)]
struct Probe {
    kept: MemoryStore,
    batches: Arc<Mutex<Vec<Vec<Entry>>>>,
    failing: Arc<AtomicBool>,
    reopened: Arc<AtomicUsize>,
    gate: Option<Arc<Mutex<Receiver<()>>>>,
}

impl Probe {
    fn gated() -> (Self, Sender<()>) {
        let (open, gate) = channel();
        (Self { gate: Some(Arc::new(Mutex::new(gate))), ..Self::default() }, open)
    }
}

impl Store for Probe {
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        self.kept.recall()
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        if let Some(gate) = &self.gate {
            gate.lock().expect("not poisoned").recv().expect("the test opens it");
        }
        self.batches.lock().expect("not poisoned").push(batch.to_vec());
        if self.failing.load(Ordering::SeqCst) {
            let why = "no space left".to_owned();
            return Err(StoreError::Database { path: "probe".to_owned(), why });
        }
        self.kept.commit(batch)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.reopened.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// B-3: entries are committed in the order of arrival; those that arrive during a commit form one bounded batch.
#[test]
fn entries_that_wait_are_committed_together_in_order() {
    let (probe, open) = Probe::gated();
    let (journal, answers) = spawn(probe.clone());
    let entry = |ticket: u64| begin(&format!("r{ticket}"), ticket, &[]);
    journal.write(entry(0), 0, true);
    // The first entry may still be on its way to the store and take later ones along.
    for ticket in 1..3000 {
        journal.write(entry(ticket), ticket, ticket % 3 == 0);
    }
    for _ in 0..10 {
        open.send(()).expect("a store");
    }
    journal.flush();
    let answered: Vec<u64> = answers
        .try_iter()
        .flat_map(|(tickets, result)| {
            result.expect("kept");
            tickets
        })
        .collect();
    assert_eq!(answered, (0..3000).collect::<Vec<_>>());
    let batches = probe.batches.lock().expect("not poisoned");
    let log: Vec<Entry> = batches.iter().flatten().cloned().collect();
    assert_eq!(log, (0..3000).map(entry).collect::<Vec<_>>());
    assert!(batches.iter().all(|batch| batch.len() <= 1024));
    assert!(batches.len() <= 5, "{} commits for 3000 entries", batches.len());
}

#[test]
fn an_entry_that_is_not_urgent_waits_a_moment_for_company_and_is_never_passed() {
    let probe = Probe::default();
    let (journal, answers) = spawn(probe);
    journal.write(begin("alone", 1, &[]), 1, false);
    let answer = answers.recv_timeout(Duration::from_secs(5)).expect("it does not wait for ever");
    assert_eq!(answer, (vec![1], Ok(())));
    // An urgent entry commits the earlier ones at once, since the log has one order.
    journal.write(begin("a", 2, &[]), 2, false);
    journal.write(begin("b", 3, &[]), 3, true);
    journal.flush();
    let tickets: Vec<u64> = answers.try_iter().flat_map(|(tickets, _)| tickets).collect();
    assert_eq!(tickets, [2, 3]);
    journal.write(begin("c", 4, &[]), 4, false);
    journal.close();
    assert_eq!(answers.try_iter().count(), 1, "closing answers what waits");
}

/// B-1, B-3, B-6: a failed batch is answered with its error, and the next one uses a new handle.
#[test]
fn after_an_error_the_handle_is_opened_anew_and_later_batches_are_tried() {
    let probe = Probe::default();
    let (journal, answers) = spawn(probe.clone());
    probe.failing.store(true, Ordering::SeqCst);
    journal.write(begin("a", 1, &[]), 1, true);
    journal.flush();
    let (tickets, result) = answers.recv().expect("answered");
    assert_eq!(tickets, [1]);
    assert!(result.expect_err("not kept").contains("no space left"));
    assert_eq!(probe.reopened.load(Ordering::SeqCst), 0);
    probe.failing.store(false, Ordering::SeqCst);
    journal.write(begin("b", 9, &[]), 9, true);
    let (tickets, result) = answers.recv().expect("answered");
    assert_eq!(tickets, [9]);
    assert!(
        result.expect_err("not kept").contains("an earlier entry could not be stored"),
        "nothing passes it"
    );
    journal.go_on();
    journal.write(begin("a", 2, &[]), 2, true);
    journal.flush();
    assert_eq!(answers.recv().expect("answered"), (vec![2], Ok(())));
    assert_eq!(probe.reopened.load(Ordering::SeqCst), 1);
    journal.write(begin("a", 3, &[]), 3, true);
    journal.close();
    assert_eq!(probe.reopened.load(Ordering::SeqCst), 1, "a handle that works is kept");
}

/// F-4: a full disk rejects commits, and free space heals the journal. Root only (mounts a tmpfs).
#[test]
fn a_full_disk_refuses_and_heals() {
    let directory = tempfile::tempdir().expect("a directory");
    let mount = Tmpfs::on(directory.path(), "size=600k");
    let state = directory.path().join("state");
    let (journal, answers) = spawn(SqliteStore::open(&state).expect("opened"));
    journal.write(begin("before", 1, &[]), 1, true);
    journal.flush();
    assert_eq!(answers.recv().expect("answered").1, Ok(()));
    let filler = directory.path().join("filler");
    let mut size = 1 << 20;
    while size > 0 {
        // The file is filled to the last block.
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&filler);
        let written = file
            .as_mut()
            .map_or(0, |file| std::io::Write::write(file, &vec![0; size]).unwrap_or_default());
        if written < size {
            size /= 2;
        }
    }
    let refused = (2..100).find(|ticket| {
        let owes: Vec<String> = (0..50).map(|child| format!("child {ticket} {child}")).collect();
        let owes: Vec<&str> = owes.iter().map(String::as_str).collect();
        journal.write(begin("during", *ticket, &owes), *ticket, true);
        journal.flush();
        answers.recv().expect("answered").1.is_err()
    });
    let refused = refused.expect("the disk is full");
    std::fs::remove_file(&filler).expect("removed");
    journal.go_on();
    journal.write(end("after", 200, Ended::Well, &[], None), 200, true);
    journal.flush();
    assert_eq!(answers.recv().expect("answered"), (vec![200], Ok(())));
    journal.close();
    let recalled = SqliteStore::open(&state).expect("opened").recall().expect("told back");
    assert_eq!(recalled.resources["after"].done, Some(1200));
    assert!(recalled.resources["before"].interrupted.is_some());
    let lost = format!("child {refused} 0");
    assert!(!recalled.resources.contains_key(&lost), "what was refused does not exist");
    drop(mount);
}

struct Tmpfs(std::path::PathBuf);

impl Tmpfs {
    fn on(path: &std::path::Path, options: &str) -> Self {
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .status()
            .expect("mount runs");
        assert!(status.success(), "this test needs root");
        Self(path.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let status = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

/// Measures commits per second: run with `--ignored --nocapture --release`.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let report = |what: &str, count: u32, took: Duration| {
        let rate = f64::from(count) / took.as_secs_f64();
        let line = format!("{what}: {count} in {took:?}: {rate:.0}/s\n");
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("written");
    };
    let (journal, answers) = spawn(SqliteStore::open(directory.path()).expect("opened"));
    let start = Instant::now();
    for ticket in 0..500 {
        journal.write(begin("one", ticket, &["child"]), ticket, true);
        journal.flush();
    }
    report("one begin at a time", 500, start.elapsed());
    while answers.try_recv().is_ok() {}
    let start = Instant::now();
    for ticket in 0..10_000 {
        journal.write(begin(&format!("file[/etc/some/file-{ticket}]"), ticket, &[]), ticket, true);
    }
    for ticket in 0..10_000 {
        let identity = format!("file[/etc/some/file-{ticket}]");
        journal.write(end(&identity, ticket, Ended::Well, &[], None), ticket, true);
    }
    journal.flush();
    report("begins and ends in flight", 20_000, start.elapsed());
    report("in commits", u32::try_from(answers.try_iter().count()).expect("few"), start.elapsed());
    journal.close();
    let start = Instant::now();
    let mut store = SqliteStore::open(directory.path()).expect("opened");
    let count = store.recall().expect("told back").resources.len();
    report("open and recall", u32::try_from(count).expect("few"), start.elapsed());
}
