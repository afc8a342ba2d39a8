//! The writer of the event log: its thread records all waiting events in one transaction, and then sends them to the
//! subscribers (C-12).
//!
//! While the log cannot be written, events are sent without numbers, and a limited number waits in memory. No publisher
//! waits for that.

use super::reserve::Reserve;
use super::rows::keepable;
use super::waiting_marker::WaitingMarker;
use super::{Log, Mark, Retention, Unwritable, is_used, path};
use crate::api::event_data::Session;
use crate::api::{EventKind, Level};
use crate::events::event::{NewEvent, unix_ms};
use crate::events::event_queue::{MarkRequest, Queue, Shared, Stream, dropped};
use crate::events::repeat_filter::RepeatFilter;
use crate::events::session::session_end;
use crate::store::retention_clock::{RetentionClock, since_boot};
use crate::store::write_ahead_log::QUIET;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The maximum number of events in one transaction.
const TOGETHER: usize = 5000;

/// The pause before the log is opened again after a failure; each further failure doubles the pause.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The interval at which expired events are deleted if nothing happens.
const LOOK: Duration = Duration::from_hours(1);

/// The interval at which the files of the log are checked.
const CHECK: Duration = Duration::from_secs(10);

/// The writer of the events of a stream. Its unwritten events survive a failure of its thread.
#[derive(Debug)]
pub struct LogWriter {
    pub(super) shared: Arc<Shared>,
    pub(super) directory: PathBuf,
    /// A daemon has used the state directory before this session.
    is_used: bool,
    retention: Retention,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
pub(super) struct Work {
    alike: RepeatFilter,
    pub(super) waiting: VecDeque<PendingEvent>,
    /// The number of events lost while the log could not be written.
    pub(super) lost: u64,
    pub(super) log: Option<Log>,
    /// The reserve was filled, or cannot be, since the log was opened.
    pub(super) is_reserve_tried: bool,
    /// Set while events wait; made with the first one.
    marker: Option<WaitingMarker>,
    /// The log was removed while in use, and the new one does not say so yet.
    is_removed: bool,
    /// The number of the start event of this session.
    pub(super) run: Option<u64>,
    /// This session, once its start event was published.
    session: Option<Session>,
    pub(super) problem: Option<WriteBackoff>,
    looked: Option<Instant>,
    retention: Option<RetentionClock>,
}

/// An event that waits to be written.
#[derive(Debug)]
pub(super) struct PendingEvent {
    pub(super) event: (u64, NewEvent),
    pub(super) is_recorded: bool,
    pub(super) is_told: bool,
}

/// The state after a failure of the log.
#[derive(Debug)]
pub(super) struct WriteBackoff {
    again: Instant,
    wait: Duration,
}

impl LogWriter {
    /// Creates a writer for the log of a state directory.
    #[must_use]
    pub fn new(stream: &Stream, directory: PathBuf, retention: Retention) -> Self {
        let shared = Arc::clone(&stream.shared);
        let is_used = is_used(&directory);
        Self { shared, directory, is_used, retention, work: Mutex::default() }
    }

    /// Records events until [`Self::leave`] is called. Blocks.
    pub fn run(&self) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let mut within = Some(Duration::ZERO);
        loop {
            let mut queue = self.shared.take(within);
            let (leave, end) = (queue.leave, queue.end.take());
            work.take_in(&mut queue, end.is_some(), self.shared.records_debug());
            let more = self.write(&mut work, std::mem::take(&mut queue.marks));
            if let Some(end) = end {
                self.end(&mut work, end);
            }
            if leave {
                break;
            }
            within = if more { Some(Duration::ZERO) } else { work.within() };
        }
        work.check_files();
        work.log = None;
        self.shared.closed.store(true, Ordering::SeqCst);
        // Marks that arrived in between are dropped, so that their senders do not wait.
        self.shared.lock().marks.clear();
    }

    /// Records the end of the session, with its result in one word and in full; afterwards only marks are written.
    pub fn finish(&self, result: &'static str, text: String) {
        self.shared.lock().end = Some((result, text));
        self.shared.wake();
    }

    /// Starts a liveness check, which the thread answers before any other work.
    #[must_use]
    pub fn ping(&self) -> oneshot::Receiver<()> {
        self.shared.ping()
    }

