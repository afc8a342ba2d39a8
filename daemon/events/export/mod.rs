//! Recorders: each sends recorded events from its own position in the event log to a sink, at least once.
//!
//! A recorder must never delay the event log, the driver or another recorder. Reading order: this file (the recorder
//! and its loop), `batcher` (the schedule), `dead_letter`, `dead_letter_file`, and the sinks `file`, `journald`,
//! `webhook`.

mod batcher;
mod dead_letter;
pub(super) mod dead_letter_file;
mod file;
mod journald;
mod webhook;

pub use dead_letter::Unsent;
pub use file::ToFile;
pub use journald::ToJournald;
pub use webhook::{NoCertificates, ToWebhook};

use super::log::{Mark, Place, Reader, Unreadable};
use super::{NewEvent, PublishedEvent, Standing, Stream};
use crate::api::event_data::DeadLettered;
use crate::api::{EventKind, Level};
use batcher::{Batcher, FULL, Step};
use dead_letter::Refusals;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The time that the last events may take after the end.
const TAIL: Duration = Duration::from_secs(4);

/// Consecutive events that are sent together.
#[derive(Debug)]
pub struct Batch {
    /// The idempotency key: equal for repeated sends of the same events, and unique otherwise. It consists of the
    /// creation time of the log, the first number and the last number.
    pub key: String,
    /// The events, in order.
    pub events: Vec<PublishedEvent>,
}

/// The future of a send.
pub type Sending = Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send>>;

/// A destination of events.
pub trait Sink: Send + Sync {
    /// Returns the maximum number of batches under way.
    fn under_way(&self) -> usize {
        1
    }

    /// Sends a batch. The future ends when the batch has arrived, or with the reason why not.
    fn send(&self, batch: Batch) -> Sending;
}

/// A recorder: a sink and its position in the event log.
pub struct Recorder {
    /// The name in the log.
    pub name: Arc<str>,
    /// The destination.
    pub sink: Box<dyn Sink>,
    /// The event stream; it reports new events.
    pub stream: Stream,
    /// The state directory of the event log.
    pub state_directory: PathBuf,
    /// The longest time between two turns of the loop, so that the supervisor sees it alive.
    pub turn: Duration,
    /// True if the sink receives debug events too; they are then recorded while this recorder runs.
    pub debug: bool,
    /// Returns true if the log continues after the requested end: the recorder then sends all recorded events and ends.
    pub leaves: Box<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The future of a sent batch: its first number, the result, and the number of events.
type Flight<'a> = Pin<Box<dyn Future<Output = (u64, Result<(), Unsent>, u64)> + Send + 'a>>;

impl Recorder {
    /// Sends events until the stop, and then the remaining events within a time limit (C-15). Each turn of the loop
    /// passes a status text to `say`.
    ///
    /// # Errors
    /// A message if the event log or its stream ends unexpectedly.
    pub async fn run(
        &self,
        stopping: &CancellationToken,
        say: impl Fn(String) + Send,
    ) -> Result<(), String> {
        let _debug = self.debug.then(|| self.stream.record_debug());
        let mut standing = self.stream.progress();
        let mut deadline = None;
        let (place, born) = {
            let mut place = std::pin::pin!(self.place(&mut standing));
            loop {
                tokio::select! {
                    place = &mut place => match place? {
                        Some(place) => break place,
                        None => return Ok(()),
                    },
                    () = tokio::time::sleep(self.turn) => say("waiting for the event log".to_owned()),
                    () = until(deadline), if deadline.is_some() => return Ok(()),
                    () = stopping.cancelled(), if deadline.is_none() => {
                        deadline = Some(Instant::now() + TAIL);
                    }
                }
            }
        };
        let began = Instant::now();
        let batcher = Batcher::new(self.sink.under_way(), place.number, &place.begun);
        let (flying, refusals) = (FuturesUnordered::new(), Refusals::default());
        let mut work = Work { batcher, flying, refusals, began, problem: None };
        let mut last = place.number;
        let mut leaves = false;
        loop {
            let seen = standing.borrow_and_update().clone();
            work.batcher.heard(began.elapsed(), seen.last_number);
            let is_last = seen.is_over || leaves;
            if is_last {
                work.batcher.over(began.elapsed());
            }
            self.start_sends(&mut work, born).await;
            say(work.says(last) + &self.aside());
            if is_last && work.batcher.unconfirmed() == (0, 0) {
                return Ok(());
            }
            let wakeup = work.batcher.wakeup(began.elapsed()).map(|at| began + at);
            tokio::select! {
                Some((first, result, count)) = work.flying.next(), if !work.flying.is_empty() => {
                    last = match result {
                        Ok(()) => self.arrived(&mut work, first).await,
                        Err(why) => self.failed(&mut work, first, &why, count).await.unwrap_or(last),
                    };
                }
                changed = standing.changed() => changed.map_err(|error| error.to_string())?,
                () = until(wakeup), if wakeup.is_some() => {}
                () = tokio::time::sleep(self.turn) => {}
                () = until(deadline), if deadline.is_some() => {
                    let (events, _) = work.batcher.unconfirmed();
                    let why = work.problem.as_deref().unwrap_or("timed out");
                    let name = &self.name;
                    if events == 0 {
                        // The log continues after the requested end, and all recorded events are sent.
                        return Ok(());
                    }
                    tracing::warn!(
                        event = "recorder",
                        "{name}: {events} unsent events remain; the next start or apply sends them: {why}"
                    );
                    return Ok(());
                }
                () = stopping.cancelled(), if deadline.is_none() => {
                    deadline = Some(Instant::now() + TAIL);
                    leaves = (self.leaves)();
                }
            }
        }
    }

