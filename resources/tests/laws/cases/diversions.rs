//! The diversions of dpkg, with a stand-in of dpkg-divert.

use crate::harness::Case;
use steadfast_resources::host::simulated::{Machine, Running, here};
use steadfast_resources::host::{Captured, Command, End, Finished};

const TABLE: &str = "/var/lib/dpkg/diversions";

/// Makes the table of dpkg with a diversion of another package.
fn dpkg(machine: &Machine) {
    machine.make_directories("/var/lib/dpkg").expect("made");
    if machine.content(TABLE).is_none() {
        machine.write(TABLE, "/bin/sh\n/bin/sh.distrib\ndash\n").expect("written");
    }
    machine.set_runner(|command, _stop| run(command));
}

fn run(command: &Command) -> Running {
    let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
    let result = here().expect("a simulated host").foreign(|machine| divert(machine, &argv));
    let mut stderr = Captured::default();
    stderr.push(result.err().unwrap_or_default().as_bytes());
    let end = End::Exited(if result.is_err() { 2 } else { 0 });
    let finished = Finished { end, stdout: Captured::default(), stderr, held: false };
    Box::pin(std::future::ready(Ok(finished)))
}

fn divert(machine: &Machine, argv: &[&str]) -> Result<(), &'static str> {
    let (rename, to, package, action, path) = match argv {
        ["dpkg-divert", "--quiet", rename, "--divert", to, "--local", action, path] => {
            (*rename, *to, ":", *action, *path)
        }
        ["dpkg-divert", "--quiet", rename, "--divert", to, "--package", package, action, path] => {
            (*rename, *to, *package, *action, *path)
        }
        _ => return Err("the simulated host does not know this command"),
    };
    let table = machine.content(TABLE).unwrap_or_default();
    let table = String::from_utf8(table).map_err(|_bytes| "no text")?;
    let row = format!("{path}\n{to}\n{package}\n");
    let (from, onto, table) = match action {
        "--add" => (path, to, format!("{table}{row}")),
        "--remove" if table.contains(&row) => (to, path, table.replace(&row, "")),
        _ => return Err("dpkg-divert: error: mismatch"),
    };
    if rename == "--rename" && machine.content(from).is_some() {
        if machine.content(onto).is_some() {
            return Err("dpkg-divert: error: rename involves overwriting");
        }
        machine.rename_over(from, onto).map_err(|_errno| "dpkg-divert: cannot rename")?;
    }
    machine.write(TABLE, &table).map_err(|_errno| "dpkg-divert: cannot write")
}

const USUAL: Case = Case {
    kind: "divert",
    name: "/etc/screenrc",
    given: &[],
    before: &[],
    after: &[],
    prepare: dpkg,
    units: &[],
};

const DASH: &str = "/bin/sh\n/bin/sh.distrib\ndash\n";

pub(super) const CASES: &[Case] = &[
    Case {
        before: &[("/etc/screenrc", "packaged\n")],
        after: &[
            (
                TABLE,
                Some("/bin/sh\n/bin/sh.distrib\ndash\n/etc/screenrc\n/etc/screenrc.distrib\n:\n"),
            ),
            ("/etc/screenrc", None),
            ("/etc/screenrc.distrib", Some("packaged\n")),
        ],
        ..USUAL
    },
    Case {
        name: "the table of screen",
        given: &[
            ("path", "/etc/screenrc"),
            ("to", "/etc/screenrc.old"),
            ("package", "branding"),
            ("rename", "false"),
        ],
        before: &[("/etc/screenrc", "packaged\n")],
        after: &[
            ("/etc/screenrc", Some("packaged\n")),
            (
                TABLE,
                Some(
                    "/bin/sh\n/bin/sh.distrib\ndash\n/etc/screenrc\n/etc/screenrc.old\nbranding\n",
                ),
            ),
        ],
        ..USUAL
    },
    Case {
        given: &[("state", "absent"), ("discard", "true")],
        before: &[
            (TABLE, "/bin/sh\n/bin/sh.distrib\ndash\n/etc/screenrc\n/etc/screenrc.distrib\n:\n"),
            ("/etc/screenrc", "own\n"),
            ("/etc/screenrc.distrib", "packaged\n"),
        ],
        after: &[
            (TABLE, Some(DASH)),
            ("/etc/screenrc", Some("packaged\n")),
            ("/etc/screenrc.distrib", None),
        ],
        ..USUAL
    },
];
