//! The definition of *blocks*, over all ancestors, from the oracle's records alone.

use crate::oracle_log::{Asked, Books, Need, Phase, Vertex, Watched};
use std::collections::BTreeMap;
use steadfast_engine::{ExecutorKind, Poll, Tick, VertexId};

/// The age in nanoseconds below which the slot of a thread is never written off.
const WRITTEN_OFF: u64 = 10_000_000_000;

/// The latest mark of a descendant that a vertex does not block: by the strict and by the lenient reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clearance {
    pub(crate) strict: u64,
    pub(crate) lenient: u64,
}

impl Books {
    /// Returns the clearance of every vertex.
    pub(crate) fn clearances(&self) -> BTreeMap<VertexId, Clearance> {
        let mut all = BTreeMap::new();
        for id in &self.order {
            let Some(vertex) = self.vertices.get(id) else { continue };
            // A paused vertex waits for no limiter: it blocks as long as it must be processed.
            let paused = self.paused_vertices.contains(id);
            let limited = if paused { (false, false) } else { self.is_limited(vertex, &all) };
            let put_off = if paused { (false, false) } else { self.is_put_off(vertex) };
            let shut = vertex.phase == Phase::Shut && !vertex.is_running();
            let surely = shut && vertex.need == Need::No;
            let maybe = shut && !matches!(vertex.need, Need::Must { .. });
            let limited = (limited.0 || put_off.0 || surely, limited.1 || put_off.1 || maybe);
            all.insert(*id, clearance(vertex, limited));
        }
        all
    }

    /// Returns true if the vertex certainly, and possibly, waits for its limiter alone, without a failure since it
    /// converged.
    fn is_limited(&self, vertex: &Vertex, known: &BTreeMap<VertexId, Clearance>) -> (bool, bool) {
        let ticks = matches!(vertex.declared.meta.poll, Poll::Every(_));
        let rests = matches!(
            vertex.phase,
            Phase::Rest | Phase::Held | Phase::Shut | Phase::Unsure | Phase::Failed
        );
        // The excuse of a failure and the start of a child can come in one turn.
        let is_excused = self.is_excused_at_once(vertex.declared.id);
        let waits = is_excused || rests && (vertex.need != Need::No || ticks);
        let waits = waits && !vertex.is_running();
        if !waits || vertex.declared.meta.pace.is_none() {
            return (false, false);
        }
        let empty = !self.has_token(vertex);
        let sure = empty
            && vertex.running.is_none()
            && !vertex.bucket_unsure
            && matches!(vertex.phase, Phase::Rest)
            && (vertex.failures == 0 && vertex.backoff_sure)
            && self.is_ready(vertex, known)
            // A vertex that a swap changes or removes waits for the swap.
            && !self.is_suspended(vertex.declared.id)
            && self.asked == Asked::Running;
        let fails = vertex.failures > 0 && vertex.backoff_sure;
        (sure, (empty || vertex.bucket_unsure) && (is_excused || !fails))
    }

    /// Returns true if no ancestor blocks the vertex, by the strict reading, and its watch is established.
    fn is_ready(&self, vertex: &Vertex, known: &BTreeMap<VertexId, Clearance>) -> bool {
        let Need::Must { high, .. } = vertex.need else { return false };
        self.is_watched(vertex)
            && vertex.ancestors.iter().all(|a| known.get(a).is_some_and(|c| c.strict > high))
    }

    /// Returns true if the watch is established, declared absent, or not needed.
    pub(crate) fn is_watched(&self, vertex: &Vertex) -> bool {
        self.one_shot
            || vertex.declared.meta.poll != Poll::Never
            || vertex.watched == Watched::Answered
    }

    /// Returns true if the bucket has a token now (E-12).
    pub(crate) fn has_token(&self, vertex: &Vertex) -> bool {
        let Some(pace) = vertex.declared.meta.pace else { return true };
        let slack = pace.period_ns * u64::from(pace.burst - 1);
        self.now.0 >= vertex.full_at.saturating_sub(slack)
    }

    /// Returns the ancestors that block the vertex by the most lenient reading.
    pub(crate) fn surely_blocking(&self, id: VertexId) -> Vec<VertexId> {
        let Some(vertex) = self.vertices.get(&id) else { return Vec::new() };
        let low = match vertex.need {
            // A tick may have marked the vertex before.
            _ if matches!(vertex.declared.meta.poll, Poll::Every(_)) => 0,
            Need::No => 0,
            Need::Maybe(low) | Need::Must { low, .. } => low,
        };
        let all = self.clearances();
        let blocks = |a: &VertexId| all.get(a).is_none_or(|c| c.lenient <= low);
        vertex.ancestors.iter().copied().filter(blocks).collect()
    }

