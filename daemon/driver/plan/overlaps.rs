//! Plan overlaps: steps of a plan whose changes affect each other. The check of a step before such a change says
//! nothing about its apply; the step is *unknown until* the other one.
//!
//! Path texts are not enough: a path may lead through a link that another step replaces, or two paths may lead to one
//! object. So after all checks a thread resolves all paths and compares them (`find_overlaps`). New unknown steps may
//! cause more, so the comparison is repeated.

pub(in crate::driver) use super::overlay::{Layer, PlannedStep, check_step};

use super::path_overlap::{PlannedEffect, PlannedPath, find_overlaps};
use crate::config::LoadedGraph;
use crate::driver::runs::guarded;
use crate::driver::{Driver, DriverEvent};
use std::collections::HashMap;
use std::path::PathBuf;
use steadfast_engine::{Event, HeldReason, Mode, Start, VertexId, VertexStatus};
use steadfast_resources::{Claim, ExecutorKind};
use tokio_util::sync::CancellationToken;

/// The progress of the overlap search.
#[derive(Debug, Default)]
pub(in crate::driver) struct PlanOverlaps {
    /// Vertices that differ; true if the object would be replaced.
    differing: HashMap<VertexId, bool>,
    /// True while a search is running.
    is_asked: bool,
    /// The overlay in which planned steps are done; `None` before the first step on files.
    layer: Option<Layer>,
    /// True if the last search found no new unknown step.
    is_over: bool,
    /// True for an apply of a graph whose resources are all `noop`.
    is_rehearsal: bool,
}

impl PlanOverlaps {
    /// Records that a check has found a difference.
    pub(in crate::driver) fn note(&mut self, id: VertexId, replaces: bool) {
        self.differing.insert(id, replaces);
    }

    /// Returns true if earlier steps of the plan also cause the differences of this resource.
    pub(in crate::driver) fn follows(&self, id: VertexId) -> bool {
        self.layer.as_ref().is_some_and(|layer| layer.follows(id))
    }

    /// Prepares the graph of an apply: if all resources are `noop`, its steps are those of a plan.
    pub(in crate::driver) fn rehearse(&mut self, graph: LoadedGraph) -> LoadedGraph {
        let mut all = graph.vertices.iter();
        let is_noop = all.all(|vertex| vertex.meta.noop && !vertex.meta.planned);
        self.is_rehearsal = is_noop && !graph.vertices.is_empty();
        if self.is_rehearsal { graph.rehearsed() } else { graph }
    }

    /// Returns true while a search is running.
    pub(in crate::driver) fn is_asked(&self) -> bool {
        self.is_asked
    }
}

impl Driver {
    /// Returns true if this session is a plan.
    pub(in crate::driver) fn is_plan(&self) -> bool {
        let wants = self.one_shot.overlaps.is_rehearsal || self.notifier.wants_foresight();
        self.settings.one_shot && wants
    }

    /// Starts a search for overlaps if any step changes something. Returns true if a result will follow.
    pub(in crate::driver) fn find_overlaps(&mut self) -> bool {
        let is_done = self.one_shot.overlaps.is_over || self.engine.mode() == Mode::Stopped;
        if is_done || !self.is_plan() {
            return false;
        }
        let subjects = self.subjects();
        if subjects.iter().all(|subject| subject.act == PlannedEffect::Nothing) {
            return false;
        }
        self.one_shot.overlaps.is_asked = true;
        let work = async move {
            let met = guarded(Box::pin(async move { find_overlaps(&subjects) })).await;
            // A panic is a bug; the plan stays as it was.
            DriverEvent::OverlapsFound(met.unwrap_or_else(|failure| {
                tracing::error!("the overlaps of paths are unknown: {failure}");
                Vec::new()
            }))
        };
        self.runtime.start_job(ExecutorKind::Thread, work);
        true
    }

