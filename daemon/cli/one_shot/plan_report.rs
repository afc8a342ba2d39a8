//! The findings of a pass without changes, step by step, for `plan` and `drift`.

use crate::cli::args::Graph;
use crate::cli::exit::Exit;
use crate::cli::output::{count, difference, plain, print};
use crate::cli::{one_shot, output};
use crate::config::LoadedGraph;
use crate::driver::{DriverDeps, DriverExit};
use crate::plan::{Action, Plan, Step, StepCollector, Unusable};
use crate::store::StoredState;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_engine::{HeldReason, VertexStatus};
use steadfast_resources::{Host, MintKey};
use tokio::runtime::Runtime;

/// Checks a graph against the host and changes nothing; `listen` creates the collector from the names of `noop`
/// resources.
///
/// # Errors
/// The driver rejects the graph: the reason is reported, and the exit code of `apply` for that is returned.
pub(in crate::cli) fn find(
    (loaded, from): (LoadedGraph, &Graph),
    recalled: StoredState,
    (key, runtime): (Arc<MintKey>, &Runtime),
    listen: fn(BTreeSet<Arc<str>>) -> StepCollector,
) -> Result<Found, Exit> {
    let graph = loaded.name.clone();
    let order: Vec<String> = loaded.vertices.iter().map(|v| v.identity.to_string()).collect();
    let (loaded, noop) = loaded.into_plan();
    let steps = listen(noop);
    let audience = Box::new(steps.clone());
    let (host, journal, history) = (Host::default(), None, None);
    let parts = DriverDeps { host, key, journal, recalled, history, observing: None, audience };
    let finished = runtime.block_on(one_shot::drive(parts, (loaded, from), None, None));
    if let Some(why) = &finished.refused {
        return Err(reject_graph(why));
    }
    Ok(Found::new(graph, &order, &steps, finished))
}

/// Reports that the driver rejects the graph; returns the exit code for it.
pub(in crate::cli) fn reject_graph(why: &str) -> Exit {
    output::error(why, None);
    Exit::Graph
}

/// Reports the reason why a plan is not applied, one difference per line.
pub(in crate::cli) fn refuse(why: &Unusable) {
    output::error(
        why.to_string(),
        Some("nothing was changed; plan again and review the differences"),
    );
    if let Unusable::Moved(moved) = why {
        for line in moved.iter().skip(1).take(SHOWN) {
            output::eprint(format!("  {}", plain(line)));
        }
        let more = moved.len().saturating_sub(SHOWN + 1);
        if more > 0 {
            output::eprint(format!("  and {more} more"));
        }
    }
}

/// The number of further differences that are printed.
const SHOWN: usize = 20;

/// The findings.
pub(in crate::cli) struct Found {
    graph: String,
    total: usize,
    steps: Vec<Step>,
    /// The resources that could not be checked, each with the reason.
    failed: Vec<(String, String)>,
}

impl Found {
    /// Collects the findings in the order of the graph, with removals last.
    fn new(graph: String, order: &[String], steps: &StepCollector, finished: DriverExit) -> Self {
        let total = finished.standings.len();
        let failed = finished
            .standings
            .into_iter()
            .filter_map(|stand| {
                let why = match stand.status {
                    VertexStatus::Held(HeldReason::Operator) => {
                        "waiting for the operator".to_owned()
                    }
                    VertexStatus::Settled | VertexStatus::Held(_) => return None,
                    _ if !stand.waits_for.is_empty() => {
                        format!("waiting for {}", stand.waits_for.join(", "))
                    }
                    _ => stand.trouble.map(|t| t.what).unwrap_or_default(),
                };
                Some((stand.identity, why))
            })
            .collect();
        let mut steps = steps.take();
        // A map by name: a graph may be large.
        let at: HashMap<&str, usize> =
            order.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        for step in &mut steps {
            step.note_leaving(!at.contains_key(step.resource.as_str()));
        }
        steps.sort_by_key(|s| (s.is_removal(), s.leaves, at.get(s.resource.as_str()).copied()));
        Self { graph, total, steps, failed }
    }

