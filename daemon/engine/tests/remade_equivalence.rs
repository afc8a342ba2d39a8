//! The same engine where nobody says that a run is made of something else: nothing but the class of changes may differ (E-20,
//! docs/decisions/0012).

use crate::invariants::E20_REMADE;
use crate::oracle_log::Books;
use std::hash::{Hash as _, Hasher};
use steadfast_engine::{Action, Actions, Class, Engine, Event, Intent, Tick};

/// There from the first such run on, until both engines are the same again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twin {
    engine: Option<Box<Engine>>,
    /// In this turn a change is intentional because it follows one of what was made of something else.
    pub(crate) follows: bool,
}

impl Twin {
    /// Takes what is about to happen to the engine. Of a run that is made of something else it hears nothing but the time.
    pub(crate) fn take(&mut self, engine: &Engine, now: Tick, event: &Event) -> Option<Actions> {
        self.follows = false;
        let heard = if matches!(event, Event::Remade(_)) {
            self.engine.get_or_insert_with(|| Box::new(engine.clone()));
            Event::Wake
        } else if self.engine.is_some() {
            event.clone()
        } else {
            return None;
        };
        self.engine.as_mut().map(|twin| twin.handle(now, heard))
    }

    /// Holds against each other what both have answered.
    pub(crate) fn compare(
        &mut self,
        (engine, books): (&Engine, &mut Books),
        actions: &[Action],
        others: &[Action],
    ) {
        let Some(twin) = &self.engine else { return };
        let mut wrong = Vec::new();
        let stands =
            |engine: &Engine| (engine.next_wakeup(), engine.counts(), engine.is_converged());
        if actions.len() != others.len() || stands(engine) != stands(twin) {
            wrong.push(format!("{actions:?}, and else {others:?}"));
        }
        for (action, other) in actions.iter().zip(others) {
            match is_known(books, action, other) {
                Some(follows) => self.follows |= follows,
                None => wrong.push(format!("{action:?}, and else {other:?}")),
            }
        }
        if engine == twin.as_ref() {
            self.engine = None;
        }
        for detail in wrong {
            books.broken(E20_REMADE, &detail);
        }
    }

    /// For the model: what it may still do is part of the state.
    pub(crate) fn hash<H: Hasher>(&self, state: &mut H) {
        self.engine.as_ref().map(|twin| twin.ranked()).hash(state);
    }
}

/// What differs as it may: the class of a run that is made of something else, which is intentional, or (*true*) that of one that is
/// refreshed by such a run. None where it may not.
fn is_known(books: &Books, action: &Action, other: &Action) -> Option<bool> {
    let (Action::Begin(intent), Action::Begin(before)) = (action, other) else {
        return (action == other).then_some(false);
    };
    if *intent != (Intent { class: intent.class, ..before.clone() }) {
        return None;
    }
    let all = books.vertices.values().chain(books.leaving.values());
    let run = all.filter_map(|vertex| vertex.running.as_ref()).find(|run| run.run == intent.run)?;
    let is_intentional = intent.class == Class::Intentional;
    let same = intent.class == before.class;
    let right = if run.remade { is_intentional } else { same || run.refresh && is_intentional };
    right.then_some(!same && !run.remade)
}
