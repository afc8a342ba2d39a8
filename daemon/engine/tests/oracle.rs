//! The oracle: it observes every turn of the engine, maintains its own records, and reports the rules that were broken.

use crate::invariants;
use crate::oracle_log::{Asked, Books, Need, Phase};
use steadfast_engine::{
    Action, Counts, Engine, Event, HeldReason, Mode, Notice, Poll, RunId, Slots, Tick, VertexId,
    VertexStatus,
};

mod asking;
mod contention;
mod doing;
mod happening;
mod hearing;
mod holding;
mod loading;
mod outcomes;
mod planning;
mod poking;

/// The queries to an engine, which a faked engine answers as well.
pub(crate) trait Face {
    fn next_wakeup(&self) -> Option<Tick>;
    fn mode(&self) -> Mode;
    fn standing(&self, vertex: VertexId) -> Option<VertexStatus>;
    fn counts(&self) -> Counts;
    fn is_converged(&self) -> bool;
    fn is_at_rest(&self) -> bool;
}

impl Face for Engine {
    fn next_wakeup(&self) -> Option<Tick> {
        Self::next_wakeup(self)
    }

    fn mode(&self) -> Mode {
        Self::mode(self)
    }

    fn standing(&self, vertex: VertexId) -> Option<VertexStatus> {
        Self::vertex_status(self, vertex)
    }

    fn counts(&self) -> Counts {
        Self::counts(self)
    }

    fn is_converged(&self) -> bool {
        Self::is_converged(self)
    }

    fn is_at_rest(&self) -> bool {
        Self::is_at_rest(self)
    }
}

/// The oracle of one engine.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    pub(crate) books: Books,
    /// False for graphs so large that the records of every ancestor cost too much.
    pub(crate) enabled: bool,
}

impl Oracle {
    pub(crate) fn new(slots: Slots, one_shot: bool) -> Self {
        Self { books: Books::new(slots, one_shot), enabled: true }
    }

    /// Observes one turn: the event, the actions of the engine, and its state afterwards.
    pub(crate) fn observe(
        &mut self,
        now: Tick,
        event: &Event,
        actions: &[Action],
        face: &impl Face,
    ) {
        if !self.enabled {
            return;
        }
        let books = &mut self.books;
        let passed = now > books.now;
        books.now = now;
        books.clock += 1;
        books.since = books.clock;
        books.ending = None;
        books.turn_of = books.turn_of(event);
        books.back_poked.clear();
        books.excusable.clear();
        books.asked_again.clear();
        (books.unchecked, books.passed) = (None, passed);
        books.durable_now = None;
        books.started_as.clear();
        books.loaded_now = false;
        books.see_contentions(face);
        for vertex in books.vertices.values_mut() {
            if matches!(vertex.phase, Phase::Delayed(until) if until <= now) {
                vertex.phase = Phase::Rest;
            }
        }
        if passed {
            books.may_tick();
        }
        // Deadlines come before the event of the turn.
        let resumes = actions.contains(&Action::SavePause(None));
        let due = matches!(books.asked, Asked::Pausing { until, .. } if until <= now);
        if resumes && due {
            books.resumed(event);
        }
        books.crossed(event, actions);
        books.happen(event);
        if resumes && !due {
            books.resumed(event);
        }
        books.stamp_debts(actions);
        let load = position_of_load(actions);
        for (at, action) in actions.iter().enumerate() {
            books.clock += 1;
            if load == Some(at) {
                books.allow_counted_failures();
                books.note_who_asks();
                books.load();
            }
            books.act(event, action);
        }
        books.clock += 1;
        books.turn_over(face);
        invariants::check(books, event, actions, face);
        books.take_tickets();
    }

    /// Records a crash. Changes that a permit may have allowed are owed from now on.
    pub(crate) fn crashed(&mut self) {
        let books = &mut self.books;
        books.clock += 1;
        let mut owed = Vec::new();
        for (id, vertex) in &books.vertices {
            if let Some(run) = vertex.running.as_ref().filter(|run| run.applying) {
                let debt = books.debts.get(id).filter(|since| run.refresh && **since < run.start);
                books.cut_debts.extend(debt.map(|since| (*id, *since)));
                owed.extend(run.intent.iter().flat_map(|intent| intent.owes.clone()));
            }
        }
        let clock = books.clock;
        let mut fresh = Books::new(books.slots, books.one_shot);
        fresh.clock = clock;
        fresh.debts = std::mem::take(&mut books.debts);
        fresh.cut_debts = std::mem::take(&mut books.cut_debts);
        fresh.debts.extend(owed.into_iter().map(|child| (child, clock)));
        fresh.repair_limit = books.repair_limit;
        fresh.open = std::mem::take(&mut books.open);
        fresh.violations = std::mem::take(&mut books.violations);
        *books = fresh;
    }

