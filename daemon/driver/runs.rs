//! Runs in progress: a check or an apply on a thread or as a task, what it found, and how it is cancelled.

use super::{Driver, Input};
use futures_util::FutureExt as _;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast_engine::{Event, RunId, Start, VertexId};
use steadfast_resources::{
    Answer, Ask, Change, Difference, Outcome, Repeat, Resource, Seat, Trouble, Verdict,
};
use tokio_util::sync::CancellationToken;

/// One run, from its start until what it did has been told.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) vertex: VertexId,
    pub(super) look: bool,
    started: Instant,
    pub(super) cancel: CancellationToken,
    change: Option<Change>,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
    pub(super) notes: Vec<String>,
    pub(super) took: Duration,
    /// Its intent was recorded, or is being so.
    pub(super) begun: bool,
    /// Its end is being recorded: it is told when that is durable.
    pub(super) closing: bool,
}

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Runs(pub(super) HashMap<RunId, Live>);

impl Driver {
    /// Checks a vertex.
    pub(super) fn start(&mut self, start: Start) {
        let Some(entry) = self.table.get(start.vertex) else {
            let trouble = Trouble::new("the resource is not there any more");
            self.inbox.put(Input::Checked(start.run, Verdict::Unknown(trouble)));
            return;
        };
        let cancel = CancellationToken::new();
        let ask = Ask { refresh: start.refresh, run: !start.look, cancel: cancel.clone() };
        let (resource, seat) = (Arc::clone(&entry.resource), entry.nature.seat);
        let live = Live {
            vertex: start.vertex,
            look: start.look,
            started: Instant::now(),
            cancel,
            change: None,
            differences: Vec::new(),
            destructive: false,
            notes: Vec::new(),
            took: Duration::ZERO,
            begun: false,
            closing: false,
        };
        self.runs.0.insert(start.run, live);
        self.check(resource, seat, ask, start.run);
    }

    fn check(&self, resource: Arc<dyn Resource>, seat: Seat, ask: Ask, run: RunId) {
        let (host, inbox) = (self.host.clone(), self.inbox.clone());
        self.spawn(seat, false, async move {
            let verdict =
                guarded(resource.check(&host, ask)).await.unwrap_or_else(Verdict::Unknown);
            inbox.put_quietly(Input::Checked(run, verdict));
        });
    }

    /// Applies what the check of this run found.
    pub(super) fn apply(&mut self, run: RunId, id: VertexId) {
        let Some((entry, live)) = self.table.get(id).zip(self.runs.0.get_mut(&run)) else { return };
        let Some(change) = live.change.take() else {
            let trouble = Trouble::new("the check of this run left nothing to apply");
            self.inbox.put(Input::Ended(run, Outcome::Failed { trouble, touched: false }));
            return;
        };
        let permit = self.key.mint(live.cancel.clone());
        let (resource, seat) = (Arc::clone(&entry.resource), entry.nature.seat);
        let (host, inbox) = (self.host.clone(), self.inbox.clone());
        self.echo.applying(id);
        self.spawn(seat, true, async move {
            let outcome = guarded(resource.apply(&host, &permit, change))
                .await
                .unwrap_or_else(|trouble| Outcome::Failed { trouble, touched: true });
            inbox.put_quietly(Input::Ended(run, outcome));
        });
    }

    /// Runs a future where its kind belongs: on a thread of the pool where it blocks, as a task where it does not. It leaves its
    /// result in the inbox without waking us: that is done here.
    fn spawn(&self, seat: Seat, blocks: bool, work: impl Future<Output = ()> + Send + 'static) {
        match seat {
            Seat::Thread => {
                let handle = tokio::runtime::Handle::current();
                self.pool.run(blocks, move || handle.block_on(work));
            }
            Seat::Command => {
                let inbox = self.inbox.clone();
                drop(tokio::spawn(work.map(move |()| inbox.wake())));
            }
        }
    }

