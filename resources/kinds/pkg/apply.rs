//! Applies packages: recovers dpkg, updates the lists, calls apt once for all packages, and examines the
//! result.

use super::Declared;
use super::check::is_stale;
use super::former::values;
use super::resolve::{operand, options, settle};
use crate::change::{Change, Difference, Outcome};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::packages::{Access, Packages, Ran, State, Turn, apt, complaint, removing_only};
use crate::permit::Permit;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A running transaction.
pub(super) struct Work<'a> {
    pub(super) all: &'a [Arc<Declared>],
    pub(super) host: &'a Host,
    permit: &'a Permit,
    turn: Turn,
    /// A command was started that may have changed something.
    pub(super) touched: bool,
    /// The notes for all packages: the processes that were waited for, and the recoveries.
    pub(super) notes: Vec<String>,
    /// The failures, by the position of the package.
    pub(super) failures: BTreeMap<usize, Failure>,
    /// The number of each package's record of prior values, by the position of the package.
    kept: BTreeMap<usize, u64>,
}

/// The reason for an early end of a transaction.
pub(super) enum Halt {
    Cancelled,
    Failed(Failure),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The result of one command of a transaction; `Ended` carries the failure, if any.
enum Called {
    Ended(Option<Failure>),
    /// Another process took the lock first: the packages must be checked again.
    Refused,
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
    let Some(turn) = host.package_turn(patience, permit).await else {
        let outcome = |change: &Option<_>| {
            if change.is_some() { Outcome::Interrupted } else { Outcome::Unchanged }
        };
        return found.iter().map(outcome).collect();
    };
    let (notes, failures) = (Vec::new(), BTreeMap::new());
    let kept = BTreeMap::new();
    let mut work = Work { all, host, permit, turn, touched: false, notes, failures, kept };
    let halted = work.run(&changing).await.err();
    work.settle_values().await;
    work.outcomes(found, halted).await
}

impl Work<'_> {
    async fn run(&mut self, changing: &[usize]) -> Result<(), Halt> {
        self.access().await?;
        self.keep_values(changing).await?;
        self.recover().await?;
        self.read_lists(changing).await?;
        self.answer(changing).await?;
        self.install(changing).await?;
        self.purge(changing).await?;
        self.hold(changing).await
    }

    /// Records the prior values of the packages before any change.
    async fn keep_values(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let packages = self.host.packages().await?;
        let values = |at: &usize| (*at, values(&self.all[*at].name, &packages));
        let each = changing.iter().map(values).collect();
        self.kept = self.host.keep_values(self.permit, each).await?;
        Ok(())
    }

    /// Completes the records with the present values. If the values cannot be read, the records stay unknown.
    async fn settle_values(&mut self) {
        let Ok(packages) = self.host.packages().await else { return };
        let kept = std::mem::take(&mut self.kept).into_iter();
        let each =
            kept.map(|(at, number)| (at, number, values(&self.all[at].name, &packages))).collect();
        if let Err(failure) = self.host.settle_values(self.permit, each).await {
            self.notes.push(failure.what);
        }
    }

    /// Waits until no other process changes packages.
    async fn access(&mut self) -> Result<(), Halt> {
        match self.turn.access(self.permit).await {
            Access::Free => Ok(()),
            without => Err(self.halt(without)),
        }
    }

    fn halt(&self, access: Access) -> Halt {
        let Access::Locked(holder) = access else { return Halt::Cancelled };
        let seconds = self.turn.patience().as_secs();
        let what = format!("packages are locked by {holder}; waited {seconds} s");
        Halt::Failed(Failure::new(what).hint("raise `lock_wait: SECONDS`").passing())
    }

    /// Tries a command of this transaction once.
    async fn attempt(&mut self, argv: Vec<String>, stdin: Option<String>) -> Result<Called, Halt> {
        match self.host.transact(&mut self.turn, (argv, stdin), self.permit).await? {
            Ran::Without(access) => Err(self.halt(access)),
            Ran::Refused => Ok(Called::Refused),
            Ran::Finished(finished, waited) => {
                self.touched = true;
                self.notes.extend(waited.map(|(holder, time)| {
                    format!("waited {:.1} s for {holder}", time.as_secs_f64())
                }));
                Ok(Called::Ended((!finished.is_success()).then(|| complaint(&finished))))
            }
        }
    }

    /// Runs a command with the same effect whatever other processes have changed before, and retries after lost
    /// locks.
    async fn call(
        &mut self,
        argv: Vec<String>,
        stdin: Option<String>,
    ) -> Result<Option<Failure>, Halt> {
        loop {
            match self.attempt(argv.clone(), stdin.clone()).await? {
                Called::Ended(failure) => return Ok(failure),
                Called::Refused => {}
            }
        }
    }