    /// Returns the position in the log and the creation time of the log. A new recorder begins at this session. `None`
    /// if the session ended without a record.
    async fn place(
        &self,
        standing: &mut tokio::sync::watch::Receiver<Standing>,
    ) -> Result<Option<(Place, u64)>, String> {
        let there = |standing: &Standing| standing.run.is_some() || standing.is_over;
        let run = standing.wait_for(there).await.map_err(|error| error.to_string())?.run;
        let Some(run) = run else { return Ok(None) };
        let name = Arc::clone(&self.name);
        let (place, born) =
            self.read(move |reader| Ok((reader.place(&name)?, reader.created_at()?))).await?;
        if let Some(place) = place {
            return Ok(Some((place, born)));
        }
        let number = run.saturating_sub(1);
        self.stream.mark(Mark::Enlist(Arc::clone(&self.name), number)).await?;
        Ok(Some((Place { number, begun: Vec::new() }, born)))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader) -> Result<T, Unreadable> + Send + 'static,
    ) -> Result<T, String> {
        let directory = self.state_directory.clone();
        let read = tokio::task::spawn_blocking(move || {
            let reader = Reader::open(&directory)?;
            let reader = reader.ok_or_else(|| Unreadable::other("not found".to_owned()))?;
            work(&reader)
        });
        read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Starts the sends that are due.
    async fn start_sends<'a>(&'a self, work: &mut Work<'a>, born: u64) {
        while let Some(step) = work.batcher.next(work.began.elapsed()) {
            let (first, last) = match step {
                Step::New(first) => (first, u64::MAX),
                Step::Again(first, last) => (first, last),
            };
            let most = usize::try_from(FULL).unwrap_or(usize::MAX);
            let page = if last == u64::MAX { most } else { most * 2 };
            let read = self.read(move |reader| reader.read(first, last, page)).await;
            let mut events = match read {
                Ok(events) => events,
                Err(why) => {
                    work.problem = Some(why);
                    work.batcher.failed(work.began.elapsed(), first);
                    continue;
                }
            };
            if matches!(step, Step::New(_)) {
                // A gap may precede a full page.
                events.truncate(most);
            }
            let Some(end) = events.last().and_then(|event| event.number) else {
                // All events of the batch are gone from the log: there is nothing to send.
                work.gone(step);
                continue;
            };
            let end = if last == u64::MAX { end } else { last };
            if let Step::New(_) = step {
                work.batcher.begun(first, end);
            }
            let count = end + 1 - first;
            if !self.debug {
                events.retain(|event| event.level > Level::Debug);
            }
            let batch = Batch { key: format!("{born}-{first}-{end}"), events };
            work.flying.push(Box::pin(async move {
                // Recorded before the send, so that a restart sends the same batch with the same key (C-13).
                let begin = Mark::Begin(Arc::clone(&self.name), first, end);
                let result = match self.stream.mark(begin).await {
                    // Another recorder asked for these debug events.
                    Ok(()) if batch.events.is_empty() => Ok(()),
                    Ok(()) => self.sink.send(batch).await,
                    Err(why) => Err(Unsent::Later(why)),
                };
                (first, result, count)
            }));
        }
    }

