//! Mistakes on the host: each is one clear failure of its resource, the others converge, and it heals with its cause.
//!
//! An interrupted dpkg is in `packages/faults.rs`; a held lock of the accounts and a broken line of passwd in
//! `accounts.rs`; foreign rows of fstab in `kernel.rs`.

use super::{PREPARE, run};
use crate::host::Host;
use crate::packages::faults::HOLD;
use crate::service::GRAPH;

/// One mistake.
struct Mistake {
    kind: &'static str,
    /// The declaration as a flow mapping of YAML.
    mapping: &'static str,
    /// A part of the line of the failure.
    message: &'static str,
    /// The script that removes the cause; empty if only another graph does.
    cure: &'static str,
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        kind: "file",
        mapping: "{name: /srv/laws/of-user, content: a, owner: later-user}",
        message: "later-user",
        cure: "useradd later-user",
    },
    Mistake {
        kind: "file",
        mapping: "{name: /srv/laws/of-group, content: a, group: later-group}",
        message: "later-group",
        cure: "groupadd later-group",
    },
    Mistake {
        kind: "user",
        mapping: "{name: in-group, groups: [later-member], append: true}",
        message: "later-member",
        cure: "groupadd later-member",
    },
    Mistake {
        kind: "svc",
        mapping: "{name: later-unit, state: running}",
        message: "later-unit",
        cure: "cd /etc/systemd/system; printf '[Service]\\nExecStart=/bin/sleep 1009\\n' >later-unit.service
               systemctl daemon-reload",
    },
    Mistake {
        kind: "mount",
        mapping: "{name: /srv/laws/later-mount, device: /srv/laws/later-source, options: [bind]}",
        message: "/srv/laws/later-source",
        cure: "mkdir /srv/laws/later-source",
    },
    Mistake {
        kind: "pkg",
        mapping: "{name: later-pkg}",
        message: "later-pkg",
        cure: "make later-pkg /repo; apt-get -q update >/dev/null 2>&1",
    },
    Mistake {
        kind: "file",
        mapping: "{name: /etc/sudoers.d/laws, source: /srv/laws/fragment, validate: [visudo, -cf, \"%s\"]}",
        message: "validate rejected the content",
        cure: "echo 'root ALL=(ALL) ALL' >/srv/laws/fragment",
    },
    Mistake {
        kind: "repo",
        mapping: "{name: laws, uris: [\"copy:/more\"], suites: [\"./\"], signed_by: /usr/share/keyrings/no.gpg}",
        message: "the key file /usr/share/keyrings/no.gpg of laws does not exist",
        cure: "",
    },
];

fn graph<'m>(mistakes: impl Iterator<Item = &'m Mistake>) -> String {
    let mut kinds =
        vec![("line", "    - {name: good, path: /srv/laws/good, line: a}\n".to_owned())];
    for mistake in mistakes {
        let item = format!("    - {}\n", mistake.mapping);
        match kinds.iter_mut().find(|(kind, _)| *kind == mistake.kind) {
            Some((_, items)) => items.push_str(&item),
            None => kinds.push((mistake.kind, item)),
        }
    }
    let sections = kinds.iter().map(|(kind, items)| format!("  {kind}:\n{items}"));
    format!("graph: mistakes\nresources:\n{}", sections.collect::<String>())
}

#[test]
fn each_mistake_is_one_failure_that_heals() {
    let host = Host::boot();
    host.shell(&format!(
        "{PREPARE}\nmkdir -p /etc/sudoers.d /srv/laws/later-mount; echo wrong >/srv/laws/fragment; : >/srv/laws/good"
    ));
    for mistake in MISTAKES {
        let graph = graph(std::iter::once(mistake));
        host.write(GRAPH, &graph);
        let (code, said) = run(&host, &["apply", GRAPH]);
        let failures: Vec<&str> = said.lines().filter(|line| line.starts_with("failed ")).collect();
        let is_clear = failures.len() == 1 && failures[0].contains(mistake.message);
        assert!(code == Some(1) && is_clear, "{}: {said}", mistake.mapping);
        assert_eq!(host.read("/srv/laws/good").as_deref(), Some("a\n"), "others continue: {said}");
    }
    host.shell("rm -f /etc/apt/sources.list.d/laws.sources; : >/srv/laws/good");
    let curable = || MISTAKES.iter().filter(|mistake| !mistake.cure.is_empty());
    host.write(GRAPH, &graph(curable()));
    let (code, said) = run(&host, &["apply", GRAPH]);
    assert_eq!((code, host.read("/srv/laws/good").as_deref()), (Some(1), Some("a\n")), "{said}");
    let cures: Vec<&str> = curable().map(|mistake| mistake.cure).collect();
    host.shell(&format!("{PREPARE}\n{}", cures.join("\n")));
    let (code, said) = run(&host, &["apply", GRAPH]);
    assert_eq!(code, Some(0), "healed: {said}");
    let (code, said) = run(&host, &["plan", "--detailed-exitcode", GRAPH]);
    assert_eq!(code, Some(0), "{said}");
}

