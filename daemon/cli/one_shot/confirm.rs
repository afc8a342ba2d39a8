//! The question of `apply` on a terminal before it removes existing objects.
//!
//! The answer covers the objects that were shown: a guard refuses any other removal.

use super::plan_report;
use crate::api::{Action, Step};
use crate::cli::args::{self, Apply, Log};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::config::LoadedGraph;
use crate::driver::Guard;
use crate::plan::StepCollector;
use crate::signals::Signals;
use crate::store::StoredState;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use steadfast_resources::{CheckResult, Failure, MintKey, RunPolicy};
use tokio::runtime::Runtime;

/// Returns true if an apply must ask: it may change the host, and a person can answer.
pub(super) fn is_asked(args: &Apply) -> bool {
    let is_for_people = !args.json && args.log == Log::Human;
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    !args.yes && !args.graph.noop && is_for_people && is_terminal
}

/// Previews the apply, and asks if it removes existing objects. Returns the guard of the apply; `None` if nothing has
/// to be guarded because the preview cannot tell.
///
/// # Errors
/// The exit code if the graph is rejected, or if the answer is not yes.
pub(super) fn ask(
    (loaded, graph): (&LoadedGraph, &args::Graph),
    recalled: &StoredState,
    (key, runtime): (&Arc<MintKey>, &Runtime),
    signals: &mut Signals,
) -> Result<Option<Arc<dyn Guard>>, Exit> {
    let whole = (loaded.clone(), graph);
    let found =
        plan_report::find(whole, recalled.clone(), (Arc::clone(key), runtime), StepCollector::new)?;
    if found.removals() > 0 {
        found.show_removals();
        let objects = output::count(found.removals(), "existing object");
        let question = format!("remove {objects}? [y/N] ");
        if !runtime.block_on(is_confirmed(&question, signals)) {
            output::error("no changes made: the removal was not confirmed", Some(HINT));
            return Err(Exit::Failed);
        }
    }
    Ok(Some(Arc::new(ShownRemovals::of(found.into_steps()))))
}

const HINT: &str = "`steadfast plan` shows all changes; `apply --yes` does not ask";

/// Asks a question, and returns true for a yes. A signal is a no.
async fn is_confirmed(question: &str, signals: &mut Signals) -> bool {
    let mut stderr = std::io::stderr();
    let _unasked = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = tokio::select! {
        biased;
        _ = signals.asked_to_stop() => {
            let _ended = stderr.write_all(b"\n");
            return false;
        }
        answer = answer => answer,
    };
    let line = answer.ok().and_then(Result::ok).unwrap_or_default();
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

/// A guard that refuses the removal of objects that the preview did not show.
#[derive(Debug)]
struct ShownRemovals {
    /// The resources whose steps remove something, or may do so.
    removing: BTreeSet<String>,
}

impl ShownRemovals {
    fn of(steps: Vec<Step>) -> Self {
        let may_remove = |step: &Step| step.is_removal() || step.action == Action::Unknown;
        let removing = steps.into_iter().filter(may_remove).map(|step| step.resource);
        Self { removing: removing.collect() }
    }
}

impl Guard for ShownRemovals {
    fn admit(&self, identity: &str, _repeat: RunPolicy, verdict: CheckResult) -> CheckResult {
        match verdict {
            CheckResult::Differs(change)
                if change.destructive && !self.removing.contains(identity) =>
            {
                let what = "the host has changed: an existing object would be removed";
                CheckResult::Unknown(Failure::new(what).hint("apply again to see and confirm it"))
            }
            verdict => verdict,
        }
    }

    fn holds(&self, _identity: &str) -> Option<Failure> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckResult, Guard as _, RunPolicy, ShownRemovals, Step};
    use steadfast_resources::{Change, Difference};

    fn change(destructive: bool) -> CheckResult {
        let (from, to) = ("file".to_owned(), "absent".to_owned());
        let differences = vec![Difference { aspect: "state", from, to, diff: None }];
        CheckResult::Differs(Change { destructive, ..Change::of(differences) })
    }

    fn step(resource: &str, action: &str) -> Step {
        let step = serde_json::json!({"resource": resource, "action": action, "until": null, "differences": []});
        serde_json::from_value(step).expect("a step")
    }

    #[test]
    fn only_shown_removals_are_admitted() {
        let steps =
            vec![step("file[a]", "remove"), step("file[b]", "change"), step("file[c]", "unknown")];
        let guard = ShownRemovals::of(steps);
        let admits = |name, destructive| {
            let verdict = guard.admit(name, RunPolicy::State, change(destructive));
            matches!(verdict, CheckResult::Differs(_))
        };
        assert!(admits("file[a]", true) && admits("file[b]", false) && admits("file[c]", true));
        assert!(!admits("file[b]", true) && !admits("file[d]", true));
    }
}
