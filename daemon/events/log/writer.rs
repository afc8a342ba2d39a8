//! Who records: on a thread of its own, everything that waits in one transaction, and tells it when it is durable (C-12).
//!
//! Where the log cannot be written, what happens is told all the same, without numbers, and kept in memory up to a bound until it
//! can be written again. Nobody waits for that.

use super::rows::keepable;
use super::{Log, Mark, Retention};
use crate::events::bus::{MarkRequest, Queue, Shared, Stream, WAITING, dropped};
use crate::events::event::{Event, Level, NewEvent, unix_ms, what};
use crate::events::repeat_filter::RepeatFilter;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So many are written in one transaction.
const TOGETHER: usize = 5000;

/// How long it waits before it tries a log that could not be written; doubled each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How often what is too old is looked for where nothing happens.
const LOOK: Duration = Duration::from_hours(1);

/// Who records the events of a stream. What it has not written yet outlives a thread that breaks.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    directory: PathBuf,
    retention: Retention,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    alike: RepeatFilter,
    waiting: VecDeque<PendingEvent>,
    /// So many could not be kept until the log could be written again.
    lost: u64,
    log: Option<Log>,
    /// The number of the start of this run.
    run: Option<u64>,
    trouble: Option<Trouble>,
    looked: Option<Instant>,
}

/// An event that waits.
#[derive(Debug)]
struct PendingEvent {
    event: (u64, NewEvent),
    is_recorded: bool,
    is_told: bool,
}

/// Since the log cannot be written.
#[derive(Debug)]
struct Trouble {
    again: Instant,
    wait: Duration,
}

impl LogWriter {
    /// For the log of this state directory.
    #[must_use]
    pub fn new(stream: &Stream, directory: PathBuf, retention: Retention) -> Self {
        let shared = Arc::clone(&stream.shared);
        Self { shared, directory, retention, work: Mutex::default() }
    }

    /// Records until it is told to leave. Blocks.
    pub fn run(&self) {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let mut within = Some(Duration::ZERO);
        loop {
            let mut queue = self.shared.take(within);
            let (leave, end) = (queue.leave, queue.end.take());
            work.take_in(&mut queue, end.is_some());
            let more = self.write(&mut work, std::mem::take(&mut queue.marks));
            if let Some(end) = end {
                self.end(&mut work, end);
            }
            if leave {
                break;
            }
            within = if more { Some(Duration::ZERO) } else { work.within() };
        }
        work.log = None;
        self.shared.closed.store(true, Ordering::SeqCst);
        // Who came in between waits for nobody.
        self.shared.lock().marks.clear();
    }

    /// It is to record this as the last event; then marks alone are written.
    pub fn finish(&self, how: &'static str, says: String) {
        let class = Some(how);
        let end = NewEvent { class, ..NewEvent::new(what::RUN_END, says, Level::Info) };
        self.shared.lock().end = Some(end);
        self.shared.wake();
    }

    /// Answered by its thread before anything else.
    #[must_use]
    pub fn ping(&self) -> oneshot::Receiver<()> {
        self.shared.ping()
    }

    /// It is to close the log and return.
    pub fn leave(&self) {
        self.shared.lock().leave = true;
        self.shared.wake();
    }

    /// Writes what waits; whether more is to be done at once.
    fn write(&self, work: &mut Work, mut orders: Vec<MarkRequest>) -> bool {
        let refuse = |orders: Vec<MarkRequest>, why: &str| {
            for order in orders {
                // Who asked may have gone.
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
                self.written(work, count, 0);
            }
            for order in orders.drain(..) {
                drop(order.done.send(Ok(())));
            }
            if work.waiting.is_empty() {
                return work.trim();
            }
        }
    }

    /// Opens the log, unless that failed a moment ago.
    fn open(&self, work: &mut Work) {
        let is_due = work.trouble.as_ref().is_none_or(|trouble| trouble.again <= Instant::now());
        if work.log.is_some() || !is_due {
            return;
        }
        match Log::open(&self.directory, self.retention, work.run) {
            Ok(log) => {
                if work.lost > 0 {
                    let event = (unix_ms(), dropped(std::mem::take(&mut work.lost)));
                    work.waiting.push_front(PendingEvent {
                        event,
                        is_recorded: true,
                        is_told: true,
                    });
                }
                work.log = Some(log);
            }
            Err(error) => self.broken(work, &error.to_string()),
        }
    }

