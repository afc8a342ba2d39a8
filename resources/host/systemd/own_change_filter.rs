//! Filters the events that a run causes itself: they are no drift, because the run reads the final state of
//! the unit.
//!
//! While a run changes a unit, the events before the run's last query are known to the run. Later events are
//! reported as usual. A run that ends without a query (it was cut off) leaves one event behind.

use super::Systemd;
use super::connection::Shared;
use super::{Bus, Happening};
use crate::failure::Failure;
use std::collections::HashMap;
use std::sync::Arc;
use zbus::Message;
use zbus::message::Sequence;

/// A position in the messages of a connection: a query knows every message before its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen(pub(super) Sequence);

impl Seen {
    /// Returns the position of a message.
    pub(super) fn at(message: &Message) -> Self {
        Self(message.recv_position())
    }
}

/// The units that runs are changing, or have changed lately.
#[derive(Debug)]
pub(super) struct OwnChanges<S = Seen> {
    last: u64,
    active: Vec<Muted<S>>,
    /// The position up to which all events are known, by object path.
    known: HashMap<String, S>,
}

#[derive(Debug)]
struct Muted<S> {
    number: u64,
    name: String,
    path: Option<String>,
    /// The last event that was suppressed.
    last: Option<S>,
    /// The number of finished jobs of the unit.
    jobs: usize,
}

impl<S> Default for OwnChanges<S> {
    fn default() -> Self {
        Self { last: 0, active: Vec::new(), known: HashMap::new() }
    }
}

impl<S: Copy + Ord> OwnChanges<S> {
    fn begin(&mut self, name: &str, path: Option<String>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.active.push(Muted { number, name: name.to_owned(), path, last: None, jobs: 0 });
        number
    }

    /// Counts a finished job of any client.
    pub(super) fn job_ended(&mut self, unit: &str) {
        for muted in self.active.iter_mut().filter(|muted| muted.name == unit) {
            muted.jobs += 1;
        }
    }

    fn jobs(&self, number: u64) -> usize {
        let muted = self.active.iter().find(|muted| muted.number == number);
        muted.map_or(0, |muted| muted.jobs)
    }

    /// Returns true if a run knows the event; some events carry the name of the unit.
    pub(super) fn is_known(&mut self, path: &str, name: Option<&str>, at: S) -> bool {
        let muted = self.active.iter_mut().find(|muted| match &muted.path {
            Some(known) => known == path,
            None => name == Some(&*muted.name),
        });
        if let Some(muted) = muted {
            muted.path = Some(path.to_owned());
            muted.last = Some(at);
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

    /// Ends a run. Returns the object whose suppressed event must be reported, if there is one.
    fn end(&mut self, number: u64, upto: Option<S>) -> Option<String> {
        let at = self.active.iter().position(|muted| muted.number == number)?;
        let muted = self.active.swap_remove(at);
        let path = muted.path?;
        if let Some(upto) = upto {
            self.known.insert(path.clone(), upto);
        }
        (muted.last > upto).then_some(path)
    }
}

/// A guard: a run is changing a unit until the guard is dropped.
#[derive(Debug)]
pub struct OwnChange {
    shared: Arc<Shared>,
    number: u64,
    upto: Option<Seen>,
}

impl OwnChange {
    /// Stores the position of the run's query, up to which the run knows all events.
    pub fn knows(&mut self, seen: Option<Seen>) {
        self.upto = self.upto.max(seen);
    }
}

impl OwnChange {
    /// Returns true if another client's job on the unit has ended meanwhile, up to this position; one job was the
    /// run's own.
    pub async fn is_disturbed(&self, seen: Option<Seen>) -> bool {
        let Some(seen) = seen else { return true };
        self.shared.taken_in(seen).await;
        self.shared.own_changes(|own_changes, _| own_changes.jobs(self.number)) > 1
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        self.shared.own_changes(|own_changes, send| {
            if let Some(path) = own_changes.end(self.number, self.upto) {
                send(Happening::Unit { path: &path, activity: None, known: false });
            }
        });
    }
}

impl Systemd {
    /// Begins a run's changes of a unit.
    pub async fn filter_own_changes(&self, bus: Bus, name: &str) -> Result<OwnChange, Failure> {
        let link = self.link(bus).await?;
        let path = self.find(bus, name).await?;
        let shared = Arc::clone(link.shared());
        let number = shared.own_changes(|own_changes, _| own_changes.begin(name, path));
        Ok(OwnChange { shared, number, upto: None })
    }
}

#[cfg(test)]
mod tests {
    use super::OwnChanges;

    #[test]
    fn changes_seen_by_a_run_are_not_reported() {
        let mut own_changes = OwnChanges::default();
        let run = own_changes.begin("a.service", None);
        assert!(!own_changes.is_known("/b", Some("b.service"), 1), "another unit");
        assert!(own_changes.is_known("/a", Some("a.service"), 1));
        assert!(own_changes.is_known("/a", None, 1));
        assert_eq!(own_changes.end(run, Some(1)), None);
        assert!(own_changes.is_known("/a", None, 1), "it was under way still");
        assert!(!own_changes.is_known("/a", None, 2));
        assert!(!own_changes.is_known("/a", None, 1), "what was known is forgotten then");
    }

    #[test]
    fn changes_after_the_last_check_and_interrupted_runs_are_reported() {
        let mut own_changes = OwnChanges::default();
        for upto in [Some(1), None] {
            let run = own_changes.begin("a.service", Some("/a".to_owned()));
            assert!(own_changes.is_known("/a", None, 2));
            assert_eq!(own_changes.end(run, upto).as_deref(), Some("/a"));
        }
        let run = own_changes.begin("a.service", Some("/a".to_owned()));
        assert_eq!(own_changes.end(run, None), None, "nothing happened");
    }
}
