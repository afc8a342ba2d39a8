//! Commands on a simulated host, which are functions.

use super::Machine;
use crate::failure::Failure;
use crate::host::{Captured, Command, End, Finished, PathInfo};
use rustix::fs::{AtFlags, CWD};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// A running command; dropping the future kills the command.
pub type Running = Pin<Box<dyn Future<Output = Result<Finished, Failure>> + Send>>;

/// A function that runs a command, with an early end when the token is cancelled. The function changes the
/// host of its thread ([`here`](super::here)) through [`Machine::foreign`].
pub type Runner = dyn Fn(&Command, CancellationToken) -> Running;

impl Machine {
    /// Sets the runner of commands; without a runner, no command can be started.
    pub fn set_runner(&self, runner: impl Fn(&Command, CancellationToken) -> Running + 'static) {
        *self.0.runner.borrow_mut() = Some(Rc::new(runner));
    }

    /// Resets the count of commands. The command of this number fails before it does anything.
    pub fn set_failing_command(&self, number: Option<u64>) {
        self.0.commands.set((0, number));
    }

    /// Returns the number of commands since the last reset.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.0.commands.get().0
    }

    /// Counts a command. Returns true if the command fails.
    fn count_command(&self) -> bool {
        let (count, failing) = self.0.commands.get();
        self.0.commands.set((count + 1, failing));
        failing == Some(count + 1)
    }
}

/// Runs a command on the simulated host of the calling thread, if there is one.
pub(crate) fn run_here(command: &Command, stop: &CancellationToken) -> Option<Running> {
    let machine = super::here()?;
    if machine.count_command() {
        let (stdout, mut stderr) = (Captured::default(), Captured::default());
        stderr.push(b"the command fails in this test\n");
        let finished = Finished { end: End::Exited(1), stdout, stderr, held: false };
        return Some(Box::pin(std::future::ready(Ok(finished))));
    }
    let runner = machine.0.runner.borrow().clone();
    let Some(runner) = runner else {
        let nobody = Failure::new("no commands are known on this simulated host");
        return Some(Box::pin(std::future::ready(Err(nobody))));
    };
    Some(runner(command, stop.clone()))
}

/// Returns the metadata of a path on the simulated host of the calling thread, if there is one.
pub(crate) fn glance_here(path: &Path) -> Option<io::Result<PathInfo>> {
    let machine = super::here()?;
    let found = machine.stat(CWD, path.as_os_str().as_bytes(), AtFlags::empty());
    Some(match found {
        Ok(stat) => Ok(PathInfo { modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()) }),
        Err(errno) => Err(errno.into()),
    })
}
