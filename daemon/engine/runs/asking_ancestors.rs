//! Asking ancestors before a failure counts (E-3, E-10): a vertex whose run fails asks its settled ancestors first.
//!
//! An ancestor may have changed without an event so far: the event comes later, or the ancestor is only polled.
//! Therefore each settled ancestor is looked at (check only), unless a check of it has started after the failed run.
//! The vertex waits meanwhile, and its retry budget is not used. If an ancestor differs, the vertex is dirty again and
//! waits for that ancestor; if none differs, the failure counts.
//!
//! One failure asks each ancestor once, and only `EXCUSES` failures in a row are excused. A one-shot engine does not
//! ask: its ancestors have just run.

use crate::engine::Engine;
use crate::interface::action::{Class, HeldReason, Notice};
use crate::interface::ids::{Stamp, Tick, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::vertex::{Asking, Causes, Phase, Place, Run, RunKind, Station, Vertex};
use std::collections::{BTreeSet, VecDeque};

/// The largest number of ancestors that one failure asks, the nearest first.
const NEAREST: usize = 256;

/// The number of failures in a row that ancestors can excuse. The next failure counts at once.
pub(crate) const EXCUSES: u8 = 3;

/// The state of the ancestors of a failed vertex.
enum Ancestors {
    /// These ancestors have not been checked since the failed run started.
    Unchecked(Vec<VertexId>),
    /// At least one ancestor differs, or waits for something other than its own check.
    Differ,
    /// All ancestors that can be checked were found as declared.
    Same,
}

impl Engine {
    /// Returns true if a failed run has to wait for its ancestors.
    pub(crate) fn must_ask(&self, id: VertexId, since: Stamp) -> bool {
        let may_ask = self.mode == Mode::Running && !self.one_shot;
        let excusable = |vertex: &Vertex| !vertex.leaving && vertex.excused < EXCUSES;
        may_ask
            && self.vertex(id).is_some_and(excusable)
            && (self.is_blocked(id) || !matches!(self.survey(id, since), Ancestors::Same))
    }

    /// Suspends the failure of this run until its ancestors are checked. Returns the notice of that.
    pub(crate) fn ask(&mut self, id: VertexId, run: &Run, counts: bool) -> Notice {
        let notice = Notice::Asking(id, run.id);
        // The causes of the run matter only to a change that it applied.
        let applied = run.station == Station::Applying;
        let run = Run {
            causes: if applied { run.causes } else { Causes::default() },
            refresh: applied && run.refresh,
            class: Class::Intentional,
            quiet: false,
            since: Tick(0),
            pays: Stamp::NEVER,
            cancelled: None,
            returns: None,
            stuck: false,
            written_off: false,
            deadline: None,
            owes: Vec::new(),
            ..run.clone()
        };
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.phase = Phase::Asking(Box::new(Asking { run, awaited: Vec::new(), counts }));
            self.asking.insert(id);
            self.unjudged.push(id);
            self.touch(id);
        }
        notice
    }

    /// Records that a check of a vertex, started at stamp `start`, has ended or will not end. Failures that awaited it
    /// are judged.
    pub(crate) fn answer_askers(&mut self, id: VertexId, start: Stamp) {
        if self.asking.is_empty() {
            return;
        }
        for asker in self.asking.clone() {
            let Some(asking) = self.asking_mut(asker).filter(|asking| asking.run.stamp < start)
            else {
                continue;
            };
            let before = asking.awaited.len();
            asking.awaited.retain(|awaited| *awaited != id);
            if asking.awaited.len() < before && asking.awaited.is_empty() {
                self.unjudged.push(asker);
            }
        }
    }

    /// Judges all suspended failures again after a change of the graph.
    pub(crate) fn judge_all(&mut self) {
        self.unjudged.extend(self.asking.iter().copied());
    }

    /// Judges the failures whose ancestors may all have been checked. Returns true if there were any.
    pub(crate) fn judge_failures(&mut self) -> bool {
        let unjudged = std::mem::take(&mut self.unjudged);
        let any = !unjudged.is_empty();
        for id in unjudged {
            self.judge(id);
        }
        any
    }

    fn judge(&mut self, id: VertexId) {
        let Some(since) = self.asking_mut(id).map(|asking| asking.run.stamp) else { return };
        match self.survey(id, since) {
            Ancestors::Unchecked(unchecked) => self.look_at_all(id, unchecked, since),
            Ancestors::Differ => self.discard_failure(id),
            // A blocking ancestor is in progress: its end touches this vertex. Awaited ancestors may have left the
            // graph.
            Ancestors::Same if self.is_blocked(id) => {
                if let Some(asking) = self.asking_mut(id) {
                    asking.awaited.clear();
                }
            }
            Ancestors::Same => self.count_failure(id),
        }
    }

    /// Sums up the checks of the ancestors since stamp `since`, the nearest first.
    fn survey(&self, id: VertexId, since: Stamp) -> Ancestors {
        let (mut known, mut next) = (BTreeSet::new(), VecDeque::from([id]));
        let (mut unchecked, mut differs) = (Vec::new(), false);
        while let Some(at) = next.pop_front() {
            for parent in self.topology.parents(at) {
                if known.len() >= NEAREST || !known.insert(*parent) {
                    continue;
                }
                next.push_back(*parent);
                let Some(vertex) = self.vertex(*parent) else { continue };
                let can_start = !vertex.frozen && !self.paused_vertices.contains(parent);
                differs |= vertex.moved > since || vertex.blocks_for_long(can_start);
                let awaits = vertex.can_be_asked() || vertex.is_dirty_and_put_off();
                if can_start && awaits && vertex.seen <= since {
                    unchecked.push(*parent);
                }
            }
        }
        match (unchecked.is_empty(), differs) {
            (false, _) => Ancestors::Unchecked(unchecked),
            (true, true) => Ancestors::Differ,
            (true, false) => Ancestors::Same,
        }
    }

    /// Requests a look at each ancestor, unless a check of it that started late enough is in progress.
    fn look_at_all(&mut self, asker: VertexId, ancestors: Vec<VertexId>, since: Stamp) {
        for id in &ancestors {
            let Some(vertex) = self.vertex_mut(*id) else { continue };
            let runs = vertex.run().is_some_and(|run| run.stamp > since);
            if vertex.can_be_asked() && !runs {
                vertex.look = true;
                self.touch(*id);
            }
        }
        if let Some(asking) = self.asking_mut(asker) {
            asking.awaited = ancestors;
        }
    }

    /// Discards the failure: the vertex is processed again after the ancestors that differ. The vertex sends no
    /// back-poke: one was sent before the failed run, and an ancestor that failed for good since then has just had its
    /// attempt.
    fn discard_failure(&mut self, id: VertexId) {
        let Some(Asking { run, .. }) = self.stop_asking(id) else { return };
        let stamp = self.tick_stamp();
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.excused = vertex.excused.saturating_add(1);
        vertex.causes.add(Causes::AGAIN);
        vertex.dirty_since = stamp;
        self.notify_in_order(id, Notice::Excused(id, run.id));
    }

    /// Counts the failure of the run: no ancestor differs.
    fn count_failure(&mut self, id: VertexId) {
        let Some(Asking { run, counts, .. }) = self.stop_asking(id) else { return };
        let mut notices = if counts { self.record_outcome(id, &run, true) } else { Vec::new() };
        notices.push(self.fail(id));
        for notice in notices {
            self.notify_in_order(id, notice);
        }
    }

    /// Ends the wait for the ancestors and lets the vertex rest. The caller handles the failure.
    pub(crate) fn stop_asking(&mut self, id: VertexId) -> Option<Asking> {
        if !self.asking.remove(&id) {
            return None;
        }
        self.touch(id);
        let vertex = self.vertex_mut(id)?;
        let before = std::mem::replace(&mut vertex.phase, Phase::Resting);
        if let Phase::Asking(asking) = before { Some(*asking) } else { None }
    }

    fn asking_mut(&mut self, id: VertexId) -> Option<&mut Asking> {
        match &mut self.vertex_mut(id)?.phase {
            Phase::Asking(asking) => Some(asking),
            Phase::Resting
            | Phase::Running(_)
            | Phase::Delayed(_)
            | Phase::Failed { .. }
            | Phase::Held(_) => None,
        }
    }

    /// Returns true if an ancestor blocks the vertex.
    fn is_blocked(&self, id: VertexId) -> bool {
        self.vertex(id).is_some_and(|vertex| vertex.gate.least != Stamp::CLEAR)
    }
}

impl Vertex {
    /// Returns true if a look can find out if the vertex is as declared.
    fn can_be_asked(&self) -> bool {
        let stuck = self.run().is_some_and(|run| run.stuck);
        self.is_settled() && self.is_checkable() && !self.leaving && !stuck
    }

    /// Returns true if the vertex is dirty and waits for its limiter, its contention or the repair limit.
    fn is_dirty_and_put_off(&self) -> bool {
        self.causes.any() && matches!(self.place, Place::Limit(_) | Place::Backoff(_))
    }

    /// Returns true if the vertex blocks its descendants, and no check of it is about to end that.
    fn blocks_for_long(&self, can_start: bool) -> bool {
        match &self.phase {
            Phase::Delayed(_) | Phase::Failed { .. } | Phase::Held(HeldReason::Operator) => true,
            Phase::Resting => self.causes.any() && !can_start,
            Phase::Running(run) => run.kind != RunKind::Process && self.causes.any() && !can_start,
            Phase::Asking(_) | Phase::Held(_) => false,
        }
    }
}
