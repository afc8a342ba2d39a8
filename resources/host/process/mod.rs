//! Runs commands: queries, which need no permit, and changes, which need one.
//!
//! No command may inherit anything undeclared from the daemon (S-9), and every child must be reaped.
//!
//! Reading order: `command.rs` (a command as declared), `command_setup.rs`, `run_as.rs` and
//! `working_directory.rs` (preparation),
//! `spawner.rs` (start), `child.rs` (supervision), `process_group.rs`, `capture.rs` and `line_stream.rs`
//! (output), `detached_stdio.rs`, `command_records.rs`, `core_dumps.rs`, `descriptors.rs`.

pub(super) mod capture;
pub(super) mod child;
pub(super) mod command;
pub(super) mod command_records;
pub(super) mod command_setup;
pub(super) mod core_dumps;
pub(super) mod descriptors;
pub(super) mod detached_stdio;
pub(super) mod line_stream;
pub(super) mod process_group;
pub(super) mod run_as;
pub(super) mod spawner;
pub(super) mod working_directory;

use super::{Captured, Command, Host};
use crate::failure::Failure;
use crate::permit::Permit;
use child::{Job, Leftover, supervise};
use command_records::CommandRecords;
use process_group::Group;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The end of a command, with its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The end of the command.
    pub end: End,
    /// The standard output.
    pub stdout: Captured,
    /// The standard error output.
    pub stderr: Captured,
    /// A remaining process still holds the output open; the output of that process is lost.
    pub held: bool,
}

impl Finished {
    pub(super) fn never() -> Self {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        Self { end: End::Cancelled { started: false }, stdout, stderr, held: false }
    }

    /// Returns true if the command ended by itself with code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.end == End::Exited(0)
    }
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself with this code.
    Exited(i32),
    /// A signal from elsewhere ended the command.
    Killed(i32),
    /// The deadline passed, and the group was ended.
    TimedOut,
    /// The command was cancelled, and its group was ended.
    Cancelled {
        /// False if the command was cancelled before its start.
        started: bool,
    },
}

impl Host {
    /// Runs a guard or a query without a permit. This is the only exception to the rule that a dry run cannot
    /// write: the author of the graph guarantees that the command changes nothing.
    ///
    /// Remaining processes of the group are killed after the end of the command. A cancellation or the deadline
    /// sends TERM to the group, then KILL after two seconds; dropping the future sends KILL at once. The command
    /// is always reaped.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started. A command that ends with a code or a signal is a [`Finished`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), steadfast_resources::Failure> {
    /// use steadfast_resources::Host;
    /// use steadfast_resources::host::Command;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let command = Command { argv: vec!["uptime".to_owned()], ..Command::default() };
    /// let finished = Host::default().query(&command, &CancellationToken::new()).await?;
    /// assert!(finished.is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn query(
        &self,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Finished, Failure> {
        let (_owner, running) = begin(command, cancel.child_token(), Leftover::Kill, None)?;
        running.await
    }

    /// Runs a query for a kind that blocks ([`crate::ExecutorKind::Thread`]) within a run with a permit; revoking
    /// the permit cancels the query. The calling thread waits, while another one supervises the child.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started.
    #[expect(clippy::unused_self, reason = "commands go through the one door to the machine")]
    pub fn query_here(&self, command: &Command, permit: &Permit) -> Result<Finished, Failure> {
        if permit.check().is_err() {
            return Ok(Finished::never());
        }
        let stop = CancellationToken::new();
        let (_owner, mut running) = begin(command, stop.clone(), Leftover::Kill, None)?;
        wait_here(async {
            tokio::select! {
            biased;
                result = &mut running => result,
                () = permit.revoked() => {
                    stop.cancel();
                    running.await
                }
            }
        })
    }

    /// Runs a command that changes the host. A revoked permit prevents the start, and a later revocation ends the
    /// command as in [`Self::query`]. Remaining processes of a command that ends by itself (a daemon, for
    /// example) are left alone.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started, and in an overlay, where nothing may be changed.
    pub async fn run(&self, command: &Command, permit: &Permit) -> Result<Finished, Failure> {
        if permit.check().is_err() {
            return Ok(Finished::never());
        }
        let stop = CancellationToken::new();
        let (_owner, mut running) =
            begin(command, stop.clone(), Leftover::Spare, self.command_records.clone())?;
        tokio::select! {
            biased;
            result = &mut running => result,
            () = permit.revoked() => {
                stop.cancel();
                running.await
            }
        }
    }
}

/// A guard that kills the group when its caller goes away, unless the group was reaped.
#[derive(Debug)]
pub(super) struct Owner(pub(super) Arc<Group>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Runs a future on this thread, which may belong to a runtime: such a thread must not enter a runtime again.
fn wait_here<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// A running command that ends with its result.
type Running = Pin<Box<dyn Future<Output = Result<Finished, Failure>> + Send>>;

fn begin(
    command: &Command,
    stop: CancellationToken,
    leftover: Leftover,
    records: Option<Arc<CommandRecords>>,
) -> Result<(Owner, Running), Failure> {
    let group = Arc::new(Group::recorded(records));
    let owner = Owner(Arc::clone(&group));
    if !super::kernel::runs_commands() {
        return Err(Failure::new("a plan runs no commands"));
    }
    #[cfg(feature = "simulated-host")]
    if let Some(running) = super::simulated::run_here(command, &stop) {
        return Ok((owner, running));
    }
    let job = Job {
        command: command.clone(),
        stop,
        group,
        leftover,
        started: None,
        lines: None,
        detached_stdio: None,
    };
    Ok((owner, Box::pin(ended(spawner::handle()?.spawn(supervise(job))))))
}

pub(super) async fn ended(
    joined: JoinHandle<Result<Finished, Failure>>,
) -> Result<Finished, Failure> {
    joined
        .await
        .unwrap_or_else(|why| Err(Failure::new(format!("the task of the command ended: {why}"))))
}
