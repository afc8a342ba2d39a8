//! The laws of `inspect`: the plan of a printed graph is empty, and an apply on a fresh host gives the same print.

use super::cases::CASES;
use super::{Case, GRAPH, apply, judge, prepared, run};
use crate::host::Host;
use steadfast_resources::inspect::{container_inspectors, not_inspected};

/// Returns the name for `inspect`: the object, or the file or user that contains it.
fn inspected_name(case: &Case) -> &'static str {
    let is_contained = container_inspectors().iter().any(|it| it.kind == case.kind);
    match case.kind {
        "ssh:authorized_key" => "root",
        // The file has the name of the job, the repository or the unit.
        "cron" | "repo" | "unit" => case.name,
        _ if is_contained => case.edited_file(),
        _ => case.name,
    }
}

impl Case {
    /// Returns the value of the field `path`.
    fn edited_file(&self) -> &'static str {
        let path = self.fields.split("path: ").nth(1).unwrap_or_default();
        path.split(',').next().unwrap_or_default()
    }
}

fn inspect(host: &Host, case: &Case) -> (Option<i32>, String) {
    let answer = host.run(&["steadfast", "inspect", case.kind, inspected_name(case)]);
    (answer.code, answer.stdout + &answer.stderr)
}

fn plan(host: &Host, printed: &str) -> (Option<i32>, String) {
    host.write("/run/inspected.yaml", printed);
    run(
        host,
        &["plan", "--detailed-exitcode", "--state-dir", "/run/inspected", "/run/inspected.yaml"],
    )
}

#[test]
fn printed_objects_are_converged_and_made_again_elsewhere() {
    let (host, _before) = prepared();
    let (code, said) = apply(&host);
    assert_eq!(code, Some(2), "{said}");
    let mut complaints = Vec::new();
    let mut printed = Vec::new();
    for case in CASES {
        let (code, text) = inspect(&host, case);
        if let Some(reason) = not_inspected(case.kind) {
            if code == Some(0) || !text.contains(reason) {
                complaints.push(format!("{}: {code:?}: {text}", case.identity()));
            }
            continue;
        }
        let (planned, said) = plan(&host, &text);
        if (code, planned) != (Some(0), Some(0)) || !text.contains("- name: ") {
            complaints.push(format!("{}: {code:?}: {text}\n{planned:?}: {said}", case.identity()));
        }
        printed.push((case, text));
    }
    judge(&complaints, &host);
    drop(host);
    let (fresh, _before) = prepared();
    for (case, text) in printed {
        fresh.write(GRAPH, &text);
        let (_, said) = apply(&fresh);
        let (_, again) = inspect(&fresh, case);
        if again != text {
            complaints.push(format!("{}: {text}\nand then {again}\n{said}", case.identity()));
        }
    }
    judge(&complaints, &fresh);
}

/// A value of a file that others cannot read, and a password, are printed by the name of a secret; with the secret
/// supplied, the plan is empty.
#[test]
fn secrets_are_printed_by_name() {
    let host = Host::boot();
    host.shell(
        "mkdir -p /etc/steadfast/secrets; chmod 700 /etc/steadfast/secrets; umask 077
         printf '[a]\\nkey = hidden-canary\\n' >/srv/private
         printf '{\"a\": {\"key\": \"hidden-canary\", \"number\": 7}}\\n' >/srv/private.json
         useradd -m laws; echo 'laws:$6$salt$hidden-canary' | chpasswd --encrypted
         printf hidden-canary >/etc/steadfast/secrets/ini_srv_private_a_key_value
         printf hidden-canary >/etc/steadfast/secrets/json_srv_private_json_a_key_value
         printf 7 >/etc/steadfast/secrets/json_srv_private_json_a_number_value
         printf '[a]\\nkey = hidden-canary\\n' >/etc/steadfast/secrets/file_srv_private_content
         printf '$6$salt$hidden-canary' >/etc/steadfast/secrets/user_laws_password",
    );
    for words in [
        ["ini", "/srv/private"],
        ["json", "/srv/private.json"],
        ["file", "/srv/private"],
        ["user", "laws"],
    ] {
        let answer = host.run(&[&["steadfast", "inspect"][..], &words].concat());
        let text = answer.stdout + &answer.stderr;
        assert_eq!(answer.code, Some(0), "{text}");
        assert!(text.contains("secret: ") && !text.contains("canary"), "{text}");
        let (code, said) = plan(&host, &text);
        assert_eq!(code, Some(0), "{text}\n{said}");
    }
}

/// All objects of a kind are listed, and a kind without a list says so.
#[test]
fn objects_of_a_kind_are_listed() {
    let (host, _before) = prepared();
    host.shell("rm -f /etc/cron.d/e2scrub_all");
    assert_eq!(apply(&host).0, Some(2));
    for kind in ["cron", "firewall", "mount", "repo", "ssh:authorized_key", "unit"] {
        let (code, text) = run(&host, &["inspect", "--all", kind]);
        assert!(
            code == Some(0) && text.contains("laws") || text.contains("root"),
            "{kind}: {text}"
        );
        let (code, said) = plan(&host, &text);
        assert_eq!(code, Some(0), "{kind}: {text}\n{said}");
    }
    let (code, said) = run(&host, &["inspect", "--all", "json"]);
    assert!(code == Some(1) && said.contains("name each file"), "{said}");
    let (code, said) = run(&host, &["inspect", "mount", "/proc"]);
    assert!(code == Some(1) && said.contains("without a row of /etc/fstab"), "{said}");
    let (code, said) = run(&host, &["inspect", "mount", "/proc", "/nowhere"]);
    assert!(code == Some(1) && said.contains("mount[/nowhere] does not exist"), "both: {said}");
    let (code, said) = run(&host, &["inspect", "nosuch"]);
    assert!(code == Some(64) && said.contains("unknown kind `nosuch`"), "{said}");
    let (_, said) = run(&host, &["inspect", "croon", "a"]);
    assert!(said.contains("did you mean `cron`?"), "{said}");
    let (code, said) = run(&host, &["inspect", "cron"]);
    assert!(code == Some(64) && said.contains("expected the names of objects"), "{said}");
}

