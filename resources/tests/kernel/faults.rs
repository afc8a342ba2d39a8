//! Each system call fails in turn: a failure that claims to have changed nothing has changed nothing, and the next run
//! converges.

use crate::support::{SimulatedHost, valid};
use rustix::io::Errno;
use std::sync::Arc;
use steadfast_resources::host::simulated::{Fault, Machine};
use steadfast_resources::{CheckResult, Outcome, Resource};

/// The declarations, each applied to a fresh host.
fn cases() -> [Arc<dyn Resource>; 6] {
    [
        valid("cron", "backup", &[("job", "/bin/true")]),
        valid("cron", "backup", &[("job", "/bin/true"), ("file", "jobs")]),
        valid("sysctl", "net.ipv4.ip_forward", &[("value", "1")]),
        valid("kmod", "br_netfilter", &[("options", "a=1")]),
        valid("mount", "/srv/data", &[("device", "tmpfs"), ("type", "tmpfs")]),
        valid("swap", "/srv/swap", &[("size", "2M")]),
    ]
}

/// The content of each file that the kinds change.
fn visible(machine: &Machine) -> Vec<Option<Vec<u8>>> {
    let paths = [
        "/etc/cron.d/backup",
        "/etc/cron.d/jobs",
        "/etc/sysctl.d/60-steadfast.conf",
        "/proc/sys/net/ipv4/ip_forward",
        "/etc/modprobe.d/steadfast-br_netfilter.conf",
        "/etc/modules-load.d/steadfast-br_netfilter.conf",
        "/proc/modules",
        "/etc/fstab",
        "/proc/self/mountinfo",
        "/proc/swaps",
        "/srv/swap",
    ];
    paths.map(|path| machine.content(path)).to_vec()
}

#[test]
fn every_call_fails_in_turn() {
    for resource in cases() {
        let simulated = SimulatedHost::new();
        simulated.machine.set_faults([]);
        assert!(matches!(simulated.hold(&resource), Outcome::Changed(_)));
        let calls = simulated.machine.calls();
        assert!(calls > 5, "{resource:?}");
        for call in 1..=calls {
            for fault in [Fault::Fails(Errno::IO), Fault::Fails(Errno::NOSPC), Fault::Short] {
                let simulated = SimulatedHost::new();
                let before = visible(&simulated.machine);
                simulated.machine.set_faults([(call, fault)]);
                let outcome = simulated.hold(&resource);
                let how = format!("{resource:?}: call {call} with {fault:?}: {outcome:?}");
                if let Outcome::Failed { trouble, touched } = &outcome {
                    assert!(!trouble.what.is_empty(), "{how}");
                    let is_changed = visible(&simulated.machine) != before;
                    assert!(*touched || !is_changed, "something was changed: {how}");
                }
                simulated.machine.set_faults([]);
                simulated.hold(&resource);
                assert!(matches!(simulated.check(&resource), CheckResult::Same), "{how}");
            }
        }
    }
}
