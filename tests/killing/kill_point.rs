//! The kill point: a gate that counts calls while it is open and kills the daemon at one of them.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::syscall_tracer::{self, Act, Call, Running, Scope};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The call at which the daemon is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    /// The number of the call, from 1, over all threads while the gate is open.
    pub(crate) number: usize,
    /// The only counted call name; none counts all.
    pub(crate) name: Option<&'static str>,
    /// The counted calls.
    pub(crate) scope: Scope,
    /// True if the call is executed before the kill.
    pub(crate) after: bool,
    /// True if the child processes are killed with the daemon.
    pub(crate) with_children: bool,
}

impl Strike {
    /// Creates a kill point before the given changing call.
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

/// The gate, shared by the tracer and the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<Mutex<Counted>>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts counting calls.
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

/// The end of a traced daemon.
#[derive(Debug)]
pub(crate) struct Struck {
    /// The call at which the daemon was killed; none if the number was not reached.
    pub(crate) call: Option<Call>,
    /// The output of the daemon.
    pub(crate) said: Vec<String>,
}

/// A traced daemon with its kill point.
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

    /// Ends the daemon, by a plain kill if the kill point was not reached.
    pub(crate) fn end(self, host: &Host) -> Struck {
        self.gate.close();
        let missed = self.gate.lock().struck.is_none();
        // Also after the kill point: a call that blocks forever does not return to the tracer.
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
