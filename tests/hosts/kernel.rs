//! The kinds `cron`, `sysctl` and `mount` on a host: applied, broken by hand, restored, and removed.
//!
//! `kmod`, `swap`, and `sysctl` outside `net.*` need a kernel of their own, which a host here does not have.

use crate::host::{Host, within};
use crate::service::GRAPH;
use std::time::Duration;

/// The wait for a repair without an event: the poll of 30 s, and time for a slow machine.
const POLL: Duration = Duration::from_secs(75);

const DECLARED: &str = r#"
graph: host
resources:
  file:
    - name: /etc/sysctl.d/
    - name: /srv/memory/
    - name: /srv/source/
    - name: /srv/source/seen
      content: bound
    - name: /srv/bound/
    - name: /srv/memory/held
      content: in memory
  cron:
    - name: backup
      minute: 30
      hour: "3"
      weekday: mon-fri
      job: /usr/bin/true --quiet
      env: {MAILTO: ""}
      meta: {on_remove: delete}
    - name: nightly job
      file: jobs
      special: "@daily"
      job: /usr/bin/true
      meta: {on_remove: delete}
  sysctl:
    - name: net.ipv4.ip_forward
      value: 1
      meta: {on_remove: delete}
    - name: net/ipv4/ip_local_port_range
      value: 20000 30000
      persist: false
  mount:
    - name: /srv/memory
      device: tmpfs
      type: tmpfs
      options: [size=1m, noexec]
      meta: {on_remove: delete}
    - name: /srv/bound
      device: /srv/source
      options: [bind, ro]
      meta: {on_remove: delete}
"#;

/// The graph without its jobs, parameters and mounts.
const LEFT: &str = "
graph: host
resources:
  file:
    - name: /etc/sysctl.d/
    - name: /srv/memory/
    - name: /srv/source/
    - name: /srv/bound/
";

const FSTAB: &str = "# a comment\n\nUUID=0 /nowhere  ext4\tnoauto 0 0\nbroken";

/// All that the graph declares, as other programs see it.
const LOOK: &str = "
    cat /etc/cron.d/backup /etc/cron.d/jobs /etc/sysctl.d/60-steadfast.conf /etc/fstab
    stat --format '%a %U' /etc/cron.d/backup
    cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_local_port_range
    findmnt --noheadings --output FSTYPE,SIZE /srv/memory
    findmnt --noheadings --output VFS-OPTIONS /srv/memory | grep -o noexec
    cat /srv/bound/seen
    ! touch /srv/bound/seen 2>/dev/null && echo read-only
";

fn booted() -> Host {
    let host = Host::boot();
    host.write("/etc/fstab", FSTAB);
    host.write("/etc/cron.d/jobs", "SHELL=/bin/sh\n* * * * * root true\n");
    host.write(GRAPH, DECLARED);
    host.start();
    host
}

#[test]
fn kernel_settings_and_mounts_are_applied_and_repaired() {
    let host = booted();
    let is_whole = || host.run(&["sh", "-euc", LOOK]).code == Some(0);
    host.until("the graph to be applied", is_whole);
    // The row of a mount is written after the mount.
    host.until("the end of all runs", || host.log().iter().any(|it| it.contains("converged")));
    let fstab = host.read("/etc/fstab").unwrap();
    let rows = "/srv/memory tmpfs size=1m,noexec 0 0\n";
    assert!(fstab.starts_with(&format!("{FSTAB}\n")) && fstab.contains(rows), "{fstab}");
    assert!(fstab.contains("/srv/source /srv/bound none bind,ro 0 0\n"), "{fstab}");
    let job = "# Managed by steadfast: cron[backup]\nMAILTO=\"\"\n30 3 * * mon-fri root /usr/bin/true --quiet\n";
    assert_eq!(host.read("/etc/cron.d/backup").as_deref(), Some(job));
    let jobs =
        "SHELL=/bin/sh\n* * * * * root true\n# steadfast: nightly job\n@daily root /usr/bin/true\n";
    assert_eq!(host.read("/etc/cron.d/jobs").as_deref(), Some(jobs));
    let line = host.read("/etc/sysctl.d/60-steadfast.conf");
    assert_eq!(line.as_deref(), Some("net.ipv4.ip_forward = 1\n"));
    let declared = host.shell(LOOK);
    assert_eq!(host.read("/srv/memory/held").as_deref(), Some("in memory"));
    assert!(
        host.shell("findmnt --noheadings --output FSTYPE --target /srv/memory/held")
            .contains("tmpfs")
    );

    let (code, said) = plan(&host);
    assert_eq!(code, Some(0), "nothing is left to do: {said}");
    for damage in [
        "rm /etc/cron.d/backup",
        "chmod 0666 /etc/cron.d/backup",
        "sed -i s/30/31/ /etc/cron.d/backup",
        "sed -i /nightly/,/daily/d /etc/cron.d/jobs",
        "sed -i s/@daily/@hourly/ /etc/cron.d/jobs",
        "echo net.ipv4.ip_forward=0 >>/etc/sysctl.d/60-steadfast.conf",
        "echo 0 >/proc/sys/net/ipv4/ip_forward",
        "echo 1024 2048 >/proc/sys/net/ipv4/ip_local_port_range",
        "sed -i '\\|/srv/memory|d' /etc/fstab",
        "umount /srv/bound",
        "umount /srv/memory",
        "mount -o remount,exec /srv/memory",
        "mount -o remount,bind,rw /srv/bound",
    ] {
        host.shell(damage);
        // A row that comes back stands at the end.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let is_back = || {
            let answer = host.run(&["sh", "-euc", LOOK]);
            answer.code == Some(0) && sorted(&answer.stdout) == sorted(&declared)
        };
        assert!(
            within(POLL, is_back),
            "{damage}\n{}\n{}",
            host.run(&["sh", "-c", LOOK]).stdout,
            host.report()
        );
    }
}

