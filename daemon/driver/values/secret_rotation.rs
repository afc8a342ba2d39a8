//! Deeds whose secrets may be others by now. Of a deed nothing can be seen but its record, so nobody would find that what it was given is not
//! what there is any more: its secrets are read after a load, when their files move, and when events of them were lost. Where they are
//! others than those of its last good run, told by their hashes, it is made of something else. Whoever has a state is looked at instead.
//!
//! What a command supplies may be another one each time it is asked: a deed with such a secret is not asked.

use super::secrets;
use crate::config::Vertex;
use crate::driver::watches::debounce::Debounce;
use crate::driver::{Driver, DriverEvent};
use crate::store::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, HeldReason, Mode, VertexId, VertexStatus};
use steadfast_resources::host::Supply;
use steadfast_resources::{BuiltResource, ExecutorKind, Failure, Received};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A file system that hangs is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// When it is tried again to read what could not be read.
const AGAIN: Duration = Duration::from_mins(1);

/// So many are read at once.
const AT_ONCE: usize = 8;

/// Whose secrets are to be read, and are being.
#[derive(Debug, Default)]
pub(in crate::driver) struct SecretRotation {
    /// Whose files move just now.
    pub(in crate::driver) settling: Debounce,
    /// Read when they do not run: what runs takes them as they are.
    wanted: BTreeSet<VertexId>,
    asked: BTreeSet<VertexId>,
    /// Could not be read: when that is tried again.
    again: BTreeMap<VertexId, Instant>,
    /// What somebody was told last that it is made of: once is enough, whatever came of it.
    reported: BTreeMap<VertexId, Vec<Received>>,
}

impl SecretRotation {
    /// When something of it is due.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.settling.due().into_iter().chain(self.again.values().copied()).min()
    }

    /// It runs, and takes its secrets as they are.
    pub(in crate::driver) fn runs(&mut self, id: VertexId) {
        self.wanted.remove(&id);
        self.asked.remove(&id);
        self.again.remove(&id);
    }

    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.runs(id);
        self.settling.forget(id);
        self.reported.remove(&id);
    }
}

impl Driver {
    /// A graph runs: all of its deeds are asked.
    pub(in crate::driver) fn read_secrets_of_all(&mut self) {
        for id in self.table.receivers() {
            if self.may_be_rotated(id) {
                self.rotated.wanted.insert(id);
            }
        }
    }

    /// Events of the file of a secret may have been lost.
    pub(in crate::driver) fn suspect_secrets(&mut self, id: VertexId) {
        if self.may_be_rotated(id) {
            self.rotated.wanted.insert(id);
        }
    }

    /// Whether this is a deed that takes secrets, all of which stand somewhere.
    fn may_be_rotated(&self, id: VertexId) -> bool {
        let recipe = self.table.get(id).and_then(|entry| entry.recipe.as_ref());
        let stands = |supply: &Supply| !matches!(supply, Supply::Command(_));
        let takes = recipe
            .is_some_and(|recipe| secrets(recipe).next().is_some() && secrets(recipe).all(stands));
        takes && self.is_deed(id)
    }

    /// Whether none is read, and none can be now.
    pub(in crate::driver) fn is_done_with_secrets(&self) -> bool {
        self.rotated.asked.is_empty() && self.free_to_read().is_empty()
    }

    /// What is paused by itself is left alone.
    fn free_to_read(&self) -> Vec<VertexId> {
        let rotated = &self.rotated;
        if rotated.wanted.is_empty() {
            return Vec::new();
        }
        let live: BTreeSet<VertexId> = self.runs.0.values().map(|live| live.vertex).collect();
        let is_free = |id: &VertexId| {
            !live.contains(id) && !rotated.asked.contains(id) && !self.is_parked(*id)
        };
        rotated.wanted.iter().copied().filter(is_free).collect()
    }

    /// What is due of it.
    pub(in crate::driver) fn tend_rotated(&mut self, now: Instant) {
        let settled = self.rotated.settling.take(now);
        if matches!(self.engine.mode(), Mode::Stopping | Mode::Stopped) {
            return;
        }
        // Whoever writes one anew has it empty for a moment.
        for id in settled {
            if self.may_be_rotated(id) {
                self.rotated.wanted.insert(id);
            } else {
                self.turn(Event::Changed(id));
            }
        }
        let again = self.rotated.again.extract_if(.., |_, at| *at <= now);
        let again: Vec<VertexId> = again.map(|(id, _)| id).collect();
        self.rotated.wanted.extend(again);
        // Paused is at rest: nothing is started.
        if self.engine.mode() == Mode::Running {
            let free = AT_ONCE.saturating_sub(self.rotated.asked.len());
            for id in self.free_to_read().into_iter().take(free) {
                self.rotated.wanted.remove(&id);
                self.read_secrets(id);
            }
        }
    }

    fn read_secrets(&mut self, id: VertexId) {
        let Some(Vertex { identity, recipe: Some(recipe), .. }) = self.table.get(id) else {
            return;
        };
        // Where something else is missing as well, it is told to who runs it.
        let Ok(meal) = self.values.meal(identity, recipe) else { return };
        let (identity, host) = (Arc::clone(identity), self.host.clone());
        self.rotated.asked.insert(id);
        let work = async move {
            let cancel = CancellationToken::new();
            let made = tokio::time::timeout(PATIENCE, meal.make(&host, &cancel)).await;
            let late = |_elapsed| Err(Failure::new("reading its secrets timed out"));
            DriverEvent::Rotated(id, identity, made.unwrap_or_else(late))
        };
        self.hands.run(ExecutorKind::Command, false, Box::pin(work));
    }

    /// The secrets of a deed are these.
    pub(in crate::driver) fn rotated(
        &mut self,
        id: VertexId,
        identity: &Arc<str>,
        made: Result<BuiltResource, Failure>,
    ) {
        let is_same = self.table.get(id).is_some_and(|entry| entry.identity == *identity);
        // What has begun to run meanwhile takes them itself.
        if !self.rotated.asked.remove(&id) || !is_same {
            return;
        }
        let made = match made {
            Ok(made) => made,
            Err(trouble) => {
                tracing::warn!(%identity, %trouble, "the rotation of the secrets is unknown");
                if !self.settings.one_shot {
                    self.rotated.again.insert(id, Instant::now() + AGAIN);
                }
                return;
            }
        };
        if self.values.is_taken_as_done(identity) {
            self.take_as_given(id, identity, &made);
        }
        let waits = self.current_status(id) == Some(VertexStatus::Held(HeldReason::Operator));
        let is_told = self.rotated.reported.get(&id) == Some(&made.received);
        if waits || is_told || !self.values.is_remade(identity, &made) {
            tracing::debug!(event = "unrotated", %identity, "the secrets are unchanged");
            return;
        }
        self.rotated.reported.insert(id, made.received);
        self.turn(Event::Received(id));
    }

    /// What was cut off and is taken as done was given what there is.
    fn take_as_given(&mut self, id: VertexId, identity: &Arc<str>, made: &BuiltResource) {
        let recipe = self.table.get(id).and_then(|entry| entry.recipe.as_ref());
        let Some(origins) = recipe.map(|recipe| self.values.fingerprint(recipe)) else { return };
        let hashes = self.values.note_taken(identity, Some((origins, made)), None);
        if let (Some(keeper), Some(hashes)) = (&mut self.keeper, hashes) {
            keeper.other(Entry::Taken { identity: Arc::clone(identity), hashes: hashes.into() });
        }
    }
}