/// A fault of the whole host.
struct Fault {
    begin: &'static str,
    end: &'static str,
    /// The resources that fail, with a part of each failure.
    failed: &'static [(&'static str, &'static str)],
}

const FAULTS: &[Fault] = &[
    Fault {
        begin: "$HOLD 60 >/dev/null 2>&1 & echo $! >/run/holder; while [ ! -e /run/locked ]; do sleep 0.05; done",
        end: "kill $(cat /run/holder); rm /run/locked",
        failed: &[("pkg[laws-pkg]", "packages are locked by process")],
    },
    Fault {
        begin: "mount --bind /etc /etc && mount -o remount,ro,bind /etc",
        end: "umount /etc",
        failed: &[
            ("cron[laws]", "read-only file system"),
            ("group[laws-group]", "read-only file system"),
            ("line[in etc]", "read-only file system"),
            ("user[laws-user]", "read-only file system"),
        ],
    },
    Fault {
        begin: "mkdir -p /srv/small; mount -t tmpfs -o size=64k tmpfs /srv/small; echo first >/srv/small/lines
                head -c 1M /dev/zero >/srv/small/filler 2>/dev/null || true",
        end: "rm /srv/small/filler",
        failed: &[
            ("file[/srv/small/file]", "no space left"),
            ("line[in small]", "no space left"),
        ],
    },
];

/// A graph whose resources work on different parts of the host.
const ON_ALL_PARTS: &str = r#"
graph: faults
resources:
  cron:
    - {name: laws, minute: 5, job: /usr/bin/true}
  file:
    - {name: /srv/laws/file, content: "$NUMBER\n"}
    - {name: /srv/small/file, content: "$NUMBER a text that needs a block of the file system\n"}
  group:
    - {name: laws-group}
  line:
    - {name: in etc, path: /etc/laws-lines, line: "$NUMBER", match: ".", create: true}
    - {name: in small, path: /srv/small/lines, line: "$NUMBER", match: "."}
  pkg:
    - {name: laws-pkg, lock_wait: 1s}
  user:
    - {name: laws-user}
"#;

/// A held lock of apt, a read-only `/etc` and a full disk: the resources that need them fail alone, and heal.
#[test]
fn a_fault_of_the_host_fails_its_resources_alone() {
    let host = Host::boot();
    host.shell(&format!("{PREPARE}\nmkdir /srv/small; echo a >/srv/small/lines"));
    for (number, fault) in FAULTS.iter().enumerate() {
        // Everything is to do again.
        host.shell(
            "rm -f /etc/cron.d/laws; userdel laws-user 2>/dev/null || true
             groupdel laws-group 2>/dev/null || true; dpkg --purge laws-pkg >/dev/null 2>&1 || true",
        );
        host.write(GRAPH, &ON_ALL_PARTS.replace("$NUMBER", &number.to_string()));
        host.shell(&fault.begin.replace("$HOLD", HOLD));
        let (code, said) = run(&host, &["apply", GRAPH]);
        assert_eq!(code, Some(1), "{said}");
        let mut failures: Vec<&str> =
            said.lines().filter(|line| line.starts_with("failed ")).collect();
        for (resource, why) in fault.failed {
            let is_own = |line: &&str| line.contains(resource);
            let own = failures.iter().position(is_own);
            let own = own.unwrap_or_else(|| panic!("{resource} did not fail: {said}"));
            failures.remove(own);
            let text = said.to_lowercase();
            assert!(text.contains(&why.to_lowercase()), "{resource}: {why}: {said}");
        }
        assert!(failures.is_empty(), "others fail too: {failures:?}: {said}");
        assert_eq!(host.read("/srv/laws/file"), Some(format!("{number}\n")), "others continue");
        host.shell(fault.end);
        let (code, said) = run(&host, &["apply", GRAPH]);
        assert_eq!(code, Some(0), "healed: {said}");
        let (code, said) = run(&host, &["plan", "--detailed-exitcode", GRAPH]);
        assert_eq!(code, Some(0), "{said}");
    }
}
