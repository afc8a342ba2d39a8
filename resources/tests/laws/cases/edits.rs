//! The test cases of the kinds that edit text files.

use crate::harness::{Case, nothing};
use steadfast_resources::host::simulated::Machine;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC";
const BODY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC";
const PASSWD: (&str, &str) =
    ("/etc/passwd", "root:x:0:0::/root:/bin/sh\neve:x:1000:1000::/home/eve:/bin/sh\n");
const SETTINGS: &str = "# top\n[a]\nk = 1 ; c\n";

fn home_of_eve(machine: &Machine) {
    machine.make_directories("/home/eve").expect("made");
    machine.chown("/home/eve", 1000, 1000).expect("given");
}

fn keys_of_eve(machine: &Machine) {
    home_of_eve(machine);
    machine.make_directories("/home/eve/.ssh").expect("made");
    machine.write("/home/eve/.ssh/authorized_keys", "# mine\n").expect("written");
    for path in ["/home/eve/.ssh", "/home/eve/.ssh/authorized_keys"] {
        machine.chown(path, 1000, 1000).expect("given");
    }
}

/// Makes a case of a kind that edits the file /etc/f.
const fn of_file(
    kind: &'static str,
    given: &'static [(&'static str, &'static str)],
    before: &'static [(&'static str, &'static str)],
    after: &'static [(&'static str, Option<&'static str>)],
) -> Case {
    Case { kind, name: "/etc/f", given, before, after, prepare: nothing, units: &[] }
}

