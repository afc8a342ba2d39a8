//! One life of the simulated daemon: its driver, from the start until a kill or an orderly stop.

use crate::environment::{Event, Shared, here, lock};
use crate::host::storage::Storage;
use crate::host::world::{FileEvent, Who};
use crate::listener::Listener;
use crate::machinery::{OneThread, Works};
use crate::run::SWEEP;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use steadfast::driver::{
    Driver, DriverDeps, DriverEvent, DriverExit, Inbox, LocalMinute, Observer, Settings,
};
use steadfast::store::{Journal, Key, MemoryStore, Store as _, Writer};
use steadfast::watch::{BackendEvent, SteppedWorker};
use steadfast_engine::Slots;
use steadfast_resources::{Host, MintKey};
use tokio::task::AbortHandle;

/// A running simulated daemon.
pub(crate) struct Life {
    number: u32,
    pub(crate) driver: Pin<Box<dyn Future<Output = DriverExit>>>,
    pub(crate) inbox: Inbox<DriverEvent>,
    works: Arc<Mutex<Works>>,
    tasks: Vec<AbortHandle>,
}

/// Returns the weekday and the minute of the day on the wall clock of the simulated host.
fn local_minute() -> LocalMinute {
    let minutes = here().wall().as_secs() / 60;
    // 1 January 1970 was a Thursday.
    let (day, minute) = ((minutes / 1440 + 3) % 7, minutes % 1440);
    (u8::try_from(day).expect("a day"), u16::try_from(minute).expect("a minute"))
}

/// Returns the mint key; a process has only one.
fn key() -> Arc<MintKey> {
    static KEY: OnceLock<Arc<MintKey>> = OnceLock::new();
    Arc::clone(KEY.get_or_init(|| Arc::new(MintKey::take().expect("nobody else takes it"))))
}

impl Life {
    /// Starts a daemon with the stored state.
    pub(crate) fn begin(stage: &Shared, kept: &MemoryStore) -> Self {
        let (sweeps, repair_limit) = {
            let profile = &lock(stage).profile;
            (profile.sweeps, profile.repair_limit)
        };
        let settings = Settings {
            one_shot: false,
            slots: Slots::default(),
            sweep: sweeps.then_some(Duration::from_millis(SWEEP)),
            pause_limit: Duration::from_mins(2),
            whole: true,
            removes: false,
            repair_limit: Some(repair_limit),
            clock: local_minute,
            guard: None,
        };
        Self::with(stage, kept, settings, Box::new(Listener(Arc::clone(stage))))
    }

    /// Starts a daemon with these settings and this observer.
    pub(crate) fn with(
        stage: &Shared,
        kept: &MemoryStore,
        mut settings: Settings,
        observer: Box<dyn Observer>,
    ) -> Self {
        let mut storage = Storage::faulty(kept.clone(), stage);
        let mut recalled = storage.recall().expect("memory tells all");
        recalled.key = Some(Key([7; 32]));
        let (number, slots) = {
            let mut stage = lock(stage);
            stage.life += 1;
            if recalled.resources.values().any(|kept| kept.interrupted.is_some()) {
                stage.saw("a crash between begin and end");
            }
            if recalled.resources.values().any(|kept| kept.owed.is_some()) {
                stage.saw("a refresh that a crash left owed");
            }
            if !std::mem::take(&mut stage.owed_again).is_empty() {
                stage.saw("a refresh that came while it ran, and that a crash left owed");
            }
            if recalled.pause.is_some() {
                stage.saw("a pause that outlived a crash");
            }
            stage.say(format_args!("recalls {recalled:?}"));
            let (threads, spare) = (stage.profile.threads, stage.profile.spare);
            let slots = Slots { threads, replaceable: spare, ..Slots::default() };
            (stage.life, slots)
        };
        let (journal, writer) = Journal::by_hand(Box::new(storage));
        let works = Works { writer: Some(writer), ..Works::default() };
        let works = Arc::new(Mutex::new(works));
        let machinery =
            OneThread { stage: Arc::clone(stage), life: number, parts: Arc::clone(&works) };
        settings.slots = slots;
        let parts = DriverDeps {
            host: Host::default(),
            key: key(),
            journal: Some(journal),
            recalled,
            history: None,
            read_only: None,
            kinds: steadfast::config::KindSet::of_this_build(),
            observer,
        };
        let driver = Driver::on(Box::new(machinery), settings, parts);
        let inbox = driver.inbox();
        let driver = Box::pin(driver.run());
        Self { number, driver, inbox, works, tasks: Vec::new() }
    }

