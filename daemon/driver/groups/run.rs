//! Group runs: one run for several resources, with a result for each member and one for the engine.

use super::Groups;
use crate::driver::queries::statistics::Moment;
use crate::driver::runs::apply::recorded_cause;
use crate::driver::runs::{ActiveRun, RunManager, guarded};
use crate::driver::{Driver, DriverEvent, Notification, RunRef};
use std::cmp::Reverse;
use std::sync::Arc;
use steadfast_engine::{HeldReason, RunId, VertexId, VertexStatus};
use steadfast_resources::{
    Answer, Change, CheckRequest, CheckResult, Difference, ExecutorKind, Failure, Outcome,
    Transaction,
};

/// One member of a group run.
#[derive(Debug)]
pub(in crate::driver) struct MemberRun {
    pub(in crate::driver) id: VertexId,
    pub(in crate::driver) identity: Arc<str>,
    change: Option<Change>,
    pub(in crate::driver) differences: Vec<Difference>,
    pub(in crate::driver) destructive: bool,
    /// True if the object does not exist yet.
    pub(in crate::driver) creates: bool,
    /// The outcome of the apply.
    pub(in crate::driver) outcome: Option<Outcome>,
}

impl MemberRun {
    /// Returns the seal of the member's change; see [`Change::premise_digest`].
    pub(in crate::driver) fn premise_digest(&self) -> u64 {
        self.change.as_ref().map_or(0, |change| change.premise_digest)
    }
}

/// The status of a group member at its last check or apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum MemberStates {
    /// As declared.
    Fine,
    /// Not as declared.
    Differs,
    /// The check or the apply has failed.
    Failed,
}

impl Driver {
    /// Returns the members for a run of this vertex; empty if the vertex is a single resource.
    pub(in crate::driver) fn parts(&self, leader: VertexId) -> Vec<MemberRun> {
        let Some(group) = self.graph.groups().get(leader) else { return Vec::new() };
        let part = |id: &VertexId| MemberRun {
            id: *id,
            identity: self.graph.identity(*id),
            change: None,
            differences: Vec::new(),
            destructive: false,
            creates: false,
            outcome: None,
        };
        group.members.iter().map(part).collect()
    }

    pub(in crate::driver) fn check_parts(
        &self,
        transaction: Arc<dyn Transaction>,
        (executor, count): (ExecutorKind, usize),
        ask: CheckRequest,
        run: RunId,
    ) {
        let host = self.runtime.host.clone();
        let work = async move {
            let verdicts = guarded(transaction.check(&host, ask)).await;
            let verdicts = verdicts.unwrap_or_else(|failure| {
                (0..count).map(|_| CheckResult::Unknown(failure.clone())).collect()
            });
            DriverEvent::MembersChecked(run, verdicts)
        };
        let span = self.span(run);
        self.runtime.start_run((executor, false), span, work);
    }

    /// Processes the check results of all members, and reports one combined result to the engine.
    pub(in crate::driver) fn checked_parts(&mut self, run: RunId, verdicts: Vec<CheckResult>) {
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        self.runs.metrics.checks.observe(live.started.elapsed());
        let (look, mut parts) = (live.look, std::mem::take(&mut live.parts));
        let mut whole = CheckResult::Same;
        for (part, verdict) in parts.iter_mut().zip(verdicts) {
            self.runs.statistics.note(part.id, Moment::Checked);
            let verdict = if look && self.one_shot.is_final_check {
                if self.one_shot.changed.contains(&part.id) {
                    self.look_back(part.id, verdict)
                } else {
                    CheckResult::Same
                }
            } else if look {
                verdict
            } else {
                self.admit(part.id, verdict)
            };
            match verdict {
                CheckResult::Same => {
                    self.runs.members.insert(part.id, MemberStates::Fine);
                    if !look {
                        self.runs.failures.remove(part.id);
                    }
                }
                CheckResult::Differs(change) => {
                    self.runs.members.insert(part.id, MemberStates::Differs);
                    part.differences.clone_from(&change.differences);
                    (part.destructive, part.creates) = (change.destructive, change.creates);
                    part.change = Some(change);
                    let differences = part.differences.clone();
                    whole = CheckResult::Differs(Change::of(differences));
                }
                CheckResult::Unknown(failure) => {
                    self.runs.members.insert(part.id, MemberStates::Failed);
                    if matches!(whole, CheckResult::Same) {
                        whole = CheckResult::Unknown(failure.clone());
                    }
                    self.runs.failures.insert(part.id, failure);
                }
            }
        }
        if let Some(live) = self.runs.active.get_mut(&run) {
            live.parts = parts;
        }
        self.found(run, whole);
    }

