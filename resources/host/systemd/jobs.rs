//! Jobs of systemd: their start and their result.

use super::connection::{BusConnection, MANAGER, MANAGER_PATH, Shared};
use super::{Bus, Systemd, fault::Fault};
use crate::failure::Failure;
use crate::permit::Permit;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use zbus::wire::OwnedObjectPath;

/// The action of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Starts the unit.
    Start,
    /// Stops the unit.
    Stop,
    /// Reloads the unit's configuration if possible, else restarts the unit; without effect on a unit that does
    /// not run.
    Reload,
    /// Restarts the unit; without effect on a unit that does not run.
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

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The job succeeded.
    Done,
    /// The job ended otherwise: `failed`, `canceled`, `timeout`, `dependency`, `skipped`, …
    Not(String),
    /// The permit was revoked. systemd continues a job that was already requested.
    Revoked {
        /// The job was requested.
        asked: bool,
    },
}

/// The registry of awaited jobs.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// The number of callers that have requested a job and do not know its path yet: meanwhile all results are
    /// stored.
    asking: usize,
    job_results: HashMap<String, String>,
    waiting: HashMap<String, Vec<oneshot::Sender<String>>>,
}

impl Board {
    /// Passes the result of a job to its callers.
    pub(super) fn ended(&mut self, path: &str, result: &str) {
        for waiting in self.waiting.remove(path).into_iter().flatten() {
            // A caller that does not wait any more needs no result.
            drop(waiting.send(result.to_owned()));
        }
        if self.asking > 0 {
            self.job_results.insert(path.to_owned(), result.to_owned());
        }
    }

    /// Drops all callers after the loss of the connection.
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

/// A guard: the results of all jobs are stored until the guard is dropped.
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
    /// Requests a job and waits for its end or for the revocation of the permit. The time is limited by the
    /// deadline of the run and by the unit's own settings.
    ///
    /// # Errors
    ///
    /// Fails if systemd cannot be reached, rejects the request, or the connection is lost before the result.
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
                Err(fault) => Err(fault.failure(&format!("{} of {name}", verb.method()))),
            },
            () = permit.revoked() => Ok(End::Revoked { asked: true }),
        }
    }

    /// Waits until a unit has no job, for example a stop that another client has requested: a new job would
    /// interfere with that client's. Changes nothing.
    pub async fn settled(&self, bus: Bus, name: &str) -> Result<(), Failure> {
        let link = self.link(bus).await?;
        loop {
            // Storing starts before the query, so that no result in between is lost.
            let asking = Asking::begin(link.shared());
            let Some(job) = self.unit(bus, name).await?.and_then(|unit| unit.job) else {
                return Ok(());
            };
            let end = link.shared().board(|board| board.wait(&job));
            drop(asking);
            ended(&link, end).await.map_err(|fault| fault.failure(&format!("a job of {name}")))?;
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

    /// The result of a job may arrive before the reply to its request.
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
    fn abandoned_waits_are_dropped() {
        let mut board = Board::default();
        for job in 0..100 {
            drop(board.wait(&format!("/job/{job}")));
        }
        assert!(board.waiting.len() <= 1, "{board:?}");
        board.ended("/job/200", "done");
        assert!(board.job_results.is_empty(), "nobody asks");
    }
}
