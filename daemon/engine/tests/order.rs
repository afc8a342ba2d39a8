//! Who blocks whom: the definition of *blocks*, over all ancestors, from the books alone.

use crate::oracle_log::{Asked, Books, Need, Phase, Vertex, Watched};
use std::collections::BTreeMap;
use steadfast_engine::{Poll, SlotClass, Tick, VertexId};

/// Below this many waiting nanoseconds a slot of a thread is never written off.
const WRITTEN_OFF: u64 = 10_000_000_000;

/// Up to which mark a vertex lets its descendants pass: by the strict and by the lenient reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clearance {
    pub(crate) strict: u64,
    pub(crate) lenient: u64,
}

impl Books {
    /// The clearance of every vertex.
    pub(crate) fn clearances(&self) -> BTreeMap<VertexId, Clearance> {
        let mut all = BTreeMap::new();
        for id in &self.order {
            let Some(vertex) = self.vertices.get(id) else { continue };
            // What is parked waits for no limiter: it is in the way as long as it must be processed.
            let parked = self.parked.contains(id);
            let limited = if parked { (false, false) } else { self.is_limited(vertex, &all) };
            let put_off = if parked { (false, false) } else { self.is_put_off(vertex) };
            let shut = vertex.phase == Phase::Shut && !vertex.is_running();
            let surely = shut && vertex.need == Need::No;
            let maybe = shut && !matches!(vertex.need, Need::Must { .. });
            let limited = (limited.0 || put_off.0 || surely, limited.1 || put_off.1 || maybe);
            all.insert(*id, clearance(vertex, limited));
        }
        all
    }

    /// Certainly, and possibly, waiting for its limiter and nothing else: it has not failed since it was right.
    fn is_limited(&self, vertex: &Vertex, known: &BTreeMap<VertexId, Clearance>) -> (bool, bool) {
        let ticks = matches!(vertex.declared.meta.poll, Poll::Every(_));
        let waits = (vertex.need != Need::No || ticks)
            && !vertex.is_running()
            && matches!(
                vertex.phase,
                Phase::Rest | Phase::Held | Phase::Shut | Phase::Unsure | Phase::Failed
            );
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
            // What a swap changes or removes waits for that.
            && !self.is_suspended(vertex.declared.id)
            && self.asked == Asked::Running;
        let fails = vertex.failures > 0 && vertex.backoff_sure;
        (sure, (empty || vertex.bucket_unsure) && !fails)
    }

    /// No ancestor blocks it, by the strict reading, and its watch is established.
    fn is_ready(&self, vertex: &Vertex, known: &BTreeMap<VertexId, Clearance>) -> bool {
        let Need::Must { high, .. } = vertex.need else { return false };
        self.is_watched(vertex)
            && vertex.ancestors.iter().all(|a| known.get(a).is_some_and(|c| c.strict > high))
    }

    /// Its watch is established, declared absent, or not wanted.
    pub(crate) fn is_watched(&self, vertex: &Vertex) -> bool {
        self.one_shot
            || vertex.declared.meta.poll != Poll::Never
            || vertex.watched == Watched::Answered
    }

    /// E-12: whether its bucket has a token now.
    pub(crate) fn has_token(&self, vertex: &Vertex) -> bool {
        let Some(pace) = vertex.declared.meta.pace else { return true };
        let slack = pace.period_ns * u64::from(pace.burst - 1);
        self.now.0 >= vertex.full_at.saturating_sub(slack)
    }

    /// The ancestors that block it by the most lenient reading of everything.
    pub(crate) fn surely_blocking(&self, id: VertexId) -> Vec<VertexId> {
        let Some(vertex) = self.vertices.get(&id) else { return Vec::new() };
        let low = match vertex.need {
            // A tick may have marked it before.
            _ if matches!(vertex.declared.meta.poll, Poll::Every(_)) => 0,
            Need::No => 0,
            Need::Maybe(low) | Need::Must { low, .. } => low,
        };
        let all = self.clearances();
        let blocks = |a: &VertexId| all.get(a).is_none_or(|c| c.lenient <= low);
        vertex.ancestors.iter().copied().filter(blocks).collect()
    }

    /// It must be processed, nothing blocks it, and nothing else than semaphores and a slot is missing.
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
            && (!vertex.braked || vertex.asked || self.braked.is_none_or(|at| at <= self.now))
            && vertex.running.is_none()
            && self.is_ready(vertex, all)
            && self.has_token(vertex)
            && !vertex.bucket_unsure
            && (!self.is_suspended(id) || self.is_surely_needed(id))
            && !self.parked.contains(&id)
            && self.asked == Asked::Running
            && !self.paused
    }

    /// The weakest reading of the same.
    pub(crate) fn is_possibly_ready(&self, id: VertexId) -> bool {
        let Some(vertex) = self.vertices.get(&id) else { return false };
        vertex.need != Need::No
            && !vertex.is_running()
            && self.surely_blocking(id).is_empty()
            && (!self.is_suspended(id) || self.may_be_needed(id))
            && self.asked != Asked::Stopping
    }

    /// E-14: how many hold that semaphore.
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

    /// E-6: runs of that class in progress, and how many of them have held their slot too long.
    pub(crate) fn occupied(&self, class: SlotClass) -> (u32, u32) {
        let mut occupied = 0;
        let mut old = 0;
        let all = self.vertices.values().chain(self.leaving.values());
        for run in all.filter_map(|v| v.running.as_ref()).filter(|run| run.slot == class) {
            occupied += 1;
            if class == SlotClass::Thread && self.now.0 - run.at.0 >= WRITTEN_OFF {
                old += 1;
            }
        }
        (occupied, old.min(self.slots.replaceable))
    }

    pub(crate) fn slots_of(&self, class: SlotClass) -> u32 {
        match class {
            SlotClass::Thread => self.slots.threads,
            SlotClass::Command => self.slots.commands,
        }
    }

    /// The moment after which a run is over its time.
    pub(crate) fn deadline(vertex: &Vertex) -> Option<Tick> {
        vertex.running.as_ref()?.deadline
    }
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
    Clearance {
        strict: if strict { u64::MAX } else { vertex.good.0 },
        lenient: if lenient { u64::MAX } else { vertex.good.1 },
    }
}
