//! Who listens to a simulated driver: every word goes into the trace, and what the oracle must know is kept.

use crate::stage::{Shared, Stage, lock};
use std::collections::{BTreeMap, BTreeSet};
use steadfast::driver::{Audience, News};

/// What was heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// When runs of each began.
    pub(crate) started: BTreeMap<String, Vec<u64>>,
    /// When changes of each were told.
    pub(crate) changed: BTreeMap<String, Vec<u64>>,
    /// Changes of all.
    pub(crate) changes: u64,
    /// How many graphs were taken.
    pub(crate) loaded: u64,
    pub(crate) refused: Vec<String>,
    failed: BTreeSet<String>,
    pub(crate) paused: bool,
}

impl Heard {
    /// When the run that made the last change began: a change is told late, and those below may have run by then.
    pub(crate) fn began_last(&self, identity: &str) -> Option<u64> {
        let (last, before) = self.changed.get(identity)?.split_last()?;
        let before = before.last().copied().unwrap_or_default();
        let started = self.started.get(identity)?;
        started.iter().copied().find(|at| *at > before && at <= last)
    }
}

pub(crate) struct Listener(pub(crate) Shared);

impl Audience for Listener {
    fn hear(&mut self, news: &News<'_>) {
        let mut stage = lock(&self.0);
        stage.say(format_args!("{news:?}"));
        note(&mut stage, news);
    }
}

fn note(stage: &mut Stage, news: &News<'_>) {
    let now = stage.now();
    match news {
        News::Loaded { .. } => stage.heard.loaded += 1,
        News::Refused(why) => stage.heard.refused.push((*why).to_owned()),
        News::SwapWaits { .. } => stage.saw("a swap that waited"),
        News::Started(identity) => {
            stage.heard.started.entry((*identity).to_owned()).or_default().push(now);
        }
        News::Changed { identity, .. } => {
            stage.heard.changes += 1;
            stage.heard.changed.entry((*identity).to_owned()).or_default().push(now);
            stage.found_by_sweep(identity);
        }
        News::Trouble { trouble, identity, .. } if trouble.what.contains("panicked") => {
            stage.wrong.push(format!("R-14: {identity}: {}", trouble.what));
        }
        News::Retrying { .. } => stage.saw("a retry"),
        News::Failed { identity, .. } => {
            stage.heard.failed.insert((*identity).to_owned());
        }
        News::Recovered(identity) if stage.heard.failed.remove(*identity) => {
            stage.saw("a failure for good that healed");
        }
        News::Held { .. } => stage.saw("would change"),
        News::Contended { .. } => stage.saw("a fight"),
        News::Stuck(_) => stage.saw("a stuck run"),
        News::Unwatched { .. } => stage.saw("a vertex without events"),
        News::Converged { .. } => stage.saw("all as declared"),
        News::Pausing(waits) if !waits.is_empty() => stage.saw("a pause while something ran"),
        News::Paused => stage.heard.paused = true,
        News::Resumed => stage.heard.paused = false,
        News::Stopping(waits) if !waits.is_empty() => stage.saw("a stop while something ran"),
        _ => {}
    }
}
