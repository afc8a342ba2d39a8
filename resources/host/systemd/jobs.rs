//! Jobs: what systemd is asked to do with a unit, and how that ends.

use super::connection::{BusConnection, MANAGER, MANAGER_PATH, Shared};
use super::{Bus, Systemd, fault::Fault};
use crate::failure::Failure;
use crate::permit::Permit;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use zbus::wire::OwnedObjectPath;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Let it read its configuration anew, where it can; else restart it. Nothing where it does not run.
    Reload,
    /// Restart it; nothing where it does not run.
    Restart,
}

impl Verb {
    fn method(self) -> &'static str {
        match self {
            Self::Start => "StartUnit",
            Self::Stop => "StopUnit",
            Self::Reload => "ReloadOrTryRestartUnit",
            Self::Restart => "TryRestartUnit",
        }
    }
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Well.
    Done,
    /// Otherwise: `failed`, `canceled`, `timeout`, `dependency`, `skipped`, …
    Not(String),
    /// The permit was revoked. Where it was asked for already, systemd goes on with it.
    Revoked {
        /// It was asked for.
        asked: bool,
    },
}

/// The jobs that are waited for.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// So many have asked for a job and do not know its path yet: until then all ends are kept.
    asking: usize,
    job_results: HashMap<String, String>,
    waiting: HashMap<String, Vec<oneshot::Sender<String>>>,
}

impl Board {
    /// A job has ended.
    pub(super) fn ended(&mut self, path: &str, result: &str) {
        for waiting in self.waiting.remove(path).into_iter().flatten() {
            // Who does not wait any more needs no answer.
            drop(waiting.send(result.to_owned()));
        }
        if self.asking > 0 {
            self.job_results.insert(path.to_owned(), result.to_owned());
        }
    }

    /// Nobody will be told any more.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    fn wait(&mut self, path: &str) -> oneshot::Receiver<String> {
        let (sender, receiver) = oneshot::channel();
        match self.job_results.get(path) {
            Some(result) => drop(sender.send(result.clone())),
            None => self.waiting.entry(path.to_owned()).or_default().push(sender),
        }
        self.waiting.retain(|_, all| {
            all.retain(|sender| !sender.is_closed());
            !all.is_empty()
        });
        receiver
    }
}

/// While this lives, the ends of all jobs are kept.
struct Asking(Arc<Shared>);

impl Asking {
    fn begin(shared: &Arc<Shared>) -> Self {
        shared.board(|board| board.asking += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.board(|board| {
            board.asking -= 1;
            if board.asking == 0 {
                board.job_results.clear();
            }
        });
    }
}

impl Systemd {
    /// Asks for a job and waits for its end, or until the permit is revoked. What limits it in time is the deadline of the run,
    /// and what the unit itself says.
    pub async fn job(
        &self,
        bus: Bus,
        verb: Verb,
        name: &str,
        permit: &Permit,
    ) -> Result<End, Failure> {
        if permit.check().is_err() {
            return Ok(End::Revoked { asked: false });
        }
        let link = self.link(bus).await?;
        if permit.check().is_err() {
            return Ok(End::Revoked { asked: false });
        }
        let work = async {
            let asking = Asking::begin(link.shared());
            let body = (name, "replace");
            let answer = link.call(MANAGER_PATH, MANAGER, verb.method(), &body).await?;
            let path: OwnedObjectPath = answer.body().deserialize()?;
            let end = link.shared().board(|board| board.wait(path.as_str()));
            drop(asking);
            ended(&link, end).await
        };
        tokio::select! {
            end = work => match end {
                Ok(result) if result == "done" => Ok(End::Done),
                Ok(result) => Ok(End::Not(result)),
                Err(fault) => Err(fault.trouble(&format!("{} of {name}", verb.method()))),
            },
            () = permit.revoked() => Ok(End::Revoked { asked: true }),
        }
    }

    /// Waits until a unit has no job any more, such as a stop that somebody else has asked for: to come between would undo what
    /// he waits for. Changes nothing.
    pub async fn settled(&self, bus: Bus, name: &str) -> Result<(), Failure> {
        let link = self.link(bus).await?;
        loop {
            // First the ends are kept, then it is asked: one that ends in between is found.
            let asking = Asking::begin(link.shared());
            let Some(job) = self.unit(bus, name).await?.and_then(|unit| unit.job) else {
                return Ok(());
            };
            let end = link.shared().board(|board| board.wait(&job));
            drop(asking);
            ended(&link, end).await.map_err(|fault| fault.trouble(&format!("a job of {name}")))?;
        }
    }
}

async fn ended(link: &Arc<BusConnection>, end: oneshot::Receiver<String>) -> Result<String, Fault> {
    tokio::select! {
        biased;
        end = end => end.map_err(|_closed| link.shared().lost()),
        () = link.shared().gone() => Err(link.shared().lost()),
    }
}

#[cfg(test)]
mod tests {
    use super::Board;

    /// The end of a job may be told before the answer to who asked for it.
    #[test]
    fn an_end_before_the_answer_is_kept() {
        let mut board = Board { asking: 1, ..Board::default() };
        board.ended("/job/1", "done");
        assert_eq!(board.wait("/job/1").try_recv().as_deref(), Ok("done"));
        let mut later = board.wait("/job/2");
        assert!(later.try_recv().is_err());
        board.ended("/job/2", "timeout");
        assert_eq!(later.try_recv().as_deref(), Ok("timeout"));
    }

    #[test]
    fn who_has_gone_is_not_waited_for() {
        let mut board = Board::default();
        for job in 0..100 {
            drop(board.wait(&format!("/job/{job}")));
        }
        assert!(board.waiting.len() <= 1, "{board:?}");
        board.ended("/job/200", "done");
        assert!(board.job_results.is_empty(), "nobody asks");
    }
}
