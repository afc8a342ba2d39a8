//! Members of groups that keep the others of theirs waiting: each has a vertex of its own until it was well for a while.
//!
//! To the engine a group is one vertex, so what cannot be made right or is fought over would hold back whoever comes after any of the
//! others (E-10), and their repairs (E-20). Who comes apart stays so for longer each time: groups are not made anew without end.

use super::run::MemberStates;
use crate::driver::{Driver, Notification};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, Mode, RestoredState, Swap, VertexId, VertexStatus};
use tokio::time::Instant;

/// How long one must have been well to join again, the first time; twice as long each time.
const WELL: Duration = Duration::from_mins(10);
/// No wait to join again is longer.
const LONGEST: Duration = Duration::from_hours(24);
/// How often it is looked whether they are well.
const LOOK: Duration = Duration::from_mins(1);
/// After so many failures in a row a group that is tried again is not waited for.
const TRIES: u32 = 3;

/// Who is apart, and who was.
#[derive(Debug, Default)]
pub(in crate::driver) struct SplitMembers {
    each: BTreeMap<VertexId, SplitMember>,
    /// How often in a row each group has failed that is tried again.
    tries: BTreeMap<VertexId, u32>,
    /// Groups whose last begin was refused: none of them has failed.
    refused: BTreeSet<VertexId>,
    /// The engine does not have the groups yet that there are to be.
    is_due: bool,
    look_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct SplitMember {
    is_apart: bool,
    /// How often it has come apart.
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
    /// Whether this one is in no group for now.
    pub(in crate::driver) fn has(&self, id: VertexId) -> bool {
        self.each.get(&id).is_some_and(|one| one.is_apart)
    }

    /// When it is to be looked whether they are well.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.look_at
    }

    /// It has left for good.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.each.remove(&id);
        self.tries.remove(&id);
    }

    /// What a group is about to do could not be kept, or may not be done now.
    pub(in crate::driver) fn is_refused(&mut self, leader: VertexId) {
        self.refused.insert(leader);
    }

    /// It tries to begin.
    pub(in crate::driver) fn begins(&mut self, leader: VertexId) {
        self.refused.remove(&leader);
    }

    /// A group is right again.
    pub(in crate::driver) fn recovered(&mut self, leader: VertexId) {
        self.tries.remove(&leader);
    }

    fn all(&self) -> BTreeSet<VertexId> {
        self.each.iter().filter(|(_, one)| one.is_apart).map(|(id, _)| *id).collect()
    }
}

impl Driver {
    /// A group is tried again: one that fails for ever must not be waited for for ever.
    pub(in crate::driver) fn note_retry(&mut self, leader: VertexId) {
        if self.table.groups().get(leader).is_none() || self.apart.refused.contains(&leader) {
            return;
        }
        let tries = self.apart.tries.entry(leader).or_default();
        *tries += 1;
        if *tries >= TRIES {
            self.part_who_failed(leader);
        }
    }

    /// A group has failed: those of it that did come apart, where somebody waits for the others. Where it is not known who did, all do.
    pub(in crate::driver) fn part_who_failed(&mut self, leader: VertexId) {
        let Some(group) = self.table.groups().get(leader) else { return };
        if self.apart.refused.contains(&leader) {
            return;
        }
        if self.engine.neighbours(leader).1.is_empty() {
            return;
        }
        let is_failed = |id: &&VertexId| self.member_states.get(*id) == Some(&MemberStates::Failed);
        let failed: Vec<VertexId> = group.members.iter().filter(is_failed).copied().collect();
        if failed.len() == group.members.len() {
            return;
        }
        let who = if failed.is_empty() { group.members.clone() } else { failed };
        self.part(who, "the resource failed while others wait for its group");
    }

    /// A group is fought over: the one that was changed last comes apart.
    pub(in crate::driver) fn part_who_is_fought_over(&mut self, leader: VertexId) {
        if self.table.groups().get(leader).is_some() {
            let who = self.changed_last(leader);
            self.part(vec![who], "the repairs are repeatedly reverted");
        }
    }

    fn part(&mut self, who: Vec<VertexId>, why: &str) {
        for id in who {
            let one = self.apart.each.entry(id).or_default();
            if std::mem::replace(&mut one.is_apart, true) {
                continue;
            }
            one.times = one.times.saturating_add(1);
            one.well_since = None;
            self.apart.is_due = true;
            self.apart.look_at.get_or_insert_with(|| Instant::now() + LOOK);
            self.audience.hear(&Notification::Apart { identity: self.table.name(id), why });
        }
    }

    /// Who was well for long enough joins its group again; what has changed of groups is given to the engine.
    pub(in crate::driver) fn tend_groups(&mut self, now: Instant) {
        if self.apart.look_at.is_some_and(|at| at <= now) {
            self.look_who_is_well(now);
        }
        // What a graph that waits is to run as was said when it was taken; after that comes this.
        let can = self.engine.mode() == Mode::Running && self.table.change().is_none();
        if !can || !std::mem::take(&mut self.apart.is_due) {
            return;
        }
        self.table.keep_apart(self.apart.all());
        let Some(graph) = self.table.regroup() else { return };
        let recall = self.recall_regrouped();
        self.tell_parked(true);
        let swap = Swap { graph: Arc::new(graph), recall, operator: false };
        self.turn(Event::Swap(swap));
    }

    fn look_who_is_well(&mut self, now: Instant) {
        for id in self.apart.all() {
            let is_well = self.current_status(id) == Some(VertexStatus::Settled);
            let Some(one) = self.apart.each.get_mut(&id) else { continue };
            one.well_since = is_well.then(|| one.well_since.unwrap_or(now));
            if one.may_join(now) {
                one.is_apart = false;
                self.apart.is_due = true;
                self.member_states.insert(id, MemberStates::Fine);
                self.audience.hear(&Notification::Joined(self.table.name(id)));
            }
        }
        let some = self.apart.each.values().any(|one| one.is_apart);
        self.apart.look_at = some.then(|| now + LOOK);
    }

    /// What was right stays so: a repair of it is one, and no change that the graph asks for.
    fn recall_regrouped(&self) -> BTreeMap<VertexId, RestoredState> {
        let right = |(id, members, definition): (VertexId, Vec<VertexId>, u64)| {
            let done = members.iter().all(|id| self.is_fine(*id)).then_some(definition);
            (id, RestoredState { done, ..RestoredState::default() })
        };
        self.table.regrouped().into_iter().map(right).collect()
    }
}
