//! Units of systemd on a test host: what somebody does to them from outside is put back, and what they read is told
//! them once.

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

/// A service that says when it is started and when it is reloaded.
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

/// `held.service`, running and enabled.
const RUNNING: &str = "
graph: host
resources:
  svc:
    - name: held
      state: running
      startup: enabled
";

impl Host {
    /// A host with `held.service`, on which the daemon holds this graph and says that all is as declared.
    fn with_unit(unit: &str, graph: &str) -> Self {
        let host = Self::with_failing_unit(unit, graph);
        host.converged();
        host
    }

    /// The same, without waiting for convergence.
    fn with_failing_unit(unit: &str, graph: &str) -> Self {
        let host = Self::boot();
        host.write(HELD, unit);
        host.write(GRAPH, graph);
        host.adjust("Environment=STEADFAST_LOG=debug");
        host.start();
        host
    }

    /// Waits until all is as declared, and stays so for a while.
    fn converged(&self) {
        self.until("convergence", || {
            let last = || self.log().into_iter().rev().find(|line| !is_quiet(line));
            last().is_some_and(|line| line.contains("converged"))
        });
    }

    /// A property of a unit.
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

    /// How often the log tells this of `svc[held]`.
    fn told(&self, word: &str) -> usize {
        let held = |line: &&String| line.contains(&format!(" {word} svc[held]"));
        self.log().iter().filter(held).count()
    }

    /// What the service has said of itself.
    fn said(&self) -> Vec<String> {
        let said = self.read("/run/told").unwrap_or_default();
        said.lines().map(str::to_owned).collect()
    }
}

/// What is told of a check that found nothing.
fn is_quiet(line: &str) -> bool {
    [" started ", " same "].iter().any(|word| line.contains(word))
}
