//! In a plan: where the changes of several resources meet on the host, what is found of one before another is changed says nothing
//! of what its apply will find. It is *unknown until* that other.
//!
//! Paths do not tell: one may lead through a link that another replaces, or two lead to one thing. So when all has been checked, the ways of
//! all paths are walked once, by a thread, and compared (`meet`); that may leave more unknown, and is done again.

pub(in crate::driver) use super::overlay::{Layer, PlannedStep, check_step};

use super::path_overlap::{PlannedEffect, PlannedPath, find_overlaps};
use crate::driver::runs::guarded;
use crate::driver::{Driver, DriverEvent};
use std::collections::HashMap;
use std::path::PathBuf;
use steadfast_engine::{Event, HeldReason, Mode, Start, VertexId, VertexStatus};
use steadfast_resources::{Claim, ExecutorKind};
use tokio_util::sync::CancellationToken;

/// How far that has come.
#[derive(Debug, Default)]
pub(in crate::driver) struct PlanOverlaps {
    /// Who differs, and whether what is at its path would be replaced.
    differing: HashMap<VertexId, bool>,
    is_asked: bool,
    /// None before the first step on files.
    layer: Option<Layer>,
    /// No more is unknown than was.
    is_over: bool,
}

impl PlanOverlaps {
    /// A check has found a difference.
    pub(in crate::driver) fn note(&mut self, id: VertexId, replaces: bool) {
        self.differing.insert(id, replaces);
    }

    /// Tells whether what a plan has found of a resource is also what steps before it make.
    pub(in crate::driver) fn follows(&self, id: VertexId) -> bool {
        self.layer.as_ref().is_some_and(|layer| layer.follows(id))
    }

    /// Whether an answer is to come.
    pub(in crate::driver) fn is_asked(&self) -> bool {
        self.is_asked
    }
}

impl Driver {
    /// Whether this is a plan.
    pub(in crate::driver) fn is_plan(&self) -> bool {
        self.settings.one_shot && self.audience.wants_foresight()
    }

    /// Asks whose changes meet, where anything would be changed. Answers whether there is something to wait for.
    pub(in crate::driver) fn find_overlaps(&mut self) -> bool {
        let is_done = self.foresight.is_over || self.engine.mode() == Mode::Stopped;
        if is_done || !self.is_plan() {
            return false;
        }
        let subjects = self.subjects();
        if subjects.iter().all(|subject| subject.act == PlannedEffect::Nothing) {
            return false;
        }
        self.foresight.is_asked = true;
        let work = async move {
            let met = guarded(Box::pin(async move { find_overlaps(&subjects) })).await;
            // A bug: the plan is as good as it was.
            DriverEvent::Foreseen(met.unwrap_or_else(|trouble| {
                tracing::error!("the overlaps of paths are unknown: {trouble}");
                Vec::new()
            }))
        };
        self.hands.run(ExecutorKind::Thread, false, Box::pin(work));
        true
    }

    /// A step that a plan checks and does in its layer; none where that is a check on the host.
    pub(in crate::driver) fn planned_step(
        &mut self,
        start: Start,
        cancel: &CancellationToken,
    ) -> Option<PlannedStep> {
        let (id, entry) = (start.vertex, self.table.get(start.vertex)?);
        let is_step = entry.resource.uses_only_files() && entry.meta.planned && !start.look;
        if !is_step || !self.is_plan() || !self.engine.is_allowed(id) {
            return None;
        }
        if self.foresight.layer.is_none() {
            self.foresight.layer = Layer::new();
        }
        let layer = self.foresight.layer.clone()?;
        Some(PlannedStep { layer, id, permit: self.key.mint(cancel.clone()) })
    }

