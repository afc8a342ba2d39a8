//! Secret rotation: detects that a secret of an `exec` resource has changed since its last successful run.
//!
//! A check of such a resource sees only its record, so nobody would notice a changed secret. The secrets are therefore
//! read after each load, after changes of their files, and after lost events; a changed hash triggers a new run.
//! Resources that declare a state are checked instead.
//!
//! The output of a command may differ each time, so an `exec` resource with a secret from a command does not run again
//! for it. The other receivers of such a secret are checked after each load of a graph.

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

/// The time limit for reading the secrets of one resource; the file system may hang.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time until unreadable secrets are read again.
const AGAIN: Duration = Duration::from_mins(1);

/// The maximum number of resources whose secrets are read at the same time.
const AT_ONCE: usize = 8;

/// The schedule of secret reads.
#[derive(Debug, Default)]
pub(in crate::driver) struct SecretRotation {
    /// Vertices whose secret files have just changed.
    pub(in crate::driver) settling: Debounce,
    /// Vertices whose secrets are to be read when no run is active; a run reads its secrets itself.
    wanted: BTreeSet<VertexId>,
    /// Vertices whose secrets are being read.
    asked: BTreeSet<VertexId>,
    /// Vertices whose secrets could not be read, with the time of the next try.
    again: BTreeMap<VertexId, Instant>,
    /// The inputs that were last reported for each vertex; each is reported once.
    reported: BTreeMap<VertexId, Vec<Received>>,
}

