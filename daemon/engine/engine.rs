//! The engine itself: a value with one way in.

use crate::{Action, Counts, Event, Mode, Standing, Tick, VertexId};

/// How many runs may be in progress at once, by what they occupy (E-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slots {
    /// Runs that occupy a thread.
    pub threads: u32,
    /// Runs that occupy a child process.
    pub commands: u32,
    /// How many threads that do not come back may be written off and replaced.
    pub spare: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { threads: 64, commands: 256, spare: 64 }
    }
}

/// The engine: graph, phases, queues, and nothing of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine {
    slots: Slots,
}

impl Engine {
    /// An engine with the empty graph. `one_shot` (for `apply` and `plan`) asks for no watches (E-1).
    #[must_use]
    pub fn new(slots: Slots, one_shot: bool) -> Self {
        let _: bool = one_shot;
        Self { slots }
    }

    /// Takes the time and one event, and says what is to be done, in order.
    #[must_use]
    pub fn handle(&mut self, now: Tick, event: Event) -> Vec<Action> {
        let _: (Tick, Event) = (now, event);
        Vec::new()
    }

    /// When [`Event::Wake`] is wanted next, if ever.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        None
    }

    /// What the engine as a whole is doing.
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode::Running
    }

    /// How it stands with one vertex; `None` if it is not in the graph.
    #[must_use]
    pub fn standing(&self, vertex: VertexId) -> Option<Standing> {
        let _: VertexId = vertex;
        None
    }

    /// Counts over all vertices. Kept, not counted: it costs nothing.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Whether all is settled and nothing is owed, of the events delivered so far (E-18).
    #[must_use]
    pub fn is_converged(&self) -> bool {
        true
    }

    /// Whether nothing runs, nothing may be started, no retry is due and every end is durable: a one-shot command is over.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        true
    }
}
