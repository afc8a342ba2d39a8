//! What a pass without changes finds, step by step: for `plan` and for `drift`.

use super::apply;
use super::text::{count, difference, out, plain};
use crate::config::Loaded;
use crate::driver::{Audience, Finished, News, Parts};
use crate::store::Recalled;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use steadfast_engine::{Holding, Standing};
use steadfast_resources::{Difference, Host, MintKey};
use tokio::runtime::Runtime;

/// Looks at a graph that was read with `noop` for all of it.
pub(super) fn find(loaded: Loaded, recalled: Recalled, key: MintKey, runtime: &Runtime) -> Found {
    let graph = loaded.name.clone();
    let order: Vec<String> = loaded.vertices.iter().map(|v| v.identity.to_string()).collect();
    let steps = Steps::default();
    let audience = Box::new(Collector(steps.clone()));
    let host = Host::default();
    let (key, history) = (Arc::new(key), None);
    let parts = Parts { host, key, journal: None, recalled, history, audience };
    let finished = runtime.block_on(apply::drive(parts, loaded, None));
    Found::new(graph, &order, &steps, finished)
}

/// What would be done to one resource.
#[derive(Clone, Debug)]
struct Step {
    resource: String,
    differences: Vec<Difference>,
    destructive: bool,
    /// It cannot be told before that one is changed.
    until: Option<String>,
    /// Nothing differs, and yet it would be refreshed.
    refresh: bool,
}

/// The steps as they are heard of.
#[derive(Clone, Debug, Default)]
struct Steps(Arc<Mutex<Vec<Step>>>);

impl Steps {
    fn take(&self) -> Vec<Step> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Hears them.
struct Collector(Steps);

impl Audience for Collector {
    fn hear(&mut self, news: &News<'_>) {
        let News::Held { identity, holding, until, differences, destructive, .. } = news else {
            return;
        };
        if *holding == Holding::Operator {
            return;
        }
        let step = Step {
            resource: (*identity).to_owned(),
            differences: differences.to_vec(),
            destructive: *destructive,
            until: until.map(ToOwned::to_owned),
            refresh: *holding == Holding::WouldRefresh,
        };
        let mut steps = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A vertex may be held again for a further cause: the last word counts.
        steps.retain(|s| s.resource != step.resource);
        steps.push(step);
    }
}

/// All that was found.
pub(super) struct Found {
    graph: String,
    total: usize,
    steps: Vec<Step>,
    /// Those that could not be checked, and why.
    failed: Vec<(String, String)>,
}

impl Found {
    /// Puts it together: in the order of the graph, what would be gone last.
    fn new(graph: String, order: &[String], steps: &Steps, finished: Finished) -> Self {
        let failed = finished
            .standings
            .into_iter()
            .filter_map(|stand| {
                let why = match stand.standing {
                    Standing::Held(Holding::Operator) => "waits for the operator".to_owned(),
                    Standing::Settled | Standing::Held(_) => return None,
                    _ if !stand.waits_for.is_empty() => {
                        format!("waits for {}", stand.waits_for.join(", "))
                    }
                    _ => stand.trouble.map(|t| t.what).unwrap_or_default(),
                };
                Some((stand.identity, why))
            })
            .collect();
        let mut steps = steps.take();
        steps.sort_by_key(|s| (s.destructive, order.iter().position(|n| *n == s.resource)));
        Self { graph, total: order.len(), steps, failed }
    }

    /// Something could not be checked.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Something differs.
    pub(super) fn differs(&self) -> bool {
        !self.steps.is_empty()
    }

    fn counts(&self) -> (usize, usize, usize) {
        let unknown = self.steps.iter().filter(|s| s.until.is_some()).count();
        let removals = self.steps.iter().filter(|s| s.destructive).count();
        (self.steps.len() - unknown - removals, removals, unknown)
    }

    /// For people. `what` names the sheet, `verb` says what is to be said of those that differ.
    pub(super) fn show(&self, what: &str, verb: &str) {
        let (changes, removals, unknown) = self.counts();
        let same = self.total - self.steps.len() - self.failed.len();
        let mut words = vec![format!("{} {verb}", count(changes, "resource"))];
        let more = [(removals, "to be removed or replaced"), (unknown, "unknown until then")];
        words.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        if !self.failed.is_empty() {
            words.push(format!("{} could not be checked", self.failed.len()));
        }
        words.push(format!("{same} as declared"));
        out(format!("{what}: {}: {}", plain(&self.graph), words.join(", ")));
        for step in self.steps.iter().filter(|s| !s.destructive) {
            step.show();
        }
        for (name, why) in &self.failed {
            out(format!("? {}: {}", plain(name), plain(why)));
        }
        if removals > 0 {
            out("what exists and would be gone:");
        }
        for step in self.steps.iter().filter(|s| s.destructive) {
            step.show();
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (changes, removals, unknown) = self.counts();
        json!({
            "graph": self.graph,
            "total": self.total,
            "change": changes,
            "remove": removals,
            "unknown": unknown,
            "failed": self.failed.iter().map(|(name, why)| json!({"resource": name, "why": why})).collect::<Vec<_>>(),
            "resources": self.steps.iter().map(Step::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Step {
    fn show(&self) {
        let sign = if self.destructive { '-' } else { '~' };
        let name = plain(&self.resource);
        if let Some(until) = &self.until {
            out(format!("? {name}: cannot be told before {} is changed", plain(until)));
            return;
        }
        if self.refresh {
            out(format!("~ {name}: would be refreshed"));
            return;
        }
        out(format!("{sign} {name}"));
        for d in &self.differences {
            for line in difference(d.aspect, (&d.from, &d.to), d.diff.as_deref()) {
                out(format!("    {line}"));
            }
        }
    }

    fn to_json(&self) -> Value {
        let differences: Vec<_> = self
            .differences
            .iter()
            .map(|d| json!({"aspect": d.aspect, "from": d.from, "to": d.to, "diff": d.diff}))
            .collect();
        json!({
            "resource": self.resource,
            "action": match self {
                Self { until: Some(_), .. } => "unknown",
                Self { destructive: true, .. } => "remove",
                Self { refresh: true, .. } => "refresh",
                Self { .. } => "change",
            },
            "until": self.until,
            "differences": differences,
        })
    }
}
