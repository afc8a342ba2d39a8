//! The guard of an apply: only changes of a saved plan are admitted.

use crate::driver::Driver;
use steadfast_engine::{Intent, VertexId};
use steadfast_resources::{CheckResult, Failure};

impl Driver {
    /// Passes a check result through the guard, if there is one.
    pub(in crate::driver) fn admit(&self, id: VertexId, verdict: CheckResult) -> CheckResult {
        match (&self.settings.guard, self.graph.get(id)) {
            (Some(guard), Some(entry)) => {
                guard.admit(&entry.identity, entry.resource.traits().repeat, verdict)
            }
            (Some(_) | None, _) => verdict,
        }
    }

    /// Returns the reason for which the guard forbids a run for any of its members.
    pub(in crate::driver) fn held_by_plan(&self, intent: &Intent) -> Option<Failure> {
        let guard = self.settings.guard.as_ref()?;
        let mut members = self.graph.groups().members(&intent.vertex).iter();
        members.find_map(|id| guard.holds(self.graph.name(*id)))
    }
}
