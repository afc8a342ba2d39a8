//! The event log of a one-shot command: nothing is written unless something happens.

use super::deliveries::Deliveries;
use crate::api::Level;
use crate::driver::{Notification, Observer};
use crate::events::{self, LogWriter, NewEvent, Publisher, Retention, Stream};
use crate::store::{REPAIRED, UNSOUND};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The events that start a record; a command without any of them writes nothing.
const DEEDS: [&str; 17] = [
    "changed",
    "failed",
    "retrying",
    "interrupted",
    "stuck",
    "contended",
    "undeclared",
    "removed",
    "undone",
    "protected",
    "unprotected",
    "forgotten",
    "retried",
    "imported",
    "repaired",
    REPAIRED,
    UNSOUND,
];

/// The maximum number of events in memory before the first of them.
const MOST_BEFORE: usize = 1000;

/// The time for which an event waits for later ones: nobody follows the stream, and each commit is a sync.
const GATHER: Duration = Duration::from_millis(200);

/// A recording of a command's events. The caller has the lock of the state directory until the recording is finished.
#[derive(Clone)]
pub(in crate::cli) struct Recording(Arc<Mutex<Record>>);

struct Record {
    /// The name of the command.
    command: &'static str,
    /// The paths of the graph; empty for a command without a graph.
    graph: Vec<PathBuf>,
    publisher: Publisher,
    log_writer: Arc<LogWriter>,
    stream: Stream,
    /// The recorders of the settings, for a command that runs them.
    deliveries: Option<Deliveries>,
    /// The events before the first one that starts the record.
    before: Vec<NewEvent>,
    has_begun: bool,
    /// The thread of the log writer, if it could be started.
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    pub(in crate::cli) fn new(
        command: &'static str,
        directory: PathBuf,
        retention: Retention,
    ) -> Self {
        let (publisher, stream) = events::stream();
        stream.gather(GATHER);
        let record = Record {
            command,
            graph: Vec::new(),
            publisher,
            log_writer: Arc::new(LogWriter::new(&stream, directory, retention)),
            stream,
            deliveries: None,
            before: Vec::new(),
            has_begun: false,
            thread: None,
        };
        Self(Arc::new(Mutex::new(record)))
    }

    /// Names the graph of the command.
    pub(in crate::cli) fn with_graph(self, graph: &[PathBuf]) -> Self {
        self.lock().graph = graph.to_vec();
        self
    }

    /// Runs recorders from the first recorded event on.
    pub(in crate::cli) fn with_deliveries(self, deliveries: Deliveries) -> Self {
        self.lock().deliveries = Some(deliveries);
        self
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps an observer so that its notifications are also recorded.
    pub(in crate::cli) fn of(&self, observer: Box<dyn Observer>) -> Box<dyn Observer> {
        Box::new(Recorded { recording: self.clone(), observer })
    }

    /// Records an event without waiting.
    pub(in crate::cli) fn record(&self, happening: NewEvent) {
        let mut record = self.lock();
        if happening.level <= Level::Debug && !record.records_debug() {
            return;
        }
        if !record.has_begun {
            if !DEEDS.contains(&happening.kind.name()) {
                if record.before.len() < MOST_BEFORE {
                    record.before.push(happening);
                }
                return;
            }
            record.begin();
        }
        record.publisher.publish(happening);
    }

    /// Ends the record with this class and message, and waits until all of it is written.
    pub(in crate::cli) fn finish(&self, class: &'static str, message: String) {
        self.end(class, message);
        self.close();
    }

    /// Records the end of the command. Recorders may still deliver.
    pub(in crate::cli) fn end(&self, class: &'static str, message: String) {
        let record = self.lock();
        if record.has_begun {
            record.log_writer.finish(class, message);
        }
    }

    /// Waits until the recorders have delivered, or their deadline is over.
    pub(in crate::cli) async fn deliver(&self) {
        let deliveries = self.lock().deliveries.take();
        if let Some(deliveries) = deliveries {
            deliveries.finish().await;
        }
    }

    /// Waits until all of it is written, and closes the event log.
    pub(in crate::cli) fn close(&self) {
        let mut record = self.lock();
        let Some(thread) = record.thread.take() else { return };
        record.log_writer.leave();
        if thread.join().is_err() {
            tracing::error!(event = "events_lost", "the last events could not be recorded");
        }
    }
}

impl Record {
    /// Returns true if a recorder asks for debug events.
    fn records_debug(&self) -> bool {
        self.deliveries.as_ref().is_some_and(Deliveries::wants_debug)
    }

    fn begin(&mut self) {
        self.publisher.publish(events::session_start(self.command, &self.graph));
        self.before.drain(..).for_each(|happening| self.publisher.publish(happening));
        let log_writer = Arc::clone(&self.log_writer);
        let thread = std::thread::Builder::new().name("events".to_owned());
        let thread = thread.spawn(move || log_writer.run());
        match &thread {
            Ok(_) => {
                if let Some(deliveries) = &mut self.deliveries {
                    deliveries.start(&self.stream);
                }
            }
            Err(error) => {
                tracing::error!(event = "events_lost", "events are not recorded: {error}");
            }
        }
        (self.has_begun, self.thread) = (true, thread.ok());
    }
}

/// An observer that records notifications and passes them on.
struct Recorded {
    recording: Recording,
    observer: Box<dyn Observer>,
}

impl Observer for Recorded {
    fn hear(&mut self, news: &Notification<'_>) {
        self.observer.hear(news);
        if let Some(happening) = news.to_event() {
            self.recording.record(happening);
        }
    }

    fn wants_progress(&self) -> bool {
        self.observer.wants_progress()
    }

    fn wants_foresight(&self) -> bool {
        self.observer.wants_foresight()
    }
}
