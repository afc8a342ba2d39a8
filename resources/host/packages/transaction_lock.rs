//! The lock for transactions in this process, with the wait for other package managers.
//!
//! Each command is tried once and fails while another process has the lock, so that the transaction can be
//! simulated again after each wait.

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

/// The interval between attempts on a lock of another process.
const AGAIN: Duration = Duration::from_millis(250);

/// The exclusive right to change packages within this process.
#[derive(Debug)]
pub struct Turn {
    _alone: OwnedMutexGuard<()>,
    /// The time limit for waiting for another package manager before one command.
    patience: Duration,
    /// The wait since the last command, if there was one.
    wait: Option<Wait>,
}

/// A wait for the lock of another process.
#[derive(Debug)]
struct Wait {
    began: Instant,
    over: Instant,
    holder: String,
}

/// The result of waiting for access.
#[derive(Debug, PartialEq, Eq)]
pub enum Access {
    /// No other process seems to have the lock.
    Free,
    /// The run was cancelled during the wait.
    Cancelled,
    /// This process had the lock until the time limit.
    Locked(String),
}

/// The result of a command of a transaction.
#[derive(Debug)]
pub enum Ran {
    /// The command has ended by itself, possibly after a wait for the named process.
    Finished(Finished, Option<(String, Duration)>),
    /// Nothing was started: another process was faster and may have changed packages, so the transaction must be
    /// simulated again.
    Refused,
    /// Nothing was started, and the command must not be tried again.
    Without(Access),
}

impl Host {
    /// Waits until no other transaction of this process runs; none if the run was cancelled.
    pub async fn package_turn(&self, patience: Duration, permit: &Permit) -> Option<Turn> {
        let Shared { turn, .. } = &*self.packages;
        tokio::select! {
            turn = Arc::clone(turn).lock_owned() => {
                Some(Turn { _alone: turn, patience, wait: None })
            }
            () = permit.revoked() => None,
        }
    }

    /// Tries once to run a command that changes packages. A running command is never ended by this program:
    /// neither a cancellation nor the end of this process or of its unit reaches the command.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started. A command that fails by itself is a [`Ran::Finished`].
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
    /// Waits until no other process changes packages. Another process may still be faster afterwards.
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

    /// Returns the time limit for waiting for another package manager before one command.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns true if there was a wait since the last command.
    #[must_use]
    pub fn has_waited(&self) -> bool {
        self.wait.is_some()
    }

    /// Waits one interval for another process; returns [`Access::Free`] if the lock may be tried again.
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

/// Runs a command without an owner, so that it continues if its run or the daemon ends.
async fn run_to_its_end(command: Command) -> Result<Finished, Failure> {
    #[cfg(feature = "simulated-host")]
    if let Some(finished) = super::simulated::transact_here(&command).await {
        return finished;
    }
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