    /// Starts the apply of all members in one transaction.
    pub(in crate::driver) fn apply_parts(&mut self, run: RunId, id: VertexId) {
        let cause = self.cause(id);
        let Some((entry, live)) = self.graph.get(id).zip(self.runs.active.get_mut(&run)) else {
            return;
        };
        let Some(group) = self.graph.groups().get(id) else { return };
        let (executor, count) = (entry.resource.traits().executor, live.parts.len());
        let changes = live.parts.iter_mut().map(|part| part.change.take()).collect();
        let identities = live.parts.iter().map(|part| &*part.identity);
        let cause = recorded_cause(cause, live.class);
        let permit = self.permission.mint_for_each(identities, &cause, live.cancel.clone());
        let transaction = Arc::clone(&group.transaction);
        let host = self.runtime.host.clone();
        self.runs.echo.applying(id);
        let work = async move {
            let answer: Answer<'_, Vec<Outcome>> = transaction.apply(&host, &permit, changes);
            let outcomes = guarded(answer)
                .await
                .unwrap_or_else(|failure| vec![Outcome::Failed { failure, touched: true }; count]);
            DriverEvent::MembersEnded(run, outcomes)
        };
        let span = self.span(run);
        self.runtime.start_run((executor, true), span, work);
    }

    /// Processes the outcomes of all members, and reports one combined outcome to the engine.
    pub(in crate::driver) fn ended_parts(&mut self, run: RunId, outcomes: Vec<Outcome>) {
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        let mut sum = CombinedOutcome::default();
        for (part, outcome) in live.parts.iter_mut().zip(outcomes) {
            let outcome = match self.runs.members.get(&part.id) {
                Some(MemberStates::Fine) => Outcome::Unchanged,
                Some(MemberStates::Failed) => match self.runs.failures.get(part.id).cloned() {
                    Some(failure) => Outcome::Failed { failure, touched: false },
                    None => outcome,
                },
                Some(MemberStates::Differs) | None => outcome,
            };
            let lately = match &outcome {
                Outcome::Unchanged | Outcome::Changed(_) => {
                    self.runs.failures.remove(part.id);
                    MemberStates::Fine
                }
                Outcome::Failed { failure, .. } => {
                    self.runs.failures.insert(part.id, failure.clone());
                    MemberStates::Failed
                }
                Outcome::Interrupted => MemberStates::Differs,
            };
            self.runs.members.insert(part.id, lately);
            sum.add(&outcome);
            part.outcome = Some(outcome);
        }
        self.ended(run, sum.whole());
    }

    /// Reports the outcome of each member.
    pub(in crate::driver) fn notify_members(&mut self, run: RunId, live: &ActiveRun) {
        let (took, class, is_contended) = (live.took, live.class, live.is_contended);
        let run = RunRef { number: run.0, cause: live.cause };
        let parts = &live.parts;
        for part in parts {
            match &part.outcome {
                Some(Outcome::Changed(notes)) => {
                    self.note_changed(part.id, class);
                    let (identity, differences) = (&*part.identity, part.differences.as_slice());
                    self.notifier.notify(&Notification::Changed {
                        identity,
                        differences,
                        notes,
                        took,
                        class,
                        run,
                        is_contended,
                    });
                    self.notify_removed(part.id, true);
                }
                Some(Outcome::Unchanged) => {
                    self.notifier.notify(&Notification::Unchanged(&part.identity));
                }
                Some(Outcome::Failed { failure, .. }) => {
                    let identity = &*part.identity;
                    self.runs.failures.note_change(part.id, class, part.differences.clone());
                    self.runs.metrics.note_failure(identity);
                    self.notifier.notify(&Notification::RunFailed { identity, failure, run });
                }
                Some(Outcome::Interrupted) | None => {
                    self.notifier
                        .notify(&Notification::Interrupted { identity: &part.identity, run });
                }
            }
        }
    }

    /// Returns the status of a resource: that of its vertex, except for group members to which the group's status does
    /// not apply.
    pub(in crate::driver) fn current_status(&self, id: VertexId) -> Option<VertexStatus> {
        let groups = self.graph.groups();
        let leader = groups.leader(id);
        let standing = self.engine.vertex_status(leader)?;
        if groups.get(leader).is_none() {
            return Some(standing);
        }
        Some(match (&standing, self.runs.members.get(&id)) {
            (
                VertexStatus::Failed
                | VertexStatus::Delayed(_)
                | VertexStatus::Held(HeldReason::WouldChange | HeldReason::Window(_)),
                Some(MemberStates::Fine),
            ) => VertexStatus::Settled,
            (
                VertexStatus::Held(holding @ (HeldReason::WouldChange | HeldReason::Window(_))),
                Some(MemberStates::Failed),
            ) => match self.above_failed_member(leader, id, *holding) {
                Some(above) => VertexStatus::Held(HeldReason::UnknownUntil(above)),
                None => VertexStatus::Failed,
            },
            _ => standing,
        })
    }

