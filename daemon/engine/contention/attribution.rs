//! Attribution of a reverted change (E-20): the runs of ours that were writing at the time, and the ones that could be
//! the cause.

use crate::contention::record::{Contention, Repair, SUSPECTS};
use crate::engine::Engine;
use crate::interface::action::Culprit;
use crate::interface::ids::{Stamp, Tick, VertexId};
use crate::state::vertex::{Run, Station, Vertex, Watch};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_traits::ExecutorKind;

/// The time after an apply during which its events may still arrive.
pub(crate) const ECHO: Duration = Duration::from_millis(100);

/// An apply that has ended, and whose events may still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wrote {
    pub(crate) at: Tick,
    pub(crate) by: VertexId,
    /// The stamp of its begin.
    pub(crate) begun: Stamp,
}

impl Engine {
    /// Records that an apply of this vertex has ended: its events may still arrive.
    pub(crate) fn note_write(&mut self, id: VertexId) {
        while self.wrote.front().is_some_and(|wrote| wrote.at.after(ECHO) <= self.now) {
            self.wrote.pop_front();
        }
        let begun = self.vertex(id).and_then(Vertex::run).and_then(|run| run.begun);
        self.wrote.retain(|wrote| wrote.by != id);
        self.wrote.push_back(Wrote { at: self.now, by: id, begun: begun.unwrap_or(Stamp::NEVER) });
    }

    /// Returns the recent applies whose events may still arrive.
    fn wrote_lately(&self) -> impl Iterator<Item = &Wrote> + '_ {
        self.wrote.iter().rev().take_while(|wrote| wrote.at.after(ECHO) > self.now)
    }

    /// Returns true if the vertex is applying, or has just applied.
    pub(crate) fn is_writing(&self, id: VertexId) -> bool {
        let applies = self.vertex(id).and_then(Vertex::run).is_some_and(is_applying);
        applies || self.wrote_lately().any(|wrote| wrote.by == id)
    }

    /// Returns the other vertices that are applying or have just applied, in a run begun since the last repair of this
    /// vertex. One run counts for one reversal only, however long it lasts.
    pub(crate) fn writers(&self, id: VertexId) -> Vec<VertexId> {
        let since = self.contentions.get(&id).map_or(Stamp::NEVER, |contention| contention.begun);
        let applying = self.in_flight.values().filter_map(|other| {
            let run = self.vertex(*other)?.run().filter(|run| is_applying(run))?;
            Some((run.begun?, *other))
        });
        let wrote = self.wrote_lately().map(|wrote| (wrote.begun, wrote.by));
        let begun = applying.chain(wrote).filter(|(begun, other)| *begun > since && *other != id);
        let mut all: Vec<VertexId> = begun.map(|(_, other)| other).collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(SUSPECTS);
        all
    }

    /// Returns the vertices that were writing at each reversal and may have caused it. The first of them is the
    /// culprit, unless a caller with knowledge of the objects excludes it.
    #[must_use]
    pub fn culprits(&self, id: VertexId) -> Vec<VertexId> {
        let rounds = self.contentions.get(&id).into_iter().flat_map(Contention::judged);
        let common = rounds.map(|round| round.suspects.clone()).reduce(|mut both, other| {
            both.retain(|suspect| other.contains(suspect));
            both
        });
        common.into_iter().flatten().filter(|other| self.may_undo(*other, id)).collect()
    }

    /// Returns the culprit of the reversals, if it is known by now.
    pub(crate) fn party(&self, id: VertexId) -> Option<Culprit> {
        let (vertex, contention) = self.vertex(id).zip(self.contentions.get(&id))?;
        let ours = self.culprits(id).first().copied();
        // An event while none of our runs is writing comes from somebody else. One such event may just be late. An
        // operation without a state to check loops only if there is none.
        let others = contention.judged().filter(|round| round.foreign).count();
        let alone = others <= usize::from(vertex.is_checkable());
        if let Some(other) = ours.filter(|_| alone) {
            Some(Culprit::Ours(other))
        } else if !vertex.is_checkable() {
            (alone && contention.judged().all(|round| round.own)).then_some(Culprit::Itself)
        } else if vertex.watch != Watch::Established {
            Some(Culprit::Unknown)
        } else if others > 0 {
            Some(Culprit::Foreign)
        } else {
            // The difference came back at once, and no event arrived while the vertex waited: either a command whose
            // check is never satisfied, or another daemon that answers each repair. Only a command can be its own
            // culprit.
            let heard = contention.rounds.back().is_some_and(|round| round.heard);
            let itself = !heard && vertex.traits.executor == ExecutorKind::Command;
            let party = if itself { Culprit::Itself } else { Culprit::Foreign };
            contention.since.map(|_| party)
        }
    }

    /// Returns the party that undoes a contended vertex, as far as it is known.
    #[must_use]
    pub fn contended_by(&self, id: VertexId) -> Option<Culprit> {
        self.contentions.get(&id)?.party
    }

    /// Returns true if a run of `other` may have undone `id`.
    ///
    /// A command may write outside of its claims, unless it is confined to them. Two vertices that undo each other are
    /// seen at each other's writes. Any other kind writes only its claims: being busy at the same time proves nothing.
    /// A vertex without a state to check is never undone; the two form a loop only if `id` also triggers `other`.
    pub(crate) fn may_undo(&self, other: VertexId, id: VertexId) -> bool {
        if !self.vertex(id).is_some_and(Vertex::is_checkable) {
            return self.is_set_off_by(other, id);
        }
        let is_command =
            |id| self.vertex(id).is_some_and(|v| v.traits.executor == ExecutorKind::Command);
        let mutual = self.contentions.get(&other).is_some_and(|contention| {
            contention.rounds.iter().rev().take(2).any(|round| round.suspects.contains(&id))
        });
        let is_confined = self.vertex(other).is_some_and(|v| v.traits.confined);
        (is_command(other) && !is_confined) || mutual && is_command(id)
    }

    /// Returns true if only our own runs triggered the vertex in this round.
    pub(crate) fn is_by_ours(&self, id: VertexId, round: &Repair) -> bool {
        let ours = || round.suspects.iter().any(|other| self.may_undo(*other, id));
        !round.foreign && (round.own || ours())
    }

    /// Returns true if an apply of `id` may be the reason for which `other` runs: by a refresh, a value, a write, or
    /// through other vertices.
    fn is_set_off_by(&self, other: VertexId, id: VertexId) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([other]), vec![other]);
        while let Some(at) = next.pop() {
            let rounds = self.contentions.get(&at).into_iter().flat_map(Contention::latest);
            let suspects = rounds.flat_map(|round| &round.suspects);
            for by in self.topology.parents(at).iter().chain(suspects) {
                if *by == id {
                    return true;
                }
                if seen.insert(*by) {
                    next.push(*by);
                }
            }
        }
        false
    }
}

fn is_applying(run: &Run) -> bool {
    run.station == Station::Applying
}
