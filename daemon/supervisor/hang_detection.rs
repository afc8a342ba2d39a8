//! Hang detection: a running worker without a sign of life is aborted, and started again as after a failure.

use super::Name;
use super::heartbeat::TIMES;
use super::state_machine::{Action, AfterStop, Attempt, Phase, SupervisorState};
use std::time::Duration;

impl SupervisorState {
    /// Records a sign of life of a worker.
    pub(super) fn heard(&mut self, name: &str, attempt: Attempt, at: Duration) {
        let node = self.nodes.get_mut(name).filter(|node| node.attempt() == Some(attempt));
        if let Some(node) = node
            && at > node.heard
        {
            (node.heard, node.doubted) = (at, None);
        }
    }

    /// Aborts workers without a sign of life within their limit.
    pub(super) fn cut_off_silent(&mut self) {
        let (now, wait) = (self.now, self.delays.cut_off);
        for (name, node) in &mut self.nodes {
            let (&Phase::Running { attempt, since }, Some(limit)) =
                (&node.phase, node.declared.silence)
            else {
                continue;
            };
            if now < node.heard + limit {
                continue;
            }
            // The whole process may have been suspended. Each worker gets another chance to send a sign of life first.
            if now < *node.doubted.get_or_insert(now) + limit / TIMES {
                continue;
            }
            node.forgive(node.heard.saturating_sub(since), &self.delays);
            node.hangs = Some(node.heard);
            node.phase = Phase::Stopping {
                attempt,
                published: true,
                until: now + wait,
                cut_off: true,
                then: AfterStop::Retry,
            };
            let silent = now.saturating_sub(node.heard);
            self.out.push(Action::Hangs(Name::clone(name), attempt, silent));
        }
    }
}

/// Returns the error of a worker that was aborted for its silence.
pub(super) fn hangs(silent: Duration) -> String {
    format!("the worker hung for {} s and was aborted", silent.as_secs())
}
