//! The kinds that change tables of the kernel, and jobs of cron.

use crate::harness::Case;
use crate::kernel::{SWAP_SPACE, prepare, run_command};
use steadfast_resources::host::simulated::Machine;

/// Makes the tables of a kernel and the commands that change them.
fn kernel(machine: &Machine) {
    prepare(machine);
    machine.set_runner(|command, _stop| run_command(command));
}

/// A swap file that somebody made.
fn with_swap_file(machine: &Machine) {
    kernel(machine);
    machine.write("/srv/swap", SWAP_SPACE).expect("written");
    machine.chmod("/srv/swap", 0o600).expect("private");
}

/// A case on a fresh host.
const USUAL: Case =
    Case { kind: "", name: "", given: &[], before: &[], after: &[], prepare: kernel, units: &[] };

pub(super) const CASES: &[Case] = &[
    Case {
        kind: "cron",
        name: "backup",
        given: &[
            ("job", "/bin/true"),
            ("user", "root"),
            ("minute", "5"),
            ("hour", "4"),
            ("day", "*"),
            ("month", "1-6"),
            ("weekday", "mon"),
            ("env", "MAILTO=ops"),
        ],
        after: &[(
            "/etc/cron.d/backup",
            Some(
                "# Managed by steadfast: cron[backup]\nMAILTO=ops\n5 4 * 1-6 mon root /bin/true\n",
            ),
        )],
        ..USUAL
    },
    Case {
        kind: "cron",
        name: "backup",
        given: &[("job", "/bin/true"), ("special", "@daily"), ("file", "jobs")],
        before: &[("/etc/cron.d/jobs", "# foreign\n")],
        ..USUAL
    },
    Case {
        kind: "cron",
        name: "old",
        given: &[("state", "absent")],
        before: &[("/etc/cron.d/old", "* * * * * root /bin/true\n")],
        after: &[("/etc/cron.d/old", None)],
        ..USUAL
    },
    Case {
        kind: "sysctl",
        name: "net.ipv4.ip_forward",
        given: &[("value", "1"), ("module", "ip_tables")],
        after: &[("/etc/sysctl.d/60-steadfast.conf", Some("net.ipv4.ip_forward = 1\n"))],
        ..USUAL
    },
    Case {
        kind: "sysctl",
        name: "net.ipv4.ip_forward",
        given: &[("value", "1"), ("runtime", "false"), ("path", "/etc/sysctl.d/50-router.conf")],
        before: &[("/etc/sysctl.d/50-router.conf", "# foreign\n")],
        after: &[("/etc/sysctl.d/50-router.conf", Some("# foreign\nnet.ipv4.ip_forward = 1\n"))],
        ..USUAL
    },
    Case {
        kind: "sysctl",
        name: "net.ipv4.ip_forward",
        given: &[("value", "1"), ("persist", "false")],
        after: &[
            ("/proc/sys/net/ipv4/ip_forward", Some("1\n")),
            ("/etc/sysctl.d/60-steadfast.conf", None),
        ],
        ..USUAL
    },
    Case {
        kind: "sysctl",
        name: "net.ipv4.ip_forward",
        given: &[("state", "absent")],
        before: &[("/etc/sysctl.d/60-steadfast.conf", "net.ipv4.ip_forward = 1\na.b = 2\n")],
        after: &[("/etc/sysctl.d/60-steadfast.conf", Some("a.b = 2\n"))],
        ..USUAL
    },
    Case {
        kind: "kmod",
        name: "br_netfilter",
        given: &[("options", "a=1")],
        after: &[(
            "/etc/modules-load.d/steadfast-br_netfilter.conf",
            Some("# Managed by steadfast: kmod[br_netfilter]\nbr_netfilter\n"),
        )],
        ..USUAL
    },
    Case {
        kind: "kmod",
        name: "br_netfilter",
        given: &[("persist", "false")],
        after: &[("/etc/modules-load.d/steadfast-br_netfilter.conf", None)],
        ..USUAL
    },
    Case {
        kind: "kmod",
        name: "pcspkr",
        given: &[("state", "absent"), ("blacklist", "true")],
        after: &[(
            "/etc/modprobe.d/steadfast-pcspkr.conf",
            Some("# Managed by steadfast: kmod[pcspkr]\nblacklist pcspkr\n"),
        )],
        ..USUAL
    },
    Case {
        kind: "mount",
        name: "/srv/data",
        given: &[
            ("device", "tmpfs"),
            ("type", "tmpfs"),
            ("options", "noexec\nsize=1m"),
            ("freq", "1"),
            ("passno", "2"),
        ],
        ..USUAL
    },
    Case {
        kind: "mount",
        name: "/srv/data",
        given: &[("device", "tmpfs"), ("type", "tmpfs"), ("state", "present")],
        ..USUAL
    },
    Case {
        kind: "swap",
        name: "/srv/swap",
        given: &[("size", "2M"), ("priority", "5"), ("options", "discard")],
        after: &[("/srv/swap", Some(SWAP_SPACE))],
        ..USUAL
    },
    Case {
        kind: "swap",
        name: "/srv/swap",
        given: &[("persist", "false"), ("state", "on")],
        prepare: with_swap_file,
        ..USUAL
    },
];
