//! The run of an exec: the command, its confirmation by `donecmd`, and the outcome.

use super::{Exec, argv};
use crate::change::Outcome;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::{Command, End, Finished, Host};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::values::sent_values::{Sent, SentValue};
use std::fmt::Write as _;
use std::sync::PoisonError;
use tokio_util::sync::CancellationToken;

/// Runs the command of an exec, then `donecmd`, then `changed_when`.
pub(super) async fn run(exec: &Exec, host: &Host, permit: &Permit) -> Outcome {
    match exec.guards.still_hold(host).await {
        Ok(true) => {}
        Ok(false) => return Outcome::Unchanged,
        Err(failure) => return Outcome::Failed { failure, touched: false },
    }
    let finished = match host.run(&exec.command, permit).await {
        Ok(finished) => finished,
        Err(failure) => return Outcome::Failed { failure, touched: false },
    };
    let outcome = conclude(exec, (host, permit), &finished).await;
    if matches!(outcome, Outcome::Changed(_) | Outcome::Failed { .. }) {
        host.note_values(permit, produced(exec, &finished)).await;
    }
    outcome
}

/// The maximum number of bytes of each stream that the history records.
const RECORDED: usize = 4096;

/// Returns the values of a run for the history: how the command ended, and the ends of its output.
fn produced(exec: &Exec, finished: &Finished) -> FieldValues {
    let end = match finished.end {
        End::Exited(code) => format!("exit {code}"),
        End::Killed(signal) => format!("killed by signal {signal}"),
        End::TimedOut => "timed out".to_owned(),
        End::Cancelled { .. } => "cancelled".to_owned(),
    };
    let mut values = vec![("ended", Some(end))];
    for (field, stream) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if stream.total() == 0 {
            continue;
        }
        let text = if exec.secret {
            "not shown: the command received a secret".to_owned()
        } else {
            end_of_text(&stream.text(), RECORDED)
        };
        values.push((field, Some(text)));
    }
    values
}

/// Returns the end of a text, at most so many bytes; a text that is cut begins with an ellipsis.
fn end_of_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let from = (text.len() - most..text.len()).find(|at| text.is_char_boundary(*at));
    format!("…{}", from.and_then(|from| text.get(from..)).unwrap_or_default())
}

/// Judges a finished command, runs `donecmd` and `changed_when`, and returns the outcome.
async fn conclude(exec: &Exec, (host, permit): (&Host, &Permit), finished: &Finished) -> Outcome {
    if let Some(outcome) = exec.not_well("", &exec.command, finished, &exec.returns) {
        return outcome;
    }
    if let Some(done) = &exec.done
        && let Err(outcome) = exec.follow_up("donecmd: ", done, (host, permit), &[0]).await
    {
        return outcome;
    }
    let mut changed = true;
    if let Some(question) = &exec.changed_when {
        match exec.follow_up("changed_when: ", question, (host, permit), &[]).await {
            Ok(answer) => changed = answer.is_success(),
            Err(outcome) => return outcome,
        }
    }
    *exec.printed.lock().unwrap_or_else(PoisonError::into_inner) = printed(exec, finished);
    if !changed {
        return Outcome::Unchanged;
    }
    let mut notes = notes(exec, finished);
    if !exec.guards.is_empty() && exec.still_due(host, permit).await {
        notes.push("guard not satisfied by its command: the command runs again".to_owned());
    }
    Outcome::Changed(notes)
}

/// Returns the output for receivers. A stream that exceeded its limit is sent as too long: leaving the value
/// out would ask for another run.
fn printed(exec: &Exec, finished: &Finished) -> Sent {
    let End::Exited(code) = finished.end else { return Sent::new() };
    let datum = |text: String| {
        if exec.secret {
            SentValue::Secret { secret: text.into(), saved: false }
        } else {
            SentValue::Shown(Value::Text(text))
        }
    };
    let without_end = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
    let (out, err) = (&finished.stdout, &finished.stderr);
    let mut sent = vec![("exit", SentValue::Shown(Value::Int(code.into())))];
    for (key, stream) in [("stdout", out), ("stderr", err)] {
        let is_whole = !stream.truncated();
        let text = || datum(without_end(&stream.text()));
        sent.push((key, if is_whole { text() } else { SentValue::TooLong }));
    }
    let is_whole = !out.truncated() && !err.truncated();
    let all = || datum(without_end(&format!("{}{}", out.text(), err.text())));
    sent.push(("output", if is_whole { all() } else { SentValue::TooLong }));
    sent
}

