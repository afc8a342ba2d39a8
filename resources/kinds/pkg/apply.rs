//! Makes packages as declared: recovers dpkg, reads the lists, one call of apt for all, and looks at what came of it.

use super::Declared;
use super::check::{differences, is_stale};
use super::settle::{Settled, operand, options, settle};
use crate::change::{Change, Difference, Outcome};
use crate::host::Host;
use crate::host::packages::{Packages, Ran, State, apt, complaint};
use crate::permit::Permit;
use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A transaction under way.
struct Work<'a> {
    all: &'a [Arc<Declared>],
    host: &'a Host,
    permit: &'a Permit,
    patience: Duration,
    /// A command was begun that may have changed something.
    touched: bool,
    /// What all of them have in common: whom they waited for, what had to be recovered.
    notes: Vec<String>,
    /// Why one of them could not be done.
    troubles: BTreeMap<usize, Trouble>,
}

/// Why a transaction ended early.
enum Halt {
    Cancelled,
    Trouble(Trouble),
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

pub(super) async fn apply(
    all: &[Arc<Declared>],
    host: &Host,
    permit: &Permit,
    changes: Vec<Option<Change>>,
) -> Vec<Outcome> {
    let found: Vec<Option<Vec<Difference>>> =
        changes.into_iter().map(|change| change.map(|change| change.differences)).collect();
    let changing: Vec<usize> =
        (0..all.len()).filter(|at| found.get(*at).is_some_and(Option::is_some)).collect();
    let patience = changing.iter().map(|at| all[*at].lock_wait).max().unwrap_or_default();
    let (notes, troubles) = (Vec::new(), BTreeMap::new());
    let mut work = Work { all, host, permit, patience, touched: false, notes, troubles };
    let settled = work.run(&changing).await;
    work.outcomes(found, settled).await
}

impl Work<'_> {
    async fn run(&mut self, changing: &[usize]) -> Result<Settled, Halt> {
        self.recover().await?;
        self.read_lists(changing).await?;
        self.answer(changing).await?;
        let packages = self.host.packages().await?;
        let wanted: Vec<usize> = changing
            .iter()
            .copied()
            .filter(|at| operand(&self.all[*at], &packages).is_some())
            .collect();
        let never = CancellationToken::new();
        let mut settled = settle(self.all, wanted, (self.host, &packages), &never).await;
        self.troubles.append(&mut settled.refused);
        for (members, _) in &settled.batches {
            self.install(members, &packages).await?;
        }
        self.purge(changing).await?;
        self.hold(changing).await?;
        Ok(settled)
    }

    /// A command of this transaction; its complaint where it fails.
    async fn call(
        &mut self,
        argv: Vec<String>,
        stdin: Option<String>,
    ) -> Result<Option<Trouble>, Halt> {
        match self.host.transact(argv, stdin, self.patience, self.permit).await? {
            Ran::Cancelled => Err(Halt::Cancelled),
            Ran::Locked(holder) => {
                let seconds = self.patience.as_secs();
                let what = format!("packages are locked by {holder}; waited {seconds} s for it");
                Err(Halt::Trouble(Trouble::new(what).hint("`lock_wait: SECONDS` waits longer")))
            }
            Ran::Finished(finished, waited) => {
                self.touched = true;
                self.notes.extend(waited.map(|(holder, time)| {
                    format!("waited {:.1} s for {holder}", time.as_secs_f64())
                }));
                Ok((!finished.is_success()).then(|| complaint(&finished)))
            }
        }
    }

    /// What was cut off before is ended first: dpkg does nothing else until then.
    async fn recover(&mut self) -> Result<(), Halt> {
        let packages = self.host.packages().await?;
        if packages.broken().next().is_none() && !self.host.is_dpkg_cut_off().await {
            return Ok(());
        }
        let words = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"];
        if self.call(words.map(ToOwned::to_owned).to_vec(), None).await?.is_none() {
            self.notes.push("dpkg was interrupted before, and recovered".to_owned());
        }
        Ok(())
    }

    async fn read_lists(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let age = self.host.lists_age().await;
        if !changing.iter().any(|at| is_stale(&self.all[*at], age)) {
            return Ok(());
        }
        // Where it fails, the lists that are there may do.
        match self.call(apt(&["update"]), None).await? {
            None => self.host.lists_were_read(),
            Some(trouble) => self.notes.push(format!("the lists could not be read: {trouble}")),
        }
        Ok(())
    }

