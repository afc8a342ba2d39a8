//! State commands of the operator on the records of resources (B-24). They take effect in the same turn; the reply
//! waits until their records are durable.

use crate::driver::Driver;
use crate::driver::journal::client::PendingReply;
use crate::store::{Effect, Entry, StateCommand};
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_engine::{Event, VertexId};
use tokio::sync::oneshot;

/// One line for each resource, or the rejection.
pub type CommandResult = Result<Vec<String>, Rejection>;

/// The reason for which a state command is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Some identities are unknown.
    Unknown {
        /// The unknown identities.
        names: Vec<String>,
        /// All known identities.
        known: Vec<String>,
    },
    /// The command is not possible now.
    Later(String),
    /// The command is not possible at all.
    Refused(String),
}

impl Driver {
    /// Carries out a state command for all of these identities, or for none.
    pub(in crate::driver) fn order(
        &mut self,
        order: StateCommand,
        names: &[String],
        to: oneshot::Sender<CommandResult>,
    ) {
        if let Err(declined) = self.consider(order, names) {
            return drop(to.send(Err(declined)));
        }
        let names: BTreeSet<Arc<str>> = names.iter().map(|name| name.as_str().into()).collect();
        let (mut entries, mut deeds, mut says) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let words = match self.judge(order, name) {
                Effect::Done(words) => {
                    entries.push(self.carry_out(order, name));
                    if order.makes_anew() && self.graph.kinds.is_made_once(name) {
                        entries.push(self.forget_sent(name));
                    }
                    deeds.push(order.audit_entry(name, words));
                    words
                }
                Effect::Idle(words) => words,
                // `consider` has already rejected such commands.
                Effect::Refused(_) => continue,
            };
            says.push(format!("{name} {words}"));
        }
        let to = Box::new(|said| drop(to.send(said)));
        self.journal.record_command(entries, PendingReply { to: Some(to), messages: says, deeds });
        if matches!(order, StateCommand::Forget | StateCommand::Retry) {
            let running = names.iter().filter_map(|name| self.runs_as(name));
            let leaders: BTreeSet<VertexId> =
                running.map(|id| self.graph.groups().leader(id)).collect();
            for id in leaders {
                self.turn(Event::RetryNow(id));
            }
        }
    }

    fn runs_as(&self, name: &str) -> Option<VertexId> {
        self.graph.number(name).filter(|id| self.graph.get(*id).is_some())
    }

    fn consider(&self, order: StateCommand, names: &[String]) -> Result<(), Rejection> {
        if !self.journal.exists() {
            return Err(Rejection::Refused("no state directory is in use".to_owned()));
        }
        if let Some(why) = self.mode.read_only() {
            return Err(Rejection::Later(format!(
                "the daemon is read-only, nothing is stored: {why}"
            )));
        }
        if !self.journal.is_sound() {
            let says =
                "the state cannot be written now; nothing was changed; see `steadfast events`";
            return Err(Rejection::Later(says.to_owned()));
        }
        if self.graph.change().is_some() {
            let says = "a new graph is waiting for running resources; try again later";
            return Err(Rejection::Later(says.to_owned()));
        }
        let strangers = names.iter().filter(|name| !self.is_known(name));
        let strangers: Vec<String> = strangers.cloned().collect();
        if !strangers.is_empty() {
            let known = self.all_known().map(str::to_owned).collect();
            return Err(Rejection::Unknown { names: strangers, known });
        }
        let refusals = names.iter().filter_map(|name| self.refusal(order, name));
        let refusals: Vec<String> = refusals.collect();
        if refusals.is_empty() { Ok(()) } else { Err(Rejection::Refused(refusals.join("\n"))) }
    }

    fn is_known(&self, name: &str) -> bool {
        self.runs_as(name).is_some()
            || self.ownership.record(name).is_some()
            || self.ownership.undeclared.contains(name)
            || self.mode.stored().is_some_and(|it| it.resources.contains_key(name))
    }

    fn all_known(&self) -> impl Iterator<Item = &str> {
        let recalled =
            self.mode.stored().into_iter().flat_map(|it| it.resources.keys().map(String::as_str));
        let running = self.graph.ids().map(|id| self.graph.name(id));
        let left = self.ownership.names().chain(self.ownership.undeclared.names());
        running.chain(left).chain(recalled)
    }

    fn refusal(&self, order: StateCommand, name: &str) -> Option<String> {
        let entry = self.runs_as(name).and_then(|id| self.graph.get(id));
        if entry.is_some_and(|entry| entry.removes) {
            return Some(format!("{name} is undeclared and being removed"));
        }
        match self.judge(order, name) {
            Effect::Refused(why) => Some(why),
            Effect::Done(_) | Effect::Idle(_) => None,
        }
    }

    fn judge(&self, order: StateCommand, name: &str) -> Effect {
        let entry = self.runs_as(name).and_then(|id| self.graph.get(id));
        order.judge(name, self.ownership.record(name), entry.map(|entry| entry.protect))
    }

    /// Drops the sent values of a resource whose values are made only once, so that they are made again.
    fn forget_sent(&mut self, name: &Arc<str>) -> Entry {
        self.values.forget_sent(name);
        let recalled = self.mode.stored_mut();
        if let Some(kept) = recalled.and_then(|it| it.resources.get_mut(name.as_ref())) {
            kept.sent = None;
        }
        Entry::ForgetSent(Arc::clone(name))
    }

    /// Applies the command to one resource; returns the entry to record.
    fn carry_out(&mut self, order: StateCommand, name: &Arc<str>) -> Entry {
        let running = self.runs_as(name);
        let before = self.ownership.record(name).cloned();
        let entry = order.entry(name, before.as_ref(), self.ownership.graph());
        self.ownership.order(order, name, running);
        // A resource in no graph needs no other record either.
        let left = order == StateCommand::Forget && running.is_none() && !self.mode.is_starting();
        let entry = if left { Entry::Forget(Arc::clone(name)) } else { entry };
        if left {
            self.ownership.undeclared.forget(name);
            self.values.forget(name);
        } else if let (StateCommand::Retry, Some(kept)) =
            (order, self.ownership.undeclared.get_mut(name))
        {
            kept.done = None;
        }
        if let Some(kept) =
            self.mode.stored_mut().and_then(|it| it.resources.get_mut(name.as_ref()))
        {
            match order {
                StateCommand::Forget => kept.reset(),
                StateCommand::Retry => kept.done = None,
                StateCommand::Protect | StateCommand::Unprotect => {
                    kept.owned = self.ownership.record(name).cloned().map(Arc::new);
                }
            }
        }
        entry
    }
}