    /// A check in the layer could not tell, and all that comes before it was done there, or is declared `noop`: it will fail.
    pub(in crate::driver) fn note_failure(&mut self, id: VertexId) {
        let Some(layer) = self.foresight.layer.as_ref() else { return };
        let stays = |above| self.table.get(above).is_some_and(|entry| !entry.meta.planned);
        let is_seen = |above| layer.is_done(above) || stays(above);
        let is_certain = layer.has_failed(id) && self.engine.unseen_above(id, is_seen).is_none();
        if is_certain {
            self.engine.expect_failure(id);
        }
    }

    /// Tells whether a step was checked with what the other changes: that comes before it, and was done in the layer.
    fn has_seen(&self, id: VertexId, other: VertexId) -> bool {
        let Some(layer) = &self.foresight.layer else { return false };
        let would_change =
            matches!(self.current_status(other), Some(VertexStatus::Held(HeldReason::WouldChange)));
        would_change
            && layer.has_checked(id)
            && layer.is_done(other)
            && self.engine.is_before(other, id)
    }

    /// All that has paths, and what it would do to them.
    fn subjects(&self) -> Vec<PlannedPath> {
        let ids = self.table.ids().chain(self.table.buried());
        ids.filter_map(|id| self.subject(id)).collect()
    }

    fn subject(&self, id: VertexId) -> Option<PlannedPath> {
        let (entry, standing) = (self.table.get(id)?, self.current_status(id)?);
        // Whose path hangs must not be looked at.
        if matches!(standing, VertexStatus::Stuck(..)) {
            return None;
        }
        let path = |claim| match claim {
            Claim::Path(path) => Some(path),
            Claim::Unit { .. } | Claim::Package(_) => None,
        };
        let resource = &entry.resource;
        let own: Vec<PathBuf> = resource.claims().into_iter().filter_map(path).collect();
        let reads = resource.reads();
        let has_paths = !own.is_empty() || !reads.is_empty();
        has_paths.then(|| PlannedPath {
            id,
            act: self.act(id, &standing, entry.meta.planned),
            own,
            reads,
            holds: resource.purge_root().map(ToOwned::to_owned),
            after: resource.path_after_apply(),
            is_settled: standing == VertexStatus::Settled,
            removes: entry.removes,
        })
    }

    /// What an apply would do to the thing of a resource.
    fn act(&self, id: VertexId, standing: &VertexStatus, is_planned: bool) -> PlannedEffect {
        match standing {
            _ if !is_planned => PlannedEffect::Nothing,
            VertexStatus::Settled
            | VertexStatus::Held(HeldReason::WouldRefresh | HeldReason::Window(_)) => {
                PlannedEffect::Nothing
            }
            VertexStatus::Held(HeldReason::WouldChange) => {
                match self.foresight.differing.get(&id) {
                    Some(false) => PlannedEffect::Alters,
                    Some(true) | None => PlannedEffect::Replaces,
                }
            }
            // Nobody knows.
            _ => PlannedEffect::Unsure,
        }
    }

    /// Says of each whose finding is worth nothing until when that is so.
    pub(in crate::driver) fn apply_overlaps(&mut self, met: Vec<(VertexId, Vec<VertexId>)>) {
        self.foresight.is_asked = false;
        let mut is_new = false;
        for (id, mut others) in met {
            others.retain(|other| !self.has_seen(id, *other));
            let is_told = matches!(
                self.current_status(id),
                Some(
                    VertexStatus::Settled
                        | VertexStatus::Failed
                        | VertexStatus::Held(HeldReason::WouldChange | HeldReason::WouldRefresh)
                )
            );
            // What comes after it finds it done.
            let until = self.engine.not_after(id, &others).filter(|_| is_told);
            let Some(until) = until else { continue };
            let before = self.current_status(id);
            self.table.unmark_removed(id);
            self.turn(Event::Doubt { vertex: id, until });
            // Where it changes nothing, no later look will find more: no plan goes on for ever.
            is_new |= self.current_status(id) != before;
        }
        self.foresight.is_over = !is_new;
    }
}
