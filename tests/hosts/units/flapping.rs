//! A flapping service: systemd restarts it again and again.

use super::RUNNING;
use crate::host::Host;

/// A unit that ends by itself, restarted by systemd without a limit.
const UNIT: &str = "\
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'sleep 0.3; exit 3'
Restart=always
RestartSec=100ms
[Install]
WantedBy=multi-user.target
";

/// F4: a flapping service is failed although each check finds it active; `status` says so, and `wait` does not
/// succeed.
#[test]
fn a_flapping_service_is_told() {
    let host = Host::with_failing_unit(UNIT, RUNNING);
    host.until("the failure", || host.log().iter().any(|line| line.contains("flapping")));
    let wait =
        "if steadfast wait --timeout 5 >/dev/null 2>&1; then echo reached; else echo not yet; fi";
    assert_eq!(host.shell(wait).trim(), "not yet");
    let shown = host.shell("steadfast show 'svc[held]'");
    assert!(shown.contains("flapping: systemd has restarted held.service"), "{shown}");
}