    pub(super) fn checked(&mut self, run: RunId, verdict: Verdict) {
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let (id, look) = (live.vertex, live.look);
        let verdict = match verdict {
            Verdict::Same => {
                if !look {
                    self.troubles.remove(&id);
                    self.tell_same(id);
                }
                steadfast_engine::Verdict::Same
            }
            Verdict::Differs(change) => {
                live.differences.clone_from(&change.differences);
                live.destructive = change.destructive;
                live.change = Some(change);
                steadfast_engine::Verdict::Differs
            }
            Verdict::Unknown(trouble) => {
                self.troubles.insert(id, trouble);
                steadfast_engine::Verdict::Unknown
            }
        };
        self.turn(Event::Checked(run, verdict));
        if self.runs.0.get(&run).is_some_and(|live| !live.begun) {
            self.runs.0.remove(&run);
        }
    }

    pub(super) fn ended(&mut self, run: RunId, outcome: Outcome) {
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let id = live.vertex;
        live.took = live.started.elapsed();
        let outcome = match outcome {
            Outcome::Unchanged => steadfast_engine::Outcome::Unchanged,
            Outcome::Changed(notes) => {
                live.notes = notes;
                self.troubles.remove(&id);
                steadfast_engine::Outcome::Changed
            }
            Outcome::Failed { trouble, touched } => {
                self.troubles.insert(id, trouble);
                steadfast_engine::Outcome::Failed { touched }
            }
            Outcome::Interrupted => steadfast_engine::Outcome::Interrupted,
        };
        self.echo.applied(id);
        self.turn(Event::Ended(run, outcome));
        self.drop_unless_closing(run);
    }

    /// Forgets a run whose end is not being recorded: there is nothing more to tell of it.
    pub(super) fn drop_unless_closing(&mut self, run: RunId) {
        if self.runs.0.get(&run).is_some_and(|live| !live.closing) {
            self.runs.0.remove(&run);
        }
    }

    /// Looks once more at all that was changed (one-shot): what differs by now was undone by another, or is not idempotent.
    pub(super) async fn last_look(&mut self) -> Vec<(String, Vec<Difference>)> {
        let mut changed = self.changed.clone();
        changed.sort_unstable();
        changed.dedup();
        let mut waiting = HashMap::new();
        for (id, number) in changed.into_iter().zip(0..) {
            let Some(entry) = self.table.get(id) else { continue };
            if entry.nature.repeat != Repeat::State {
                continue;
            }
            let run = RunId(u64::MAX - number);
            let ask = Ask { refresh: false, run: false, cancel: CancellationToken::new() };
            self.check(Arc::clone(&entry.resource), entry.nature.seat, ask, run);
            waiting.insert(run, id);
        }
        let (mut moved, mut batch) = (Vec::new(), Vec::new());
        while !waiting.is_empty() {
            self.inbox.take(&mut batch);
            if batch.is_empty() {
                tokio::select! {
                    () = self.inbox.filled() => {}
                    () = tokio::time::sleep(Duration::from_millis(5)) => self.pool.nudge(),
                }
            }
            for input in batch.drain(..) {
                let Input::Checked(run, verdict) = input else { continue };
                let Some(id) = waiting.remove(&run) else { continue };
                if let Some(found) = differences(verdict) {
                    moved.push((self.table.name(id).to_owned(), found));
                }
            }
        }
        moved.sort_by(|a, b| a.0.cmp(&b.0));
        moved
    }
}

fn differences(verdict: Verdict) -> Option<Vec<Difference>> {
    match verdict {
        Verdict::Same => None,
        Verdict::Differs(change) => Some(change.differences),
        Verdict::Unknown(trouble) => Some(vec![Difference {
            aspect: "unknown",
            from: trouble.what,
            to: String::new(),
            diff: None,
        }]),
    }
}

/// A panic in a kind is a failed run with the resource's name, and nothing more.
async fn guarded<T>(answer: Answer<'_, T>) -> Result<T, Trouble> {
    AssertUnwindSafe(answer).catch_unwind().await.map_err(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Trouble::new(format!("this kind panicked: {said}"))
            .hint("this is a bug of steadfast: please report it")
    })
}
