//! systemd units on a test host: drift is repaired, and a change of their files causes one refresh.
//!
//! No test touches a unit outside its host. Reading order: this file, then `startup`, `drift`, `refresh`, `ends`,
//! `flapping`, `missing`, `bus` and `session`.

mod bus;
mod drift;
mod ends;
mod flapping;
mod missing;
mod refresh;
mod session;
mod startup;

use crate::host::Host;
use crate::service::GRAPH;

/// A unit that records its starts and reloads.
const UNIT: &str = "\
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStartPre=/bin/sh -c 'echo start >>/run/told'
ExecStart=/bin/sleep infinity
ExecReload=/bin/sh -c 'echo reload >>/run/told'
[Install]
WantedBy=multi-user.target
";

const HELD: &str = "/etc/systemd/system/held.service";

/// A graph with `held.service`, running and enabled.
const RUNNING: &str = "
graph: host
resources:
  svc:
    - name: held
      state: running
      startup: enabled
";

impl Host {
    /// Boots a host with `held.service` and waits until the daemon has converged on this graph.
    fn with_unit(unit: &str, graph: &str) -> Self {
        let host = Self::with_failing_unit(unit, graph);
        host.converged();
        host
    }

    /// Boots a host with `held.service` and starts the daemon, without waiting for convergence.
    fn with_failing_unit(unit: &str, graph: &str) -> Self {
        let host = Self::boot();
        host.write(HELD, unit);
        host.write(GRAPH, graph);
        host.adjust("Environment=STEADFAST_LOG=debug");
        host.start();
        host
    }

    /// Waits until the host is converged and stays so for a while.
    fn converged(&self) {
        self.until("convergence", || {
            let last = || self.log().into_iter().rev().find(|line| !is_quiet(line));
            last().is_some_and(|line| line.contains("converged"))
        });
    }

    /// Returns a property of a unit.
    fn of_unit(&self, unit: &str, name: &str) -> String {
        let show = ["systemctl", "show", "--value", "--property", name, unit];
        self.run(&show).stdout.trim().to_owned()
    }

    fn is_active(&self, unit: &str) -> bool {
        self.of_unit(unit, "ActiveState") == "active"
    }

    fn file_state(&self, unit: &str) -> String {
        self.run(&["systemctl", "is-enabled", unit]).stdout.trim().to_owned()
    }

    /// Counts the log lines with this word about `svc[held]`.
    fn told(&self, word: &str) -> usize {
        let held = |line: &&String| line.contains(&format!(" {word} svc[held]"));
        self.log().iter().filter(held).count()
    }

    /// Returns the recorded starts and reloads of the service.
    fn said(&self) -> Vec<String> {
        let said = self.read("/run/told").unwrap_or_default();
        said.lines().map(str::to_owned).collect()
    }
}

/// Returns true for a log line of a check without a difference.
fn is_quiet(line: &str) -> bool {
    [" started ", " unchanged "].iter().any(|word| line.contains(word))
}