    fn works(&self) -> MutexGuard<'_, Works> {
        self.works.lock().expect("one thread")
    }

    /// Moves the requests of the driver to the agenda.
    pub(crate) fn plan(&self, stage: &Shared) {
        let (mut works, life) = (self.works(), self.number);
        let due = works.writer.as_ref().filter(|_| !works.writing).and_then(Writer::due);
        if let Some(due) = due {
            works.writing = true;
            let mut stage = lock(stage);
            let most = if stage.rough { stage.profile.commit } else { 1 };
            let wait = u64::try_from(due.as_millis()).expect("a short wait");
            let delay = wait + stage.chance.within(0, most);
            stage.after(delay, Event::Write { life });
        }
        if !works.walking && works.hand.as_ref().is_some_and(SteppedWorker::is_wanted) {
            works.walking = true;
            let mut stage = lock(stage);
            let (most, hangs) = (stage.profile.job, stage.profile.hangs);
            let mut delay = if stage.rough { stage.chance.within(0, most) } else { 0 };
            if stage.rough && stage.chance.once_in(hangs) {
                delay += stage.chance.below(20_000);
            }
            stage.after(delay, Event::Hub { life });
        }
        let mut stage = lock(stage);
        if !stage.world.queue.is_empty() && !stage.is_delivering {
            stage.is_delivering = true;
            let late = if stage.rough { stage.profile.late } else { 1 };
            let delay = stage.chance.within(0, late);
            if delay > 100 {
                stage.saw("a file event came late");
            }
            stage.after(delay, Event::FileEvents);
        }
    }

    /// Executes one event of the agenda that the daemon has requested.
    pub(crate) fn act(&mut self, event: Event, stage: &Shared) {
        match event {
            Event::Job { life, asked, applies, work } if life == self.number => {
                self.job((asked, applies), work, stage);
            }
            Event::Task { life, work } if life == self.number => {
                let stage = Arc::clone(stage);
                let task = async move {
                    let input = work.await;
                    let mut stage = lock(&stage);
                    let most = if stage.rough { stage.profile.job / 10 } else { 0 };
                    let delay = stage.chance.within(0, most);
                    stage.after(delay, Event::Result { life, input });
                };
                self.tasks.push(tokio::spawn(task).abort_handle());
            }
            Event::Result { life, input } if life == self.number => {
                lock(stage).say(format_args!("{input:?}"));
                self.inbox.put(input);
            }
            Event::Write { life } if life == self.number => {
                self.write(stage);
            }
            Event::Written { life } if life == self.number => self.written(stage),
            Event::Hub { life } if life == self.number => {
                let hand = self.works().hand.clone();
                let steps = lock(stage).chance.within(1, 40);
                let is_busy = |_: &u64| hand.as_ref().is_some_and(SteppedWorker::step);
                let _steps = (0..steps).take_while(is_busy).count();
                self.works().walking = false;
            }
            Event::FileEvents => self.deliver_events(stage),
            _ => {}
        }
    }

    /// Commits the waiting batch of the journal; the reply follows later.
    fn write(&self, stage: &Shared) {
        let mut works = self.works();
        let committed = works.writer.as_mut().and_then(Writer::commit_next);
        works.writing = committed.is_some();
        works.committed = committed;
        let answers = works.writing;
        drop(works);
        let mut stage = lock(stage);
        if answers && stage.rough && stage.profile.kills > 0 && stage.chance.once_in(20) {
            // The batch is committed or lost, and the daemon never learns the result.
            stage.saw("a crash after the commit and before its answer");
            stage.dead = true;
        } else if answers {
            let most = if stage.rough { stage.profile.commit } else { 1 };
            let delay = stage.chance.within(0, most);
            stage.after(delay, Event::Written { life: self.number });
        }
    }

    fn written(&self, stage: &Shared) {
        let mut works = self.works();
        works.writing = false;
        let (committed, writer) = (works.committed.take(), works.writer.take());
        // The reply reaches the driver, so no lock may be held here.
        drop(works);
        let mut writer = writer.expect("it has written");
        if let Some(committed) = committed {
            if writer.due().is_some() {
                lock(stage).saw("a commit while more came to wait");
            }
            if writer.due().is_some() && !committed.is_kept() {
                lock(stage).saw("a batch refused while more waited behind it");
            }
            writer.answer(&committed);
        }
        self.works().writer = Some(writer);
    }

    /// Executes the system calls of a check or an apply at one moment; its result can reach the driver later.
    fn job(&self, (asked, applies): (u64, bool), mut work: steadfast::driver::Job, stage: &Shared) {
        {
            let mut stage = lock(stage);
            let now = stage.now();
            stage.say(format_args!("works {applies} asked at {asked}, now {now}"));
        }
        let machine = here();
        lock(stage).take_in(&machine, Who::Foreign);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(input) = work.as_mut().poll(&mut context) else {
            lock(stage).wrong.push("what is to block does not".to_owned());
            return;
        };
        let mut stage = lock(stage);
        stage.take_in(&machine, Who::Us);
        if machine.is_dead() {
            stage.saw("a crash within an apply");
            stage.dead = true;
        }
        let most = if stage.rough { stage.profile.job } else { 0 };
        let delay = stage.chance.within(0, most);
        stage.after(delay, Event::Result { life: self.number, input });
    }

    /// Delivers the kernel's file events to the hub; a rough profile loses some of them.
    fn deliver_events(&self, stage: &Shared) {
        let mut events = Vec::new();
        {
            let mut stage = lock(stage);
            stage.is_delivering = false;
            let lost = if stage.rough { stage.profile.lost } else { 0 };
            let count = stage.world.queue.len() as u64;
            let count = stage.chance.within(count.min(1), count);
            for _ in 0..count {
                let Some(event) = stage.world.queue.pop_front() else { break };
                if event == FileEvent::Overflow {
                    stage.saw("the queue of file events ran over");
                }
                let is_lost =
                    matches!(event, FileEvent::Entry { .. }) && stage.chance.percent(lost);
                stage.say_event(&event, is_lost);
                stage.note_told(&event, is_lost);
                if !is_lost {
                    events.push(event);
                }
            }
        }
        let sink = self.works().sink.clone();
        let told: Vec<BackendEvent<'_>> = events
            .iter()
            .map(|event| match event {
                FileEvent::Entry { directory, name, structural } => {
                    BackendEvent::Entry { directory: *directory, name, structural: *structural }
                }
                FileEvent::Lost(directory) => BackendEvent::Lost(*directory),
                FileEvent::Overflow => BackendEvent::Overflow,
            })
            .collect();
        if let Some(sink) = sink
            && !told.is_empty()
        {
            sink(&told);
        }
    }

    /// Kills the daemon at once, with all its pending work.
    pub(crate) fn killed(self, stage: &Shared) {
        let cut: BTreeSet<String> = {
            let mut stage = lock(stage);
            stage.life += 1;
            stage.dead = false;
            here().restart();
            stage.take_in(&here(), Who::Us);
            stage.is_delivering = false;
            stage.world.close_watches();
            stage.heard.is_gone();
            let running = stage.running.iter().filter(|(_, count)| **count > 0);
            running.map(|((_, command), _)| command.clone()).collect()
        };
        for task in &self.tasks {
            task.abort();
        }
        let mut stage = lock(stage);
        let now = stage.now();
        for command in cut {
            stage.done.insert(command, now);
        }
    }

    /// Ends the daemon in order: its pending batches are committed.
    pub(crate) fn stopped(self, stage: &Shared) {
        if self.works().writing {
            self.written(stage);
        }
        let writer = self.works().writer.take();
        if let Some(mut writer) = writer {
            while writer.due().is_some() {
                writer.write_next();
            }
        }
        self.killed(stage);
    }
}
