//! The state of a one-shot command (`apply`, `plan`): its changes, its final check, and its search for overlaps.

use super::Driver;
use super::plan::overlaps::PlanOverlaps;
use std::collections::BTreeSet;
use steadfast_engine::{Event, Mode, VertexId};
use steadfast_resources::{CheckResult, Difference};

/// The state of a one-shot command; a daemon does not use it.
#[derive(Debug, Default)]
pub(super) struct OneShotWork {
    /// Vertices that this driver has changed.
    pub(super) changed: BTreeSet<VertexId>,
    /// True after the final check of all changed resources has begun; its differences are only reported.
    pub(super) is_final_check: bool,
    /// Differences that the final check found on changed resources, by identity.
    pub(super) differences: Vec<(String, Vec<Difference>)>,
    /// Steps of a plan that affect each other.
    pub(super) overlaps: PlanOverlaps,
    /// The reason for the rejection of the graph.
    pub(super) rejection: Option<String>,
}

impl OneShotWork {
    /// Begins the final check. Returns true the first time.
    pub(super) fn begin_final_check(&mut self) -> bool {
        !std::mem::replace(&mut self.is_final_check, true)
    }

    /// Takes the differences of the final check, by identity in ascending order.
    pub(super) fn take_differences(&mut self) -> Vec<(String, Vec<Difference>)> {
        let mut differences = std::mem::take(&mut self.differences);
        differences.sort_by(|one, other| one.0.cmp(&other.0));
        differences
    }
}

impl Driver {
    /// Checks all changed resources once more (one-shot): a difference means that someone has undone the change, or
    /// that the resource is not idempotent. Returns true if checks were started.
    pub(super) fn look_once_more(&mut self) -> bool {
        let stopped = self.engine.mode() == Mode::Stopped;
        if !self.settings.one_shot || stopped || !self.one_shot.begin_final_check() {
            return false;
        }
        let changed: BTreeSet<VertexId> =
            self.one_shot.changed.iter().map(|id| self.graph.groups().leader(*id)).collect();
        for id in changed {
            self.turn(Event::Look(id));
        }
        true
    }

    /// Collects the differences of a final check; they are reported at the end and not repaired.
    pub(super) fn look_back(&mut self, id: VertexId, verdict: CheckResult) -> CheckResult {
        if let Some(found) = differences(verdict) {
            self.one_shot.differences.push((self.graph.name(id).to_owned(), found));
        }
        CheckResult::Same
    }
}

fn differences(verdict: CheckResult) -> Option<Vec<Difference>> {
    match verdict {
        CheckResult::Same => None,
        CheckResult::Differs(change) => Some(change.differences),
        CheckResult::Unknown(failure) => Some(vec![Difference {
            aspect: "unknown",
            from: failure.what,
            to: String::new(),
            diff: None,
        }]),
    }
}
