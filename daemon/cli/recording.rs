//! The event log of a command that ends: it is written where something happens, and left alone where nothing does.

use super::log::happening;
use crate::driver::{Audience, News};
use crate::events::{self, Happening, Level, Retention, Scribe, Stream, Teller, what};
use crate::store::{REPAIRED, UNSOUND};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where none of these is told, nothing has happened, and nothing is written.
const DEEDS: [&str; 16] = [
    "changed",
    "failed",
    "retrying",
    "interrupted",
    "stuck",
    "contended",
    "left",
    "undone",
    "protected",
    "unprotected",
    "forgotten",
    "redo",
    "imported",
    "repaired",
    REPAIRED,
    UNSOUND,
];

/// So many of what is told before the first of them are kept.
const MOST_BEFORE: usize = 1000;

/// What happens waits so long to be written with what happens after it: nobody follows, and each commit is a sync.
const GATHER: Duration = Duration::from_millis(200);

/// Who records what a command does. The one who makes it holds the state directory until it is finished.
#[derive(Clone)]
pub(super) struct Recording(Arc<Mutex<Record>>);

struct Record {
    /// What the log says of the command at its beginning.
    begins: String,
    teller: Teller,
    scribe: Arc<Scribe>,
    /// The stream ends with who records it.
    _stream: Stream,
    /// What was told before it was worth a record.
    before: Vec<Happening>,
    has_begun: bool,
    /// Where one could be had.
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    pub(super) fn new(command: &str, directory: PathBuf, retention: Retention) -> Self {
        let (teller, stream) = events::stream();
        stream.gather(GATHER);
        let process = std::process::id();
        let begins =
            format!("steadfast {}, {command}, process {process}", env!("CARGO_PKG_VERSION"));
        let scribe = Arc::new(Scribe::new(&stream, directory, retention));
        let (before, has_begun, thread) = (Vec::new(), false, None);
        let record = Record { begins, teller, scribe, _stream: stream, before, has_begun, thread };
        Self(Arc::new(Mutex::new(record)))
    }

    /// An audience that records what it hears.
    pub(super) fn of(&self, audience: Box<dyn Audience>) -> Box<dyn Audience> {
        Box::new(Recorded { recording: self.clone(), audience })
    }

    /// Records this. Never waits.
    pub(super) fn tell(&self, happening: Happening) {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if happening.level <= Level::Debug {
            return;
        }
        if !record.has_begun {
            if !DEEDS.contains(&happening.what) {
                if record.before.len() < MOST_BEFORE {
                    record.before.push(happening);
                }
                return;
            }
            record.begin();
        }
        record.teller.tell(happening);
    }

    /// Waits until all of it is written. `says` is how it ended.
    pub(super) fn finish(&self, how: &'static str, says: String) {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = record.thread.take() else { return };
        record.scribe.finish(how, says);
        record.scribe.leave();
        if thread.join().is_err() {
            tracing::error!(event = "events_lost", "the last events could not be recorded");
        }
    }
}

impl Record {
    fn begin(&mut self) {
        let begins = std::mem::take(&mut self.begins);
        self.teller.tell(Happening::new(what::RUN_START, begins, Level::Info));
        self.before.drain(..).for_each(|happening| self.teller.tell(happening));
        let scribe = Arc::clone(&self.scribe);
        let thread = std::thread::Builder::new().name("events".to_owned());
        let thread = thread.spawn(move || scribe.run());
        if let Err(error) = &thread {
            tracing::error!(event = "events_lost", "what happens is not recorded: {error}");
        }
        (self.has_begun, self.thread) = (true, thread.ok());
    }
}

/// Hears for somebody else, too.
struct Recorded {
    recording: Recording,
    audience: Box<dyn Audience>,
}

impl Audience for Recorded {
    fn hear(&mut self, news: &News<'_>) {
        self.audience.hear(news);
        if let Some(happening) = happening(news) {
            self.recording.tell(happening);
        }
    }

    fn wants_progress(&self) -> bool {
        self.audience.wants_progress()
    }
}