    /// Records an arrived batch; returns the number up to which all batches have arrived.
    async fn arrived(&self, work: &mut Work<'_>, first: u64) -> u64 {
        work.problem = None;
        self.stream.aside().succeeds(&self.name);
        work.refusals.forget(first);
        let upto = work.batcher.confirmed(first);
        self.done(first, upto).await;
        upto
    }

    async fn done(&self, first: u64, upto: u64) {
        let done = Mark::Done(Arc::clone(&self.name), first, upto);
        // If the record fails, a restart sends the batch again with the same key.
        if let Err(why) = self.stream.mark(done).await {
            tracing::debug!(event = "recorder", "{}: {why}", self.name);
        }
    }

    /// Handles a failed batch: it is sent again, or dead-lettered after enough rejections. Returns the number up to
    /// which no batch is open, if that number changed.
    async fn failed(
        &self,
        work: &mut Work<'_>,
        first: u64,
        unsent: &Unsent,
        count: u64,
    ) -> Option<u64> {
        let (name, why) = (&self.name, unsent.why());
        if work.problem.is_none() {
            tracing::warn!(event = "recorder", "{name}: not sent, retrying: {why}");
        }
        work.problem = Some(why.to_owned());
        self.stream.aside().fails(name, why);
        work.batcher.failed(work.began.elapsed(), first);
        if !matches!(unsent, Unsent::Refused(_)) || !work.refusals.is_enough(first) {
            return None;
        }
        let upto = work.batcher.put_aside(first);
        let last = first + count - 1;
        let (recorder, reason) = (name.to_string(), why.to_owned());
        let dead = DeadLettered { recorder, first, last, count, reason };
        let told = NewEvent::new(EventKind::DeadLettered(dead), Level::Warn);
        tracing::warn!(event = told.kind.name(), "{}", told.message);
        self.stream.publisher().publish(told);
        self.stream.aside().add(name, count, why);
        self.done(first, upto).await;
        Some(upto)
    }

    /// Describes the dead-lettered events since the start, if there are any.
    fn aside(&self) -> String {
        let aside = self.stream.aside().of(&self.name);
        aside.map(|aside| format!("; {}", aside.message())).unwrap_or_default()
    }
}

/// The open work of a recorder.
struct Work<'a> {
    batcher: Batcher,
    flying: FuturesUnordered<Flight<'a>>,
    refusals: Refusals,
    began: Instant,
    /// The reason of the last failure, until a batch arrives.
    problem: Option<String>,
}

impl Work<'_> {
    fn gone(&mut self, step: Step) {
        match step {
            Step::New(first) => self.batcher.take(first),
            Step::Again(first, _) => drop(self.batcher.confirmed(first)),
        }
    }

    fn says(&self, last: u64) -> String {
        let (left, open) = self.batcher.unconfirmed();
        let mut says = format!("sent up to {last}");
        if left > 0 {
            says.push_str(&format!(", {left} pending"));
        }
        if open > 0 {
            says.push_str(&format!(", {open} batches in progress"));
        }
        if let Some(why) = &self.problem {
            says.push_str(&format!("; retrying: {why}"));
        }
        says
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
