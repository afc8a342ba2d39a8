//! The oracle: it watches every turn of the engine, keeps its books, and says which rule was broken.

use crate::books::{Asked, Books, Phase};
use crate::invariants;
use steadfast_engine::{
    Action, Counts, Engine, Event, Mode, Notice, Slots, Standing, Tick, VertexId,
};

mod doing;
mod happening;
mod hearing;
mod loading;

/// What may be asked of an engine; a lying one has it too.
pub(crate) trait Face {
    fn next_wakeup(&self) -> Option<Tick>;
    fn mode(&self) -> Mode;
    fn standing(&self, vertex: VertexId) -> Option<Standing>;
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

    fn standing(&self, vertex: VertexId) -> Option<Standing> {
        Self::standing(self, vertex)
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

/// The oracle.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    pub(crate) books: Books,
    /// Off for graphs so large that books of every ancestor cost too much.
    pub(crate) enabled: bool,
}

impl Oracle {
    pub(crate) fn new(slots: Slots, one_shot: bool) -> Self {
        Self { books: Books::new(slots, one_shot), enabled: true }
    }

    /// One turn: what happened, what the engine answered, and how it stands after.
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
        books.now = now;
        books.clock += 1;
        books.ending = None;
        books.durable_now = None;
        books.started_as.clear();
        books.happen(event);
        let told = |wanted: fn(&Notice) -> bool| {
            actions.iter().any(|action| matches!(action, Action::Tell(notice) if wanted(notice)))
        };
        if told(|notice| matches!(notice, Notice::Resumed)) {
            books.resumed(event);
        }
        if told(|notice| matches!(notice, Notice::Loaded { .. })) {
            books.load();
        }
        books.stamp_debts(actions);
        for action in actions {
            books.clock += 1;
            books.act(event, action);
        }
        books.clock += 1;
        books.turn_over();
        invariants::check(books, event, actions, face);
        books.take_tickets();
    }

    /// Everything was killed. What a permit may have changed is owed from now on.
    pub(crate) fn crashed(&mut self) {
        let books = &mut self.books;
        books.clock += 1;
        let mut owed = Vec::new();
        for vertex in books.vertices.values() {
            if let Some(run) = vertex.running.as_ref().filter(|run| run.applying) {
                owed.extend(run.intent.iter().flat_map(|intent| intent.owes.clone()));
            }
        }
        let clock = books.clock;
        let mut fresh = Books::new(books.slots, books.one_shot);
        fresh.clock = clock;
        fresh.debts = std::mem::take(&mut books.debts);
        fresh.debts.extend(owed.into_iter().map(|child| (child, clock)));
        fresh.violations = std::mem::take(&mut books.violations);
        *books = fresh;
    }

    /// Something outside of a turn is wrong.
    pub(crate) fn violated(&mut self, sentence: &str) {
        self.books.violations.push(sentence.to_owned());
    }
}

impl Books {
    pub(crate) fn broken(&mut self, rule: &str, detail: &str) {
        self.violations.push(format!("{rule}\n    {detail}"));
    }

    /// The stamps by which the engine knows what is owed.
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

    /// A failure of which the engine said neither *retrying* nor *failed*.
    fn turn_over(&mut self) {
        let quiet = self.asked == Asked::Stopping;
        let ids: Vec<VertexId> = self.order.clone();
        for id in ids {
            let suspended = self.is_suspended(id);
            let clock = self.clock;
            let Some(vertex) = self.vertices.get_mut(&id) else { continue };
            let Phase::JustFailed { was_failed, maybe_good } = vertex.phase else { continue };
            if was_failed && !maybe_good {
                vertex.failed(clock);
            } else {
                vertex.phase = Phase::Unsure;
                vertex.may(clock);
                if !maybe_good && !quiet && !suspended {
                    self.broken(invariants::E10_FAILURE, &format!("nothing is told of {id}"));
                }
            }
        }
        if let Some(ending) = self.ending.take() {
            let wanted = ending.running.intent.is_some() || ending.pays == Some(true);
            if wanted && !ending.recorded {
                self.broken(invariants::HANDSHAKE, &format!("no record of {}", ending.vertex));
            }
        }
    }

    /// E-14: who waits for semaphores since when.
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
