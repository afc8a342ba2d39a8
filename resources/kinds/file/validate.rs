//! A command that must accept the new content before it takes its place.

use crate::host::files::{Acceptance, Fault, printable, said};
use crate::host::{Command, End, Finished, Host};
use crate::permit::Permit;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Where the path of the candidate goes; after it other options may follow in arguments of their own.
pub(super) const CANDIDATE: &str = "%s";

/// A command that looks at a file is quick; one that is not, hangs.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Asks the command.
pub(super) struct Validation<'a> {
    pub(super) host: &'a Host,
    pub(super) permit: &'a Permit,
    pub(super) argv: &'a [String],
    /// The path that is held, for messages.
    pub(super) path: &'a Path,
    /// Nothing of what the command says may be shown: it may quote the content (S-6).
    pub(super) secret: bool,
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
    /// The last it said, on lines of its own, with the real path in the place of the candidate's.
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
