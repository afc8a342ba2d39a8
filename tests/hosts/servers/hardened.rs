//! The hardened base, as far as a container permits: all but the parameters and modules of the kernel.

use super::{boot, note};
use crate::host::Host;

pub(super) const PACKAGES: &[&str] = &["openssh-server", "cron"];

/// The longest repairs in seconds: by event, and by the documented poll.
const LIMITS: &str = "0.1 35";

/// Lets an adversary undo each setting alone; each is back within its limit (`tests/servers/adversary.py`).
fn undo_each(host: &Host, part: &str, count: usize) {
    let module = "/etc/steadfast/examples/modules/hardening/module.yaml";
    let command = format!("python3 /opt/servers/adversary.py {module} {LIMITS} {part}");
    let answer = host.judging(&command);
    let (report, error) = (&answer.stdout, &answer.stderr);
    note(report);
    assert_eq!(answer.code, Some(0), "{report}{error}");
    assert!(report.lines().count() >= count && !report.contains("permanent"), "{report}");
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_hardened_base_is_held() {
    let host = boot("/etc/steadfast/examples/servers/hardened.yaml", PACKAGES);
    host.start_whole();
    host.judge("hardened");
    host.shell("sshd -t");
    host.wait_whole();
    undo_each(&host, "", 90);
    host.wait_whole();
}

/// A container cannot set most parameters of the kernel, but it can hold the lines that set them at a boot.
#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn parameters_for_the_next_boot_are_held() {
    let host = boot("/root/baseline/steadfast.yaml", PACKAGES);
    host.install_judges();
    host.shell("mkdir -p /etc/modprobe.d");
    let made = host.judging("python3 /opt/servers/baselines.py /root/baseline --graph");
    assert_eq!(made.code, Some(0), "{made:?}");
    host.start_whole();
    undo_each(&host, "--persisted", 50);
    host.wait_whole();
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_killed_daemon_ends_with_the_same_hardened_base() {
    let host = boot("/etc/steadfast/examples/servers/hardened.yaml", PACKAGES);
    host.restart_at_once();
    host.start();
    host.kill_at_random(
        10,
        "sed -i '/^[A-Z]/d' /etc/ssh/sshd_config /etc/login.defs; chmod 0777 /etc/crontab /etc/shadow
         rm /etc/profile.d/umask.sh; touch /etc/hosts.equiv; systemctl stop ssh cron",
    );
    host.wait_whole();
    host.judge("hardened");
    assert_eq!(host.shell("dpkg --audit"), "");
}
