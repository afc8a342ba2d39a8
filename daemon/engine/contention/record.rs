//! The record of one contention: the repairs of a vertex, and the observations between them.

use crate::interface::action::{Culprit, Notice};
use crate::interface::ids::{Stamp, Tick, VertexId};
use crate::interface::metaparams::Meta;
use std::collections::VecDeque;
use std::time::Duration;

/// The shortest time between two summaries of a contention that lasts.
pub(crate) const SUMMARY: Duration = Duration::from_mins(10);
/// The largest number of our vertices suspected of one reversal.
pub(crate) const SUSPECTS: usize = 4;
/// The largest number of events per repair that are examined although our own runs may have caused them.
const ENOUGH: u8 = 64;

/// One repair, and the observations since the repair before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Repair {
    /// The time at which the repair ended.
    pub(crate) at: Tick,
    /// The vertex itself was writing, or had just written, when it was undone.
    pub(crate) own: bool,
    /// An event came while none of our runs was writing.
    pub(crate) foreign: bool,
    /// An event came that the vertex did not cause itself. Other vertices may have been writing.
    pub(crate) heard: bool,
    /// The other vertices that were writing.
    pub(crate) suspects: Vec<VertexId>,
    /// The number of events examined.
    pub(crate) seen: u8,
}

impl Repair {
    /// Returns true if another event or look adds no information: a foreign writer is known, or enough events were
    /// examined.
    pub(crate) fn says_all(&self, heard: bool) -> bool {
        self.foreign || self.seen >= ENOUGH && (self.heard || !heard)
    }
}

/// The repairs of one vertex, and the contention that they may form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Contention {
    /// The last repairs, oldest first.
    pub(crate) rounds: VecDeque<Repair>,
    /// The round in progress, since the last repair.
    pub(crate) round: Repair,
    /// The stamp of the begin of the last repair.
    pub(crate) begun: Stamp,
    /// The time at which the contention was recognised.
    pub(crate) since: Option<Tick>,
    /// The number of repairs in the whole contention.
    pub(crate) repairs: u32,
    pub(crate) doublings: u8,
    /// The earliest time of the next repair of drift.
    pub(crate) not_before: Tick,
    /// The time at which the contention ends if nothing happens before.
    pub(crate) ends_at: Tick,
    /// The culprit according to the last reversals alone.
    pub(crate) party: Option<Culprit>,
    /// The time of the last notice; none if nothing was reported yet.
    pub(crate) reported: Option<Tick>,
    /// The culprit named in the last notice.
    pub(crate) named: Option<Culprit>,
    /// The reported culprit was already corrected once: later corrections wait until a summary is due.
    pub(crate) renamed: bool,
    /// Events of the vertex are not delivered: the vertex is dirty, and they would add no information.
    pub(crate) muted: bool,
}

impl Contention {
    pub(crate) fn last_repair(&self) -> Option<Tick> {
        self.rounds.back().map(|round| round.at)
    }

    /// Returns true if the last repairs are enough for a contention within the window.
    pub(crate) fn is_contention(&self) -> bool {
        let enough = self.rounds.len() >= Meta::REVERSALS;
        let first = self.rounds.front().map(|round| round.at.after(Meta::REVERSAL_WINDOW));
        enough && first.zip(self.last_repair()).is_some_and(|(end, last)| last <= end)
    }

    /// Returns the reversals by which the culprit is judged, from the reversal of the first repair to that of the last
    /// but one.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().skip(1)
    }

    /// Returns the last two rounds and the one in progress.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().rev().take(2).chain([&self.round])
    }

    /// Returns the next notice, if one is due: a new contention, another culprit, or a summary.
    pub(crate) fn next_notice(&mut self, vertex: VertexId, now: Tick) -> Option<Notice> {
        let party = self.party.unwrap_or(Culprit::Unknown);
        let late = self.reported.is_none_or(|told| told.after(SUMMARY) <= now);
        let (newly, is_renamed) = match self.named {
            None | Some(Culprit::Unknown) => (self.named != Some(party), false),
            // A culprit that is no longer known is not reported.
            Some(before) => {
                let other = before != party && party != Culprit::Unknown;
                (other && (late || !self.renamed), other)
            }
        };
        if newly {
            self.renamed |= is_renamed;
            (self.named, self.reported) = (Some(party), Some(now));
            return Some(Notice::Contended { vertex, party, repairs: self.repairs });
        }
        let since = self.since.filter(|_| late)?;
        self.reported = Some(now);
        Some(Notice::StillContended { vertex, repairs: self.repairs, since })
    }

    /// Maps every moment in the future, for the comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.since = self.since.map(&f);
        self.not_before = f(self.not_before);
        self.ends_at = f(self.ends_at);
    }

    /// Maps every moment in the past (repairs, and the last notice), for the comparison of states (see `ranked`).
    pub(crate) fn map_past(&mut self, repair: impl Fn(Tick) -> Tick, told: impl Fn(Tick) -> Tick) {
        for round in &mut self.rounds {
            round.at = repair(round.at);
        }
        self.reported = self.reported.map(told);
    }
}
