//! Runs a command that must accept the new content before the staged file replaces the old one.

use crate::host::files::{Acceptance, Fault, printable, said};
use crate::host::{Command, End, Finished, Host};
use crate::permit::Permit;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The placeholder for the path of the staged file; further options may follow as arguments of their own.
pub(in crate::kinds::file) const CANDIDATE: &str = "%s";

/// The deadline of a validation: a command that only reads a file is quick, and a slower one hangs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The call of a validation command.
pub(crate) struct Validation<'a> {
    pub(crate) host: &'a Host,
    pub(crate) permit: &'a Permit,
    pub(crate) argv: &'a [String],
    /// The managed path, for messages.
    pub(crate) path: &'a Path,
    /// The output of the command must not be shown, because it may quote the content (S-6).
    pub(crate) secret: bool,
}

impl fmt::Debug for Validation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validation").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Acceptance for Validation<'_> {
    fn accept(&self, candidate: &Path) -> Result<(), Fault> {
        let refused = |why: &str| Fault::refused(said("write", self.path, why));
        let Some(candidate) = candidate.to_str() else {
            return Err(refused(
                "the path of the staged file is not UTF-8 and cannot be passed to validate",
            ));
        };
        let argv = self.argv.iter().map(|word| word.replacen(CANDIDATE, candidate, 1)).collect();
        let command = Command { argv, timeout: Some(TIMEOUT), judged: true, ..Command::default() };
        let finished = self.host.query_here(&command, self.permit).map_err(|mut trouble| {
            trouble.what.insert_str(0, "validate: ");
            Fault::refused(trouble)
        })?;
        let how = match finished.end {
            End::Exited(0) => return Ok(()),
            End::Cancelled { .. } => return Err(crate::permit::Revoked.into()),
            End::Exited(code) => format!("validate rejected the content: exit {code}"),
            End::Killed(signal) => format!("validate was killed by signal {signal}"),
            End::TimedOut => "validate timed out after a minute".to_owned(),
        };
        let mut trouble = said("write", self.path, &how);
        self.quote(candidate, &finished, &mut trouble.what);
        Err(Fault::refused(trouble.hint("the old content is unchanged")))
    }
}

impl Validation<'_> {
    /// Appends the last lines of the output to a message, with the managed path in place of the staged file's.
    fn quote(&self, candidate: &str, finished: &Finished, what: &mut String) {
        if self.secret {
            what.push_str("\nthe output is not shown: the content is sensitive");
            return;
        }
        let (name, lines) = match finished.stderr.last_lines(5) {
            lines if lines.is_empty() => ("stdout", finished.stdout.last_lines(5)),
            lines => ("stderr", lines),
        };
        for line in lines {
            let line = line.replace(candidate, &printable(self.path));
            what.push_str(&format!("\n{name}: {line}"));
        }
    }
}
