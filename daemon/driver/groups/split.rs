//! Split members: group members that fail or are contended run alone until they have been healthy for a while.
//!
//! To the engine a group is one vertex, so one failed or contended member would delay everything that depends on the
//! others (E-10) and their repairs (E-20). Each split of the same member lasts longer, so groups are not rebuilt
//! endlessly.

use super::run::MemberStates;
use crate::driver::{Driver, Notification};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, Mode, RestoredState, Swap, VertexId, VertexStatus};
use tokio::time::Instant;

/// The healthy time before the first rejoin; the time doubles with each split.
const WELL: Duration = Duration::from_mins(10);
/// The longest healthy time before a rejoin.
const LONGEST: Duration = Duration::from_hours(24);
/// The interval between health checks of split members.
const LOOK: Duration = Duration::from_mins(1);
/// The number of failures in a row after which a retried group is split.
const TRIES: u32 = 3;

/// Members that are split now, or were before.
#[derive(Debug, Default)]
pub(in crate::driver) struct SplitMembers {
    each: BTreeMap<VertexId, SplitMember>,
    /// The number of failures in a row of each retried group.
    tries: BTreeMap<VertexId, u32>,
    /// Groups whose last begin was refused: no member has failed.
    refused: BTreeSet<VertexId>,
    /// True if the engine does not have the current groups yet.
    is_due: bool,
    look_at: Option<Instant>,
}

/// The split history of one member.
#[derive(Debug, Default)]
struct SplitMember {
    is_apart: bool,
    /// The number of splits so far.
    times: u32,
    well_since: Option<Instant>,
}

impl SplitMember {
    fn may_join(&self, now: Instant) -> bool {
        let doubled = 1_u32.checked_shl(self.times.saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = WELL.saturating_mul(doubled).min(LONGEST);
        self.is_apart && self.well_since.is_some_and(|since| since + wait <= now)
    }
}

impl SplitMembers {
    /// Returns true if this vertex is split from its group now.
    pub(in crate::driver) fn has(&self, id: VertexId) -> bool {
        self.each.get(&id).is_some_and(|one| one.is_apart)
    }

    /// Returns the time of the next health check of split members.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.look_at
    }

    /// Forgets a vertex that has left the graph.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.each.remove(&id);
        self.tries.remove(&id);
    }

    /// Notes that a begin of a group could not be recorded, or is not allowed now.
    pub(in crate::driver) fn is_refused(&mut self, leader: VertexId) {
        self.refused.insert(leader);
    }

    /// Notes that a group tries to begin.
    pub(in crate::driver) fn begins(&mut self, leader: VertexId) {
        self.refused.remove(&leader);
    }

    /// Notes that a group has recovered.
    pub(in crate::driver) fn recovered(&mut self, leader: VertexId) {
        self.tries.remove(&leader);
    }

    fn all(&self) -> BTreeSet<VertexId> {
        self.each.iter().filter(|(_, one)| one.is_apart).map(|(id, _)| *id).collect()
    }
}

impl Driver {
    /// Counts a retry of a group; after some retries the failed members are split, so that dependents of the others
    /// need not wait.
    pub(in crate::driver) fn note_retry(&mut self, leader: VertexId) {
        if self.graph.groups().get(leader).is_none() || self.runs.split.refused.contains(&leader) {
            return;
        }
        let tries = self.runs.split.tries.entry(leader).or_default();
        *tries += 1;
        if *tries >= TRIES {
            self.part_who_failed(leader);
        }
    }

    /// Splits the failed members from a failed group if other resources depend on the group; all members if it is
    /// unknown which have failed.
    pub(in crate::driver) fn part_who_failed(&mut self, leader: VertexId) {
        let Some(group) = self.graph.groups().get(leader) else { return };
        if self.runs.split.refused.contains(&leader) {
            return;
        }
        if self.engine.neighbours(leader).1.is_empty() {
            return;
        }
        let is_failed = |id: &&VertexId| self.runs.members.get(*id) == Some(&MemberStates::Failed);
        let failed: Vec<VertexId> = group.members.iter().filter(is_failed).copied().collect();
        if failed.len() == group.members.len() {
            return;
        }
        let who = if failed.is_empty() { group.members.clone() } else { failed };
        self.part(who, "the resource failed while others wait for its group");
    }

