//! The text of a plan for people: counts first, then changes in the order of the graph, destruction last.
//!
//! The signs: `+` create, `~` change, `-` destroy, `!` unknown, `=` stays as it is.

use super::plan_report::Found;
use crate::api::{Action, Differing, FailedCheck, Step};
use crate::cli::output::colour::{Ink, paint};
use crate::cli::output::{count, difference, plain, print};
use crate::expressions::compare_versions;
use std::cmp::Ordering;

/// The command whose findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Title {
    /// The changes of an apply.
    Plan,
    /// The present differences.
    Drift,
}

/// The undeclared resources that a plan lists by name; more are counted.
const LISTED: usize = 50;

impl Found {
    /// Prints the findings.
    pub(in crate::cli) fn show(&self, title: Title) {
        print(self.headline(title));
        for step in self.steps.iter().filter(|step| !step.is_removal()) {
            print_step(step);
        }
        for FailedCheck { resource, reason, hint } in &self.failed {
            let line = format!("{}: {}", plain(resource), plain(&reason.replace('\n', "; ")));
            print(paint(Ink::Odd, &format!("! {line}")));
            if let Some(hint) = hint {
                print(format!("    hint: {}", plain(hint)));
            }
        }
        self.conditions.lines().iter().for_each(print);
        if !self.left.is_empty() {
            print(paint(Ink::Title, "undeclared objects that stay:"));
        }
        for (name, reason) in self.left.iter().take(LISTED) {
            let reason = reason.strip_prefix("undeclared; ").unwrap_or(reason);
            print(format!("= {}: {}", plain(name), plain(reason)));
        }
        if self.left.len() > LISTED {
            print(format!("= and {} more", self.left.len() - LISTED));
        }
        self.show_removals();
    }

    /// Prints the steps that remove existing objects.
    pub(in crate::cli) fn show_removals(&self) {
        if self.removals() > 0 {
            print(paint(Ink::Title, "existing objects that would be removed:"));
        }
        for step in self.steps.iter().filter(|step| step.is_removal()) {
            print_step(step);
        }
    }

    /// Returns the number of steps that remove existing objects.
    pub(in crate::cli) fn removals(&self) -> usize {
        self.steps.iter().filter(|step| step.is_removal()).count()
    }

    /// Returns the number of steps that create an object.
    pub(in crate::cli) fn creations(&self) -> usize {
        self.steps.iter().filter(|step| step.creates).count()
    }

    fn headline(&self, title: Title) -> String {
        let (name, graph) = match title {
            Title::Plan => ("plan", plain(&self.graph)),
            Title::Drift => ("drift", plain(&self.graph)),
        };
        let differing = self.count(&[Action::Change, Action::Refresh]);
        let mut words = match title {
            Title::Drift => vec![format!("{} differing", count(differing, "resource"))],
            Title::Plan if differing == 0 => vec!["0 resources to change".to_owned()],
            Title::Plan => {
                let (created, refreshed) = (self.creations(), self.count(&[Action::Refresh]));
                let changed = differing - created - refreshed;
                let each =
                    [(created, "to create"), (changed, "to change"), (refreshed, "to refresh")];
                counted(&each)
            }
        };
        let held = self.count(&[Action::Held]);
        let more = [
            (self.count(&[Action::Remove]), "to destroy"),
            (self.count(&[Action::Unknown]), "unknown until then"),
            (held, "held"),
            (self.failed.len(), "could not be checked"),
            (self.left.len(), "undeclared"),
        ];
        words.extend(counted(&more));
        let same = self.total.saturating_sub(self.steps.len() + self.failed.len());
        words.push(format!("{same} unchanged"));
        format!("{name}: {graph}: {}", words.join(", "))
    }
}

/// Joins each number above zero with its words.
fn counted(all: &[(usize, &str)]) -> Vec<String> {
    let shown = all.iter().filter(|(number, _)| *number > 0);
    shown.map(|(number, words)| format!("{number} {words}")).collect()
}

