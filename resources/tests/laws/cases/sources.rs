//! The kinds that bring things from elsewhere: archives, downloads and working trees of git.

use crate::harness::{Case, apply_on};
use crate::stand_ins::{install, shell, sources};
use steadfast_resources::host::simulated::Machine;

/// The archive of the cases, and its checksum.
const ARCHIVE: &str = "top/file=one\ntop/bin/run=run\n@top/bin/link=../file\n";
const SUM: &str = "sha256:010832b9be1f52ec2ce4417db064a6ca916c98c4a7b245021941a986f2348894";

/// The checksum of the text `one`.
const SUM_OF_ONE: &str = "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";

const FIRST: &str = "1111111111111111111111111111111111111111";
const SECOND: &str = "2222222222222222222222222222222222222222";
const REPOSITORY: &str = "1111111111111111111111111111111111111111 refs/heads/old\n\
    2222222222222222222222222222222222222222 refs/heads/main\n";

/// Adds the programs.
fn programs(machine: &Machine) {
    install(machine, &["/srv", "/var/tmp", "/net"], &[shell::run, sources::run]);
}

/// Unpacks the archive, and changes, removes and adds entries.
fn changed_archive(machine: &Machine) {
    programs(machine);
    apply_on(machine, &CASES[0]);
    machine.foreign(|here| {
        here.write("/srv/app/file", "two").expect("written");
        here.remove("/srv/app/bin").expect("removed");
        here.write("/srv/app/own", "mine").expect("written");
    });
}

/// Clones the repository, and changes the working tree.
fn changed_tree(machine: &Machine) {
    programs(machine);
    apply_on(machine, &CASES[6]);
    machine.foreign(|here| here.write("/srv/tree/file", "changed").expect("written"));
}

const USUAL: Case =
    Case { kind: "", name: "", given: &[], before: &[], after: &[], prepare: programs, units: &[] };

pub(super) const CASES: &[Case] = &[
    Case {
        kind: "archive",
        name: "/srv/app",
        given: &[
            ("source", "/srv/a.tar"),
            ("checksum", SUM),
            ("strip", "1"),
            ("owner", "root"),
            ("group", "root"),
            ("mode", "0750"),
        ],
        before: &[("/srv/a.tar", ARCHIVE)],
        after: &[("/srv/app/file", Some("one")), ("/srv/app/bin/run", Some("run"))],
        ..USUAL
    },
    Case {
        kind: "archive",
        name: "/srv/app",
        given: &[("source", "/srv/a.tar"), ("strip", "1"), ("mode", "0750")],
        before: &[("/srv/a.tar", ARCHIVE)],
        after: &[
            ("/srv/app/file", Some("one")),
            ("/srv/app/bin/run", Some("run")),
            ("/srv/app/own", Some("mine")),
        ],
        prepare: changed_archive,
        ..USUAL
    },
    Case {
        kind: "archive",
        name: "app",
        given: &[
            ("path", "/srv/app"),
            ("url", "http://example.org/a.bin"),
            ("checksum", SUM),
            ("format", "zip"),
            ("strip", "1"),
            ("username", "me"),
            ("password", "secret"),
            ("cacert", "/etc/ca.pem"),
            ("timeout", "60"),
            ("state", "exists"),
        ],
        before: &[("/net/example.org/a.bin", ARCHIVE)],
        after: &[("/srv/app/file", Some("one"))],
        ..USUAL
    },
    Case {
        kind: "archive",
        name: "/srv/app",
        given: &[
            ("url", "http://example.org/a.tar"),
            ("checksum", SUM),
            ("token", "secret"),
            ("creates", "top/bin/run"),
        ],
        before: &[("/net/example.org/a.tar", ARCHIVE)],
        after: &[("/srv/app/top/file", Some("one"))],
        ..USUAL
    },
    Case {
        kind: "fetch",
        name: "/srv/file",
        given: &[
            ("url", "http://example.org/file"),
            ("checksum", SUM_OF_ONE),
            ("owner", "root"),
            ("group", "root"),
            ("mode", "0640"),
            ("token", "secret"),
            ("cacert", "/etc/ca.pem"),
            ("timeout", "60"),
        ],
        before: &[("/net/example.org/file", "one")],
        after: &[("/srv/file", Some("one"))],
        ..USUAL
    },
    Case {
        kind: "fetch",
        name: "file",
        given: &[
            ("path", "/srv/file"),
            ("url", "http://example.org/file"),
            ("checksum", SUM_OF_ONE),
            ("username", "me"),
            ("password", "secret"),
            ("state", "exists"),
        ],
        before: &[("/net/example.org/file", "one"), ("/srv/file", "two")],
        after: &[("/srv/file", Some("one"))],
        ..USUAL
    },
    Case {
        kind: "git",
        name: "/srv/tree",
        given: &[
            ("repo", "/srv/repository"),
            ("version", "main"),
            ("update", "true"),
            ("depth", "1"),
            ("verify", "true"),
            ("user", "root"),
            ("timeout", "60"),
        ],
        before: &[("/srv/repository", REPOSITORY)],
        after: &[("/srv/tree/file", Some(SECOND))],
        ..USUAL
    },
    Case {
        kind: "git",
        name: "tree",
        given: &[
            ("path", "/srv/tree"),
            ("repo", "/srv/repository"),
            ("version", FIRST),
            ("force", "true"),
            ("state", "exists"),
        ],
        before: &[("/srv/repository", REPOSITORY)],
        after: &[("/srv/tree/file", Some(FIRST))],
        prepare: changed_tree,
        ..USUAL
    },
    Case {
        kind: "git",
        name: "/srv/tree",
        given: &[("state", "absent"), ("force", "true")],
        before: &[("/srv/repository", REPOSITORY)],
        after: &[("/srv/tree/file", None)],
        prepare: changed_tree,
        ..USUAL
    },
];