/// The kinds of the graph leave the graph, and the host is as before; foreign lines survive.
#[test]
fn removed_settings_and_mounts_leave_the_host_as_before() {
    let host = booted();
    host.until("the graph to be applied", || host.run(&["sh", "-euc", LOOK]).code == Some(0));
    host.write(GRAPH, LEFT);
    host.systemctl("reload");
    host.until("the removals", || {
        host.run(&["findmnt", "/srv/memory"]).code != Some(0)
            && host.run(&["findmnt", "/srv/bound"]).code != Some(0)
            && host.read("/etc/cron.d/backup").is_none()
            && host.read("/etc/fstab").as_deref() == Some(&format!("{FSTAB}\n"))
            && host.read("/etc/sysctl.d/60-steadfast.conf").as_deref() == Some("")
            && host.read("/etc/cron.d/jobs").as_deref()
                == Some("SHELL=/bin/sh\n* * * * * root true\n")
    });
    assert_eq!(host.read("/srv/source/seen").as_deref(), Some("bound"));
}

/// An undo restores the former value of a parameter, and unmounts what was mounted.
#[test]
fn former_values_and_mounts_are_restored() {
    let host = booted();
    host.until("the graph to be applied", || host.run(&["sh", "-euc", LOOK]).code == Some(0));
    host.shell("systemctl stop steadfast");
    let before = host.shell("cat /proc/sys/net/ipv4/ip_local_port_range");
    assert_eq!(before.split_whitespace().collect::<Vec<_>>(), ["20000", "30000"]);
    for name in ["sysctl[net/ipv4/ip_local_port_range]", "mount[/srv/bound]"] {
        let answer = host.run(&["steadfast", "undo", name]);
        assert_eq!(answer.code, Some(0), "{name}: {}{}", answer.stdout, answer.stderr);
    }
    let after = host.shell("cat /proc/sys/net/ipv4/ip_local_port_range");
    assert_eq!(after.split_whitespace().collect::<Vec<_>>(), ["32768", "60999"]);
    assert_ne!(host.run(&["findmnt", "/srv/bound"]).code, Some(0));
    assert!(!host.read("/etc/fstab").unwrap().contains("/srv/bound"));
}

/// A mistake on the host fails one resource; the others converge, and the failed one heals with its cause.
#[test]
fn one_mistake_fails_one_resource() {
    let host = Host::boot();
    host.write(
        GRAPH,
        "
graph: host
resources:
  cron:
    - {name: theirs, job: /usr/bin/true, user: later}
  sysctl:
    - {name: net.ipv4.no_such_parameter, value: 1, persist: false}
    - {name: net.ipv4.ip_forward, value: many, persist: false}
  mount:
    - {name: /srv/missing, device: tmpfs, type: tmpfs}
  file:
    - {name: /etc/held, content: \"as declared\\n\"}
",
    );
    host.start();
    host.until("the other resource", || host.is_held());
    host.until("four failures", || {
        let log = host.log().join("\n");
        ["cron[theirs]", "no_such_parameter", "ip_forward]", "/srv/missing"]
            .iter()
            .all(|name| log.lines().any(|line| line.contains(name) && line.contains("fail")))
    });
    assert!(host.read("/etc/cron.d/theirs").is_none());
    host.shell("useradd later; mkdir /srv/missing");
    let is_healed = || {
        host.read("/etc/cron.d/theirs").is_some()
            && host.run(&["findmnt", "/srv/missing"]).code == Some(0)
    };
    assert!(within(POLL, is_healed), "{}", host.report());
}

fn plan(host: &Host) -> (Option<i32>, String) {
    let answer = host.run(&["steadfast", "plan", GRAPH]);
    (answer.code, answer.stdout + &answer.stderr)
}
