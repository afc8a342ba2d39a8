//! What a run does to a unit is no news to who waits for it: it looks at the end what has come of it.
//!
//! Of the events of a unit that a run is at work on, those from before its last look are its own, or known to it: it looked later.
//! All that came after are told as ever. A run that ends without a look (it was cut off) leaves one event behind.

use super::Systemd;
use super::connection::Shared;
use super::{Bus, Happening};
use crate::failure::Failure;
use std::collections::HashMap;
use std::sync::Arc;
use zbus::Message;
use zbus::message::Sequence;

/// A moment on a connection: what systemd said before it was known to who looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen(pub(super) Sequence);

impl Seen {
    /// When a message came.
    pub(super) fn at(message: &Message) -> Self {
        Self(message.recv_position())
    }
}

/// The units that runs are at work on, or were lately.
#[derive(Debug)]
pub(super) struct Hushes<S = Seen> {
    last: u64,
    active: Vec<Hushed<S>>,
    /// By object: up to when all is known.
    known: HashMap<String, S>,
}

#[derive(Debug)]
struct Hushed<S> {
    number: u64,
    name: String,
    path: Option<String>,
    /// The last event that was not news.
    last: Option<S>,
    /// So many jobs of it have ended.
    jobs: usize,
}

impl<S> Default for Hushes<S> {
    fn default() -> Self {
        Self { last: 0, active: Vec::new(), known: HashMap::new() }
    }
}

impl<S: Copy + Ord> Hushes<S> {
    fn begin(&mut self, name: &str, path: Option<String>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.active.push(Hushed { number, name: name.to_owned(), path, last: None, jobs: 0 });
        number
    }

    /// A job has ended, whoever has asked for it.
    pub(super) fn job_ended(&mut self, unit: &str) {
        for hushed in self.active.iter_mut().filter(|hushed| hushed.name == unit) {
            hushed.jobs += 1;
        }
    }

    fn jobs(&self, number: u64) -> usize {
        let hushed = self.active.iter().find(|hushed| hushed.number == number);
        hushed.map_or(0, |hushed| hushed.jobs)
    }

    /// Whether an event is one that a run knows of; `name` is told with some.
    pub(super) fn is_known(&mut self, path: &str, name: Option<&str>, at: S) -> bool {
        let hushed = self.active.iter_mut().find(|hushed| match &hushed.path {
            Some(known) => known == path,
            None => name == Some(&*hushed.name),
        });
        if let Some(hushed) = hushed {
            hushed.path = Some(path.to_owned());
            hushed.last = Some(at);
            return true;
        }
        match self.known.get(path) {
            Some(upto) if at <= *upto => true,
            Some(_) => {
                self.known.remove(path);
                false
            }
            None => false,
        }
    }

    /// A run is over; the object of which something must be told, if any.
    fn end(&mut self, number: u64, upto: Option<S>) -> Option<String> {
        let at = self.active.iter().position(|hushed| hushed.number == number)?;
        let hushed = self.active.swap_remove(at);
        let path = hushed.path?;
        if let Some(upto) = upto {
            self.known.insert(path.clone(), upto);
        }
        (hushed.last > upto).then_some(path)
    }
}

/// A run is at work on a unit until this is dropped.
#[derive(Debug)]
pub struct OwnChange {
    shared: Arc<Shared>,
    number: u64,
    upto: Option<Seen>,
}

impl OwnChange {
    /// The run has looked, and ends with what it saw.
    pub fn knows(&mut self, seen: Option<Seen>) {
        self.upto = self.upto.max(seen);
    }
}

impl OwnChange {
    /// Whether somebody else has had a job done with the unit meanwhile, as far as was told at this moment; one was ours.
    pub async fn is_disturbed(&self, seen: Option<Seen>) -> bool {
        let Some(seen) = seen else { return true };
        self.shared.taken_in(seen).await;
        self.shared.hushes(|hushes, _| hushes.jobs(self.number)) > 1
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        self.shared.hushes(|hushes, tell| {
            if let Some(path) = hushes.end(self.number, self.upto) {
                tell(Happening::Unit { path: &path, activity: None, known: false });
            }
        });
    }
}

impl Systemd {
    /// Begins work on a unit.
    pub async fn filter_own_changes(&self, bus: Bus, name: &str) -> Result<OwnChange, Failure> {
        let link = self.link(bus).await?;
        let path = self.find(bus, name).await?;
        let shared = Arc::clone(link.shared());
        let number = shared.hushes(|hushes, _| hushes.begin(name, path));
        Ok(OwnChange { shared, number, upto: None })
    }
}

#[cfg(test)]
mod tests {
    use super::Hushes;

    #[test]
    fn what_a_run_has_seen_is_no_news() {
        let mut hushes = Hushes::default();
        let run = hushes.begin("a.service", None);
        assert!(!hushes.is_known("/b", Some("b.service"), 1), "another unit");
        assert!(hushes.is_known("/a", Some("a.service"), 1));
        assert!(hushes.is_known("/a", None, 1));
        assert_eq!(hushes.end(run, Some(1)), None);
        assert!(hushes.is_known("/a", None, 1), "it was under way still");
        assert!(!hushes.is_known("/a", None, 2));
        assert!(!hushes.is_known("/a", None, 1), "what was known is forgotten then");
    }

    #[test]
    fn what_came_after_the_last_look_is_told_and_so_is_a_run_that_was_cut_off() {
        let mut hushes = Hushes::default();
        for upto in [Some(1), None] {
            let run = hushes.begin("a.service", Some("/a".to_owned()));
            assert!(hushes.is_known("/a", None, 2));
            assert_eq!(hushes.end(run, upto).as_deref(), Some("/a"));
        }
        let run = hushes.begin("a.service", Some("/a".to_owned()));
        assert_eq!(hushes.end(run, None), None, "nothing happened");
    }
}
