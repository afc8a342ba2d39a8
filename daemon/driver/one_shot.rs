//! The state of a one-shot command (`apply`, `plan`): its changes, its final check, and its search for overlaps.

use super::plan::overlaps::PlanOverlaps;
use std::collections::BTreeSet;
use steadfast_engine::VertexId;
use steadfast_resources::Difference;

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
