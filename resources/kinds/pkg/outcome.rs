//! The outcomes of a transaction for each package, read from dpkg.

use super::apply::{Halt, Work};
use super::check::{VERSION, differences};
use super::resolve::ResolvedPackages;
use crate::change::{Difference, Outcome};
use crate::failure::Failure;
use crate::host::packages::Packages;

impl Work<'_> {
    /// Returns the outcome of each package from the present state in dpkg.
    pub(super) async fn outcomes(
        mut self,
        changes: Vec<Option<Vec<Difference>>>,
        halted: Option<Halt>,
    ) -> Vec<Outcome> {
        let packages = self.host.packages().await;
        let done = ResolvedPackages::default();
        let mut outcomes = Vec::with_capacity(changes.len());
        for (at, change) in changes.into_iter().enumerate() {
            let Some(change) = change else {
                outcomes.push(Outcome::Unchanged);
                continue;
            };
            let (packages, failure) = match &packages {
                Ok(packages) => (&**packages, self.failures.remove(&at)),
                Err(failure) => (&Packages::default(), Some(failure.clone())),
            };
            let left = differences(&self.all[at], packages, (at, &done));
            outcomes.push(match (failure, &halted) {
                (Some(failure), _) => self.failed(failure),
                (None, Some(Halt::Cancelled)) => Outcome::Interrupted,
                (None, Some(Halt::Failed(failure))) => self.failed(failure.clone()),
                // Another process has done the change meanwhile, for example a transaction that an earlier daemon
                // had begun.
                (None, None) if left.is_empty() && !self.touched => Outcome::Unchanged,
                (None, None) if left.is_empty() => {
                    self.changed(&self.all[at].name, change, packages)
                }
                (None, None) => {
                    let what = format!("apt succeeded, but {}", told(&left).join(", "));
                    self.failed(Failure::new(what))
                }
            });
        }
        outcomes
    }

    fn failed(&self, failure: Failure) -> Outcome {
        Outcome::Failed { failure, touched: self.touched }
    }

    /// Returns the outcome of a changed package with the installed version: updated lists or another process may
    /// have brought another version than the check announced.
    fn changed(&self, name: &str, mut found: Vec<Difference>, packages: &Packages) -> Outcome {
        if let Some(package) = packages.get(name) {
            let versions = found.iter_mut().filter(|it| it.aspect == VERSION);
            versions.for_each(|version| version.to.clone_from(&package.version));
        }
        let mut notes = told(&found);
        notes.extend(self.notes.iter().cloned());
        Outcome::Changed(notes)
    }
}

fn told(differences: &[Difference]) -> Vec<String> {
    let words = |found: &Difference| {
        if found.from.is_empty() {
            format!("{} {}", found.aspect, found.to)
        } else {
            format!("{} {} -> {}", found.aspect, found.from, found.to)
        }
    };
    differences.iter().map(words).collect()
}