    /// What was written is numbered and told.
    fn written(&self, work: &mut Work, count: usize, first: u64) {
        let mut next = first;
        let before = work.trouble.take();
        if let Some(log) = &work.log {
            work.run = log.run();
            if before.is_some() {
                tracing::warn!(event = "events_kept", "the event log can be written again");
            }
            let (last, run) = (log.last_number(), log.run());
            self.shared.progress.send_if_modified(|standing| {
                let is_news = standing.last_number != last || standing.trouble.is_some();
                (standing.last_number, standing.run, standing.trouble) = (last, run, None);
                is_news
            });
        } else {
            work.trouble = before;
        }
        for PendingEvent { event: (at, happening), is_recorded, is_told } in
            work.waiting.drain(..count)
        {
            let number = is_recorded.then_some(next);
            next += u64::from(is_recorded);
            if !is_told {
                self.shared.pass_on(Event::new(number, at, happening));
            }
        }
    }

    /// Nothing was written: what waits is told, and kept as far as there is room.
    fn unwritten(&self, work: &mut Work, why: &str) {
        self.broken(work, why);
        for draft in work.waiting.iter_mut().filter(|draft| !draft.is_told) {
            draft.is_told = true;
            let (at, happening) = draft.event.clone();
            self.shared.pass_on(Event::new(None, at, happening));
        }
        work.waiting.retain(|draft| draft.is_recorded);
        let much = work.waiting.len().saturating_sub(WAITING);
        work.lost += u64::try_from(much).unwrap_or(u64::MAX);
        work.waiting.drain(..much);
    }

    fn broken(&self, work: &mut Work, why: &str) {
        let waited = work.trouble.as_ref().map(|trouble| trouble.wait);
        if work.trouble.as_ref().is_some_and(|trouble| trouble.again > Instant::now()) {
            return;
        }
        if waited.is_none() {
            tracing::error!(
                event = "events_unkept",
                "events are not recorded until the event log can be written: {why}"
            );
        }
        work.log = None;
        let wait = waited.map_or(FIRST_WAIT, |wait| (wait * 2).min(LONGEST_WAIT));
        work.trouble = Some(Trouble { again: Instant::now() + wait, wait });
        self.shared.progress.send_modify(|standing| standing.trouble = Some(why.to_owned()));
    }

    /// The last event, and the end of all who follow.
    fn end(&self, work: &mut Work, end: NewEvent) {
        let event = (unix_ms(), NewEvent { run: work.run, ..end });
        work.waiting.push_back(PendingEvent { event, is_recorded: true, is_told: false });
        // The last chance, whatever was a moment ago.
        if let Some(trouble) = &mut work.trouble {
            trouble.again = Instant::now();
        }
        self.write(work, Vec::new());
        if !work.waiting.is_empty() {
            let count = work.waiting.len();
            tracing::error!(event = "events_lost", "{count} events could not be recorded");
        }
        self.shared.end();
    }
}

impl Work {
    fn take_in(&mut self, queue: &mut Queue, is_end: bool) {
        let now = unix_ms();
        if queue.dropped > 0 {
            queue.told.push_back((now, dropped(queue.dropped)));
        }
        for (at, happening) in queue.told.drain(..) {
            let happening = keepable(happening);
            // What only helps to look for a fault is for those who follow (C-18).
            let is_recorded =
                happening.level > Level::Debug && self.alike.is_recorded(now, &happening);
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

    /// How long to wait for something to happen.
    fn within(&self) -> Option<Duration> {
        let counted = self
            .alike
            .next()
            .map(|next| Duration::from_millis(next.saturating_sub(unix_ms()).saturating_add(1)));
        let again = self.trouble.as_ref().filter(|_| !self.waiting.is_empty());
        let again = again.map(|trouble| trouble.again.saturating_duration_since(Instant::now()));
        [counted, again, self.log.is_some().then_some(LOOK)].into_iter().flatten().min()
    }

    fn append(&mut self, count: usize, marks: &[Mark]) -> Result<u64, String> {
        let Some(log) = &mut self.log else {
            return Err("the event log cannot be opened".to_owned());
        };
        let recorded = self.waiting.iter().take(count).filter(|draft| draft.is_recorded);
        let appended = log.append(recorded.map(|draft| &draft.event), marks);
        appended.map_err(|error| error.to_string())
    }

    /// Lets go of what is too much; whether there is more.
    fn trim(&mut self) -> bool {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        let Some(log) = &mut self.log else { return false };
        if is_due {
            self.looked = Some(Instant::now());
        }
        // Too much is no trouble yet; where it becomes one, the next event tells.
        log.trim(unix_ms(), is_due).unwrap_or_default()
    }
}
