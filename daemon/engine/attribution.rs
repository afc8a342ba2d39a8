//! Who undoes it (E-20): who of ours was writing when it was undone, and whether that one may have done it.

use crate::action::Culprit;
use crate::contention::{Contention, Repair, SUSPECTS};
use crate::engine::Engine;
use crate::ids::{Stamp, Tick, VertexId};
use crate::meta::SlotClass;
use crate::vertex::{Run, Station, Vertex, Watch};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long after an apply its events may still be under way.
pub(crate) const ECHO: Duration = Duration::from_millis(100);

/// An apply that has ended, and whose events may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wrote {
    pub(crate) at: Tick,
    pub(crate) by: VertexId,
    /// When it was begun.
    pub(crate) begun: Stamp,
}

impl Engine {
    /// An apply has ended: its events may still come.
    pub(crate) fn note_write(&mut self, id: VertexId) {
        while self.wrote.front().is_some_and(|wrote| wrote.at.after(ECHO) <= self.now) {
            self.wrote.pop_front();
        }
        let begun = self.vertex(id).and_then(Vertex::run).and_then(|run| run.begun);
        self.wrote.retain(|wrote| wrote.by != id);
        self.wrote.push_back(Wrote { at: self.now, by: id, begun: begun.unwrap_or(Stamp::NEVER) });
    }

    /// Those of ours that have just applied: their events may still come.
    fn wrote_lately(&self) -> impl Iterator<Item = &Wrote> + '_ {
        self.wrote.iter().rev().take_while(|wrote| wrote.at.after(ECHO) > self.now)
    }

    /// It is applying now, or has just applied.
    pub(crate) fn is_writing(&self, id: VertexId) -> bool {
        let applies = self.vertex(id).and_then(Vertex::run).is_some_and(is_applying);
        applies || self.wrote_lately().any(|wrote| wrote.by == id)
    }

    /// Who else of ours is applying now, or has just applied, in a run that it has begun since this vertex was repaired last: one
    /// run sets off one reversal, however long it lasts.
    pub(crate) fn writers(&self, id: VertexId) -> Vec<VertexId> {
        let since = self.fights.get(&id).map_or(Stamp::NEVER, |fight| fight.begun);
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

    /// Those of ours that were at work each time it was undone, and may have done it. The first of them is the party, unless whoever
    /// knows the objects rules that one out.
    #[must_use]
    pub fn culprits(&self, id: VertexId) -> Vec<VertexId> {
        let rounds = self.fights.get(&id).into_iter().flat_map(Contention::judged);
        let common = rounds.map(|round| round.suspects.clone()).reduce(|mut both, other| {
            both.retain(|suspect| other.contains(suspect));
            both
        });
        common.into_iter().flatten().filter(|other| self.may_undo(*other, id)).collect()
    }

    /// Who undoes it, where that can be told by now.
    pub(crate) fn party(&self, id: VertexId) -> Option<Culprit> {
        let (vertex, fight) = self.vertex(id).zip(self.fights.get(&id))?;
        let ours = self.culprits(id).first().copied();
        // Who is heard while none of ours is writing is another. One event may come late; a deed goes round where not one does.
        let others = fight.judged().filter(|round| round.foreign).count();
        let alone = others <= usize::from(vertex.is_checkable());
        if let Some(other) = ours.filter(|_| alone) {
            Some(Culprit::Ours(other))
        } else if !vertex.is_checkable() {
            (alone && fight.judged().all(|round| round.own)).then_some(Culprit::Itself)
        } else if vertex.watch != Watch::Established {
            Some(Culprit::Unknown)
        } else if others > 0 {
            Some(Culprit::Foreign)
        } else {
            // It moved at once and nobody was heard while it waited: a command whose check is never content, or somebody who
            // answers each repair, as another daemon does. What is no command is made as it is checked.
            let heard = fight.rounds.back().is_some_and(|round| round.heard);
            let itself = !heard && vertex.nature.slot == SlotClass::Command;
            let party = if itself { Culprit::Itself } else { Culprit::Foreign };
            fight.since.map(|_| party)
        }
    }

    /// The party that undoes a contended vertex, as far as it is known.
    #[must_use]
    pub fn contended_by(&self, id: VertexId) -> Option<Culprit> {
        self.fights.get(&id)?.party
    }

    /// A command may write what nobody watches for it, unless it is confined to what it claims; it and another that undo each other are seen at each other's writes. What is no
    /// command writes what it claims and nothing else: that it was busy at the same time says nothing. And a deed that another sets off
    /// is undone by nobody, unless it sets that one off itself: then the two go round without end.
    pub(crate) fn may_undo(&self, other: VertexId, id: VertexId) -> bool {
        if !self.vertex(id).is_some_and(Vertex::is_checkable) {
            return self.is_set_off_by(other, id);
        }
        let is_command = |id| self.vertex(id).is_some_and(|v| v.nature.slot == SlotClass::Command);
        let mutual = self.fights.get(&other).is_some_and(|fight| {
            fight.rounds.iter().rev().take(2).any(|round| round.suspects.contains(&id))
        });
        let is_confined = self.vertex(other).is_some_and(|v| v.nature.confined);
        (is_command(other) && !is_confined) || mutual && is_command(id)
    }

    /// Whether what sets it off in this round was ours alone.
    pub(crate) fn is_by_ours(&self, id: VertexId, round: &Repair) -> bool {
        let ours = || round.suspects.iter().any(|other| self.may_undo(*other, id));
        !round.foreign && (round.own || ours())
    }

    /// Whether what `id` does may be why `other` runs: by a refresh or a value, by what it writes, or over others.
    fn is_set_off_by(&self, other: VertexId, id: VertexId) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([other]), vec![other]);
        while let Some(at) = next.pop() {
            let rounds = self.fights.get(&at).into_iter().flat_map(Contention::latest);
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
