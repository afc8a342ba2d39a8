//! The task of one systemd bus: it subscribes, makes the due queries, and reports the events of units.

use crate::watch::index::{Answers, Followed, Questions, WatchIndex};
use crate::watch::shared::Shared;
use crate::watch::signal::Signal;
use crate::watch::sources::{SourceError, UnitSource, UnitStream};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::host::systemd::{Bus, Happening, Sink};
use tokio::time::Instant;

/// The first wait before another attempt to reach a bus; it doubles up to `AT_MOST`.
const AGAIN: Duration = Duration::from_millis(100);
const AT_MOST: Duration = Duration::from_secs(2);
/// A bus that returns within this time, as after a restart, does not count as lost: all units are suspect, and no
/// failure is reported.
const GRACE: Duration = Duration::from_secs(1);
/// The maximum number of queries at the same time.
const AT_ONCE: usize = 32;

/// Follows one bus until the hub is closed.
pub(in crate::watch) async fn follow(shared: Arc<Shared>, source: Arc<dyn UnitSource>, bus: Bus) {
    let mut wait = AGAIN;
    let mut lost: Option<Instant> = None;
    loop {
        #[cfg(feature = "fault-injection")]
        if crate::fault_injection::take("units").is_some() {
            std::panic::panic_any("a fault was put into it");
        }
        let sink: Sink = {
            let shared = Arc::downgrade(&shared);
            Box::new(move |happening| {
                if let Some(shared) = shared.upgrade() {
                    shared.take_in_unit(bus, happening);
                }
            })
        };
        let why = match source.subscribe(bus, sink).await {
            Ok(mut stream) => {
                let began = Instant::now();
                let why = serve(&shared, &*source, bus, &mut *stream).await;
                if began.elapsed() > GRACE {
                    (wait, lost) = (AGAIN, Some(Instant::now()));
                }
                why
            }
            Err(error) => error.0,
        };
        let in_grace = lost.is_some_and(|at| at.elapsed() < GRACE);
        shared.lose_units(bus, (!in_grace).then_some(why));
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AT_MOST);
    }
}

/// Makes the due queries while a subscription lasts; returns the reason for its end.
async fn serve(
    shared: &Shared,
    source: &dyn UnitSource,
    bus: Bus,
    stream: &mut dyn UnitStream,
) -> String {
    let Some(wake) = shared.lock().units.on(bus).map(Followed::begin) else {
        return "nobody waits".to_owned();
    };
    loop {
        let questions = shared.lock().units.on(bus).map(Followed::questions).unwrap_or_default();
        let answers = tokio::select! {
            biased;
            () = stream.lost() => return "the connection to systemd was lost".to_owned(),
            answers = ask(source, bus, questions) => answers,
        };
        match answers {
            Ok(answers) => shared.learn(bus, answers),
            Err(error) => return error.0,
        }
        tokio::select! {
            () = wake.notified() => {}
            () = stream.lost() => return "the connection to systemd was lost".to_owned(),
        }
    }
}

async fn ask(
    source: &dyn UnitSource,
    bus: Bus,
    questions: Questions,
) -> Result<Answers, SourceError> {
    let mut answers = Answers { found: Vec::new(), names: Vec::new(), suspect: questions.suspect };
    let asked = questions.fresh.into_iter().map(|name| async move {
        let found = source.find(bus, &name).await;
        found.map(|found| (name, found))
    });
    let mut asked = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
    while let Some(answer) = asked.next().await {
        answers.found.push(answer?);
    }
    for path in questions.strangers {
        let names = source.names(bus, &path).await?;
        answers.names.push((path, names));
    }
    Ok(answers)
}

impl Shared {
    /// Processes an event of systemd, in the order of the events.
    fn take_in_unit(&self, bus: Bus, happening: Happening<'_>) {
        let mut state = self.lock();
        let Some(followed) = state.units.on(bus) else { return };
        let concerned = followed.hear(happening);
        self.signal_units(&state, &concerned, Signal::Changed);
    }

    fn learn(&self, bus: Bus, answers: Answers) {
        let mut state = self.lock();
        let Some(followed) = state.units.on(bus) else { return };
        let learned = followed.learn(answers);
        // Suspects come before `Established` signals: those vertices are checked anyway.
        self.signal_units(&state, &learned.suspect, Signal::Suspect);
        self.signal_units(&state, &learned.changed, Signal::Changed);
        self.judge_units(&mut state, &learned.queried);
    }

    /// Handles the loss of a bus. `why` is `None` during the grace time; then no failure is reported.
    fn lose_units(&self, bus: Bus, why: Option<String>) {
        let mut state = self.lock();
        let vertices = state.units.on(bus).map(|followed| followed.lose(why));
        self.judge_units(&mut state, &vertices.unwrap_or_default());
    }

    fn judge_units(&self, state: &mut WatchIndex, vertices: &[VertexId]) {
        let mut signals = Vec::new();
        for vertex in vertices {
            state.judge(*vertex, &mut signals);
        }
        self.send(state, signals);
    }

    fn signal_units(
        &self,
        state: &WatchIndex,
        vertices: &[VertexId],
        signal: fn(VertexId) -> Signal,
    ) {
        let mut signals = Vec::new();
        for vertex in vertices {
            state.send(*vertex, signal, &mut signals);
        }
        self.send(state, signals);
    }
}
