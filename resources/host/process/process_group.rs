//! The process group of one child, which is signalled only while its number cannot have been reused.

use super::command_records::CommandRecords;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process group, shared by the supervising task and the caller.
#[derive(Debug)]
pub(in crate::host) struct Group {
    state: Mutex<State>,
    records: Option<Arc<CommandRecords>>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Unborn,
    /// The leader is not reaped, so its number is not reused.
    Running(Pid),
    Gone,
    /// No caller is waiting any more: the child must not be started, or is killed right after its start.
    Abandoned,
}

impl Group {
    pub(in crate::host) fn new() -> Self {
        Self::recorded(None)
    }

    /// Makes a group that has a record while it runs.
    pub(in crate::host) fn recorded(records: Option<Arc<CommandRecords>>) -> Self {
        Self { state: Mutex::new(State::Unborn), records }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a caller still wants the start.
    pub(in crate::host) fn is_wanted(&self) -> bool {
        !matches!(*self.state(), State::Abandoned)
    }

    /// Marks the child as running; an abandoned child is killed at once.
    pub(in crate::host) fn started(&self, leader: Pid) {
        let mut state = self.state();
        if matches!(*state, State::Abandoned) {
            send(leader, Signal::KILL);
        }
        if let Some(records) = &self.records {
            records.add(leader);
        }
        *state = State::Running(leader);
    }

    /// Signals every process of the group.
    pub(in crate::host) fn signal(&self, signal: Signal) {
        if let State::Running(leader) = *self.state() {
            send(leader, signal);
        }
    }

    /// Marks the group as abandoned and kills a running child.
    pub(in crate::host) fn abandon(&self) {
        let mut state = self.state();
        match *state {
            State::Running(leader) => send(leader, Signal::KILL),
            State::Unborn => *state = State::Abandoned,
            State::Gone | State::Abandoned => {}
        }
    }

    /// Marks the leader as about to be reaped: its number may be reused from now on.
    pub(in crate::host) fn reaped(&self) {
        let before = std::mem::replace(&mut *self.state(), State::Gone);
        if let (State::Running(leader), Some(records)) = (before, &self.records) {
            records.remove(leader);
        }
    }
}

/// Signals a group. A group without a living process rejects the signal, which is fine. A missing group does
/// too: a child that changes its user is alone in this process's group until `setsid` has run, possibly
/// between the two signals.
fn send(leader: Pid, signal: Signal) {
    if kill_process_group(leader, signal).is_err() && kill_process(leader, signal).is_ok() {
        let _has_group_now = kill_process_group(leader, signal);
    }
}

/// Returns true if a process of the group is alive; a zombie is not. If /proc cannot be read, the answer is
/// true.
pub(in crate::host) fn is_alive(leader: Pid) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return true };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .any(|stat| is_living_member(&stat, leader))
}

/// Parses a stat line. The program's name, in parentheses, may contain anything, so the fields follow the
/// last parenthesis.
fn is_living_member(stat: &str, leader: Pid) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let (state, group) = (fields.next(), fields.nth(1));
    let is_dead = matches!(state, Some("Z" | "X"));
    !is_dead && group == Some(leader.as_raw_nonzero().to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::is_living_member;
    use rustix::process::Pid;

    #[test]
    fn a_program_with_a_deceptive_name_is_read_right() {
        let leader = Pid::from_raw(42).unwrap();
        assert!(is_living_member("43 (a) Z 1 7 (b) S 1 42 42 0", leader));
        assert!(!is_living_member("42 (sh) Z 1 42 42 0", leader));
        assert!(!is_living_member("43 (sh) S 42 43 42 0", leader));
        assert!(!is_living_member("", leader));
    }
}
