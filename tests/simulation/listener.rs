//! The observer of a simulated driver: writes every notification to the trace and records the facts for the oracle.

use crate::environment::{Shared, Stage, lock};
use crate::judgement::coverage::MADE_FIRST;
use std::collections::{BTreeMap, BTreeSet};
use steadfast::driver::{Notification, Observer};
use steadfast_engine::HeldReason;

/// The facts from notifications that the oracle uses.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The start times of the runs of each resource, in milliseconds.
    pub(crate) started: BTreeMap<String, Vec<u64>>,
    /// The times at which changes of each resource were reported, in milliseconds.
    pub(crate) changed: BTreeMap<String, Vec<u64>>,
    /// The number of changes of all resources.
    pub(crate) changes: u64,
    /// The number of accepted graphs.
    pub(crate) loaded: u64,
    pub(crate) refused: Vec<String>,
    failed: BTreeSet<String>,
    /// The removed resources that must converge once (`realize`) before their removal.
    pub(crate) removed: BTreeSet<String>,
    /// The resources of `removed` that a swap waits for; true if a run of the resource has begun since.
    pub(crate) leaving: BTreeMap<String, bool>,
    /// The resources that their maintenance window holds.
    shut: BTreeSet<String>,
    pub(crate) paused: bool,
}

impl Heard {
    /// Forgets what a daemon that has ended was about to do.
    pub(crate) fn is_gone(&mut self) {
        self.removed.clear();
        self.leaving.clear();
        self.shut.clear();
    }

    /// Returns the start of the run that made the last reported change. A change is reported late: children of the
    /// resource can have run by then.
    pub(crate) fn began_last(&self, identity: &str) -> Option<u64> {
        let (last, before) = self.changed.get(identity)?.split_last()?;
        let before = before.last().copied().unwrap_or_default();
        let started = self.started.get(identity)?;
        started.iter().copied().find(|at| *at > before && at <= last)
    }
}

pub(crate) struct Listener(pub(crate) Shared);

impl Observer for Listener {
    fn hear(&mut self, news: &Notification<'_>) {
        let mut stage = lock(&self.0);
        stage.say(format_args!("{news:?}"));
        note(&mut stage, news);
    }
}

fn note(stage: &mut Stage, news: &Notification<'_>) {
    let now = stage.now();
    match news {
        Notification::Loaded { .. } => {
            stage.heard.loaded += 1;
            stage.heard.leaving.clear();
        }
        Notification::Rejected(why) => stage.heard.refused.push((*why).to_owned()),
        Notification::Loading { .. } => {
            stage.saw("a swap that waited");
            let removed = stage.heard.removed.iter();
            stage.heard.leaving = removed.map(|identity| (identity.clone(), false)).collect();
        }
        Notification::Started(identity) => {
            if let Some(begun) = stage.heard.leaving.get_mut(*identity) {
                *begun = true;
            }
            stage.heard.started.entry((*identity).to_owned()).or_default().push(now);
        }
        Notification::Changed { identity, .. } => {
            stage.heard.changes += 1;
            stage.heard.changed.entry((*identity).to_owned()).or_default().push(now);
            stage.found_by_sweep(identity);
            if stage.heard.shut.remove(*identity) {
                stage.saw("a window let in");
            }
            if stage.heard.leaving.get(*identity) == Some(&true) {
                stage.saw(MADE_FIRST);
            }
        }
        Notification::RunFailed { failure, identity, .. } if failure.what.contains("panicked") => {
            stage.wrong.push(format!("R-14: {identity}: {}", failure.what));
        }
        Notification::Retrying { .. } => stage.saw("a retry"),
        Notification::Failed { identity, .. } => {
            stage.heard.failed.insert((*identity).to_owned());
        }
        Notification::Recovered { identity, .. } if stage.heard.failed.remove(*identity) => {
            stage.saw("a failure for good that healed");
        }
        Notification::Held { identity, holding: HeldReason::Window(_), .. } => {
            stage.saw("a window held a change");
            stage.heard.shut.insert((*identity).to_owned());
        }
        Notification::Held { .. } => stage.saw("would change"),
        Notification::RepairsSuspended { .. } => stage.saw("the repair limit held"),
        Notification::RepairsResumed => stage.saw("the repair limit let go"),
        Notification::Contended { .. } => stage.saw("a contention"),
        Notification::Stuck(_) => stage.saw("a stuck run"),
        Notification::Unwatched { .. } => stage.saw("a vertex without events"),
        Notification::Converged { .. } => stage.saw("all as declared"),
        Notification::Pausing(waits) if !waits.is_empty() => {
            stage.saw("a pause while something ran");
        }
        Notification::Paused { .. } => stage.heard.paused = true,
        Notification::Resumed => stage.heard.paused = false,
        Notification::Stopping(waits) if !waits.is_empty() => {
            stage.saw("a stop while something ran");
        }
        _ => {}
    }
}
