//! The runtime of a simulated driver: one thread, and an agenda that decides the order of events.

use crate::environment::{Event, Shared, lock};
use crate::host::harness::Meadow;
use crate::run::WALL;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::driver::{DriverEvent, EventSink, Executor, Inbox, Job, Runtime};
use steadfast::store::{Committed, Writer};
use steadfast::watch::{ExternalSources, SteppedWorker, WatchHub};
use steadfast_resources::{ExecutorKind, Host};

/// The runtime of one life of the daemon.
#[derive(Clone)]
pub(crate) struct OneThread {
    pub(crate) stage: Shared,
    pub(crate) life: u32,
    pub(crate) parts: Arc<Mutex<Works>>,
}

/// The workers that the simulation steps by hand: the journal's writer and the watch hub.
#[derive(Default)]
pub(crate) struct Works {
    pub(crate) writer: Option<Writer>,
    /// A committed or failed batch without a reply yet.
    pub(crate) committed: Option<Committed>,
    pub(crate) hand: Option<SteppedWorker>,
    pub(crate) sink: Option<Arc<steadfast::watch::Sink>>,
    /// `writing` and `walking` are true while the next turn of the writer or the hub is on the agenda.
    pub(crate) writing: bool,
    pub(crate) walking: bool,
}

impl Runtime for OneThread {
    fn hands(&self, _most: usize, _inbox: Inbox<DriverEvent>) -> Box<dyn Executor> {
        Box::new(self.clone())
    }

    fn hub(&self, _host: &Host, ear: EventSink) -> WatchHub {
        let meadow = || Meadow(Arc::clone(&self.stage));
        let handle = tokio::runtime::Handle::current();
        let parts = Arc::clone(&self.parts);
        let (hub, hand) = WatchHub::by_hand(
            handle,
            ExternalSources::default(),
            ear,
            (Arc::new(meadow()), |sink| {
                parts.lock().expect("one thread").sink = Some(Arc::new(sink));
                Box::new(meadow())
            }),
        );
        self.parts.lock().expect("one thread").hand = Some(hand);
        hub
    }

    fn discard(&self, what: Box<dyn Any + Send>) {
        drop(what);
    }

    fn wall(&self) -> Duration {
        WALL + Duration::from_millis(lock(&self.stage).now())
    }
}

/// The duration of a hung job, in milliseconds.
const LONG: u64 = 30_000;

impl Executor for OneThread {
    fn run(&self, executor: ExecutorKind, blocks: bool, work: Job) {
        let mut stage = lock(&self.stage);
        let (life, most, hangs) = (self.life, stage.profile.job, stage.profile.hangs);
        let rough = stage.rough;
        let mut delay = if rough { stage.chance.within(0, most) } else { stage.chance.below(2) };
        if rough && stage.chance.once_in(hangs) {
            stage.saw("a thread hung");
            delay += stage.chance.below(LONG);
        }
        let asked = stage.now();
        let event = match executor {
            ExecutorKind::Thread => Event::Job { life, asked, applies: blocks, work },
            ExecutorKind::Command => Event::Task { life, work },
        };
        stage.after(delay, event);
    }

    fn nudge(&self) {}

    fn is_waiting(&self) -> bool {
        false
    }
}