    /// Returns the vertex above a held group whose change may make the failed check of a member succeed (E-11).
    pub(in crate::driver) fn above_failed_member(
        &self,
        group: VertexId,
        member: VertexId,
        holding: HeldReason,
    ) -> Option<VertexId> {
        let has_failed = self.runs.members.get(&member) == Some(&MemberStates::Failed);
        let is_held = has_failed && holding == HeldReason::WouldChange;
        if is_held { self.engine.unseen_above(group, |_| false) } else { None }
    }

    /// Returns the number of resources in each status; group members count individually.
    pub(in crate::driver) fn counts(&self) -> steadfast_engine::Counts {
        let mut counts = self.engine.counts();
        for (leader, group) in self.graph.groups().iter() {
            let Some(standing) = self.engine.vertex_status(leader) else { continue };
            let count = counted(&mut counts, &standing);
            *count = count.saturating_sub(1);
            counts.total = counts.total.saturating_sub(1);
            for member in &group.members {
                counts.total += 1;
                if let Some(standing) = self.current_status(*member) {
                    *counted(&mut counts, &standing) += 1;
                }
            }
        }
        // Removed resources are not counted.
        for id in self.graph.removed_vertices() {
            if let Some(standing) = self.current_status(id) {
                let count = counted(&mut counts, &standing);
                *count = count.saturating_sub(1);
                counts.total = counts.total.saturating_sub(1);
            }
        }
        counts
    }
}

/// Returns the counter for a status.
fn counted<'a>(counts: &'a mut steadfast_engine::Counts, standing: &VertexStatus) -> &'a mut u32 {
    match standing {
        VertexStatus::Settled => &mut counts.settled,
        VertexStatus::Running(..) => &mut counts.running,
        VertexStatus::Delayed(_) => &mut counts.delayed,
        VertexStatus::Failed => &mut counts.failed,
        VertexStatus::Held(_) => &mut counts.held,
        VertexStatus::Stuck(..) => &mut counts.stuck,
        VertexStatus::Contended { .. } => &mut counts.contended,
        VertexStatus::WaitingForWatch
        | VertexStatus::WaitingFor(_)
        | VertexStatus::Asking(_)
        | VertexStatus::WaitingForLimit(_)
        | VertexStatus::WaitingForSemaphore
        | VertexStatus::WaitingForSlot
        | VertexStatus::WaitingForRepairLimit(_)
        | VertexStatus::Paused
        | VertexStatus::Suspended => &mut counts.waiting,
    }
}

/// The combination of several outcomes: one failure makes a failure, and one change counts as touched.
#[derive(Debug, Default)]
struct CombinedOutcome {
    failure: Option<Failure>,
    touched: bool,
    interrupted: bool,
}

impl CombinedOutcome {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Changed(_) => self.touched = true,
            Outcome::Failed { failure, touched } => {
                self.touched |= touched;
                self.failure.get_or_insert_with(|| failure.clone());
            }
            Outcome::Interrupted => self.interrupted = true,
        }
    }

    fn whole(self) -> Outcome {
        match self.failure {
            _ if self.interrupted => Outcome::Interrupted,
            Some(failure) => Outcome::Failed { failure, touched: self.touched },
            None if self.touched => Outcome::Changed(Vec::new()),
            None => Outcome::Unchanged,
        }
    }
}

impl RunManager {
    /// Returns the group member that was changed last; among changes in the same second, the one with most changes. The
    /// engine knows only that the group is contended.
    pub(in crate::driver) fn changed_last(&self, groups: &Groups, leader: VertexId) -> VertexId {
        let members = groups.members(&leader).iter().copied();
        let youngest = members.min_by_key(|id| {
            let age = self.statistics.age(*id, Moment::Changed).unwrap_or(u64::MAX);
            (age, Reverse(self.statistics.changes(*id)))
        });
        youngest.unwrap_or(leader)
    }

    /// Returns true if the member was as declared at its last check.
    pub(in crate::driver) fn is_fine(&self, id: VertexId) -> bool {
        self.members.get(&id) == Some(&MemberStates::Fine)
    }

    /// Returns the members concerned by an event of their group: those that are not as declared, or all.
    pub(in crate::driver) fn concerned(&self, groups: &Groups, leader: VertexId) -> Vec<VertexId> {
        let members = groups.members(&leader);
        let ill =
            |id: &&VertexId| self.members.get(*id).is_some_and(|it| *it != MemberStates::Fine);
        let found: Vec<VertexId> = members.iter().filter(ill).copied().collect();
        if members.len() < 2 || found.is_empty() { members.to_vec() } else { found }
    }

    /// Returns the run of a vertex that may apply, not a plain check.
    pub(in crate::driver) fn run_of_vertex(&self, id: VertexId) -> Option<(RunRef, &ActiveRun)> {
        let (run, live) = self.active.iter().find(|(_, live)| live.vertex == id && !live.look)?;
        Some((RunRef { number: run.0, cause: live.cause }, live))
    }
}
