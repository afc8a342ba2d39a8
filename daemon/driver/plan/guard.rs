//! What a guard over what may be done allows: a plan that is kept.

use crate::driver::Driver;
use steadfast_engine::{Intent, VertexId};
use steadfast_resources::{CheckResult, Failure};

impl Driver {
    /// What counts as found, where a guard was set over what may be done.
    pub(in crate::driver) fn admit(&self, id: VertexId, verdict: CheckResult) -> CheckResult {
        match (&self.settings.guard, self.table.get(id)) {
            (Some(guard), Some(entry)) => {
                guard.admit(&entry.identity, entry.resource.nature().repeat, verdict)
            }
            (Some(_) | None, _) => verdict,
        }
    }

    /// Why a plan has none of these begun.
    pub(in crate::driver) fn held_by_plan(&self, intent: &Intent) -> Option<Failure> {
        let guard = self.settings.guard.as_ref()?;
        let mut members = self.table.groups().members(&intent.vertex).iter();
        members.find_map(|id| guard.holds(self.table.name(*id)))
    }
}