    /// Returns true if a resource could not be checked.
    pub(in crate::cli) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns true if a resource differs.
    pub(in crate::cli) fn differs(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Checks that the findings are those of a plan.
    pub(in crate::cli) fn is_still(&self, plan: &Plan) -> Result<(), Unusable> {
        if let Some((name, why)) = self.failed.first() {
            return Err(Unusable::Moved(vec![format!("{name}: the check failed: {why}")]));
        }
        plan.is_still(&self.steps)
    }

    /// Returns the steps, for a file.
    pub(in crate::cli) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn count(&self, actions: &[Action]) -> usize {
        self.steps.iter().filter(|step| actions.contains(&step.action)).count()
    }

    /// Prints the findings for people. `what` is the title, `verb` the verb for resources that differ.
    pub(in crate::cli) fn show(&self, what: &str, verb: &str) {
        let changes = self.count(&[Action::Change, Action::Refresh]);
        let (removals, unknown) = (self.count(&[Action::Remove]), self.count(&[Action::Unknown]));
        let held = self.count(&[Action::Held]);
        let same = self.total - self.steps.len() - self.failed.len();
        let mut words = vec![format!("{} {verb}", count(changes, "resource"))];
        let more = [
            (removals, "to be removed or replaced"),
            (unknown, "unknown until then"),
            (held, "held"),
        ];
        words.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        if !self.failed.is_empty() {
            words.push(format!("{} could not be checked", self.failed.len()));
        }
        words.push(format!("{same} unchanged"));
        print(format!("{what}: {}: {}", plain(&self.graph), words.join(", ")));
        for step in self.steps.iter().filter(|s| !s.is_removal()) {
            show(step);
        }
        for (name, why) in &self.failed {
            print(format!("? {}: {}", plain(name), plain(why)));
        }
        if self.steps.iter().any(Step::is_removal) {
            print("existing objects that would be removed:");
        }
        for step in self.steps.iter().filter(|s| s.is_removal()) {
            show(step);
        }
    }

    pub(in crate::cli) fn to_json(&self) -> Value {
        json!({
            "graph": self.graph,
            "total": self.total,
            "change": self.count(&[Action::Change, Action::Refresh]),
            "remove": self.count(&[Action::Remove]),
            "unknown": self.count(&[Action::Unknown]),
            "held": self.count(&[Action::Held]),
            "failed": self.failed.iter().map(|(name, why)| json!({"resource": name, "why": why})).collect::<Vec<_>>(),
            "resources": self.steps,
        })
    }
}

/// Prints one step for people.
fn show(step: &Step) {
    let name = plain(&step.resource);
    let until = step.until.as_deref().map(plain);
    match (step.action, until) {
        (Action::Unknown, until) => {
            let until = until.unwrap_or_default();
            let now = if step.differences.is_empty() { "" } else { "; now:" };
            let leaves = if step.leaves { "undeclared; " } else { "" };
            print(format!("? {name}: {leaves}unknown until {until} is changed{now}"));
        }
        (Action::Refresh, _) => {
            print(format!("~ {name}: would refresh"));
            return;
        }
        (Action::Held, Some(window)) => {
            print(format!("! {name}: held: changes are allowed {window}"));
        }
        (Action::Held, None) => print(format!("! {name}: held: noop")),
        (Action::Remove, _) if step.leaves => print(format!("- {name}: undeclared")),
        (Action::Remove, _) => print(format!("- {name}")),
        (Action::Change, _) => print(format!("~ {name}")),
    }
    for d in &step.differences {
        for line in difference(&d.aspect, (&d.from, &d.to), d.diff.as_deref()) {
            print(format!("    {line}"));
        }
    }
}