    /// Completes a transaction that was cut off earlier: until then, dpkg does nothing else. A transaction of a
    /// live process only looks cut off, so the function waits for that process.
    async fn recover(&mut self) -> Result<(), Halt> {
        loop {
            self.access().await?;
            let packages = self.host.packages().await?;
            if packages.broken().next().is_none() && !self.host.is_dpkg_cut_off().await {
                return Ok(());
            }
            let words = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"];
            match self.attempt(words.map(ToOwned::to_owned).to_vec(), None).await? {
                Called::Refused => {}
                Called::Ended(None) => {
                    self.notes.push(
                        "an earlier dpkg run was interrupted and has been completed".to_owned(),
                    );
                    return Ok(());
                }
                // The calls for single packages show later which package is at fault.
                Called::Ended(Some(_)) => return Ok(()),
            }
        }
    }

    async fn read_lists(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let age = self.host.lists_age().await;
        if !changing.iter().any(|at| is_stale(&self.all[*at], age)) {
            return Ok(());
        }
        // After a failure, the present lists may be good enough.
        match self.call(apt(&["update"]), None).await? {
            None => self.host.lists_were_read(),
            Some(failure) => self.notes.push(format!("the lists could not be read: {failure}")),
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
            && let Some(failure) =
                self.call(vec!["debconf-set-selections".to_owned()], Some(lines)).await?
        {
            return Err(Halt::Failed(failure));
        }
        Ok(())
    }

    /// Installs until nothing is left to try. Each part is simulated right before its call.
    async fn install(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let mut parts = vec![changing.to_vec()];
        while let Some(members) = parts.pop() {
            let left = self.install_once(&members).await?;
            parts.extend(left.into_iter().rev());
        }
        Ok(())
    }

    /// Calls apt once for the packages that are not as declared, if one simulated call covers all of them.
    /// Returns the remaining parts, which must be simulated again: this call, or the previous owner of the lock,
    /// may have changed the packages.
    async fn install_once(&mut self, members: &[usize]) -> Result<Vec<Vec<usize>>, Halt> {
        self.access().await?;
        if self.turn.has_waited() {
            self.recover().await?;
        }
        let packages = self.host.packages().await?;
        let members = self.wanting(members, &packages);
        if members.is_empty() {
            return Ok(Vec::new());
        }
        let never = CancellationToken::new();
        let mut settled = settle(self.all, members.clone(), (self.host, &packages), &never).await;
        let parts = settled.batches.iter().map(|(members, _)| members.clone()).collect();
        let removes: Vec<String> =
            settled.batches.iter().flat_map(|(_, found)| found.removes.clone()).collect();
        let is_whole = settled.refused.is_empty() && settled.batches.len() == 1;
        self.failures.append(&mut settled.refused);
        if !is_whole {
            return Ok(parts);
        }
        let argv = self.command(&members, &packages, &removes);
        match self.attempt(argv, None).await? {
            Called::Refused => Ok(parts),
            Called::Ended(None) => Ok(Vec::new()),
            Called::Ended(Some(failure)) => self.blame(&members, failure).await,
        }
    }

    fn wanting(&self, members: &[usize], packages: &Packages) -> Vec<usize> {
        let is_wanting = |at: &usize| operand(&self.all[*at], packages).is_some();
        members.iter().copied().filter(is_wanting).collect()
    }

    fn command(&self, members: &[usize], packages: &Packages, removes: &[String]) -> Vec<String> {
        let members: Vec<&Declared> = members.iter().map(|at| &*self.all[*at]).collect();
        let mut argv = apt(&["install"]);
        argv.extend(options(&members, packages).into_iter().map(ToOwned::to_owned));
        argv.extend(removing_only(removes));
        argv.push("--".to_owned());
        argv.extend(members.iter().filter_map(|declared| operand(declared, packages)));
        argv
    }

    /// Tries each missing package alone after a failed call, to find the culprits.
    async fn blame(
        &mut self,
        members: &[usize],
        failure: Failure,
    ) -> Result<Vec<Vec<usize>>, Halt> {
        let now = self.host.packages().await?;
        let left = self.wanting(members, &now);
        if members.len() == 1 || self.permit.check().is_err() {
            self.failures.extend(left.into_iter().map(|at| (at, failure.clone())));
            return Ok(Vec::new());
        }
        Ok(left.into_iter().map(|at| vec![at]).collect())
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
            .map(|declared| packages.own(&declared.name).to_owned())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut argv = ["dpkg", "--purge", "--"].map(ToOwned::to_owned).to_vec();
        argv.extend(names);
        self.call(argv, None).await?.map_or(Ok(()), |failure| Err(Halt::Failed(failure)))
    }

    async fn hold(&mut self, changing: &[usize]) -> Result<(), Halt> {
        let packages = self.host.packages().await?;
        let mut lines = String::new();
        for declared in changing.iter().map(|at| &self.all[*at]) {
            let held = packages.get(&declared.name).is_some_and(|package| package.held);
            if let Some(hold) = declared.hold.filter(|hold| *hold != held) {
                let word = if hold { "hold" } else { "install" };
                lines.push_str(&format!("{} {word}\n", packages.own(&declared.name)));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        let argv = ["dpkg", "--set-selections"].map(ToOwned::to_owned).to_vec();
        self.call(argv, Some(lines)).await?.map_or(Ok(()), |failure| Err(Halt::Failed(failure)))
    }
}
