//! The event loop: takes the inputs, passes events to the engine, and gives its actions to the components.
//!
//! Invariant: only [`Driver::turn`] calls the engine.

use super::{Driver, DriverEvent, DriverExit, DriverHealth, Notification, Query};
use crate::driver::inbox::Batch;
use steadfast_engine::{Action, Actions, Event, Notice, RestoredState, Tick};
use tokio::time::Instant;

impl Driver {
    /// Runs the loop until the driver is stopped; in one-shot mode, until all vertices are at rest.
    pub async fn run(mut self) -> DriverExit {
        let inbox = self.inbox();
        let mut batch = Batch::of(&inbox);
        self.restore_pause();
        self.encrypt_what_was_in_clear();
        if let Some(why) = self.mode.read_only() {
            self.notifier.notify(&Notification::ReadOnly(why));
        }
        loop {
            if !batch.fill() {
                if self.is_over() && !self.find_overlaps() && !self.look_once_more() {
                    break;
                }
                if !self.is_over() {
                    self.wait().await;
                }
            }
            self.look_at_clock();
            for input in &mut batch {
                self.take(input);
            }
            self.keep_time();
        }
        self.finish()
    }

    /// Waits for input, or for the next time at which a timer is due.
    async fn wait(&self) {
        let due = [
            self.engine.next_wakeup().map(|at| self.runtime.instant(at)),
            self.journal.retry_at(),
            self.watches.due(),
            self.values.rotation.due(),
            self.permission.windows.due(),
            self.permission.world.due(),
            self.commands.pauses.due(),
            self.runs.split.due(),
            self.runs.late_at().filter(|_| !self.settings.one_shot),
            self.permission.cleanup_until(),
            self.runtime.nudge_due(),
            self.notifier.due(),
        ];
        let Some(at) = due.into_iter().flatten().min() else {
            self.runtime.inbox().filled().await;
            return;
        };
        // `biased` fixes the order of the branches: a simulated session must replay identically.
        let inbox = self.inbox();
        tokio::select! {
            biased;
            () = inbox.filled() => {}
            () = tokio::time::sleep_until(at) => {}
        }
    }

    /// Performs all work that is due by time, without any input.
    fn keep_time(&mut self) {
        let now = Instant::now();
        self.journal.retry(now);
        self.update_world_permits();
        self.give_up_end_records(now);
        self.give_up_journal();
        self.runtime.nudge();
        self.give_up_watches(now);
        self.sweep_some(now);
        self.end_pauses(now);
        self.deliver_settled_events(now);
        self.start_secret_reads(now);
        self.rejoin_members(now);
        self.report_late_checks(now);
        if self.notifier.is_progress_due(now) {
            self.notify_progress();
        }
        if self.engine.next_wakeup().is_some_and(|at| at <= self.now()) {
            self.turn(Event::Wake);
        }
    }

    /// Reports checks that have not answered for long. An `apply` waits for them.
    fn report_late_checks(&mut self, now: Instant) {
        if self.settings.one_shot {
            return;
        }
        while let Some(run) = self.runs.take_late(now) {
            self.turn(Event::Late(run));
        }
    }

    pub(super) fn now(&self) -> Tick {
        self.runtime.now()
    }