/// Prints one step with its differences.
fn print_step(step: &Step) {
    let (ink, line) = headline_of_step(step);
    print(paint(ink, &line));
    if step.action == Action::Refresh {
        return;
    }
    for one in &step.differences {
        for line in difference(&one.aspect, (&one.from, &one.to), one.diff.as_deref()) {
            print(format!("    {}", diff_line(&line)));
        }
        if let Some((ink, word)) = direction(step, one) {
            print(format!("    {}", paint(ink, word)));
        }
    }
}

/// Returns the first line of a step.
fn headline_of_step(step: &Step) -> (Ink, String) {
    let name = plain(&step.resource);
    let until = step.until.as_deref().map(plain);
    match (step.action, until) {
        (Action::Unknown, until) => {
            let until = until.unwrap_or_default();
            let now = if step.differences.is_empty() { "" } else { "; now:" };
            let pending_removal = if step.pending_removal { "undeclared; " } else { "" };
            (Ink::Odd, format!("! {name}: {pending_removal}unknown until {until} is changed{now}"))
        }
        (Action::Refresh, _) => (Ink::Change, format!("~ {name}: would refresh")),
        (Action::Held, Some(window)) => {
            (Ink::Faint, format!("= {name}: held: changes are allowed {window}"))
        }
        (Action::Held, None) => (Ink::Faint, format!("= {name}: held: noop")),
        (Action::Remove, _) if step.pending_removal => (Ink::Bad, format!("- {name}: undeclared")),
        (Action::Remove, _) => (Ink::Bad, format!("- {name}")),
        (Action::Change, _) if step.creates => (Ink::Good, format!("+ {name}")),
        (Action::Change, _) => (Ink::Change, format!("~ {name}")),
    }
}

/// Colours a line of a unified diff; other lines stay as they are.
fn diff_line(line: &str) -> String {
    match line.strip_prefix("  ").and_then(|rest| rest.chars().next()) {
        Some('+') => paint(Ink::Good, line),
        Some('-') => paint(Ink::Bad, line),
        Some('@') => paint(Ink::Faint, line),
        _ => line.to_owned(),
    }
}

/// Tells an upgrade of a package from a downgrade; `None` for other differences.
fn direction(step: &Step, one: &Differing) -> Option<(Ink, &'static str)> {
    let is_package = step.resource.rsplit('/').next().is_some_and(|id| id.starts_with("pkg["))
        || step.resource.starts_with("pkg[");
    if !is_package || one.aspect != "version" || one.from.is_empty() || one.to.is_empty() {
        return None;
    }
    match compare_versions(&one.from, &one.to) {
        Ordering::Less => Some((Ink::Good, "upgrade")),
        Ordering::Greater => Some((Ink::Bad, "downgrade")),
        Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Ink, direction};
    use crate::api::Step;

    fn step(resource: &str, aspect: &str, from: &str, to: &str) -> Step {
        let difference =
            serde_json::json!({"aspect": aspect, "from": from, "to": to, "diff": null});
        let step = serde_json::json!({"resource": resource, "action": "change", "until": null, "differences": [difference]});
        serde_json::from_value(step).expect("a step")
    }

    #[test]
    fn upgrades_are_told_from_downgrades() {
        let word = |step: &Step| direction(step, &step.differences[0]);
        let of = |from, to| word(&step("pkg[nginx]", "version", from, to));
        assert_eq!(of("1.9", "1.10"), Some((Ink::Good, "upgrade")));
        assert_eq!(of("1.22.1-9", "1.22.1-2"), Some((Ink::Bad, "downgrade")));
        assert_eq!(of("", "1.10"), None);
        assert_eq!(word(&step("file[v]", "version", "2", "1")), None);
        assert_eq!(word(&step("web/pkg[x]", "version", "2", "1")), Some((Ink::Bad, "downgrade")));
    }
}