/// All test cases.
pub(crate) const CASES: &[Case] = &[
    of_file(
        "line",
        &[("line", "b"), ("insert_after", "^a"), ("path", "/etc/f")],
        &[("/etc/f", "a\nc")],
        &[("/etc/f", Some("a\nb\nc"))],
    ),
    of_file(
        "line",
        &[("content", "b"), ("insert_before", "BOF"), ("file", "/etc/f"), ("sensitive", "true")],
        &[("/etc/f", "a\n")],
        &[("/etc/f", Some("b\na\n"))],
    ),
    of_file("line", &[("line", "b"), ("create", "true")], &[], &[("/etc/f", Some("b\n"))]),
    of_file(
        "line",
        &[("match", "^b"), ("state", "absent")],
        &[("/etc/f", "a\r\nb\r\n")],
        &[("/etc/f", Some("a\r\n"))],
    ),
    of_file(
        "replace",
        &[
            ("match", "^(a)=.*$"),
            ("replacement", "\\1=2"),
            ("only_after", "^\\[x\\]"),
            ("only_before", "^\\["),
            ("path", "/etc/f"),
        ],
        &[("/etc/f", "a=1\n[x]\na=1\r\n[y]\na=1")],
        &[("/etc/f", Some("a=1\n[x]\na=2\n[y]\na=1"))],
    ),
    of_file(
        "replace",
        &[("match", "b\\n"), ("file", "/etc/f"), ("sensitive", "true")],
        &[("/etc/f", "a\nb\nc")],
        &[("/etc/f", Some("a\nc"))],
    ),
    of_file(
        "block",
        &[("content", "x\n"), ("marker", "; {mark}"), ("insert_before", "^a"), ("path", "/etc/f")],
        &[("/etc/f", "a\n")],
        &[("/etc/f", Some("; BEGIN\nx\n; END\na\n"))],
    ),
    of_file(
        "block",
        &[("content", "x"), ("create", "true"), ("sensitive", "true"), ("file", "/etc/f")],
        &[],
        &[("/etc/f", Some("# BEGIN steadfast: /etc/f\nx\n# END steadfast: /etc/f\n"))],
    ),
    of_file(
        "block",
        &[("marker", "; {mark}"), ("state", "absent"), ("insert_after", "EOF")],
        &[("/etc/f", "a\n; BEGIN\nx\n; END\nb")],
        &[("/etc/f", Some("a\nb"))],
    ),
    of_file(
        "ini",
        &[("section", "a"), ("key", "k"), ("value", "2"), ("comments", ";"), ("path", "/etc/f")],
        &[("/etc/f", SETTINGS)],
        &[("/etc/f", Some("# top\n[a]\nk = 2 ; c\n"))],
    ),
    of_file(
        "ini",
        &[("key", "k"), ("value", "2"), ("separator", "="), ("create", "true")],
        &[],
        &[("/etc/f", Some("k=2\n"))],
    ),
    of_file(
        "ini",
        &[
            ("section", "a"),
            ("key", "k"),
            ("state", "absent"),
            ("file", "/etc/f"),
            ("sensitive", "true"),
        ],
        &[("/etc/f", SETTINGS)],
        &[("/etc/f", Some("# top\n[a]\n"))],
    ),
    of_file(
        "json",
        &[("key", "a.b"), ("value", "1"), ("type", "string"), ("path", "/etc/f")],
        &[("/etc/f", "{\n  // c\n  \"x\": 1\n}\n")],
        &[("/etc/f", Some("{\n  // c\n  \"x\": 1,\n  \"a\": {\n    \"b\": \"1\"\n  }\n}\n"))],
    ),
    of_file(
        "json",
        &[
            ("key", "a"),
            ("value", "1"),
            ("create", "true"),
            ("file", "/etc/f"),
            ("sensitive", "true"),
        ],
        &[],
        &[("/etc/f", Some("{\n  \"a\": 1\n}\n"))],
    ),
    of_file(
        "json",
        &[("key", "x"), ("state", "absent")],
        &[("/etc/f", "{\"x\": 1}")],
        &[("/etc/f", Some("{}"))],
    ),
    of_file(
        "yaml",
        &[("key", "a.b"), ("value", "c: 1"), ("type", "tree"), ("path", "/etc/f")],
        &[("/etc/f", "x: 1 # c")],
        &[("/etc/f", Some("x: 1 # c\na:\n  b:\n    c: 1"))],
    ),
    of_file(
        "yaml",
        &[
            ("key", "a"),
            ("value", "1"),
            ("create", "true"),
            ("file", "/etc/f"),
            ("sensitive", "true"),
        ],
        &[],
        &[("/etc/f", Some("a: 1\n"))],
    ),
    of_file(
        "yaml",
        &[("key", "x.y"), ("state", "absent")],
        &[("/etc/f", "x: # c\n  y: 1\n")],
        &[("/etc/f", Some("x: {} # c\n"))],
    ),
    of_file(
        "toml",
        &[("key", "a.b"), ("value", "1"), ("type", "auto"), ("path", "/etc/f")],
        &[("/etc/f", "# c\n[a] # d\nx = 1\n")],
        &[("/etc/f", Some("# c\n[a] # d\nx = 1\nb = 1\n"))],
    ),
    of_file(
        "toml",
        &[
            ("key", "a"),
            ("value", "1"),
            ("create", "true"),
            ("file", "/etc/f"),
            ("sensitive", "true"),
        ],
        &[],
        &[("/etc/f", Some("a = 1\n"))],
    ),
    of_file(
        "toml",
        &[("key", "x"), ("state", "absent")],
        &[("/etc/f", "x = 1\ny = 2")],
        &[("/etc/f", Some("y = 2"))],
    ),
    Case {
        kind: "hosts",
        name: "db.example.org",
        given: &[("ip", "192.0.2.7"), ("names", "db"), ("sensitive", "false")],
        before: &[("/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 db.example.org # c\n")],
        after: &[("/etc/hosts", Some("127.0.0.1 localhost\n192.0.2.7 db.example.org db # c\n"))],
        prepare: nothing,
        units: &[],
    },
    Case {
        kind: "hosts",
        name: "six",
        given: &[("host", "db"), ("ip", "::7"), ("path", "/etc/f"), ("create", "true")],
        before: &[],
        after: &[("/etc/f", Some("::7\tdb\n"))],
        prepare: nothing,
        units: &[],
    },
    Case {
        kind: "hosts",
        name: "db",
        given: &[("family", "ipv6"), ("state", "absent")],
        before: &[("/etc/hosts", "192.0.2.1 db\n::7 db\n")],
        after: &[("/etc/hosts", Some("192.0.2.1 db\n"))],
        prepare: nothing,
        units: &[],
    },
    Case {
        kind: "ssh:authorized_key",
        name: "eve",
        given: &[("user", "eve"), ("key", KEY), ("options", "no-pty"), ("comment", "c")],
        before: &[PASSWD],
        after: &[(
            "/home/eve/.ssh/authorized_keys",
            Some(
                "no-pty ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC c\n",
            ),
        )],
        prepare: home_of_eve,
        units: &[],
    },
    Case {
        kind: "ssh:authorized_key",
        name: "eve on laptop",
        given: &[("user", "eve"), ("key", BODY), ("type", "ssh-ed25519"), ("exclusive", "true")],
        before: &[PASSWD],
        after: &[(
            "/home/eve/.ssh/authorized_keys",
            Some(
                "# mine\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC\n",
            ),
        )],
        prepare: keys_of_eve,
        units: &[],
    },
    Case {
        kind: "ssh:authorized_key",
        name: "gone",
        given: &[("user", "eve"), ("key", KEY), ("path", "/etc/keys"), ("state", "absent")],
        before: &[(
            "/etc/keys",
            "# c\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC x",
        )],
        after: &[("/etc/keys", Some("# c"))],
        prepare: nothing,
        units: &[],
    },
];