    /// Records a violation outside of a turn.
    pub(crate) fn violated(&mut self, sentence: &str) {
        self.books.violations.push(sentence.to_owned());
    }
}

/// Returns the index of the first action of a new graph: changes of its watches come before its notice.
fn position_of_load(actions: &[Action]) -> Option<usize> {
    let loaded = |a: &Action| matches!(a, Action::Notify(Notice::Loaded { .. }));
    let belongs = |a: &Action| {
        matches!(a, Action::Watch(_) | Action::Unwatch(_) | Action::Forget(..)) || loaded(a)
    };
    actions.iter().any(loaded).then(|| actions.iter().position(belongs)).flatten()
}

impl Books {
    pub(crate) fn broken(&mut self, rule: &str, detail: &str) {
        self.violations.push(format!("{rule}\n    {detail}"));
    }

    /// Returns the vertex whose run continues or ends by this event.
    fn turn_of(&self, event: &Event) -> Option<VertexId> {
        match event {
            Event::Checked(run, _)
            | Event::Begun(run)
            | Event::Refused(run)
            | Event::Ended(run, _) => self.vertex_of(*run),
            _ => None,
        }
    }

    /// Records a cancel that was due before the event, in the same turn: the result has crossed it.
    fn crossed(&mut self, event: &Event, actions: &[Action]) {
        if matches!(event, Event::Swap(_)) {
            // The cancel was due by the graph that has waited until now.
            for action in actions {
                if let Action::Cancel(run, id) = action {
                    self.cancel(*run, *id);
                }
            }
            return;
        }
        let (Event::Checked(run, _)
        | Event::Begun(run)
        | Event::Refused(run)
        | Event::Ended(run, _)) = event
        else {
            return;
        };
        let Some(id) = self.vertex_of(*run) else { return };
        if actions.contains(&Action::Cancel(*run, id)) {
            self.cancel(*run, id);
        }
    }

    /// Records the engine's stamps of owed refreshes.
    fn stamp_debts(&mut self, actions: &[Action]) {
        for action in actions {
            let Action::End(record) = action else { continue };
            for child in &record.owes {
                if let Some(vertex) = self.vertices.get_mut(child) {
                    vertex.owed_stamp = vertex.owed_stamp.max(record.stamp);
                }
            }
        }
    }

    /// Reads the consequence of a failure from the status of the vertex; the notice follows when the end is durable.
    fn turn_over(&mut self, face: &impl Face) {
        for id in self.order.clone() {
            let Some(vertex) = self.vertices.get(&id) else { continue };
            match vertex.phase {
                Phase::JustFailed { run, since, was_failed, maybe_good } => {
                    let standing = face.standing(id);
                    if matches!(standing, Some(VertexStatus::Asking(_))) {
                        self.asks(id, (run, since), was_failed);
                        continue;
                    }
                    let lenient = maybe_good || self.is_suspended(id);
                    self.judge_failure(id, (run, since), standing.as_ref(), lenient);
                    let notice_of = (self.last_undurable(id), was_failed);
                    self.after_failure(id, standing, maybe_good, notice_of);
                }
                Phase::Asking { .. } => self.still_asks(id, face.standing(id)),
                Phase::Unsure => self.reconcile(id, face.standing(id).as_ref()),
                // A look gets one attempt, not sooner than the back-off allows.
                Phase::Failed if matches!(vertex.need, Need::Maybe(_)) => {
                    self.reconcile(id, face.standing(id).as_ref());
                }
                Phase::Rest | Phase::Held | Phase::Shut | Phase::Failed => {
                    self.ticked(id, face.standing(id).as_ref());
                }
                _ => {}
            }
        }
        self.is_told();
        self.is_recorded();
    }

    /// Allows for a poll tick, which sends back-pokes like any other mark.
    fn may_tick(&mut self) {
        for id in self.order.clone() {
            if matches!(self.vertices[&id].declared.meta.poll, Poll::Every(_)) {
                self.back_poke(id);
            }
        }
    }

