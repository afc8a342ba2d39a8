//! Commands on a simulated host are functions.

use super::Machine;
use crate::failure::Failure;
use crate::host::{Command, Finished, PathInfo};
use rustix::fs::{AtFlags, CWD};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// A command that runs; dropped, it is killed.
pub type Running = Pin<Box<dyn Future<Output = Result<Finished, Failure>> + Send>>;

/// Runs a command, which ends early when the token is cancelled. What it does to the host, it does where it stands
/// ([`here`](super::here)), by [`Machine::foreign`].
pub type Runner = dyn Fn(&Command, CancellationToken) -> Running;

impl Machine {
    /// Who runs commands. Where there is nobody, none can be started.
    pub fn set_runner(&self, runner: impl Fn(&Command, CancellationToken) -> Running + 'static) {
        *self.0.runner.borrow_mut() = Some(Rc::new(runner));
    }
}

/// Runs a command on the simulated host that the calling thread stands in, if it does in any.
pub(crate) fn run_here(command: &Command, stop: &CancellationToken) -> Option<Running> {
    let machine = super::here()?;
    let runner = machine.0.runner.borrow().clone();
    let Some(runner) = runner else {
        let nobody = Failure::new("no commands are known on this simulated host");
        return Some(Box::pin(std::future::ready(Err(nobody))));
    };
    Some(runner(command, stop.clone()))
}

/// Looks at a path of the simulated host that the calling thread stands in, if it does in any.
pub(crate) fn glance_here(path: &Path) -> Option<io::Result<PathInfo>> {
    let machine = super::here()?;
    let found = machine.stat(CWD, path.as_os_str().as_bytes(), AtFlags::empty());
    Some(match found {
        Ok(stat) => Ok(PathInfo { modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()) }),
        Err(errno) => Err(errno.into()),
    })
}