    /// Makes the thread close the log and return.
    pub fn leave(&self) {
        self.shared.lock().leave = true;
        self.shared.wake();
    }

    /// Writes the waiting events and marks; returns true if more work is due at once.
    fn write(&self, work: &mut Work, mut orders: Vec<MarkRequest>) -> bool {
        let refuse = |orders: Vec<MarkRequest>, why: &str| {
            for order in orders {
                // The requester may be gone.
                drop(order.done.send(Err(why.to_owned())));
            }
        };
        loop {
            let count = work.waiting.len().min(TOGETHER);
            let is_work = work.waiting.iter().take(count).any(|draft| draft.is_recorded);
            if is_work || !orders.is_empty() {
                self.open(work);
                let marks: Vec<Mark> = orders.iter().map(|order| order.mark.clone()).collect();
                match work.append(count, &marks) {
                    Ok(first) => self.written(work, count, first),
                    Err(why) => {
                        self.unwritten(work, &why);
                        refuse(orders, &why);
                        return false;
                    }
                }
            } else {
                work.check_files();
                self.written(work, count, 0);
            }
            for order in orders.drain(..) {
                drop(order.done.send(Ok(())));
            }
            if work.waiting.is_empty() {
                return work.trim(&self.directory);
            }
        }
    }

    /// Opens the log, unless an attempt failed a moment ago.
    fn open(&self, work: &mut Work) {
        let is_due = work.problem.as_ref().is_none_or(|problem| problem.again <= Instant::now());
        work.check_files();
        if work.log.is_some() || !is_due {
            return;
        }
        match Log::open(&self.directory, self.retention, work.run) {
            Ok(mut log) => {
                if let Err(error) = self.report_losses(work, &mut log) {
                    return self.broken(work, &error.to_string());
                }
                if work.lost > 0 {
                    let event = (unix_ms(), dropped(std::mem::take(&mut work.lost)));
                    work.waiting.push_front(PendingEvent {
                        event,
                        is_recorded: true,
                        is_told: true,
                    });
                }
                work.log = Some(log);
                work.is_reserve_tried = false;
            }
            Err(error) => self.broken(work, &error.to_string()),
        }
    }

    /// Records that the log was removed, or that an earlier process was killed while events waited.
    fn report_losses(&self, work: &mut Work, log: &mut Log) -> Result<(), Unwritable> {
        if work.is_removed {
            log.begin_after_removal()?;
            work.is_removed = false;
        } else if self.is_used && log.last_number() == 0 {
            log.begin_after_loss()?;
        }
        let marker = work.marker(&self.directory);
        if marker.is_left() {
            log.report_killed_events()?;
            marker.report();
        }
        Ok(())
    }

    pub(super) fn broken(&self, work: &mut Work, why: &str) {
        let waited = work.problem.as_ref().map(|problem| problem.wait);
        if work.problem.as_ref().is_some_and(|problem| problem.again > Instant::now()) {
            return;
        }
        if waited.is_none() {
            tracing::error!(
                event = "events_write_failed",
                "events are not recorded until the event log can be written: {why}"
            );
        }
        work.log = None;
        let wait = waited.map_or(FIRST_WAIT, |wait| (wait * 2).min(LONGEST_WAIT));
        work.problem = Some(WriteBackoff { again: Instant::now() + wait, wait });
        self.shared.progress.send_modify(|standing| standing.problem = Some(why.to_owned()));
    }

    /// Records the last event and ends the stream of all subscribers.
    fn end(&self, work: &mut Work, result: (&str, String)) {
        let end = session_end((work.run, work.session.take()), result, Level::Info);
        let event = (unix_ms(), end);
        work.waiting.push_back(PendingEvent { event, is_recorded: true, is_told: false });
        self.write_now(work);
        if !work.waiting.is_empty() {
            self.end_on_full_disk(work);
        }
        self.shared.end();
    }

