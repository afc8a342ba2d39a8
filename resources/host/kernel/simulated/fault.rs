//! Fault injection: failing calls, and the death of the process.

use rustix::io::Errno;
use std::collections::BTreeMap;

/// One system call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The number of the call, counted from 1 since the faults were set.
    pub number: u64,
    /// The name of the call, as in the manual.
    pub name: &'static str,
    /// The call may change something.
    pub changes: bool,
}

/// The fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The call fails and does nothing.
    Fails(Errno),
    /// The call reads or writes one byte only; without effect on other calls.
    Short,
    /// The process dies before the call; no later call does anything.
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
    /// Counts a call. Returns its fault, and the call itself if the hook must see it.
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

/// A function that decides about the fault of each call without a planned fault.
pub type Rule = Box<dyn FnMut(&Call) -> Option<Fault>>;

impl super::Machine {
    /// Sets or clears the rule for faults, for lasting causes like a full disk.
    pub fn set_rule(&self, rule: Option<Rule>) {
        *self.0.rule.borrow_mut() = rule;
    }

    /// Resets the count of calls and sets the faults by call number.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = (u64, Fault)>) {
        let mut state = self.0.state.borrow_mut();
        state.faults.clear();
        state.faults.planned = faults.into_iter().collect();
    }

    /// Adds a fault for the call that follows after `after` other calls.
    pub fn add_fault(&self, after: u64, fault: Fault) {
        let mut state = self.0.state.borrow_mut();
        let at = state.faults.calls + 1 + after;
        state.faults.planned.insert(at, fault);
    }

    /// Returns the number of calls since the faults were set.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.state.borrow().faults.calls
    }

    /// Returns true if the process has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.0.state.borrow().faults.is_dead
    }
}