    /// Returns true if the vertex must be processed, nothing blocks it, and only semaphores and a slot are missing.
    pub(crate) fn is_surely_ready(
        &self,
        id: VertexId,
        all: &BTreeMap<VertexId, Clearance>,
    ) -> bool {
        let Some(vertex) = self.vertices.get(&id) else { return false };
        let awake = match vertex.phase {
            Phase::Rest | Phase::Held | Phase::Failed => true,
            Phase::Delayed(until) => until <= self.now,
            Phase::Shut => true,
            Phase::Operator | Phase::JustFailed { .. } | Phase::Asking { .. } | Phase::Unsure => {
                false
            }
        };
        awake
            && vertex.put_off.1.is_none()
            && !vertex.still_waits(self.now)
            && (!vertex.repairs_suspended
                || vertex.asked
                || self.repairs_suspended.is_none_or(|at| at <= self.now))
            && vertex.running.is_none()
            && self.is_ready(vertex, all)
            && self.has_token(vertex)
            && !vertex.bucket_unsure
            && (!self.is_suspended(id) || self.is_surely_needed(id))
            && !self.paused_vertices.contains(&id)
            && self.asked == Asked::Running
            && !self.paused
    }

    /// Returns true if the vertex may be ready, by the weakest reading.
    pub(crate) fn is_possibly_ready(&self, id: VertexId) -> bool {
        let Some(vertex) = self.vertices.get(&id) else { return false };
        vertex.need != Need::No
            && !vertex.is_running()
            && self.surely_blocking(id).is_empty()
            && (!self.is_suspended(id) || self.may_be_needed(id))
            && self.asked != Asked::Stopping
    }

    /// Returns the number of holders of a semaphore (E-14).
    pub(crate) fn holders(&self, semaphore: u32) -> u32 {
        let holds = |vertex: &&Vertex| {
            vertex
                .running
                .as_ref()
                .is_some_and(|run| !run.look && run.semaphores.iter().any(|s| s.0 == semaphore))
        };
        u32::try_from(self.vertices.values().chain(self.leaving.values()).filter(holds).count())
            .unwrap_or(u32::MAX)
    }

    /// Returns the number of runs of a class in progress, and of those that have held their slot too long (E-6).
    pub(crate) fn occupied(&self, class: ExecutorKind) -> (u32, u32) {
        let mut occupied = 0;
        let mut old = 0;
        let all = self.vertices.values().chain(self.leaving.values());
        for run in all.filter_map(|v| v.running.as_ref()).filter(|run| run.executor == class) {
            occupied += 1;
            if class == ExecutorKind::Thread && self.now.0 - run.at.0 >= WRITTEN_OFF {
                old += 1;
            }
        }
        (occupied, old.min(self.slots.replaceable))
    }

    pub(crate) fn slots_of(&self, class: ExecutorKind) -> u32 {
        match class {
            ExecutorKind::Thread => self.slots.threads,
            ExecutorKind::Command => self.slots.commands,
        }
    }

    /// Returns the deadline of the run in progress.
    pub(crate) fn deadline(vertex: &Vertex) -> Option<Tick> {
        vertex.running.as_ref()?.deadline
    }
}

/// Returns true if the vertex has certainly, and possibly, failed since its last good run, and its failure does not
/// block.
fn has_tried(vertex: &Vertex) -> (bool, bool) {
    if vertex.declared.traits.failure_blocks {
        return (false, false);
    }
    let waits = matches!(vertex.phase, Phase::Delayed(_) | Phase::Failed) && !vertex.is_running();
    (waits && vertex.failures > 0 && vertex.backoff_sure, true)
}

fn clearance(vertex: &Vertex, limited: (bool, bool)) -> Clearance {
    let rests = matches!(vertex.phase, Phase::Rest | Phase::Held) && !vertex.is_running();
    let strict = rests && vertex.need == Need::No || limited.0 && vertex.good.0 > 0;
    let could = matches!(
        vertex.phase,
        Phase::Rest | Phase::Held | Phase::Unsure | Phase::JustFailed { maybe_good: true, .. }
    );
    let settled = could && !vertex.is_running() && !matches!(vertex.need, Need::Must { .. });
    let lenient = settled || limited.1 && vertex.good.1 > 0;
    let (has_tried, may_have) = has_tried(vertex);
    let (strict, lenient) = (strict || has_tried, lenient || may_have);
    Clearance {
        strict: if strict { u64::MAX } else { vertex.good.0 },
        lenient: if lenient { u64::MAX } else { vertex.good.1 },
    }
}
