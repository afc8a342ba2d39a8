//! Units of systemd, tables of nftables, and commands.

use crate::harness::{Case, nothing};
use crate::stand_ins::firewall::TABLES;
use crate::stand_ins::{firewall, install, shell};
use steadfast_resources::host::simulated::Machine;

/// The content of a unit.
const UNIT: &str = "[Service]\nExecStart=/bin/true\n";

/// A table of another program.
const FOREIGN: &str = "table ip docker {\n  set s {\n  }\n}\n";

/// The declared table.
const WEB: &str = "table inet web {\n  chain c {\n    tcp dport 80 accept\n  }\n}\n";

/// Adds a shell, and the folders of units.
fn programs(machine: &Machine) {
    install(machine, &["/etc/systemd/system", "/srv"], &[shell::run]);
}

/// Adds nft and the table of another program.
fn tables(machine: &Machine) {
    install(machine, &["/proc/net"], &[firewall::run, shell::run]);
    if machine.content(TABLES).is_none() {
        machine.write(TABLES, FOREIGN).expect("written");
    }
}

const USUAL: Case =
    Case { kind: "", name: "", given: &[], before: &[], after: &[], prepare: programs, units: &[] };

pub(super) const CASES: &[Case] = &[
    Case {
        kind: "svc",
        name: "web",
        given: &[
            ("state", "running"),
            ("startup", "enabled"),
            ("session", "false"),
            ("refresh", "restart"),
            ("daemon_reload", "true"),
        ],
        prepare: nothing,
        units: &[["web.service", "loaded", "inactive", "disabled"]],
        ..USUAL
    },
    Case {
        kind: "svc",
        name: "web",
        given: &[("state", "stopped"), ("startup", "masked")],
        prepare: nothing,
        units: &[["web.service", "loaded", "active", "enabled"]],
        ..USUAL
    },
    Case {
        kind: "unit",
        name: "web.service",
        given: &[("content", UNIT), ("enabled", "true"), ("running", "true")],
        after: &[("/etc/systemd/system/web.service", Some(UNIT))],
        units: &[["web.service", "not-found", "inactive", ""]],
        ..USUAL
    },
    Case {
        kind: "unit",
        name: "nice",
        given: &[
            ("content", "[Service]\nNice=5\n"),
            ("unit", "web.service"),
            ("drop_in", "nice"),
            ("verify", "false"),
            ("state", "exists"),
        ],
        after: &[("/etc/systemd/system/web.service.d/nice.conf", Some("[Service]\nNice=5\n"))],
        units: &[["web.service", "loaded", "active", "enabled"]],
        ..USUAL
    },
    Case {
        kind: "firewall",
        name: "web",
        given: &[("content", WEB), ("state", "exists")],
        after: &[(
            TABLES,
            Some(
                "table ip docker {\n  set s {\n  }\n}\n\
                 table inet web {\n  chain c {\n    tcp dport 80 accept\n  }\n}\n",
            ),
        )],
        prepare: tables,
        ..USUAL
    },
    Case {
        kind: "firewall",
        name: "web",
        given: &[("content", WEB), ("whole", "true")],
        after: &[(TABLES, Some(WEB))],
        prepare: tables,
        ..USUAL
    },
    Case {
        kind: "exec",
        name: "make",
        given: &[
            ("cmd", "touch /srv/made"),
            ("creates", "/srv/made"),
            ("cwd", "/srv"),
            ("env", "A=b"),
            ("user", "root"),
            ("group", "root"),
            ("no_new_privs", "true"),
            ("max_tasks", "10"),
            ("timeout", "60"),
            ("umask", "027"),
            ("stdin", "input"),
            ("returns", "0"),
            ("ifcmd", "true"),
            ("ifcwd", "/srv"),
            ("nifcmd", "test -e /srv/made"),
            ("nifcwd", "/srv"),
            ("donecmd", "true"),
            ("donecwd", "/srv"),
            ("changed_when", "true"),
            ("watchcmd", "true"),
            ("watchcwd", "/srv"),
            ("watchfiles", "/srv/watched"),
            ("refresh_only", "false"),
            ("always", "false"),
            ("on_interrupt", "skip"),
        ],
        after: &[("/srv/made", Some("touched"))],
        ..USUAL
    },
    Case {
        kind: "exec",
        name: "make",
        given: &[("args", "touch\n/srv/made"), ("nifcmd", "test -e /srv/made")],
        after: &[("/srv/made", Some("touched"))],
        ..USUAL
    },
    Case {
        kind: "exec",
        name: "make",
        given: &[
            ("cmd", "touch /srv/made"),
            ("shell", "/bin/sh"),
            ("creates", "/srv/made"),
            ("mtimes", "/srv/source"),
            ("ifcmd", "echo no"),
            ("ifshell", "/bin/sh"),
            ("ifequals", "yes"),
            ("nifcmd", "test -e /srv/made"),
            ("nifshell", "/bin/sh"),
            ("donecmd", "true"),
            ("doneshell", "/bin/sh"),
            ("watchcmd", "true"),
            ("watchshell", "/bin/sh"),
        ],
        before: &[("/srv/source", "source")],
        after: &[("/srv/made", Some("touched"))],
        ..USUAL
    },
];