    /// Records the waiting events in the reserve; if there are too many, a gap with their number and the end.
    fn end_on_full_disk(&self, work: &mut Work) {
        Reserve::of(&path(&self.directory)).free();
        self.write_now(work);
        let Some(end) = work.waiting.pop_back() else { return };
        let count = u64::try_from(work.waiting.len()).unwrap_or(u64::MAX);
        if count > 0 {
            work.waiting.clear();
            work.lost += count;
            let reason = format!("{} events could not be recorded and were lost", work.lost);
            let gap = NewEvent::gap(Some(std::mem::take(&mut work.lost)), reason, Level::Error);
            let event = (unix_ms(), gap);
            work.waiting.push_back(PendingEvent { event, is_recorded: true, is_told: true });
        }
        work.waiting.push_back(end);
        self.write_now(work);
        let count = count + u64::from(!work.waiting.is_empty());
        if count > 0 {
            tracing::error!(event = "events_lost", "{count} events could not be recorded");
        }
    }

    /// Tries to record the waiting events without the pause after a failure.
    fn write_now(&self, work: &mut Work) {
        if let Some(problem) = &mut work.problem {
            problem.again = Instant::now();
        }
        self.write(work, Vec::new());
    }
}

impl Work {
    fn take_in(&mut self, queue: &mut Queue, is_end: bool, with_debug: bool) {
        let now = unix_ms();
        if queue.dropped > 0 {
            queue.told.push_back((now, dropped(queue.dropped)));
        }
        for (at, happening) in queue.told.drain(..) {
            let happening = keepable(happening);
            if let EventKind::RunStart(session) = &happening.kind {
                self.session = Some(session.clone());
            }
            // Debug events are recorded only if a recorder asks for them (C-18).
            let is_asked = with_debug || happening.level > Level::Debug;
            let is_recorded = is_asked && self.alike.is_recorded(now, &happening);
            self.waiting.push_back(PendingEvent {
                event: (at, happening),
                is_recorded,
                is_told: false,
            });
        }
        for counted in self.alike.counted(now, is_end) {
            let event = (now, counted);
            self.waiting.push_back(PendingEvent { event, is_recorded: true, is_told: false });
        }
    }

    pub(super) fn marker(&mut self, directory: &Path) -> &mut WaitingMarker {
        self.marker.get_or_insert_with(|| WaitingMarker::of(&path(directory)))
    }

    /// Returns the time to wait for the next input.
    fn within(&self) -> Option<Duration> {
        let counted = self
            .alike
            .next()
            .map(|next| Duration::from_millis(next.saturating_sub(unix_ms()).saturating_add(1)));
        let again = self.problem.as_ref().filter(|_| !self.waiting.is_empty());
        let again = again.map(|problem| problem.again.saturating_duration_since(Instant::now()));
        let check = self.log.as_ref().map(|log| if log.is_ahead() { QUIET } else { CHECK });
        [counted, again, check].into_iter().flatten().min()
    }

    /// Closes a log that was removed. The content of a removed write-ahead log is saved first. An overwritten one never
    /// reaches the database, and after a quiet second the write-ahead log is copied there.
    fn check_files(&mut self) {
        if self.log.take_if(|log| !log.is_in_place()).is_some() {
            self.is_removed = true;
        }
        if let Some(log) = self.log.take_if(|log| log.is_overwritten()) {
            // A log that cannot be removed counts as lost: it is judged again when it is opened.
            self.is_removed |= log.give_up().unwrap_or(true);
        }
        match self.log.as_ref().map(Log::save) {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.log = None,
            // The open log is the only copy of its last events.
            Some(Err(error)) => tracing::debug!(%error, "the event log cannot be saved yet"),
        }
        if let Some(log) = &mut self.log {
            log.copy_when_quiet();
        }
    }

    fn append(&mut self, count: usize, marks: &[Mark]) -> Result<u64, String> {
        let Some(log) = &mut self.log else {
            return Err("the event log cannot be opened".to_owned());
        };
        let recorded = self.waiting.iter().take(count).filter(|draft| draft.is_recorded);
        let appended = log.append(recorded.map(|draft| &draft.event), marks);
        appended.map_err(|error| error.to_string())
    }

    /// Deletes events beyond the limits; returns true if more must be deleted.
    fn trim(&mut self, directory: &Path) -> bool {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        let Some(log) = &mut self.log else { return false };
        if is_due {
            self.looked = Some(Instant::now());
        }
        // A failed deletion is harmless; a lasting failure shows at the next event.
        let clock = self.retention.get_or_insert_with(|| RetentionClock::beside(&path(directory)));
        let now = clock.read(Duration::from_millis(unix_ms()), since_boot());
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        log.trim(now, is_due).unwrap_or_default()
    }
}