    /// Splits the member that was changed last from a contended group.
    pub(in crate::driver) fn split_contended(&mut self, leader: VertexId) {
        if self.graph.groups().get(leader).is_some() {
            let who = self.runs.changed_last(self.graph.groups(), leader);
            self.part(vec![who], "the repairs are repeatedly reverted");
        }
    }

    /// Splits paused members, so that the others of their groups go on.
    fn part_paused(&mut self) {
        let is_apart = |id: &VertexId| {
            let leader = self.graph.groups().leader(*id);
            let members = self.graph.groups().get(leader).map(|group| &group.members);
            members.is_some_and(|all| all.iter().any(|other| !self.is_resource_paused(*other)))
        };
        let who: Vec<VertexId> = self.commands.pauses.ids().filter(is_apart).collect();
        self.part(who, "it is paused, and the others of its group go on");
    }

    fn part(&mut self, who: Vec<VertexId>, why: &str) {
        for id in who {
            let one = self.runs.split.each.entry(id).or_default();
            if std::mem::replace(&mut one.is_apart, true) {
                continue;
            }
            one.times = one.times.saturating_add(1);
            one.well_since = None;
            self.runs.split.is_due = true;
            self.runs.split.look_at.get_or_insert_with(|| Instant::now() + LOOK);
            self.notifier.notify(&Notification::GroupSplit { identity: self.graph.name(id), why });
        }
    }

    /// Lets healthy members rejoin, and gives changed groups to the engine.
    pub(in crate::driver) fn rejoin_members(&mut self, now: Instant) {
        if self.runs.split.look_at.is_some_and(|at| at <= now) {
            self.look_who_is_well(now);
        }
        self.part_paused();
        // A waiting graph runs with the groups of its load; changed groups follow after it.
        let can = self.engine.mode() == Mode::Running && self.graph.change().is_none();
        if !can || !std::mem::take(&mut self.runs.split.is_due) {
            return;
        }
        self.graph.keep_apart(self.runs.split.all());
        let Some(graph) = self.graph.regroup() else { return };
        let recall = self.recall_regrouped();
        self.pass_pauses_to_engine(true);
        let swap = Swap { graph: Arc::new(graph), recall, operator: false };
        self.turn(Event::Swap(swap));
    }

    fn look_who_is_well(&mut self, now: Instant) {
        for id in self.runs.split.all() {
            let is_well = self.current_status(id) == Some(VertexStatus::Settled)
                && !self.is_resource_paused(id);
            let Some(one) = self.runs.split.each.get_mut(&id) else { continue };
            one.well_since = is_well.then(|| one.well_since.unwrap_or(now));
            if one.may_join(now) {
                one.is_apart = false;
                self.runs.split.is_due = true;
                self.runs.members.insert(id, MemberStates::Fine);
                self.notifier.notify(&Notification::GroupJoined(self.graph.name(id)));
            }
        }
        let some = self.runs.split.each.values().any(|one| one.is_apart);
        self.runs.split.look_at = some.then(|| now + LOOK);
    }

    /// Returns the restored state of changed groups: members that were as declared stay so, and a later change counts
    /// as a repair.
    fn recall_regrouped(&self) -> BTreeMap<VertexId, RestoredState> {
        let right = |(id, members, definition): (VertexId, Vec<VertexId>, u64)| {
            let done = members.iter().all(|id| self.runs.is_fine(*id)).then_some(definition);
            (id, RestoredState { done, ..RestoredState::default() })
        };
        self.graph.regrouped().into_iter().map(right).collect()
    }
}
