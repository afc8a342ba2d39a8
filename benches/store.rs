//! The store alone: begins and ends by many threads at once, and the opening of a large state.
//!
//! `cargo bench --bench store`: on the disk of the target folder; one sync of this disk is measured too.

#[path = "hosts/report.rs"]
#[expect(dead_code, reason = "what compares two programs is for the other bench")]
mod report;

use report::{Report, Sample, say};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use steadfast::store::{Ended, Entry, Journal, SqliteStore, Store as _, Verb};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The reason that a measurement failed.
type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder =
        tempfile::Builder::new().prefix("store-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut report = Report::default();
    pairs(folder.path(), &mut report)?;
    open(folder.path(), &mut report)
}

fn begin(number: u64) -> Entry {
    let (identity, owes) = (identity(number), vec![identity(number + 1)]);
    Entry::Begin {
        identity,
        definition: number,
        stamp: number + 1,
        verb: Verb::Update,
        owes,
        pays: None,
    }
}

fn end(number: u64) -> Entry {
    let stamp = number + 1;
    Entry::End {
        identity: identity(number),
        definition: number,
        outcome: Ended::Well,
        begun: Some(stamp),
        stamp,
        owes: vec![identity(number + 1)],
        paid: None,
    }
}

fn identity(number: u64) -> Arc<str> {
    format!("file[/etc/some/directory/{number}]").into()
}

/// The thread that waits for each ticket.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<HashMap<u64, Sender<()>>>>);

impl Answers {
    fn of(journal: &Journal) -> Self {
        let answers = Self::default();
        let told = answers.clone();
        journal.attach(move |tickets, result| {
            result.expect("kept");
            let mut waiting = told.lock();
            for ticket in tickets {
                let waits = waiting.remove(ticket).expect("each is waited for");
                waits.send(()).expect("it waits");
            }
        });
        answers
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a begin and, once it is durable, its end; returns once both are durable.
    fn pair(&self, journal: &Journal, number: u64) {
        for (entry, ticket) in [(begin(number), number * 2), (end(number), number * 2 + 1)] {
            let (answer, answered) = mpsc::channel();
            self.lock().insert(ticket, answer);
            journal.write(entry, ticket, true);
            answered.recv().expect("answered");
        }
    }
}

/// Measures 10 000 begins and ends by 64 threads, each waiting until its entry is durable, and one sync of the disk.
fn pairs(folder: &Path, report: &mut Report) -> Result<(), Failure> {
    const PAIRS: u64 = 10_000;
    const AT_ONCE: u64 = 64;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut sync = Sample::default();
    for _ in 0..200 {
        file.write_all(&[7; 4096])?;
        let began = Instant::now();
        file.as_file().sync_data()?;
        sync.add(began.elapsed());
    }
    say(&format!("one page written and synced: {sync}"));
    let mut sample = Sample::default();
    for round in 0..5 {
        let store = SqliteStore::open(&folder.join(format!("pairs-{round}")))?;
        let journal = Journal::spawn(Box::new(store))?;
        let answers = Answers::of(&journal);
        let began = Instant::now();
        std::thread::scope(|scope| {
            let (answers, journal) = (&answers, &journal);
            for first in 0..AT_ONCE {
                let numbers = (first..PAIRS).step_by(64);
                let work = move || numbers.for_each(|number| answers.pair(journal, number));
                scope.spawn(work);
            }
        });
        sample.add(began.elapsed());
        journal.close();
    }
    let shown = format!("{sample}; one sync {:.2} ms", sync.median() * 1e3);
    report.figure("10 000 begins and ends, 64 at once", sample.median(), (1.0, "s"), &shown);
    Ok(())
}

/// Measures the opening and the recall of a store with 100 000 records.
fn open(folder: &Path, report: &mut Report) -> Result<(), Failure> {
    const RECORDS: u64 = 100_000;
    let directory = folder.join("opened");
    let mut store = SqliteStore::open(&directory)?;
    let numbers: Vec<u64> = (0..RECORDS).collect();
    for numbers in numbers.chunks(1000) {
        let entries: Vec<Entry> = numbers.iter().map(|number| end(*number)).collect();
        store.commit(&entries)?;
    }
    drop(store);
    let mut sample = Sample::default();
    for _ in 0..21 {
        let began = Instant::now();
        let mut store = SqliteStore::open(&directory)?;
        let told = store.recall()?;
        sample.add(began.elapsed());
        if told.resources.len() < 100_000 {
            return Err("records are missing".into());
        }
    }
    let shown = sample.to_string();
    report.figure("100 000 records opened", sample.median() * 1e3, (100.0, "ms"), &shown);
    Ok(())
}
