//! Calls of programs by kinds: a query returns its output, and a change must end with success.

use super::field_reader::bounded;
use super::managed::WriteFailure;
use crate::failure::Failure;
use crate::host::{Command, End, Finished, Host};
use crate::permit::Permit;
use crate::secrets::secret_text::Secret;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The deadline of a call, unless the kind has its own.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// Makes a command of a program that is searched in the fixed PATH.
pub(crate) fn command(argv: &[&str]) -> Command {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    Command { argv, timeout: Some(TIMEOUT), ..Command::default() }
}

/// Makes a command that gets a secret on its standard input.
pub(crate) fn command_with_input(argv: &[&str], input: Secret) -> Command {
    Command { stdin: Some(input), ..command(argv) }
}

/// Runs a query and returns its standard output.
///
/// # Errors
///
/// Fails if the program cannot be started or does not end with code 0.
pub(crate) async fn query_text(
    host: &Host,
    cancel: &CancellationToken,
    argv: &[&str],
) -> Result<String, Failure> {
    let command = command(argv);
    let finished = host.query(&command, cancel).await?;
    match finished.end {
        End::Exited(0) => Ok(finished.stdout.text().into_owned()),
        _ => Err(failed(&command, &finished)),
    }
}

/// Runs a command that changes the host and must end with code 0.
///
/// # Errors
///
/// Fails if the program cannot be started (nothing was changed), or if it ends otherwise.
pub(crate) async fn run_change(
    host: &Host,
    permit: &Permit,
    command: &Command,
) -> Result<Finished, WriteFailure> {
    let finished = host.run(command, permit).await.map_err(WriteFailure::untouched)?;
    match finished.end {
        End::Exited(0) => Ok(finished),
        End::Cancelled { started: false } => {
            Err(WriteFailure::untouched(Failure::new("the run was cancelled before this step")))
        }
        _ => Err(WriteFailure::touched(failed(command, &finished))),
    }
}

/// Reads files on a thread, for a kind that must not block ([`crate::ExecutorKind::Command`]). In a simulated host and
/// in an overlay, which belong to a thread, the work stays on that thread.
///
/// # Errors
///
/// Returns the error of the work.
pub(crate) async fn read_on_thread<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&Host) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    super::on_thread(host, work).await?
}

/// Describes the end of a command that did not succeed, with its first and last lines of output.
pub(crate) fn failed(command: &Command, finished: &Finished) -> Failure {
    let program = command.argv.first().map_or("the command", String::as_str);
    let end = match finished.end {
        End::Exited(code) => format!("ended with code {code}"),
        End::Killed(signal) => format!("was killed by signal {signal}"),
        End::TimedOut => "timed out".to_owned(),
        End::Cancelled { .. } => "was cancelled".to_owned(),
    };
    let mut what = format!("{program} {end}");
    if what.chars().count() > 100 {
        what = format!("{}\n{program}", bounded(format!("the command {end}: {program}")));
    }
    let lines = match finished.stderr.outer_lines(3, 4) {
        lines if lines.is_empty() => finished.stdout.outer_lines(3, 4),
        lines => lines,
    };
    for line in lines {
        what.push_str(&format!("\n{line}"));
    }
    let own = rustix::process::geteuid().as_raw();
    let failure = Failure::new(what).passing_if_named();
    if own == 0 {
        return failure;
    }
    failure.hint(format!("steadfast runs as uid {own}; most changes of a host need root"))
}

#[cfg(test)]
mod tests {
    use super::{command, failed};
    use crate::failure::Failure;
    use crate::host::{Captured, End, Finished};

    #[test]
    fn a_long_program_name_does_not_hide_the_end() {
        let program = format!("/opt/{}", "x".repeat(200));
        let (stdout, stderr) = (Captured::default(), Captured::default());
        let finished = Finished { end: End::Exited(3), stdout, stderr, held: false };
        let what = failed(&command(&[&program]), &finished).what;
        let first = what.lines().next().unwrap();
        assert!(first.chars().count() <= 100 && first.contains("ended with code 3"), "{what}");
        assert!(what.contains(&program), "{what}");
    }

    #[test]
    fn a_read_only_file_system_passes() {
        let says = |what: &str| Failure::new(what).passing_if_named().passes;
        assert!(says("dpkg-divert ended with code 2\nrename: Read-only file system"));
        assert!(!says("dpkg-divert ended with code 2\nrename: Permission denied"));
    }
}
