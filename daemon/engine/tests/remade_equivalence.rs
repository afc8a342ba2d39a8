//! A comparison with the engine that receives no `Remade` events: only the class of changes may differ (E-20,
//! docs/decisions/0012).

use crate::invariants::E20_REMADE;
use crate::oracle_log::Books;
use std::hash::{Hash as _, Hasher};
use steadfast_engine::{Action, Actions, Class, Engine, Event, Intent, Tick};

/// A second engine that exists from the first `Remade` event on, until both engines are equal again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twin {
    engine: Option<Box<Engine>>,
    /// In this turn a change is intentional because it is a refresh by a remade run.
    pub(crate) follows: bool,
}

impl Twin {
    /// Delivers an event to the second engine. A `Remade` event only passes the time on.
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

    /// Compares the actions of both engines.
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

    /// Adds the second engine to the hash of a model state.
    pub(crate) fn hash<H: Hasher>(&self, state: &mut H) {
        self.engine.as_ref().map(|twin| twin.ranked()).hash(state);
    }
}

/// Returns false for equal actions, and for the class of a remade run, which is intentional. Returns true for the class
/// of a run that such a run refreshes. None if the difference is not allowed.
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
