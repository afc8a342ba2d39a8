//! Requests to the daemon, each in a task of its own, so that a slow reply does not block the keys.

use crate::api::{Data, Request};
use crate::control::{Address, Client};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// The time limit of a reply, after which the daemon counts as silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time limit of a check of resources.
const LOOK: Duration = Duration::from_mins(2);

/// The subject of a request; one request of each subject is under way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    Status,
    List,
    Details,
    Events,
    Diff,
    Order,
}

/// A query or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PollQuery {
    pub(super) about: About,
    pub(super) ask: Request,
}

/// The result of a request: all parts of the reply, or the error.
#[derive(Debug)]
pub(super) struct PollResult {
    pub(super) about: About,
    /// The request, so that a reply to an outdated request can be ignored.
    pub(super) ask: Request,
    pub(super) answer: Result<Vec<Data>, String>,
}

/// The requests under way.
#[derive(Debug)]
pub(super) struct Feed {
    address: Address,
    under_way: HashSet<About>,
    to: mpsc::Sender<PollResult>,
    answers: mpsc::Receiver<PollResult>,
}

impl Feed {
    pub(super) fn new(address: Address) -> Self {
        let (to, answers) = mpsc::channel(16);
        Self { address, under_way: HashSet::new(), to, answers }
    }

    /// Sends the queries whose subjects are not under way already.
    pub(super) fn ask_all(&mut self, questions: Vec<PollQuery>) {
        for query in questions {
            self.order(query);
        }
    }

    pub(super) fn order(&mut self, query: PollQuery) {
        if !self.under_way.insert(query.about) {
            return;
        }
        let (address, to) = (self.address.clone(), self.to.clone());
        tokio::spawn(async move {
            let PollQuery { about, ask } = query;
            let patience = if about == About::Diff { LOOK } else { PATIENCE };
            let answer = tokio::time::timeout(patience, answer(&address, &ask)).await;
            let answer = answer.unwrap_or_else(|_| Err("the daemon does not respond".to_owned()));
            // The view may be closed meanwhile.
            let _closed = to.send(PollResult { about, ask, answer }).await;
        });
    }

    /// Waits for the next result.
    pub(super) async fn next(&mut self) -> PollResult {
        loop {
            // This value has a sender itself, so that the channel never closes.
            if let Some(told) = self.answers.recv().await {
                self.under_way.remove(&told.about);
                return told;
            }
        }
    }
}

async fn answer(address: &Address, ask: &Request) -> Result<Vec<Data>, String> {
    let mut client = Client::ask(address, ask).await.map_err(|why| why.to_string())?;
    let mut pieces = Vec::new();
    while let Some(piece) = client.next(None).await.map_err(|why| why.to_string())? {
        pieces.push(piece);
    }
    Ok(pieces)
}
