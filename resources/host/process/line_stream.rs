//! Reads a command's output line by line: each line is an event (`watchcmd`).

use super::child::{Job, Leftover, supervise};
use super::process_group::Group;
use super::spawner;
use super::{Owner, ended};
use crate::failure::Failure;
use crate::host::{Command, Finished, Host};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A line of a command's output, without the line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text, with invalid UTF-8 replaced and not escaped: see [`printable()`](crate::printable()).
    pub text: String,
    /// The line was longer than [`Lines::LONGEST`]; the rest is lost.
    pub cut: bool,
}

/// A running command whose lines are read. Dropping the value kills the group at once; the command is always
/// reaped.
#[derive(Debug)]
pub struct Lines {
    received: mpsc::Receiver<Line>,
    stop: CancellationToken,
    joined: JoinHandle<Result<Finished, Failure>>,
    /// Kills the group when the value is dropped.
    _owner: Owner,
}

impl Lines {
    /// The limit of a line in bytes.
    pub const LONGEST: usize = 64 * 1024;
    /// The limit of waiting lines; a command that prints more has to wait.
    const WAITING: usize = 64;

    /// Returns the next line; none after the end or the cancellation of the command, whose result [`Self::ended`]
    /// returns.
    pub async fn next(&mut self) -> Option<Line> {
        self.received.recv().await
    }

    /// Waits for the end of the command. Its output is not stored, its error output is.
    pub async fn ended(mut self) -> Result<Finished, Failure> {
        self.received.close();
        (&mut self.joined).await.unwrap_or_else(|why| Err(Failure::new(why.to_string())))
    }

    /// Ends the command: TERM to its group, then KILL after two seconds. Returns after the command is reaped.
    pub async fn stop(self) -> Result<Finished, Failure> {
        self.stop.cancel();
        self.ended().await
    }
}

impl Host {
    /// Starts a command and reads its lines, without a permit: a watch is a query ([`Self::query`]). Cancelling
    /// `cancel` ends the group as [`Lines::stop`] does.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started or was cancelled before its start.
    pub async fn lines(
        &self,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Lines, Failure> {
        let group = Arc::new(Group::recorded(self.command_records.clone()));
        let owner = Owner(Arc::clone(&group));
        let stop = cancel.child_token();
        let (sender, received) = mpsc::channel(Lines::WAITING);
        let (started, has_started) = oneshot::channel();
        let job = Job {
            command: command.clone(),
            stop: stop.clone(),
            group,
            leftover: Leftover::Kill,
            started: Some(started),
            lines: Some(sender),
            detached_stdio: None,
        };
        let joined = spawner::handle()?.spawn(supervise(job));
        if has_started.await.is_ok() {
            return Ok(Lines { received, stop, joined, _owner: owner });
        }
        ended(joined).await?;
        Err(Failure::new("the watch was cancelled before its command was started"))
    }
}

/// A splitter of a stream into lines of bounded length.
#[derive(Debug, Default)]
pub(in crate::host) struct Splitter {
    line: Vec<u8>,
    cut: bool,
    ready: Vec<Line>,
}

impl Splitter {
    pub(in crate::host) fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        if let Some(first) = pieces.next() {
            self.extend(first);
        }
        for piece in pieces {
            self.end_line();
            self.extend(piece);
        }
    }

    /// Ends the stream: text without a line end is a line too.
    pub(in crate::host) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    pub(in crate::host) fn ready(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.ready)
    }

    fn extend(&mut self, piece: &[u8]) {
        let room = Lines::LONGEST - self.line.len();
        self.cut |= piece.len() > room;
        self.line.extend_from_slice(&piece[..room.min(piece.len())]);
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.ready.push(Line { text, cut: self.cut });
        self.line.clear();
        self.cut = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Lines, Splitter};

    fn texts(splitter: &mut Splitter) -> Vec<String> {
        splitter.ready().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_may_come_in_any_pieces() {
        let mut splitter = Splitter::default();
        splitter.push(b"on");
        assert!(splitter.ready().is_empty());
        splitter.push(b"e\n\ntwo\nth");
        assert_eq!(texts(&mut splitter), ["one", "", "two"]);
        splitter.push(b"ree");
        splitter.finish();
        assert_eq!(texts(&mut splitter), ["three"]);
        splitter.finish();
        assert!(splitter.ready().is_empty());
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut splitter = Splitter::default();
        for _ in 0..1000 {
            splitter.push(&[b'x'; 4096]);
        }
        splitter.push(b"\nnext\n");
        let lines = splitter.ready();
        assert_eq!(lines[0].text.len(), Lines::LONGEST);
        assert!(lines[0].cut);
        assert_eq!(lines[1], Line { text: "next".to_owned(), cut: false });
    }
}