impl SecretRotation {
    /// Returns the time of the next due read.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.settling.due().into_iter().chain(self.again.values().copied()).min()
    }

    /// Cancels the reads for a vertex whose run starts: the run reads the secrets itself.
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
    /// Schedules secret reads for all eligible vertices of a new graph.
    pub(in crate::driver) fn read_secrets_of_all(&mut self) {
        for id in self.graph.receivers() {
            if self.may_be_rotated(id) {
                self.values.rotation.wanted.insert(id);
            }
        }
    }

    /// Checks the converged receivers of the outputs of commands after a load, which runs the commands: no event tells
    /// that an output has changed.
    pub(in crate::driver) fn check_command_secrets(&mut self) {
        for id in self.graph.receivers() {
            if self.has_command_secret(id)
                && !self.graph.is_deed(id)
                && self.current_status(id) == Some(VertexStatus::Settled)
            {
                self.turn(Event::Changed(id));
            }
        }
    }

    fn has_command_secret(&self, id: VertexId) -> bool {
        let recipe = self.graph.get(id).and_then(|entry| entry.recipe.as_ref());
        let is_command = |supply: &Supply| matches!(supply, Supply::Command(_));
        recipe.is_some_and(|recipe| secrets(recipe).any(is_command))
    }

    /// Schedules a secret read after events of the file may have been lost.
    pub(in crate::driver) fn suspect_secrets(&mut self, id: VertexId) {
        if self.may_be_rotated(id) {
            self.values.rotation.wanted.insert(id);
        }
    }

    /// Returns true for a vertex without a checkable state that has secrets, none of them from a command.
    fn may_be_rotated(&self, id: VertexId) -> bool {
        let recipe = self.graph.get(id).and_then(|entry| entry.recipe.as_ref());
        let stands = |supply: &Supply| !matches!(supply, Supply::Command(_));
        let takes = recipe
            .is_some_and(|recipe| secrets(recipe).next().is_some() && secrets(recipe).all(stands));
        takes && self.graph.is_deed(id)
    }

    /// Returns true if no read is active, and none can start now.
    pub(in crate::driver) fn is_done_with_secrets(&self) -> bool {
        self.values.rotation.asked.is_empty() && self.free_to_read().is_empty()
    }

    /// Lists the scheduled vertices without a run, a read or a pause.
    fn free_to_read(&self) -> Vec<VertexId> {
        let rotated = &self.values.rotation;
        if rotated.wanted.is_empty() {
            return Vec::new();
        }
        let live: BTreeSet<VertexId> = self.runs.active.values().map(|live| live.vertex).collect();
        let is_free = |id: &VertexId| {
            !live.contains(id) && !rotated.asked.contains(id) && !self.is_resource_paused(*id)
        };
        rotated.wanted.iter().copied().filter(is_free).collect()
    }

    /// Starts the due reads.
    pub(in crate::driver) fn start_secret_reads(&mut self, now: Instant) {
        let settled = self.values.rotation.settling.take(now);
        if matches!(self.engine.mode(), Mode::Stopping | Mode::Stopped) {
            return;
        }
        // A file that is being rewritten is empty for a moment.
        for id in settled {
            if self.may_be_rotated(id) {
                self.values.rotation.wanted.insert(id);
            } else {
                self.turn(Event::Changed(id));
            }
        }
        let again = self.values.rotation.again.extract_if(.., |_, at| *at <= now);
        let again: Vec<VertexId> = again.map(|(id, _)| id).collect();
        self.values.rotation.wanted.extend(again);
        // A pause of the daemon also pauses reads.
        if self.engine.mode() == Mode::Running {
            let free = AT_ONCE.saturating_sub(self.values.rotation.asked.len());
            for id in self.free_to_read().into_iter().take(free) {
                self.values.rotation.wanted.remove(&id);
                self.read_secrets(id);
            }
        }
    }

    fn read_secrets(&mut self, id: VertexId) {
        let Some(Vertex { identity, recipe: Some(recipe), .. }) = self.graph.get(id) else {
            return;
        };
        // A run reports a missing input itself.
        let Ok(inputs) = self.values.receiver_inputs(identity, recipe) else { return };
        let (identity, host) = (Arc::clone(identity), self.runtime.host.clone());
        self.values.rotation.asked.insert(id);
        let work = async move {
            let cancel = CancellationToken::new();
            let made = tokio::time::timeout(PATIENCE, inputs.make(&host, &cancel)).await;
            let late = |_elapsed| Err(Failure::new("reading its secrets timed out"));
            DriverEvent::SecretsRead(id, identity, made.unwrap_or_else(late))
        };
        self.runtime.start_job(ExecutorKind::Command, work);
    }

    /// Processes the result of a secret read.
    pub(in crate::driver) fn rotated(
        &mut self,
        id: VertexId,
        identity: &Arc<str>,
        made: Result<BuiltResource, Failure>,
    ) {
        let is_same = self.graph.get(id).is_some_and(|entry| entry.identity == *identity);
        // A run has started in between, and reads the secrets itself.
        if !self.values.rotation.asked.remove(&id) || !is_same {
            return;
        }
        let made = match made {
            Ok(made) => made,
            Err(failure) => {
                tracing::warn!(%identity, %failure, "the rotation of the secrets is unknown");
                if !self.settings.one_shot {
                    self.values.rotation.again.insert(id, Instant::now() + AGAIN);
                }
                return;
            }
        };
        if self.values.is_taken_as_done(identity) {
            self.take_as_given(id, identity, &made);
        }
        let waits = self.current_status(id) == Some(VertexStatus::Held(HeldReason::Operator));
        let is_told = self.values.rotation.reported.get(&id) == Some(&made.received);
        if waits || is_told || !self.values.is_remade(identity, &made) {
            tracing::debug!(event = "secrets_unchanged", %identity, "the secrets are unchanged");
            return;
        }
        self.values.rotation.reported.insert(id, made.received);
        self.turn(Event::Received(id));
    }

    /// Records the present secrets as the inputs of an interrupted receiver that counts as done.
    fn take_as_given(&mut self, id: VertexId, identity: &Arc<str>, made: &BuiltResource) {
        let recipe = self.graph.get(id).and_then(|entry| entry.recipe.as_ref());
        let Some(origins) = recipe.map(|recipe| self.values.fingerprint(recipe)) else { return };
        let hashes = self.values.note_taken(identity, Some((origins, made)), None);
        if let Some(hashes) = hashes {
            self.journal
                .record(Entry::Taken { identity: Arc::clone(identity), hashes: hashes.into() });
        }
    }
}
