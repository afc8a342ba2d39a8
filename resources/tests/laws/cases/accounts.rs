//! The cases of accounts and of the identity of a host: name, time zone, language.

use crate::harness::Case;
use crate::tools;
use steadfast_resources::host::simulated::Machine;

/// Adds the account tables and the tools.
fn tables(machine: &Machine) {
    let _calls = tools::prepare(machine);
}

/// Adds the time zones and the link to one of them.
fn zones(machine: &Machine) {
    machine.make_directories("/usr/share/zoneinfo/Europe").expect("made");
    machine.write("/usr/share/zoneinfo/Europe/Berlin", "TZif").expect("written");
    machine.symlink("/usr/share/zoneinfo/Etc/UTC", "/etc/localtime").expect("linked");
}

/// Adds the tools and the directory of the locales.
fn locales(machine: &Machine) {
    machine.make_directories("/usr/lib/locale").expect("made");
    machine.make_directories("/etc/default").expect("made");
    tables(machine);
}

pub(crate) const USER: Case = Case {
    kind: "user",
    name: "web",
    given: &[
        ("uid", "2000"),
        ("group", "adm"),
        ("groups", "sudo\neve"),
        ("shell", "/bin/bash"),
        ("homedir", "/home/web"),
        ("manage_home", "true"),
        ("comment", "Web"),
        ("password", "$6$salt$hash"),
        ("lock", "true"),
        ("expiry", "2030-01-01"),
    ],
    before: &[],
    after: &[(
        "/etc/passwd",
        Some(
            "root:x:0:0:root:/root:/bin/bash\neve:x:1000:1000:Eve,,,:/home/eve:/bin/sh\n\
             web:x:2000:4:Web:/home/web:/bin/bash\n",
        ),
    )],
    prepare: tables,
    units: &[],
};

pub(crate) const USER_CHANGED: Case = Case {
    kind: "user",
    name: "eve",
    given: &[
        ("state", "exists"),
        ("uid", "1000"),
        ("allowduplicateuid", "true"),
        ("gid", "27"),
        ("groups", "sudo"),
        ("append", "true"),
        ("system", "true"),
        ("manage_home", "true"),
        ("remove_home", "true"),
        ("password", "$6$salt$hash"),
    ],
    before: &[],
    after: &[("/etc/group", Some("root:x:0:\nadm:x:4:eve\nsudo:x:27:eve\neve:x:1000:\n"))],
    prepare: tables,
    units: &[],
};

pub(crate) const GROUP: Case = Case {
    kind: "group",
    name: "dev",
    given: &[("state", "exists"), ("gid", "2000"), ("system", "true"), ("members", "eve\nroot")],
    before: &[],
    after: &[(
        "/etc/group",
        Some("root:x:0:\nadm:x:4:eve\nsudo:x:27:\neve:x:1000:\ndev:x:2000:eve,root\n"),
    )],
    prepare: tables,
    units: &[],
};

pub(crate) const HOSTNAME: Case = Case {
    kind: "hostname",
    name: "first",
    given: &[
        ("hostname", "web1"),
        ("static_hostname", "web2"),
        ("transient_hostname", "web3"),
        ("pretty_hostname", "A \"web\" host"),
    ],
    before: &[("/proc/sys/kernel/hostname", "old\n"), ("/etc/machine-info", "# own\n")],
    after: &[
        ("/etc/hostname", Some("web2\n")),
        ("/proc/sys/kernel/hostname", Some("web3\n")),
        ("/etc/machine-info", Some("# own\nPRETTY_HOSTNAME=\"A \\\"web\\\" host\"\n")),
    ],
    prepare: tables,
    units: &[],
};

pub(crate) const TIMEZONE: Case = Case {
    kind: "timezone",
    name: "here",
    given: &[("zone", "Europe/Berlin")],
    before: &[("/etc/timezone", "Etc/UTC\n")],
    after: &[("/etc/timezone", Some("Europe/Berlin\n"))],
    prepare: zones,
    units: &[],
};

pub(crate) const LOCALE: Case = Case {
    kind: "locale",
    name: "de_DE.UTF-8",
    given: &[
        ("state", "exists"),
        ("charset", "UTF-8"),
        ("default", "true"),
        ("variables", "LC_TIME=C.UTF-8"),
    ],
    before: &[("/etc/locale.gen", "# de_DE.UTF-8 UTF-8\n# fr\n")],
    after: &[
        ("/etc/locale.gen", Some("de_DE.UTF-8 UTF-8\n# fr\n")),
        ("/etc/default/locale", Some("LANG=de_DE.UTF-8\nLC_TIME=C.UTF-8\n")),
    ],
    prepare: locales,
    units: &[],
};

/// All test cases.
pub(crate) const CASES: &[Case] = &[GROUP, HOSTNAME, LOCALE, TIMEZONE, USER, USER_CHANGED];
