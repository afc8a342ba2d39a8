//! Packages and their repositories.

use crate::harness::Case;
use crate::stand_ins::packages::{AVAILABLE, OWN};
use crate::stand_ins::{install, packages, shell};
use steadfast_resources::host::packages::STATUS;
use steadfast_resources::host::simulated::Machine;

/// The status of a host with an old version of the package.
const OLD: &str = "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21\n\n\
    Package: hello\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0\n";

/// Adds apt and dpkg, with two versions of a package.
fn apt(machine: &Machine) {
    let folders =
        ["/etc/apt/sources.list.d", "/var/lib/apt/lists", "/var/cache/debconf", "/var/lib/dpkg"];
    install(machine, &folders, &[shell::run, packages::run]);
    machine.write(AVAILABLE, "hello 2.0\nhello 1.0\n").expect("written");
    if machine.content(STATUS).is_none() {
        machine.write(STATUS, OWN).expect("written");
    }
}

const USUAL: Case =
    Case { kind: "", name: "", given: &[], before: &[], after: &[], prepare: apt, units: &[] };

pub(super) const CASES: &[Case] = &[
    Case {
        kind: "pkg",
        name: "hello",
        given: &[
            ("recommends", "false"),
            ("conffiles", "replace"),
            ("cache_age", "5"),
            ("debconf", "hello/ask=boolean true"),
            ("lock_wait", "5"),
        ],
        after: &[("/var/cache/debconf/config.dat", Some("hello hello/ask boolean true\n"))],
        ..USUAL
    },
    Case {
        kind: "pkg",
        name: "hello",
        given: &[("state", "newest")],
        before: &[(STATUS, OLD)],
        ..USUAL
    },
    Case {
        kind: "pkg",
        name: "hello",
        given: &[("state", "1.0"), ("hold", "true")],
        after: &[(
            STATUS,
            Some(
                "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.21\n\n\
                 Package: hello\nStatus: hold ok installed\nArchitecture: amd64\nVersion: 1.0\n",
            ),
        )],
        ..USUAL
    },
    Case {
        kind: "pkg",
        name: "hello",
        given: &[("state", "absent"), ("purge", "true")],
        before: &[(STATUS, OLD)],
        after: &[(STATUS, Some(OWN))],
        ..USUAL
    },
    Case {
        kind: "repo",
        name: "example",
        given: &[
            ("types", "deb"),
            ("uris", "http://example.org/debian"),
            ("suites", "stable"),
            ("components", "main\ncontrib"),
            ("architectures", "amd64"),
            ("signed_by", "/usr/share/keyrings/example.gpg"),
        ],
        before: &[("/usr/share/keyrings/example.gpg", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n")],
        after: &[(
            "/etc/apt/sources.list.d/example.sources",
            Some(
                "# Managed by steadfast: repo[example]\nTypes: deb\nURIs: http://example.org/debian\n\
                 Suites: stable\nComponents: main contrib\nArchitectures: amd64\n\
                 Signed-By: /usr/share/keyrings/example.gpg\n",
            ),
        )],
        ..USUAL
    },
    Case {
        kind: "repo",
        name: "example",
        given: &[
            ("uris", "http://example.org/debian"),
            ("suites", "stable"),
            ("components", "main"),
            ("trusted", "true"),
            ("enabled", "false"),
            ("state", "exists"),
        ],
        before: &[
            ("/etc/apt/sources.list.d/example.sources", "Types: deb\n"),
            ("/var/lib/apt/lists/example.org_debian_dists_stable_InRelease", "old"),
        ],
        after: &[("/var/lib/apt/lists/example.org_debian_dists_stable_InRelease", None)],
        ..USUAL
    },
];
