//! The turn of a transaction: one at a time in this process, with what it has waited for other package managers.
//!
//! A command is tried once and refused while somebody else has the lock, so that what it will do can be judged again after
//! each wait.

use super::lock::{holder, holder_now};
use super::{Shared, command, scope};
use crate::failure::Failure;
use crate::host::process::child::{Job, Leftover, supervise};
use crate::host::process::detached_stdio::DetachedStdio;
use crate::host::process::ended;
use crate::host::process::process_group::Group;
use crate::host::process::spawner;
use crate::host::{Command, Finished, Host};
use crate::permit::Permit;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// How often a lock is tried that somebody else has.
const AGAIN: Duration = Duration::from_millis(250);

/// Who has it is the only one of this process that changes packages.
#[derive(Debug)]
pub struct Turn {
    _alone: OwnedMutexGuard<()>,
    /// How long another package manager is waited for before one command.
    patience: Duration,
    /// Since the last command that was begun.
    wait: Option<Wait>,
}

/// Somebody else has the lock, or had it.
#[derive(Debug)]
struct Wait {
    began: Instant,
    over: Instant,
    holder: String,
}

/// Whether packages may be changed now.
#[derive(Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody else seems to.
    Free,
    /// The run was cancelled while it waited.
    Cancelled,
    /// This other process had the lock until the end of our patience.
    Locked(String),
}

/// What became of a command of a transaction.
#[derive(Debug)]
pub enum Ran {
    /// It has ended by itself; whom it waited for before that, and how long.
    Finished(Finished, Option<(String, Duration)>),
    /// Nothing was begun: somebody else was quicker, and may have changed anything. To be judged and tried again.
    Refused,
    /// Nothing was begun, and it is not to be tried again.
    Without(Access),
}

impl Host {
    /// Waits until no other transaction of this process runs; none where the run was cancelled.
    pub async fn package_turn(&self, patience: Duration, permit: &Permit) -> Option<Turn> {
        let Shared { turn, .. } = &*self.packages;
        tokio::select! {
            turn = Arc::clone(turn).lock_owned() => {
                Some(Turn { _alone: turn, patience, wait: None })
            }
            () = permit.revoked() => None,
        }
    }

    /// Tries once to run a command that changes packages. Once begun, it is never ended by us: neither a cancel nor the end of
    /// this process, nor that of its unit, reaches it.
    pub async fn transact(
        &self,
        turn: &mut Turn,
        (argv, stdin): (Vec<String>, Option<String>),
        permit: &Permit,
    ) -> Result<Ran, Failure> {
        if permit.check().is_err() {
            return Ok(Ran::Without(Access::Cancelled));
        }
        let finished = run_to_its_end(command(scope::apart(argv), stdin)).await?;
        let Some(holder) = holder(&finished) else {
            let waited = turn.wait.take();
            return Ok(Ran::Finished(
                finished,
                waited.map(|wait| (wait.holder, wait.over.duration_since(wait.began))),
            ));
        };
        Ok(match turn.pause(holder, permit).await {
            Access::Free => Ran::Refused,
            ended => Ran::Without(ended),
        })
    }
}

impl Turn {
    /// Waits until nobody else changes packages. Another may be quicker than who asked.
    pub async fn access(&mut self, permit: &Permit) -> Access {
        loop {
            if permit.check().is_err() {
                return Access::Cancelled;
            }
            let Some(holder) = holder_now().await else { return Access::Free };
            match self.pause(holder, permit).await {
                Access::Free => {}
                ended => return ended,
            }
        }
    }

    /// How long it waits for another package manager before one command.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether it has waited since the last command.
    #[must_use]
    pub fn has_waited(&self) -> bool {
        self.wait.is_some()
    }

    /// Waits a moment for somebody; free where it may be tried again.
    async fn pause(&mut self, holder: String, permit: &Permit) -> Access {
        let now = Instant::now();
        let began = self.wait.as_ref().map_or(now, |wait| wait.began);
        if now.duration_since(began) >= self.patience {
            return Access::Locked(holder);
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {
                self.wait = Some(Wait { began, over: Instant::now(), holder });
                Access::Free
            }
            () = permit.revoked() => Access::Cancelled,
        }
    }
}

/// Nobody owns it: it goes on although its run, or the daemon, may end.
async fn run_to_its_end(command: Command) -> Result<Finished, Failure> {
    let kept = DetachedStdio::new(command.stdin.as_ref())
        .map_err(|why| Failure::new(format!("no memory for the output of a command: {why}")))?;
    let job = Job {
        command: Command { stdin: None, ..command },
        stop: CancellationToken::new(),
        group: Arc::new(Group::new()),
        leftover: Leftover::Spare,
        started: None,
        lines: None,
        detached_stdio: Some(Arc::new(kept)),
    };
    ended(spawner::handle()?.spawn(supervise(job))).await
}