impl Exec {
    /// Returns true if the guards ask for another run right after the command. A guard that fails says nothing.
    async fn still_due(&self, host: &Host, permit: &Permit) -> bool {
        let cancel = CancellationToken::new();
        tokio::select! {
            allowed = self.guards.allow(host, &cancel) => matches!(allowed, Ok(true)),
            () = permit.revoked() => false,
        }
    }

    /// Runs a command after the main one. Every failure counts as a change, because the main command has run.
    async fn follow_up(
        &self,
        field: &str,
        command: &Command,
        (host, permit): (&Host, &Permit),
        returns: &[i32],
    ) -> Result<Finished, Outcome> {
        match host.run(command, permit).await {
            Ok(finished) => match self.not_well(field, command, &finished, returns) {
                Some(outcome) => Err(outcome),
                None => Ok(finished),
            },
            Err(mut failure) => {
                failure.what.insert_str(0, field);
                Err(Outcome::Failed { failure, touched: true })
            }
        }
    }

    /// Returns the failure of a run that ended with an unexpected result; without `returns`, any exit code is
    /// expected.
    fn not_well(
        &self,
        field: &str,
        command: &Command,
        finished: &Finished,
        returns: &[i32],
    ) -> Option<Outcome> {
        let argv = argv::shown(&command.argv, 50);
        let failure = match finished.end {
            End::Exited(code) if returns.is_empty() || returns.contains(&code) => return None,
            End::Exited(code) => {
                Failure::new(format!("{field}exit {code}, not {}: {argv}", codes(returns)))
                    .hint(advice(code))
            }
            End::Killed(signal) => {
                Failure::new(format!("{field}killed by signal {signal}: {argv}"))
            }
            End::TimedOut => Failure::new(format!("{field}timed out: {argv}"))
                .hint("raise `timeout`, or check why the command blocks"),
            End::Cancelled { .. } => return Some(Outcome::Interrupted),
        };
        let failure = if self.secret { silenced(failure) } else { with_output(failure, finished) };
        Some(Outcome::Failed { failure, touched: true })
    }
}

/// Removes the output from a failure: a command with secrets may print them (S-6).
fn silenced(mut failure: Failure) -> Failure {
    failure.what.push_str("\nthe output is not shown: the command received a secret");
    failure
}

fn codes(returns: &[i32]) -> String {
    let codes: Vec<String> = returns.iter().map(ToString::to_string).collect();
    codes.join(" or ")
}

fn advice(code: i32) -> &'static str {
    match code {
        126 => "126 usually means that a program is not executable",
        127 => "127 usually means that a program was not found: only the fixed PATH is searched",
        _ => "run the command manually; add successful codes to `returns`",
    }
}

/// Appends the last lines of the output to a failure, escaped, on lines of their own.
fn with_output(mut failure: Failure, finished: &Finished) -> Failure {
    let (name, lines) = match finished.stderr.last_lines(5) {
        lines if lines.is_empty() => ("stdout", finished.stdout.last_lines(5)),
        lines => ("stderr", lines),
    };
    for line in lines {
        if write!(failure.what, "\n{name}: {line}").is_err() {}
    }
    failure
}

fn notes(exec: &Exec, finished: &Finished) -> Vec<String> {
    let mut notes = Vec::new();
    if let End::Exited(code) = finished.end {
        notes.push(format!("ran: exit {code}"));
    }
    if !exec.secret {
        notes.extend(finished.stderr.last_lines(1).iter().map(|line| format!("stderr: {line}")));
    }
    if finished.held {
        notes.push("a background process holds the output, which is lost".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::end_of_text;

    #[test]
    fn the_end_of_a_long_text_is_recorded() {
        assert_eq!(end_of_text("short", 5), "short");
        assert_eq!(end_of_text("longer", 5), "…onger");
        assert_eq!(end_of_text("aéé", 3), "…é");
    }
}
