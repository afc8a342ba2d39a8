//! Where the daemon is killed: a gate that counts calls while it is open, and strikes at one of them.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::syscall_tracer::{self, Act, Call, Running, Scope};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which call it is that does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    /// Counted from 1, over all threads, while the gate is open.
    pub(crate) number: usize,
    /// Only calls of this name count, where one is given.
    pub(crate) name: Option<&'static str>,
    /// Which calls are counted.
    pub(crate) scope: Scope,
    /// Whether the call is still made.
    pub(crate) after: bool,
    /// Whether what the daemon has started dies with it.
    pub(crate) with_children: bool,
}

impl Strike {
    /// At a call that changes something.
    pub(crate) fn at(number: usize) -> Self {
        let scope = Scope::WithChildren;
        Self { number, name: None, scope, after: false, with_children: false }
    }
}

#[derive(Debug, Default)]
struct Counted {
    open: bool,
    calls: usize,
    struck: Option<Call>,
}

/// Shared by the tracer and the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<Mutex<Counted>>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on calls are counted.
    pub(crate) fn open(&self) {
        self.lock().open = true;
    }

    fn close(&self) {
        self.lock().open = false;
    }

    fn decide(&self, strike: Strike, call: &Call) -> Act {
        let mut counted = self.lock();
        if !counted.open || strike.name.is_some_and(|name| name != call.name) {
            return Act::Pass;
        }
        counted.calls += 1;
        if counted.calls != strike.number {
            return Act::Pass;
        }
        counted.struck = Some(call.clone());
        if strike.after { Act::KillAfter } else { Act::Kill }
    }
}

/// How a traced daemon ended.
#[derive(Debug)]
pub(crate) struct Struck {
    /// The call at which it was killed; none where that many were not made.
    pub(crate) call: Option<Call>,
    /// What it had said.
    pub(crate) said: Vec<String>,
}

/// A daemon under a tracer that waits to kill it.
pub(crate) struct Doomed {
    pub(crate) daemon: Daemon,
    pub(crate) gate: Gate,
    running: Running,
    strike: Strike,
}

impl Doomed {
    pub(crate) fn start(host: &Host, flags: &[&str], strike: Strike, gate: Gate) -> Self {
        let words: Vec<&str> = ["run", "--log", "json"].iter().chain(flags).copied().collect();
        let asked = gate.clone();
        let decide = move |call: &Call| asked.decide(strike, call);
        let mut running = syscall_tracer::start(host.command(&words), strike.scope, decide);
        let talk = running.talk.take().expect("piped");
        let daemon = Daemon::heard(running.pid, talk, &host.path(""));
        Self { daemon, gate, running, strike }
    }

    /// The end, brought about where it has not come.
    pub(crate) fn end(self, host: &Host) -> Struck {
        self.gate.close();
        let missed = self.gate.lock().struck.is_none();
        // Also where it was struck: a call that waits for ever does not come back, and it goes on.
        self.daemon.kill_unless_ended();
        self.running.end();
        if self.strike.with_children && !missed {
            crate::process::kill_with(&host.path(""));
        }
        let said =
            self.daemon.log().into_iter().map(|line| format!("{} {}", line.event, line.resource));
        let said = said.collect();
        let counted = self.gate.lock();
        Struck { call: counted.struck.clone(), said }
    }
}
