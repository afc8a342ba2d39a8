//! The shutdown: workers stop before their inputs, each with its grace. A late worker is aborted, then given up and
//! named.

use super::Name;
use super::manifold::Need;
use super::state_machine::{Action, AfterStop, Node, Phase, SupervisorState};
use std::collections::BTreeSet;
use std::time::Duration;

/// The state of a shutdown.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// The time at which the shutdown is over, even if workers still run.
    over: Option<Duration>,
    /// The workers that did not end in time.
    pub(super) late: BTreeSet<Name>,
    finished: bool,
}

impl Stop {
    pub(super) fn wakeup(&self) -> Option<Duration> {
        self.over.filter(|_| !self.finished)
    }
}

impl SupervisorState {
    /// Begins the shutdown, with a time limit if one is given. A second request can only shorten the limit.
    pub(super) fn begin_stop(&mut self, within: Option<Duration>) {
        let over = within.map(|within| self.now + within);
        let stop = self.stop.get_or_insert_default();
        stop.over = [stop.over, over].into_iter().flatten().min();
        for node in self.nodes.values_mut() {
            if matches!(node.phase, Phase::Waiting { .. }) {
                node.phase = Phase::Idle;
            }
            if let Phase::Stopping {
                then: then @ (AfterStop::Restart | AfterStop::Retry), ..
            } = &mut node.phase
            {
                *then = AfterStop::Rest;
            }
        }
    }

    /// Asks the workers to end that no running worker needs any more.
    pub(super) fn stop_next(&mut self) {
        if self.stop.as_ref().is_some_and(|stop| stop.finished) {
            return;
        }
        let live: Vec<&Node> =
            self.nodes.values().filter(|node| node.attempt().is_some()).collect();
        if live.is_empty() {
            if let Some(stop) = &mut self.stop {
                stop.finished = true;
            }
            self.out.push(Action::Finished);
            return;
        }
        let lowest = live.iter().map(|node| node.declared.stop_rank).min();
        let needed: BTreeSet<&Name> = live
            .iter()
            .flat_map(|node| &node.declared.inputs)
            .filter(|(_, need)| *need != Need::Handle)
            .map(|(name, _)| name)
            .collect();
        let is_asked = |node: &&&Node| matches!(node.phase, Phase::Stopping { .. });
        let free: Vec<&&Node> = live
            .iter()
            .filter(|node| !is_asked(node) && !needed.contains(&node.declared.name))
            .collect();
        let is_next = |node: &&&&Node| Some(node.declared.stop_rank) == lowest;
        let mut next: Vec<&&Node> = free.iter().filter(is_next).copied().collect();
        if next.is_empty() && !live.iter().any(|node| is_asked(&node)) {
            // Each worker of the lowest rank is needed by one of a higher rank: dependents end before their inputs all
            // the same.
            next = free;
        }
        let names: Vec<Name> =
            next.into_iter().map(|node| Name::clone(&node.declared.name)).collect();
        for name in names {
            self.cancel(&name, AfterStop::Rest);
        }
    }

    /// Aborts workers whose grace is over. At the end of the shutdown, those that do not return even then are given up.
    pub(super) fn cut_off_late(&mut self) {
        let over = self.stop.as_ref().and_then(|stop| stop.over).is_some_and(|at| at <= self.now);
        let names: Vec<Name> = self.nodes.keys().cloned().collect();
        for name in names {
            if over {
                self.cancel(&name, AfterStop::Rest);
            }
            let (now, wait) = (self.now, self.delays.cut_off);
            let stopping = self.stop.is_some();
            let Some(node) = self.nodes.get_mut(&name) else { continue };
            let Phase::Stopping { attempt, until, cut_off, .. } = &mut node.phase else { continue };
            if !(over || *until <= now) {
                continue;
            }
            let gone = *attempt;
            if !*cut_off {
                (*cut_off, *until) = (true, now + wait);
                node.hangs = Some(now);
                self.out.push(Action::Abort(Name::clone(&name), gone));
                if let Some(stop) = &mut self.stop {
                    stop.late.insert(Name::clone(&name));
                }
                if !over {
                    continue;
                }
            }
            // A second worker of the same name must never run beside the first, so a worker is given up only in a
            // shutdown.
            if stopping && (over || *until <= now) {
                (node.phase, node.hangs) = (Phase::Idle, None);
                // Includes workers that were aborted before the shutdown began.
                if let Some(stop) = &mut self.stop {
                    stop.late.insert(name);
                }
            }
        }
    }
}