/// Objects of other programs are printed too: a comment tells why a plan is not empty, and an apply of the print leaves
/// what they do. A graph without objects is a comment.
#[test]
fn foreign_objects_are_printed_with_a_comment() {
    let host = Host::boot();
    host.shell(
        "rm -f /etc/cron.d/* /etc/apt/sources.list; rm -f /etc/apt/sources.list.d/*
         mkdir -p /srv/more; touch /srv/more/Packages
         printf '# of Debian\\nTypes: deb\\nURIs: copy:/srv/more\\nSuites: ./\\nTrusted: yes\\nX-Name: a\\n' \
           >/etc/apt/sources.list.d/debian.sources",
    );
    let (code, text) = run(&host, &["inspect", "--all", "cron"]);
    assert!(code == Some(0) && text.starts_with("# no cron to print"), "{text}");
    host.write("/etc/cron.d/one", "# why\nPATH=/bin\n30 3  * * 0\troot test -e /run || true\n");
    host.write("/etc/cron.d/two", "@daily root true a\n* * * * * root  true b\n");
    let (code, text) = run(&host, &["inspect", "repo", "debian"]);
    let note = "# repo[debian]: a plan changes: content";
    assert!(code == Some(0) && text.contains(note) && text.contains("no X-Name"), "{text}");
    assert!(text.contains("- copy:/srv/more") && text.contains("trusted: true"), "{text}");
    let (code, text) = run(&host, &["inspect", "--all", "cron"]);
    assert!(code == Some(0) && text.contains("# cron[one]: ") && text.contains("two 2"), "{text}");
    host.write(GRAPH, &text);
    let (code, said) = run(&host, &["apply", GRAPH]);
    assert_eq!(code, Some(0), "{said}");
    let jobs = host.shell("cat /etc/cron.d/* | grep -c '^[*@3]'");
    assert_eq!(jobs, "3\n", "no job runs twice");
    let (code, again) = run(&host, &["inspect", "--all", "cron"]);
    assert!(code == Some(0) && !again.contains("# cron["), "{again}");
    let (code, said) = plan(&host, &again);
    assert_eq!(code, Some(0), "{again}\n{said}");
}

/// A private unit file is not shown, and each drop-in is printed as a resource.
#[test]
fn units_are_printed_as_the_kind_declares_them() {
    let host = Host::boot();
    host.shell(
        "cd /etc/systemd/system; mkdir systemd-journald.service.d
         printf '[Service]\\nEnvironment=PASSWORD=hidden-canary\\nExecStart=/bin/true\\n' >private.service
         chmod 600 private.service
         printf '[Service]\\nNice=3\\n' >systemd-journald.service.d/nice.conf
         printf '[Service]\\nExecStart=/bin/sleep 1003\\n' >own.service; mkdir own.service.d
         for name in a b; do printf '[Service]\\nEnvironment=%s=1\\n' $name >own.service.d/$name.conf; done
         systemctl daemon-reload",
    );
    let (code, text) = run(&host, &["inspect", "unit", "private.service"]);
    assert!(code == Some(1) && text.contains("is private") && !text.contains("canary"), "{text}");
    let (code, text) = run(&host, &["inspect", "unit", "systemd-journald.service"]);
    assert!(code == Some(0) && text.contains("drop_in: nice") && text.contains("Nice=3"), "{text}");
    let (code, said) = plan(&host, &text);
    assert_eq!(code, Some(0), "{text}\n{said}");
    let (code, text) = run(&host, &["inspect", "unit", "own.service"]);
    for line in ["- name: own.service\n", "- name: own.service a\n", "- name: own.service b\n"] {
        assert!(code == Some(0) && text.contains(line), "{line}: {text}");
    }
    let (code, said) = plan(&host, &text);
    assert_eq!(code, Some(0), "{text}\n{said}");
    // A parameter with a line in a file of another name is printed with the file.
    host.shell("echo net.ipv4.ip_default_ttl=63 >/etc/sysctl.d/50-other.conf; sysctl --system >/dev/null 2>&1 || true
                cat /etc/sysctl.d/50-other.conf; echo 63 >/proc/sys/net/ipv4/ip_default_ttl");
    let (code, text) = run(&host, &["inspect", "--all", "sysctl"]);
    assert!(code == Some(0) && text.contains("path: /etc/sysctl.d/50-other.conf"), "{text}");
    let (code, said) = plan(&host, &text);
    assert_eq!(code, Some(0), "{text}\n{said}");
    // The name of the kernel differs from the stored one.
    host.shell("echo stored >/etc/hostname; chmod 644 /etc/hostname; hostname present");
    let (code, text) = run(&host, &["inspect", "hostname", "stored"]);
    assert!(code == Some(0) && text.contains("transient_hostname: present"), "{text}");
    let (code, said) = plan(&host, &text);
    assert_eq!(code, Some(0), "{text}\n{said}");
}
