//! Recorders: each takes what is recorded from its own place in the event log to somewhere else, at least once, and never holds
//! up anybody but itself.

mod batcher;
mod dead_letter;
pub(super) mod dead_letter_file;
mod file;
mod journald;
mod webhook;

pub use dead_letter::Unsent;
pub use file::ToFile;
pub use journald::ToJournald;
pub use webhook::ToWebhook;

use super::log::{Mark, Place, Reader, Unreadable};
use super::{Event, Level, NewEvent, Standing, Stream, what};
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

/// How long the last events may take after the end.
const TAIL: Duration = Duration::from_secs(4);

/// Some events in a row, as they are sent.
#[derive(Debug)]
pub struct Batch {
    /// The same whenever the same events are sent again, and never that of others: when the log was begun, and the first and
    /// the last number.
    pub key: String,
    /// In order.
    pub events: Vec<Event>,
}

/// What a sink does.
pub type Sending = Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send>>;

/// Where a recorder takes events.
pub trait Sink: Send + Sync {
    /// So many batches may be on their way to it.
    fn under_way(&self) -> usize {
        1
    }

    /// Takes a batch there; done when it has arrived, or why it has not.
    fn send(&self, batch: Batch) -> Sending;
}

/// A recorder.
pub struct Recorder {
    /// By which it is known in the log.
    pub name: Arc<str>,
    /// Where it takes events.
    pub sink: Box<dyn Sink>,
    /// Where it hears of them.
    pub stream: Stream,
    /// Where it reads them.
    pub state_directory: PathBuf,
    /// How often its loop turns where nothing happens, so that it is seen to live.
    pub turn: Duration,
    /// Answers, when its end is asked for, whether the log goes on: the recorder then sends all that is recorded by now, and ends.
    pub leaves: Box<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A batch that was sent, by its first number, what came of it, and of how many events it was.
type Flight<'a> = Pin<Box<dyn Future<Output = (u64, Result<(), Unsent>, u64)> + Send + 'a>>;

impl Recorder {
    /// Records until it is stopped and the tail is sent, or its time is over (C-15). What it says of itself goes to `say`,
    /// at each turn of its loop.
    pub async fn run(
        &self,
        stopping: &CancellationToken,
        say: impl Fn(String) + Send,
    ) -> Result<(), String> {
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
        let mut work = Work { batcher, flying, refusals, began, trouble: None };
        let mut last = place.number;
        let mut leaves = false;
        loop {
            let seen = standing.borrow_and_update().clone();
            work.batcher.heard(began.elapsed(), seen.last_number);
            let is_last = seen.is_over || leaves;
            if is_last {
                work.batcher.over(began.elapsed());
            }
            self.depart(&mut work, born).await;
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
                    let why = work.trouble.as_deref().unwrap_or("timed out");
                    let name = &self.name;
                    if events == 0 {
                        // Its end was asked for while the log goes on: all of it is sent.
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

    /// The position in the log and the time of the log's beginning. A new position begins with this run. None if the run ended without a record.
    async fn place(
        &self,
        standing: &mut tokio::sync::watch::Receiver<Standing>,
    ) -> Result<Option<(Place, u64)>, String> {
        let there = |standing: &Standing| standing.run.is_some() || standing.is_over;
        let run = standing.wait_for(there).await.map_err(|error| error.to_string())?.run;
        let Some(run) = run else { return Ok(None) };
        let name = Arc::clone(&self.name);
        let (place, born) =
            self.read(move |reader| Ok((reader.place(&name)?, reader.born()?))).await?;
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

    /// Sends what is due.
    async fn depart<'a>(&'a self, work: &mut Work<'a>, born: u64) {
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
                    work.trouble = Some(why);
                    work.batcher.failed(work.began.elapsed(), first);
                    continue;
                }
            };
            if matches!(step, Step::New(_)) {
                // A gap may stand before a full page.
                events.truncate(most);
            }
            let Some(end) = events.last().and_then(|event| event.number) else {
                // All of it is gone: there is nothing left to send.
                work.gone(step);
                continue;
            };
            let end = if last == u64::MAX { end } else { last };
            if let Step::New(_) = step {
                work.batcher.begun(first, end);
            }
            let count = end + 1 - first;
            let batch = Batch { key: format!("{born}-{first}-{end}"), events };
            work.flying.push(Box::pin(async move {
                // Kept before it is sent, so that after a restart it is the same batch, with the same key (C-13).
                let begin = Mark::Begin(Arc::clone(&self.name), first, end);
                let result = match self.stream.mark(begin).await {
                    Ok(()) => self.sink.send(batch).await,
                    Err(why) => Err(Unsent::Later(why)),
                };
                (first, result, count)
            }));
        }
    }

    /// A batch has arrived. The number up to which all have.
    async fn arrived(&self, work: &mut Work<'_>, first: u64) -> u64 {
        work.trouble = None;
        self.stream.aside().succeeds(&self.name);
        work.refusals.forget(first);
        let upto = work.batcher.confirmed(first);
        self.done(first, upto).await;
        upto
    }

    async fn done(&self, first: u64, upto: u64) {
        let done = Mark::Done(Arc::clone(&self.name), first, upto);
        // Where that cannot be kept the batch is sent again after a restart, with the same key.
        if let Err(why) = self.stream.mark(done).await {
            tracing::debug!(event = "recorder", "{}: {why}", self.name);
        }
    }

    /// A batch has not arrived: it is sent again, or put aside where it was refused often enough. The number up to which none is to be
    /// sent, if that is news.
    async fn failed(
        &self,
        work: &mut Work<'_>,
        first: u64,
        unsent: &Unsent,
        count: u64,
    ) -> Option<u64> {
        let (name, why) = (&self.name, unsent.why());
        if work.trouble.is_none() {
            tracing::warn!(event = "recorder", "{name}: not sent, retrying: {why}");
        }
        work.trouble = Some(why.to_owned());
        self.stream.aside().fails(name, why);
        work.batcher.failed(work.began.elapsed(), first);
        if !matches!(unsent, Unsent::Refused(_)) || !work.refusals.is_enough(first) {
            return None;
        }
        let upto = work.batcher.put_aside(first);
        let last = first + count - 1;
        let says =
            format!("{name}: events {first} to {last} were rejected and dead-lettered: {why}");
        tracing::warn!(event = what::DEAD_LETTERED, "{says}");
        let told = NewEvent::new(what::DEAD_LETTERED, says, Level::Warn);
        self.stream.teller().tell(NewEvent { count: Some(count), ..told });
        self.stream.aside().add(name, count, why);
        self.done(first, upto).await;
        Some(upto)
    }

    /// How much was put aside since the daemon began, where anything was.
    fn aside(&self) -> String {
        let aside = self.stream.aside().of(&self.name);
        aside.map(|aside| format!("; {}", aside.message())).unwrap_or_default()
    }
}

/// What a recorder has under way.
struct Work<'a> {
    batcher: Batcher,
    flying: FuturesUnordered<Flight<'a>>,
    refusals: Refusals,
    began: Instant,
    /// Why the last batch that failed did.
    trouble: Option<String>,
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
        if let Some(why) = &self.trouble {
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