    async fn answer(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let mut lines = String::new();
        for declared in changing.iter().map(|at| &self.all[*at]) {
            for (question, answer) in &declared.debconf.0 {
                let name = declared.name.split(':').next().unwrap_or_default();
                lines.push_str(&format!("{name} {question} {answer}\n"));
            }
        }
        if !lines.is_empty()
            && let Some(trouble) =
                self.call(vec!["debconf-set-selections".to_owned()], Some(lines)).await?
        {
            return Err(Halt::Trouble(trouble));
        }
        Ok(())
    }

    /// One call for all; where it fails, one for each that is not done by then.
    async fn install(&mut self, members: &[usize], packages: &Packages) -> Result<(), Halt> {
        let Some(trouble) = self.install_once(members, packages).await? else { return Ok(()) };
        let now = self.host.packages().await?;
        let left: Vec<usize> =
            members.iter().copied().filter(|at| operand(&self.all[*at], &now).is_some()).collect();
        if members.len() == 1 || self.permit.check().is_err() {
            self.troubles.extend(left.into_iter().map(|at| (at, trouble.clone())));
            return Ok(());
        }
        for at in left {
            let now = self.host.packages().await?;
            if let Some(trouble) = self.install_once(&[at], &now).await? {
                self.troubles.insert(at, trouble);
            }
        }
        Ok(())
    }

    async fn install_once(
        &mut self,
        members: &[usize],
        packages: &Packages,
    ) -> Result<Option<Trouble>, Halt> {
        let members: Vec<&Declared> = members.iter().map(|at| &*self.all[*at]).collect();
        let mut argv = apt(&["install"]);
        argv.extend(options(&members, packages).into_iter().map(ToOwned::to_owned));
        if self.all.iter().all(|declared| declared.is_to_be_there()) {
            // What was simulated removes nothing, and another may have had the lock since.
            argv.push("--no-remove".to_owned());
        }
        argv.push("--".to_owned());
        argv.extend(members.iter().filter_map(|declared| operand(declared, packages)));
        self.call(argv, None).await
    }

    async fn purge(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let packages = self.host.packages().await?;
        let kept = |declared: &&Arc<Declared>| {
            let package = packages.get(&declared.name);
            declared.purge && package.is_some_and(|it| it.state == State::Configuration)
        };
        let names: Vec<String> = changing
            .iter()
            .map(|at| &self.all[*at])
            .filter(kept)
            .map(|declared| declared.name.clone())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut argv = ["dpkg", "--purge", "--"].map(ToOwned::to_owned).to_vec();
        argv.extend(names);
        self.call(argv, None).await?.map_or(Ok(()), |trouble| Err(Halt::Trouble(trouble)))
    }

    async fn hold(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let packages = self.host.packages().await?;
        let mut lines = String::new();
        for declared in changing.iter().map(|at| &self.all[*at]) {
            let held = packages.get(&declared.name).is_some_and(|package| package.held);
            if let Some(hold) = declared.hold.filter(|hold| *hold != held) {
                let word = if hold { "hold" } else { "install" };
                lines.push_str(&format!("{} {word}\n", declared.name));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        let argv = ["dpkg", "--set-selections"].map(ToOwned::to_owned).to_vec();
        self.call(argv, Some(lines)).await?.map_or(Ok(()), |trouble| Err(Halt::Trouble(trouble)))
    }

    /// What came of it, as dpkg has it now.
    async fn outcomes(
        mut self,
        changes: Vec<Option<Vec<Difference>>>,
        settled: Result<Settled, Halt>,
    ) -> Vec<Outcome> {
        let packages = self.host.packages().await;
        let halted = settled.as_ref().err();
        let done = Settled::default();
        let mut outcomes = Vec::with_capacity(changes.len());
        for (at, change) in changes.into_iter().enumerate() {
            let Some(change) = change else {
                outcomes.push(Outcome::Unchanged);
                continue;
            };
            let left = match &packages {
                Ok(packages) => differences(&self.all[at], packages, (at, &done)),
                Err(trouble) => {
                    self.troubles.entry(at).or_insert_with(|| trouble.clone());
                    Vec::new()
                }
            };
            let trouble = self.troubles.remove(&at);
            outcomes.push(match (trouble, halted) {
                (Some(trouble), _) => self.failed(trouble),
                (None, Some(Halt::Cancelled)) => Outcome::Interrupted,
                (None, Some(Halt::Trouble(trouble))) => self.failed(trouble.clone()),
                (None, None) if left.is_empty() => self.changed(&change),
                (None, None) => {
                    let what = format!("apt has ended well, and yet {}", told(&left).join(", "));
                    self.failed(Trouble::new(what))
                }
            });
        }
        outcomes
    }

    fn failed(&self, trouble: Trouble) -> Outcome {
        Outcome::Failed { trouble, touched: self.touched }
    }

    fn changed(&self, found: &[Difference]) -> Outcome {
        let mut notes = told(found);
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
