//! Faults on request: which call fails, and how; where the process dies.

use rustix::io::Errno;
use std::collections::BTreeMap;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its number, from 1, since faults were last set.
    pub number: u64,
    /// Its name, as in the manual.
    pub name: &'static str,
    /// It may change something.
    pub changes: bool,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It fails, and does nothing.
    Fails(Errno),
    /// It reads or writes one byte only. Of another call: nothing.
    Short,
    /// The process dies before it; no later call does anything.
    Dies,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    planned: BTreeMap<u64, Fault>,
    calls: u64,
    is_dead: bool,
    is_suspended: bool,
}

impl Faults {
    /// Counts a call; answers its fault, and the call where somebody shall be told of it.
    pub(super) fn next(
        &mut self,
        name: &'static str,
        changes: bool,
    ) -> (Option<Call>, Option<Fault>) {
        if self.is_suspended {
            return (None, None);
        }
        if self.is_dead {
            return (None, Some(Fault::Dies));
        }
        self.calls += 1;
        let fault = self.planned.remove(&self.calls);
        self.is_dead |= fault == Some(Fault::Dies);
        (Some(Call { number: self.calls, name, changes }), fault)
    }

    pub(super) fn suspend(&mut self, suspended: bool) -> bool {
        std::mem::replace(&mut self.is_suspended, suspended)
    }

    pub(super) fn clear(&mut self) {
        let is_suspended = self.is_suspended;
        *self = Self { is_suspended, ..Self::default() };
    }
}

/// Decides of each call for which nothing else is planned whether it goes wrong.
pub type Rule = Box<dyn FnMut(&Call) -> Option<Fault>>;

impl super::Machine {
    /// From here on this rule holds, until there is another or none: for causes that last, as a disk that is full.
    pub fn set_rule(&self, rule: Option<Rule>) {
        *self.0.rule.borrow_mut() = rule;
    }

    /// From here on calls are counted anew, and these go wrong.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = (u64, Fault)>) {
        let mut state = self.0.state.borrow_mut();
        state.faults.clear();
        state.faults.planned = faults.into_iter().collect();
    }

    /// One more call goes wrong: the one that comes after so many others.
    pub fn add_fault(&self, after: u64, fault: Fault) {
        let mut state = self.0.state.borrow_mut();
        let at = state.faults.calls + 1 + after;
        state.faults.planned.insert(at, fault);
    }

    /// How many calls there were since then.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.state.borrow().faults.calls
    }

    /// Whether the process has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.0.state.borrow().faults.is_dead
    }
}
