//! Runs commands: queries, which need no permit, and runs, which do.

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

/// How a command ended, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
    /// A process that it left behind still holds its output; what that prints is lost.
    pub held: bool,
}

impl Finished {
    pub(super) fn never() -> Self {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        Self { end: End::Cancelled { started: false }, stdout, stderr, held: false }
    }

    /// Whether it ended by itself with code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.end == End::Exited(0)
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which did not come from us.
    Killed(i32),
    /// Its time was over: its group was ended.
    TimedOut,
    /// It was cancelled: its group was ended.
    Cancelled {
        /// False where it was cancelled before it was started.
        started: bool,
    },
}

impl Host {
    /// Runs a guard or a query, without a permit: the one hole in the rule that a dry run cannot write. That it changes nothing is
    /// the word of the graph's author.
    ///
    /// What it leaves behind in its process group is killed when it ends. When it is cancelled, or its time is over, its group
    /// gets TERM, then KILL after two seconds; when the future is dropped, KILL at once. It is always reaped.
    pub async fn query(
        &self,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Finished, Failure> {
        let (_owner, running) = begin(command, cancel.child_token(), Leftover::Kill, None)?;
        running.await
    }

    /// A query on behalf of a run that changes something, for a kind that blocks ([`crate::ExecutorKind::Thread`]): it is cancelled when
    /// the permit is revoked. The calling thread waits; the child is looked after elsewhere.
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

    /// Runs a command that changes the host. It is not started under a revoked permit, and ended as in [`Self::query`] when its
    /// permit is revoked. What it leaves behind when it ends by itself (a daemon it started) is left alone.
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

/// Kills the group when the one who asked for it goes away; nothing once it was reaped.
#[derive(Debug)]
pub(super) struct Owner(pub(super) Arc<Group>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Drives a future on this thread, which may be one of a runtime's own: those must not enter a runtime again.
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

/// A command that runs, and how it ends.
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
