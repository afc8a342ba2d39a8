//! Asks the daemon, each question by a task of its own: however long it takes, keys are obeyed meanwhile.

use crate::control::{Address, Client, Request};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long an answer may take before the daemon counts as silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a look at what differs may take.
const LOOK: Duration = Duration::from_mins(2);

/// What a question is about: of each sort one is under way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    Status,
    List,
    Details,
    Events,
    Diff,
    Order,
}

/// A question, or an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) about: About,
    pub(super) ask: Request,
}

/// What came of it: all pieces of the answer, or why there is none.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) about: About,
    /// What was asked: an answer to what nobody looks at any more is no use.
    pub(super) ask: Request,
    pub(super) answer: Result<Vec<Value>, String>,
}

/// All questions under way.
#[derive(Debug)]
pub(super) struct Feed {
    address: Address,
    under_way: HashSet<About>,
    to: mpsc::Sender<Told>,
    answers: mpsc::Receiver<Told>,
}

impl Feed {
    pub(super) fn new(address: Address) -> Self {
        let (to, answers) = mpsc::channel(16);
        Self { address, under_way: HashSet::new(), to, answers }
    }

    /// Asks what is not being asked already.
    pub(super) fn ask_all(&mut self, questions: Vec<Question>) {
        for question in questions {
            self.order(question);
        }
    }

    pub(super) fn order(&mut self, question: Question) {
        if !self.under_way.insert(question.about) {
            return;
        }
        let (address, to) = (self.address.clone(), self.to.clone());
        tokio::spawn(async move {
            let Question { about, ask } = question;
            let patience = if about == About::Diff { LOOK } else { PATIENCE };
            let answer = tokio::time::timeout(patience, answer(&address, &ask)).await;
            let answer = answer.unwrap_or_else(|_| Err("the daemon does not respond".to_owned()));
            // The view may be closed by now.
            let _closed = to.send(Told { about, ask, answer }).await;
        });
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            // We hold a sender ourselves, so there is always one more to come.
            if let Some(told) = self.answers.recv().await {
                self.under_way.remove(&told.about);
                return told;
            }
        }
    }
}

async fn answer(address: &Address, ask: &Request) -> Result<Vec<Value>, String> {
    let mut client = Client::ask(address, ask).await.map_err(|why| why.to_string())?;
    let mut pieces = Vec::new();
    while let Some(piece) = client.next(None).await.map_err(|why| why.to_string())? {
        pieces.push(piece);
    }
    Ok(pieces)
}