    /// Returns a step to check and do in the overlay; `None` if the host itself is checked.
    pub(in crate::driver) fn planned_step(
        &mut self,
        start: Start,
        cancel: &CancellationToken,
    ) -> Option<PlannedStep> {
        let (id, entry) = (start.vertex, self.graph.get(start.vertex)?);
        // A footprint may examine paths, so it is computed last: a daemon never needs it here.
        let is_step = self.is_plan() && entry.meta.planned && !start.look;
        let is_step = is_step && self.engine.is_allowed(id);
        if !is_step || !entry.resource.footprint().uses_only_files {
            return None;
        }
        if self.one_shot.overlaps.layer.is_none() {
            self.one_shot.overlaps.layer = Layer::new();
        }
        let layer = self.one_shot.overlaps.layer.clone()?;
        Some(PlannedStep { layer, id, permit: self.permission.mint_unrecorded(cancel.clone()) })
    }

    /// Predicts a failure: the check in the overlay has failed, and all earlier steps were done there or are declared
    /// `noop`.
    pub(in crate::driver) fn note_failure(&mut self, id: VertexId) {
        let Some(layer) = self.one_shot.overlaps.layer.as_ref() else { return };
        let stays = |above| self.graph.get(above).is_some_and(|entry| !entry.meta.planned);
        let is_seen = |above| layer.is_done(above) || stays(above);
        let is_certain = layer.has_failed(id) && self.engine.unseen_above(id, is_seen).is_none();
        if is_certain {
            self.engine.expect_failure(id);
        }
    }

    /// Returns true if the step was checked after the other one was done in the overlay.
    fn has_seen(&self, id: VertexId, other: VertexId) -> bool {
        let Some(layer) = &self.one_shot.overlaps.layer else { return false };
        let would_change =
            matches!(self.current_status(other), Some(VertexStatus::Held(HeldReason::WouldChange)));
        would_change
            && layer.has_checked(id)
            && layer.is_done(other)
            && self.engine.is_before(other, id)
    }

    /// Lists all resources with paths, and their planned effects.
    fn subjects(&self) -> Vec<PlannedPath> {
        let ids = self.graph.ids().chain(self.graph.removed_vertices());
        ids.filter_map(|id| self.subject(id)).collect()
    }

    fn subject(&self, id: VertexId) -> Option<PlannedPath> {
        let (entry, standing) = (self.graph.get(id)?, self.current_status(id)?);
        // A hanging path must not be accessed.
        if matches!(standing, VertexStatus::Stuck(..)) {
            return None;
        }
        let footprint = entry.resource.footprint();
        let own: Vec<PathBuf> = footprint.claims.into_iter().filter_map(Claim::into_path).collect();
        let reads = footprint.reads;
        let has_paths = !own.is_empty() || !reads.is_empty();
        has_paths.then(|| PlannedPath {
            id,
            act: self.act(id, &standing, entry.meta.planned),
            own,
            reads,
            holds: footprint.purge_root,
            after: footprint.path_after_apply,
            is_settled: standing == VertexStatus::Settled,
            removes: entry.removes,
        })
    }

    /// Returns the planned effect on the object of a resource.
    fn act(&self, id: VertexId, standing: &VertexStatus, is_planned: bool) -> PlannedEffect {
        match standing {
            _ if !is_planned => PlannedEffect::Nothing,
            VertexStatus::Settled
            | VertexStatus::Held(HeldReason::WouldRefresh | HeldReason::Window(_)) => {
                PlannedEffect::Nothing
            }
            VertexStatus::Held(HeldReason::WouldChange) => {
                match self.one_shot.overlaps.differing.get(&id) {
                    Some(false) => PlannedEffect::Alters,
                    Some(true) | None => PlannedEffect::Replaces,
                }
            }
            // The effect cannot be known.
            _ => PlannedEffect::Unsure,
        }
    }

    /// Marks each overlapped step as unknown until the other step.
    pub(in crate::driver) fn apply_overlaps(&mut self, met: Vec<(VertexId, Vec<VertexId>)>) {
        self.one_shot.overlaps.is_asked = false;
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
            // A later step sees the change as done.
            let until = self.engine.not_after(id, &others).filter(|_| is_told);
            let Some(until) = until else { continue };
            let before = self.current_status(id);
            self.graph.unmark_removed(id);
            self.turn(Event::Doubt { vertex: id, until });
            // Without a new status a further search finds nothing more: the loop ends.
            is_new |= self.current_status(id) != before;
        }
        self.one_shot.overlaps.is_over = !is_new;
    }
}