    /// Detects poll ticks from the engine's status (E-13); their number is checked at the starts.
    fn ticked(&mut self, id: VertexId, standing: Option<&VertexStatus>) {
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let polled = matches!(vertex.declared.meta.poll, Poll::Every(_)) && !self.one_shot;
        let rests = matches!(
            standing,
            Some(
                VertexStatus::Settled
                    | VertexStatus::Contended { next: None, .. }
                    | VertexStatus::Held(_)
                    | VertexStatus::Failed
                    | VertexStatus::Stuck(..)
            )
        );
        let waits = !rests;
        if polled && waits && !vertex.is_running() && vertex.need == Need::No {
            vertex.polled = true;
            vertex.need = Need::Maybe(0);
            if vertex.phase == Phase::Failed {
                vertex.phase = Phase::Unsure;
            }
            self.back_poke(id);
        }
    }

    fn after_failure(
        &mut self,
        id: VertexId,
        standing: Option<VertexStatus>,
        maybe_good: bool,
        notice_of: (Option<RunId>, bool),
    ) {
        let lenient = maybe_good || self.asked == Asked::Stopping || self.is_suspended(id);
        match standing {
            Some(VertexStatus::Delayed(at)) => {
                self.retrying(id, at);
                self.expected.push((notice_of.0, Notice::Retrying(id, at), !lenient));
            }
            Some(VertexStatus::Failed) => {
                self.failed_for_good(id);
                self.expected.push((notice_of.0, Notice::Failed(id), !lenient && !notice_of.1));
            }
            other => {
                let excused = self.is_excused_at_once(id);
                if excused && !lenient {
                    return self.excused(id, false);
                }
                if !lenient {
                    let detail = format!("{id} failed and stands as {other:?}");
                    self.broken(invariants::E10_FAILURE, &detail);
                }
                self.reconcile(id, other.as_ref());
                if excused {
                    self.may_be_dirty_since_now(id);
                }
            }
        }
    }

    /// Accepts the engine's decision where the rules leave it open.
    fn reconcile(&mut self, id: VertexId, standing: Option<&VertexStatus>) {
        let clock = self.since;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.phase = match standing {
            Some(VertexStatus::Delayed(at)) => {
                vertex.must(clock, None);
                Phase::Delayed(*at)
            }
            Some(VertexStatus::Failed) => Phase::Failed,
            Some(VertexStatus::Held(HeldReason::Operator)) => Phase::Operator,
            Some(VertexStatus::Held(HeldReason::Window(_))) => Phase::Shut,
            Some(VertexStatus::Held(_)) => Phase::Held,
            Some(VertexStatus::Settled | VertexStatus::Contended { next: None, .. }) => {
                if matches!(vertex.need, Need::Maybe(_)) {
                    vertex.need = Need::No;
                }
                Phase::Rest
            }
            _ => {
                vertex.may(clock);
                Phase::Rest
            }
        };
    }

    fn is_told(&mut self) {
        let durable = self.durable_now.map(|(run, ..)| run);
        let told = std::mem::take(&mut self.told);
        let due = |run: Option<RunId>| run.is_none() || run == durable;
        let missing = |notice: &Notice| !told.contains(notice);
        let wrong: Vec<String> = self
            .expected
            .iter()
            .filter(|(run, notice, must)| due(*run) && *must && missing(notice))
            .map(|(_, notice, _)| format!("not told: {notice:?}"))
            .collect();
        let history = match durable {
            Some(run) => self.history.remove(&run),
            None => !self.history.is_empty(),
        };
        let surplus: Vec<String> = told
            .iter()
            .filter(|_| !history)
            .filter(|notice| !self.expected.iter().any(|(run, e, _)| e == *notice && due(*run)))
            .filter(|notice| !self.was_judged_before_load(notice, durable))
            .map(|notice| format!("told too early or wrongly: {notice:?}"))
            .collect();
        self.expected.retain(|(run, ..)| !due(*run));
        self.judged_before_load.retain(|(run, _)| !due(*run));
        for detail in wrong.into_iter().chain(surplus) {
            self.broken(invariants::E10_FAILURE, &detail);
        }
    }

    fn is_recorded(&mut self) {
        if let Some(ending) = self.ending.take() {
            let wanted = ending.running.intent.is_some() || ending.pays == Some(true);
            if wanted && !ending.recorded {
                self.broken(invariants::HANDSHAKE, &format!("no record of {}", ending.vertex));
            }
        }
    }

    /// Records the time since which each vertex waits for semaphores (E-14).
    fn take_tickets(&mut self) {
        let all = self.clearances();
        for id in self.order.clone() {
            let surely = self.is_surely_ready(id, &all);
            let possibly = self.is_possibly_ready(id);
            let clock = self.clock;
            let Some(vertex) = self.vertices.get_mut(&id) else { continue };
            let (sure, may) = vertex.ticket;
            vertex.ticket =
                (surely.then(|| sure.unwrap_or(clock)), possibly.then(|| may.unwrap_or(clock)));
        }
    }
}