    fn take(&mut self, input: DriverEvent) {
        match input {
            DriverEvent::Graph { .. }
            | DriverEvent::Pause { .. }
            | DriverEvent::Resume
            | DriverEvent::Query(Query::LoadResult(_))
                if self.mode.is_broken() =>
            {
                drop(self.mode.leave_to_next(input));
            }
            DriverEvent::Checked(run, verdict) => self.checked(run, verdict),
            DriverEvent::Ended(run, outcome) => self.ended(run, outcome),
            DriverEvent::MembersChecked(run, verdicts) => self.checked_parts(run, verdicts),
            DriverEvent::MembersEnded(run, outcomes) => self.ended_parts(run, outcomes),
            DriverEvent::JournalReplies(tickets, refused) => {
                self.handle_journal_replies(&tickets, refused.as_deref());
            }
            DriverEvent::CleanupDone => self.permission.end_cleanup(),
            DriverEvent::SecretsRead(id, identity, made) => self.rotated(id, &identity, made),
            DriverEvent::OverlapsFound(met) => self.apply_overlaps(met),
            DriverEvent::Undone(resource, deed) => self.undone(&resource, deed.as_slice()),
            DriverEvent::Watched(signals) => self.watched(signals),
            DriverEvent::WorldChanged(keys) => self.changed_in_world(&keys),
            DriverEvent::WorldPermits(granted) => self.take_world_permits(granted),
            DriverEvent::Graph { graph: Ok(graph), operator } => {
                self.load(*graph, operator);
            }
            DriverEvent::Graph { graph: Err(why), .. } => self.refuse(why),
            DriverEvent::LastGoodGraph(graph) => self.load_again(*graph),
            DriverEvent::Pause { reason, limit, drain } => {
                let until = self.now().after(limit.unwrap_or(self.settings.pause_limit));
                let pause = self.commands.pause((reason, until), drain, false);
                self.turn(pause);
            }
            DriverEvent::Resume => self.turn(Event::Resume),
            DriverEvent::Stop(grace) => self.turn(Event::Stop { grace }),
            DriverEvent::Query(query) => self.answer(query),
            DriverEvent::Lease(lease) => {
                // Resources that were refused without a lease are tried again.
                if self.permission.lease.set(lease) {
                    self.try_failed_again();
                }
            }
            DriverEvent::Settings(tuning) => self.tune(tuning),
            DriverEvent::Ping(answer) => {
                self.turn(Event::Wake);
                (answer.0)(DriverHealth {
                    counts: self.counts(),
                    mode: self.engine.mode(),
                    converged: self.engine.is_converged(),
                    caveat: self.caveat(),
                    unwatched: self.watches.states.polled.unwatched().len(),
                });
            }
        }
    }

    /// Passes one event to the engine, performs its actions, and handles the events that follow.
    pub(super) fn turn(&mut self, event: Event) {
        self.next_events.push_back(event);
        while let Some(event) = self.next_events.pop_front() {
            if let Event::Refused(run) = event {
                self.note_refusal(run);
            }
            let actions = self.engine.handle(self.now(), event);
            self.perform(actions);
        }
    }

    fn perform(&mut self, actions: Actions) {
        let loads = actions.iter().any(|a| matches!(a, Action::Notify(Notice::Loaded { .. })));
        if loads {
            self.permission.world.forget_members();
        }
        if loads && self.graph.install_groups() {
            self.pass_pauses_to_engine(false);
        } else if loads {
            let installed = self.graph.install();
            self.runs.metrics.forget_kinds();
            self.settle_ownership(&installed);
            self.graph.loads.change = Some(installed.change);
            for id in installed.dropped {
                self.forget(id, &RestoredState::default());
            }
            self.values.index(&self.graph);
            self.read_secrets_of_all();
            self.pass_pauses_to_engine(false);
            self.discard_replaced();
        }
        for action in actions {
            match action {
                Action::Watch(id) => self.watch(id),
                Action::Unwatch(id) => {
                    self.watches.close(id);
                    self.values.rotation.settling.forget(id);
                }
                Action::Mute(id) => self.watches.mute(id, true),
                Action::Unmute(id) => self.watches.mute(id, false),
                Action::Start(start) => {
                    self.runs.metrics.note_start(start.vertex);
                    self.start(start);
                    if !start.look {
                        self.notify_started(start.vertex);
                    }
                }
                Action::Begin(intent) => self.begin(&intent),
                Action::Apply(run, id) => {
                    self.runs.recent_applies.note(id, Instant::now());
                    self.apply(run, id);
                }
                Action::End(record) => self.end(&record),
                Action::Cancel(run, _) => {
                    self.runs.cancel(run);
                }
                Action::Forget(id, recall) => self.forget(id, &recall),
                Action::SavePause(until) => self.save_pause(until),
                Action::Notify(notice) => self.notify(notice),
            }
        }
        self.watches.arm_requested();
    }
}
