//! The overlay of a plan: each step on files is applied in memory over the host, so that later steps see its result.
//!
//! The check and the apply of such a step run unchanged; writes of the apply go to memory ([`Overlay`]). A step that
//! needs more than files is checked on the host and not applied.

use crate::driver::runs::{check, guarded};
use crate::driver::values::ReceiverInputs;
use futures_util::FutureExt as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use steadfast_engine::VertexId;
use steadfast_resources::host::{Limits, Overlay};
use steadfast_resources::{
    BuiltResource, Change, CheckRequest, CheckResult, Failure, Host, Outcome, Permit, Resource,
};

/// The overlay of one plan, with the results of its steps.
#[derive(Clone, Debug)]
pub(in crate::driver) struct Layer {
    overlay: Overlay,
    found: Arc<Mutex<HashMap<VertexId, Found>>>,
    is_told: Arc<AtomicBool>,
}

const LIMITS: Limits = Limits { bytes: 64 << 20, nodes: 200_000 };

/// The result of a step in the overlay.
#[derive(Debug)]
enum Found {
    Same,
    /// The check had no result.
    Failed,
    Differs {
        change: Change,
        /// True if the step was applied in the overlay.
        is_done: bool,
        /// True if the premise digest on the present host differs from the premise digest in the overlay.
        follows: bool,
    },
}

impl Layer {
    /// Creates an empty overlay; `None` if the host cannot be read.
    pub(in crate::driver) fn new() -> Option<Self> {
        match Overlay::new(LIMITS) {
            Ok(overlay) => Some(Self { overlay, found: Arc::default(), is_told: Arc::default() }),
            Err(why) => {
                tracing::warn!("the plan cannot include the effects of its own steps: {why}");
                None
            }
        }
    }

    fn found(&self) -> MutexGuard<'_, HashMap<VertexId, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if later steps saw the change of this step.
    pub(super) fn is_done(&self, id: VertexId) -> bool {
        matches!(self.found().get(&id), Some(Found::Differs { is_done: true, .. }))
    }

    /// Returns true if the check of this step in the overlay had no result.
    pub(super) fn has_failed(&self, id: VertexId) -> bool {
        matches!(self.found().get(&id), Some(Found::Failed))
    }

    /// Returns true if earlier steps also cause the differences of this step.
    pub(super) fn follows(&self, id: VertexId) -> bool {
        matches!(self.found().get(&id), Some(Found::Differs { follows: true, .. }))
    }

    /// Returns true if this step was checked in the overlay.
    pub(super) fn has_checked(&self, id: VertexId) -> bool {
        self.found().contains_key(&id)
    }

    /// Records the result of an apply in the overlay.
    fn note(&self, id: VertexId, (change, follows): (Change, bool), failure: Option<Failure>) {
        let found = Found::Differs { change, is_done: failure.is_none(), follows };
        self.found().insert(id, found);
        let Some(why) = failure else { return };
        if self.overlay.is_full() && !self.is_told.swap(true, Ordering::Relaxed) {
            let Limits { bytes, nodes } = LIMITS;
            tracing::warn!(
                "the simulated changes exceed {} MiB or {nodes} entries; dependent steps are unknown",
                bytes >> 20
            );
        }
        tracing::debug!("not possible in a plan: {why}");
    }

    /// Returns the first result of a step: a second check would find the step's own change.
    fn known(&self, id: VertexId) -> Option<CheckResult> {
        Some(match self.found().get(&id)? {
            Found::Failed => return None,
            Found::Same => CheckResult::Same,
            Found::Differs { change, .. } => CheckResult::Differs(shown(change)),
        })
    }
}

/// A step of a plan that uses only files, with a permit for the overlay.
#[derive(Debug)]
pub(in crate::driver) struct PlannedStep {
    pub(in crate::driver) layer: Layer,
    pub(in crate::driver) id: VertexId,
    pub(in crate::driver) permit: Permit,
}

impl PlannedStep {
    async fn run(
        self,
        host: &Host,
        (resource, made, ask): (Arc<dyn Resource>, &OnceLock<BuiltResource>, CheckRequest),
        check: impl Future<Output = CheckResult> + Send,
    ) -> CheckResult {
        let (layer, id) = (self.layer, self.id);
        if let Some(known) = layer.known(id) {
            return known;
        }
        match layer.overlay.check(Box::pin(check)).await {
            CheckResult::Differs(change) => {
                let resource = made.get().map_or(resource, |made| Arc::clone(&made.resource));
                let mut told = shown(&change);
                told.premise_digest =
                    premise_digest_on_host(change.premise_digest, (host, &resource), ask).await;
                let follows = told.premise_digest != change.premise_digest;
                let kept = (shown(&told), follows);
                let applied = guarded(resource.apply(host, &self.permit, change));
                let applied = layer.overlay.apply(Box::pin(applied)).await;
                layer.note(id, kept, failure(applied));
                CheckResult::Differs(told)
            }
            CheckResult::Same => {
                layer.found().insert(id, Found::Same);
                CheckResult::Same
            }
            CheckResult::Unknown(failure) => {
                layer.found().insert(id, Found::Failed);
                CheckResult::Unknown(failure)
            }
        }
    }
}

/// Returns the premise digest of the change on the present host: inodes and times in the overlay are not those that a
/// real apply will find.
async fn premise_digest_on_host(
    premise_digest: u64,
    (host, resource): (&Host, &Arc<dyn Resource>),
    ask: CheckRequest,
) -> u64 {
    if premise_digest == 0 {
        return 0;
    }
    match guarded(resource.check(host, ask)).await {
        Ok(CheckResult::Differs(now)) => now.premise_digest,
        Ok(CheckResult::Same | CheckResult::Unknown(_)) | Err(_) => 0,
    }
}

/// Checks a resource: a planned step in its overlay, everything else on the host.
pub(in crate::driver) async fn check_step(
    step: Option<PlannedStep>,
    host: &Host,
    (resource, inputs, made): (Arc<dyn Resource>, Option<ReceiverInputs>, &OnceLock<BuiltResource>),
    ask: CheckRequest,
) -> CheckResult {
    let (one, again) = (Arc::clone(&resource), ask.clone());
    let checked = guarded(Box::pin(check(host, one, (inputs, made), ask)));
    let checked = checked.map(|checked| checked.unwrap_or_else(CheckResult::Unknown));
    match step {
        None => checked.await,
        Some(step) => step.run(host, (resource, made, again), checked).await,
    }
}

fn failure(outcome: Result<Outcome, Failure>) -> Option<Failure> {
    match outcome {
        Ok(Outcome::Unchanged | Outcome::Changed(_)) => None,
        Ok(Outcome::Failed { failure, .. }) | Err(failure) => Some(failure),
        Ok(Outcome::Interrupted) => Some(Failure::new("the step was cancelled")),
    }
}

/// Returns the visible part of a change, without the data for its apply.
fn shown(change: &Change) -> Change {
    Change {
        differences: change.differences.clone(),
        destructive: change.destructive,
        premise_digest: change.premise_digest,
        creates: change.creates,
        replaces: change.replaces,
        premise: Box::new(()),
    }
}
