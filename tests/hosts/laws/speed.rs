//! A graph of 200 resources of all kinds with nothing to do: the tables of the host are read once each.

use super::cases::CASES;
use super::{GRAPH, apply, prepared, run};
use crate::host::Host;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of resources.
const COUNT: usize = 200;

/// Returns the cases and as many further resources of the common kinds as make 200.
fn large_graph() -> String {
    let kinds =
        ["user", "group", "file", "cron", "mount", "ini", "line", "hosts", "svc", "pkg", "unit"];
    let own = CASES.iter().map(|case| (case.kind, format!("    - {}\n", case.mapping())));
    let mut items: BTreeMap<&str, String> = own.collect();
    for number in 0..COUNT - CASES.len() {
        let kind = kinds[number % kinds.len()];
        let more = number / kinds.len();
        let item = match kind {
            "user" => format!("{{name: more-user-{more}, uid: {}}}", 3000 + more),
            "group" => format!("{{name: more-group-{more}, gid: {}}}", 4000 + more),
            "file" => {
                format!("{{name: /srv/laws/more-{more}, content: \"{more}\\n\", mode: \"0644\"}}")
            }
            "cron" => format!("{{name: more-{more}, minute: 3, job: /usr/bin/true}}"),
            "mount" => format!("{{name: /srv/laws/mount-{more}, device: tmpfs, type: tmpfs}}"),
            "ini" => format!(
                "{{name: more-{more}, path: /srv/laws/ini, section: more, key: k{more}, value: v}}"
            ),
            "line" => format!("{{name: more-{more}, path: /srv/laws/line, line: more {more}}}"),
            "hosts" => format!("{{name: more-{more}.example.org, ip: 192.0.2.{}}}", 100 + more),
            "svc" => format!("{{name: more-{more}, state: running, startup: enabled}}"),
            "pkg" => format!("{{name: more-{more}}}"),
            _ => format!(
                "{{name: other-{more}.service, content: \"[Service]\\nExecStart=/bin/sleep 1006\\n\"}}"
            ),
        };
        let all = items.entry(kind).or_default();
        writeln!(all, "    - {item}").expect("a string");
    }
    let sections = items.iter().map(|(kind, items)| format!("  \"{kind}\":\n{items}"));
    format!("graph: large\nresources:\n{}", sections.collect::<String>())
}

/// The state of the host that the further resources need: directories, services and packages.
const PREPARE: &str = r#"
for more in $(seq 0 15); do
  mkdir -p "/srv/laws/mount-$more"
  printf '[Service]\nExecStart=/bin/sleep 1007\n[Install]\nWantedBy=multi-user.target\n' \
    >"/etc/systemd/system/more-$more.service"
  mkdir -p "/run/more-$more/DEBIAN"
  printf 'Package: more-%s\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: d\n' "$more" \
    >"/run/more-$more/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "/run/more-$more" /repo >/dev/null
done
systemctl daemon-reload
cd /repo
for deb in *.deb; do
  dpkg-deb -f "$deb"; echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"; echo
done >Packages
apt-get -q update >/dev/null 2>&1
"#;

/// Applies the graph under strace and returns the paths that steadfast opens itself, without those of its commands.
fn opened(host: &Host) -> Vec<String> {
    let trace =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opened-{}", std::process::id()));
    let status = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-e", "trace=execve,open,openat,openat2", "-o"])
        .arg(&trace)
        .args(["nsenter", "--target", &host.leader().to_string(), "--root", "--wd", "--mount"])
        .args(["--pid", "--net", "--uts", "--ipc", "--cgroup", "--", "/usr/bin/steadfast"])
        .args(["apply", "--detailed-exitcode", GRAPH])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("strace can be started");
    let text = std::fs::read_to_string(&trace).expect("a trace");
    std::fs::remove_file(&trace).expect("removed");
    assert_eq!(status.code(), Some(0), "nothing is left to do: {}", host.report());
    let mut commands = BTreeSet::new();
    let mut opened = Vec::new();
    for line in text.lines() {
        let Some((process, call)) = line.trim_start().split_once(' ') else { continue };
        let path = line.split('"').nth(1).unwrap_or_default();
        if call.trim_start().starts_with("execve") {
            if path.ends_with("/steadfast") {
                commands.remove(process);
            } else {
                commands.insert(process);
            }
        } else if !commands.contains(process) && !line.contains("O_PATH") && !line.contains("= -1")
        {
            // The C library looks up the name of the user who applies, once or twice for a process.
            let is_of_library = line.contains("AT_FDCWD, \"/etc/passwd\"");
            opened.push(if is_of_library { "of the library" } else { path }.to_owned());
        }
    }
    opened
}

/// Returns the median time of an apply without changes, as a whole process.
fn median(host: &Host, more: &[&str]) -> Duration {
    let mut times = [Duration::ZERO; 9];
    for time in &mut times {
        let start = Instant::now();
        let words = [&["apply", "--detailed-exitcode", GRAPH], more].concat();
        let (code, said) = run(host, &words);
        assert_eq!(code, Some(0), "{said}");
        *time = start.elapsed();
    }
    times.sort_unstable();
    times[4]
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
#[test]
fn two_hundred_resources_read_each_table_once() {
    let (host, _before) = prepared();
    host.shell(PREPARE);
    host.write(GRAPH, &large_graph());
    let (code, said) = apply(&host);
    assert_eq!(code, Some(2), "{said}");
    // The rules of a firewall are compared by six runs of nft, whose time is not that of steadfast.
    let (all, rest) = (median(&host, &[]), median(&host, &["--skip", "firewall"]));
    println!("{COUNT} resources without changes: {all:?}; without the firewall: {rest:?}");
    let opened = opened(&host);
    let count =
        |name: &str| opened.iter().filter(|path| path.rsplit('/').next() == Some(name)).count();
    assert!(count("of the library") <= 2, "{opened:?}");
    let counts = ["status", "passwd", "group", "fstab"].map(|name| (name, count(name)));
    println!("opened: {counts:?}");
    assert!(counts.iter().all(|(_, count)| *count == 1), "each table is read once: {counts:?}");
}
