//! Runs a command that must accept the new content before the staged file replaces the old one.

use crate::failure::Failure;
use crate::host::files::{Acceptance, Fault, printable, said};
use crate::host::{Command, End, Finished, Host};
use crate::parts::staging::guard_way;
use crate::parts::validate_command::{StagedFile, ValidateCommand};
use crate::permit::Permit;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The deadline of a validation: a command that only reads a file is quick, and a slower one hangs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The call of a validation command.
pub(crate) struct Validation<'a> {
    pub(crate) host: &'a Host,
    pub(crate) permit: &'a Permit,
    pub(crate) command: &'a ValidateCommand,
    /// The managed path, for messages.
    pub(crate) path: &'a Path,
    /// The output of the command must not be shown, because it may quote the content (S-6).
    pub(crate) secret: bool,
}

/// The reason that staged files do not replace the old ones.
#[derive(Clone, Debug)]
pub(in crate::kinds::file) enum Rejection {
    /// The permit was revoked.
    Revoked,
    /// The command could not be run.
    NotRun(Failure),
    /// The command rejected the contents, with its last lines.
    Rejected { how: String, lines: String },
}

impl Rejection {
    /// Returns the fault of one of the files.
    pub(in crate::kinds::file) fn fault(self, path: &Path) -> Fault {
        match self {
            Self::Revoked => crate::permit::Revoked.into(),
            Self::NotRun(failure) => Fault::refused(failure),
            Self::Rejected { how, lines } => {
                let mut failure = said("write", path, &how);
                failure.what.push_str(&lines);
                Fault::refused(failure.hint("the old content is unchanged"))
            }
        }
    }
}

impl fmt::Debug for Validation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validation").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Acceptance for Validation<'_> {
    fn accept(&self, candidate: &Path) -> Result<(), Fault> {
        let staged = staged_file(candidate, self.path)?;
        self.judge(&[staged]).map_err(|rejection| rejection.fault(self.path))
    }
}

impl Validation<'_> {
    /// Runs the command on all staged files.
    pub(in crate::kinds::file) fn judge(&self, files: &[StagedFile]) -> Result<(), Rejection> {
        // The mounts of the namespace resolve paths by name: another user could lead them to other places, from where
        // root would run programs of that user.
        for file in files.iter().filter(|_| self.command.is_in_place()) {
            guard_way("validate in place", Path::new(&file.path)).map_err(Rejection::NotRun)?;
        }
        let argv = self.command.call(files);
        let command = Command { argv, timeout: Some(TIMEOUT), judged: true, ..Command::default() };
        let finished = self.host.query_here(&command, self.permit).map_err(|mut failure| {
            failure.what.insert_str(0, "validate: ");
            // The program may be installed later, which gives no event.
            Rejection::NotRun(failure.passing())
        })?;
        let how = match finished.end {
            End::Exited(0) => return Ok(()),
            End::Cancelled { .. } => return Err(Rejection::Revoked),
            End::Exited(code) => format!("validate rejected the content: exit {code}"),
            End::Killed(signal) => format!("validate was killed by signal {signal}"),
            End::TimedOut => "validate timed out after a minute".to_owned(),
        };
        Err(Rejection::Rejected { how, lines: self.last_lines(files, &finished) })
    }

    /// Returns the last lines of the output, with the managed paths in place of those of the staged files.
    fn last_lines(&self, files: &[StagedFile], finished: &Finished) -> String {
        if self.secret {
            return "\nthe output is not shown, because it may quote the content; `sensitive: false` shows it"
                .to_owned();
        }
        let (name, lines) = match finished.stderr.last_lines(5) {
            lines if lines.is_empty() => ("stdout", finished.stdout.last_lines(5)),
            lines => ("stderr", lines),
        };
        let shown = |line: String| {
            let replaced = |line: String, file: &StagedFile| {
                line.replace(&file.staged, &printable(Path::new(&file.path)))
            };
            format!("\n{name}: {}", files.iter().fold(line, replaced))
        };
        lines.into_iter().map(shown).collect()
    }
}

/// Returns a staged file with its final path.
///
/// # Errors
///
/// Fails if a path is not UTF-8.
pub(in crate::kinds::file) fn staged_file(
    candidate: &Path,
    path: &Path,
) -> Result<StagedFile, Fault> {
    let (Some(staged), Some(last)) = (candidate.to_str(), path.to_str()) else {
        let why = "the path of the staged file is not UTF-8 and cannot be passed to validate";
        return Err(Fault::refused(said("write", path, why)));
    };
    Ok(StagedFile { staged: staged.to_owned(), path: last.to_owned() })
}
