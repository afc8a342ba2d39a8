//! The guards of an exec, which decide whether the command must run.

use super::argv;
use crate::failure::Failure;
use crate::host::{Command, End, Finished, Host, PathInfo};
use crate::secrets::escape::short;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The guards of one exec.
#[derive(Debug, Default)]
pub(super) struct Guards {
    pub(super) creates: Option<PathBuf>,
    pub(super) mtimes: Vec<PathBuf>,
    pub(super) only_if: Option<Command>,
    pub(super) equals: Option<String>,
    pub(super) unless: Option<Command>,
}

/// The verdict of the guards that compare paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// A file is newer than the created one: the command runs, and the other guards are not evaluated.
    Newer,
    /// The other guards decide.
    Allowed,
}

impl Guards {
    pub(super) fn is_empty(&self) -> bool {
        self.creates.is_none() && self.only_if.is_none() && self.unless.is_none()
    }

    /// Evaluates all guards and returns true if they allow the run.
    pub(super) async fn allow(
        &self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        let paths = cancel.run_until_cancelled(self.ask_paths(host)).await;
        match paths.unwrap_or_else(|| Err(cut_off()))? {
            Some(Reason::Allowed) => {}
            Some(Reason::Newer) => return Ok(true),
            None => return Ok(false),
        }
        if let Some(command) = &self.only_if {
            let finished = host.query(command, cancel).await?;
            if !says_yes("ifcmd", command, &finished)? || self.is_equal(&finished) {
                return Ok(false);
            }
        }
        if let Some(command) = &self.unless {
            let finished = host.query(command, cancel).await?;
            if says_yes("nifcmd", command, &finished)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Evaluates the guards that compare paths again, and returns true if they still allow the run. Guard
    /// commands are not run again.
    pub(super) async fn still_hold(&self, host: &Host) -> Result<bool, Failure> {
        Ok(self.ask_paths(host).await?.is_some())
    }

    async fn ask_paths(&self, host: &Host) -> Result<Option<Reason>, Failure> {
        let Some(creates) = &self.creates else { return Ok(Some(Reason::Allowed)) };
        let there = glance(host, "creates", creates).await?;
        for path in &self.mtimes {
            let Some(file) = glance(host, "mtimes", path).await? else {
                return Err(Failure::new(format!(
                    "{} of mtimes does not exist",
                    short(&path.to_string_lossy(), 60)
                ))
                .hint("declare the file, and order this resource after it"));
            };
            if there.as_ref().is_some_and(|there| is_newer(&file, there)) {
                return Ok(Some(Reason::Newer));
            }
        }
        Ok(there.is_none().then_some(Reason::Allowed))
    }

    fn is_equal(&self, finished: &Finished) -> bool {
        let Some(expected) = &self.equals else { return false };
        let printed = finished.stdout.bytes();
        let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
        let expected = expected.strip_suffix('\n').unwrap_or(expected);
        !finished.stdout.truncated() && printed == expected.as_bytes()
    }
}

fn is_newer(file: &PathInfo, than: &PathInfo) -> bool {
    file.modified > than.modified
}

async fn glance(host: &Host, field: &str, path: &Path) -> Result<Option<PathInfo>, Failure> {
    match host.look(path).await {
        Ok(glance) => Ok(Some(glance)),
        Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(why) => {
            Err(Failure::new(format!("{field}: {}: {why}", short(&path.to_string_lossy(), 60))))
        }
    }
}

fn says_yes(field: &str, command: &Command, finished: &Finished) -> Result<bool, Failure> {
    let argv = argv::shown(&command.argv, 60);
    match finished.end {
        End::Exited(code) => Ok(code == 0),
        End::Killed(signal) => {
            Err(Failure::new(format!("{field} was killed by signal {signal}: {argv}")))
        }
        End::TimedOut => Err(Failure::new(format!("{field} timed out: {argv}"))
            .hint("raise `timeout`, or check why the command blocks")),
        End::Cancelled { .. } => Err(cut_off()),
    }
}

fn cut_off() -> Failure {
    Failure::new("the run was cancelled during its guards")
}
