//! Deeds whose secrets may be others by now. Of a deed nothing can be seen but its record, so nobody would find that what it was given is not
//! what there is any more: its secrets are asked for after a load, when their files move, and when events of them were lost. Where they are
//! others than those of its last good run, told by their hashes, it is made of something else. Whoever has a state is looked at instead.

use super::settle::Settling;
use super::values::secrets;
use super::{Driver, Input};
use crate::config::Vertex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, Mode, VertexId};
use steadfast_resources::host::Supply;
use steadfast_resources::{Made, Seat};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a stop waits for commands that supply secrets and were told to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose secrets are to be asked for, and are being.
#[derive(Debug, Default)]
pub(super) struct Rotated {
    /// Whose files move just now.
    pub(super) settling: Settling,
    /// Asked for when they do not run: what runs takes them as they are.
    wanted: BTreeSet<VertexId>,
    asked: BTreeSet<VertexId>,
    /// Those who ask are to end.
    cancel: CancellationToken,
    /// Until when a stop waits for them.
    until: Option<Instant>,
}

impl Rotated {
    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        self.wanted.is_empty() && self.asked.is_empty()
    }

    /// Whether an end waits for those who were told to end.
    pub(super) fn is_awaited(&self) -> bool {
        self.left().is_some()
    }

    /// When something of it is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.settling.due().into_iter().chain(self.left()).min()
    }

    fn left(&self) -> Option<Instant> {
        self.until.filter(|until| !self.asked.is_empty() && *until > Instant::now())
    }

    pub(super) fn forget(&mut self, id: VertexId) {
        self.settling.forget(id);
        self.wanted.remove(&id);
    }
}

impl Driver {
    /// A graph runs: all of its deeds are asked.
    pub(super) fn ask_secrets_of_all(&mut self) {
        for id in self.table.receivers() {
            if self.is_deed(id) && self.takes(id, |_| true) {
                self.rotated.wanted.insert(id);
            }
        }
    }

    /// Events of the file of a secret may have been lost.
    pub(super) fn suspect_secrets(&mut self, id: VertexId) {
        if self.is_deed(id) && self.takes(id, |supply| matches!(supply, Supply::File(_))) {
            self.rotated.wanted.insert(id);
        }
    }

    /// Whether such a secret goes into this.
    fn takes(&self, id: VertexId, such: impl Fn(&Supply) -> bool) -> bool {
        let recipe = self.table.get(id).and_then(|entry| entry.recipe.as_ref());
        recipe.is_some_and(|recipe| secrets(recipe).any(such))
    }

    /// What is due of it.
    pub(super) fn tend_rotated(&mut self, now: Instant) {
        if matches!(self.engine.mode(), Mode::Stopping | Mode::Stopped) {
            self.rotated.cancel.cancel();
            self.rotated.until.get_or_insert(now + PATIENCE);
            return;
        }
        // Whoever writes one anew has it empty for a moment.
        for id in self.rotated.settling.take(now) {
            if self.is_deed(id) {
                self.rotated.wanted.insert(id);
            } else {
                self.turn(Event::Changed(id));
            }
        }
        // Paused is at rest: nothing is started.
        if self.rotated.wanted.is_empty() || self.engine.mode() != Mode::Running {
            return;
        }
        let live: BTreeSet<VertexId> = self.runs.0.values().map(|live| live.vertex).collect();
        let rotated = &mut self.rotated;
        let is_free = |id: &VertexId| !live.contains(id) && !rotated.asked.contains(id);
        let free: Vec<VertexId> = rotated.wanted.extract_if(.., |id| is_free(id)).collect();
        for id in free {
            self.ask_secrets(id);
        }
    }

    fn ask_secrets(&mut self, id: VertexId) {
        let Some(Vertex { identity, recipe: Some(recipe), .. }) = self.table.get(id) else {
            return;
        };
        // Where something else is missing as well, it is told to who runs it.
        let Ok(meal) = self.values.meal(identity, recipe) else { return };
        let (identity, host) = (Arc::clone(identity), self.host.clone());
        let (cancel, presence) = (self.rotated.cancel.clone(), Arc::clone(&self.presence));
        self.rotated.asked.insert(id);
        let work = async move {
            let made = meal.make(&host, &cancel).await;
            drop(presence);
            Input::Rotated(id, identity, made)
        };
        self.hands.run(Seat::Command, false, Box::pin(work));
    }

    /// The secrets of a deed are these.
    pub(super) fn rotated(
        &mut self,
        id: VertexId,
        identity: &Arc<str>,
        made: Result<Made, steadfast_resources::Trouble>,
    ) {
        self.rotated.asked.remove(&id);
        if self.table.get(id).is_none_or(|entry| entry.identity != *identity) {
            return;
        }
        if self.runs.0.values().any(|live| live.vertex == id) {
            // It may have taken these.
            self.rotated.wanted.insert(id);
            return;
        }
        match made {
            Ok(made) if self.values.is_remade(identity, &made) => self.turn(Event::Received(id)),
            Ok(_) => {}
            Err(trouble) => {
                tracing::warn!(%identity, %trouble, "whether its secrets were rotated is not known");
            }
        }
    }
}
