//! Twenty minutes of all adversaries over the web server and the hardened base (`tests/run --slow soak`;
//! `STEADFAST_SOAK_MINUTES` sets another time).
//!
//! Rewrites, stopped services, a full disk, a hung journald, reloads and package runs by hand come in random order, and
//! kills in the first quarter. After each minute they stop: the host must be converged within a minute, and the daemon
//! is measured. In the second half its descriptors, threads, watches and memory stay flat: a daemon that was just
//! started fills its pools and caches first.

use super::{Chance, boot, note};
use crate::host::{Host, within};
use std::fmt;
use std::time::{Duration, Instant};

/// The longest time to a converged host after the adversaries stop.
const CONVERGENCE: Duration = Duration::from_mins(1);

/// The share of the time in which the daemon is killed, too: a killed daemon shows no leak.
const KILLING: f64 = 0.25;

/// A server and what its adversaries do beside those of all servers.
struct Campaign {
    graph: &'static str,
    packages: &'static [&'static str],
    /// Changes of declared objects.
    rewrites: &'static [&'static str],
    /// Services that are stopped.
    services: &'static [&'static str],
    /// Changes of the graph before a reload; the last one restores the graph.
    edits: &'static [&'static str],
    /// Runs of packages by hand.
    runs: &'static [&'static str],
    /// Directories that are small file systems of their own, to be filled.
    disks: &'static [&'static str],
}

/// The measures of a daemon with nothing to do.
#[derive(Clone, Copy, Debug)]
struct Measures {
    pid: u32,
    descriptors: u32,
    threads: u32,
    watches: u32,
    anonymous_kib: u32,
}

impl fmt::Display for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "daemon {}: {} descriptors, {} threads, {} watches, {} KiB of anonymous memory",
            self.pid, self.descriptors, self.threads, self.watches, self.anonymous_kib
        )
    }
}

impl Host {
    fn measures(&self) -> Measures {
        let text = self.shell(
            "pid=$(systemctl show --property MainPID --value steadfast); echo $pid
             ls /proc/$pid/fd | wc -l
             ls /proc/$pid/task | wc -l
             cat /proc/$pid/fdinfo/* 2>/dev/null | grep -c '^inotify wd' || true
             awk '/^RssAnon/ { print $2 }' /proc/$pid/status",
        );
        let numbers: Vec<u32> =
            text.split_whitespace().map(|it| it.parse().expect("a number")).collect();
        let &[pid, descriptors, threads, watches, anonymous_kib] = numbers.as_slice() else {
            panic!("expected five numbers, found {text}");
        };
        Measures { pid, descriptors, threads, watches, anonymous_kib }
    }

    /// Waits until the host is converged and returns the time.
    fn wait_until_converged(&self) -> Duration {
        let start = Instant::now();
        let is_converged = within(CONVERGENCE, || {
            self.run(&["steadfast", "wait", "--timeout", "5"]).code == Some(0)
                && self.run(&["steadfast", "plan", "--detailed-exitcode"]).code == Some(0)
        });
        let elapsed = start.elapsed();
        let status = self.run(&["steadfast", "status"]).stdout;
        assert!(is_converged, "not converged after {CONVERGENCE:?}: {status}\n{}", self.report());
        elapsed
    }
}

/// Fills a small file system for two seconds.
fn fill(folder: &str) -> String {
    format!(
        "dd if=/dev/zero of={folder}/filling bs=64k status=none 2>/dev/null || true
         sleep 2; rm -f {folder}/filling"
    )
}

/// Runs one of these adversaries.
fn harm(host: &Host, campaign: &Campaign, chance: &mut Chance, with_kills: bool) {
    let pick = |all: &'static [&'static str], chance: &mut Chance| all[chance.below(all.len())];
    match chance.below(if with_kills { 8 } else { 7 }) {
        // A rewrite fails in part if a repair comes in between, and a stop if a package is just being removed.
        0 | 1 => drop(host.run(&["sh", "-c", pick(campaign.rewrites, chance)])),
        2 => drop(host.run(&["systemctl", "stop", pick(campaign.services, chance)])),
        3 => drop(host.shell(&fill(pick(campaign.disks, chance)))),
        4 => drop(host.shell(
            "systemctl kill --signal=STOP --kill-whom=main systemd-journald; sleep 3
             systemctl kill --signal=CONT --kill-whom=main systemd-journald",
        )),
        5 => {
            host.shell(pick(campaign.edits, chance));
            // A reload on a full disk or of a daemon that starts can be refused.
            host.run(&["steadfast", "reload"]);
        }
        6 => {
            // A run by hand fails if steadfast holds the lock of dpkg.
            host.run(&["sh", "-c", pick(campaign.runs, chance)]);
        }
        _ => drop(host.shell("systemctl kill --signal=KILL --kill-whom=main steadfast || true")),
    }
}

fn soak(campaign: &Campaign) {
    let given = std::env::var("STEADFAST_SOAK_MINUTES").ok().and_then(|it| it.parse().ok());
    let total = Duration::from_secs(60 * given.unwrap_or(20));
    let host = boot(campaign.graph, campaign.packages);
    for folder in campaign.disks {
        host.shell(&format!("mkdir -p {folder}; mount -t tmpfs -o size=48m tmpfs {folder}"));
    }
    host.restart_at_once();
    host.start_whole();
    note(&format!("at the start: {}", host.measures()));
    let mut chance = Chance::new();
    let start = Instant::now();
    let (mut first, mut last, mut count) = (None, None, 0);
    while start.elapsed() < total {
        let with_kills = start.elapsed() < total.mul_f64(KILLING);
        let minute = Instant::now();
        while minute.elapsed() < Duration::from_mins(1).min(total / 4) {
            harm(&host, campaign, &mut chance, with_kills);
            count += 1;
            std::thread::sleep(chance.pause());
        }
        host.shell(campaign.edits.last().expect("an edit"));
        host.run(&["steadfast", "reload"]);
        let time = host.wait_until_converged();
        // Threads of the pools end after ten seconds without work.
        std::thread::sleep(Duration::from_secs(12));
        let measures = host.measures();
        note(&format!("{:?}: converged after {time:?}; {measures}", start.elapsed()));
        if start.elapsed() > total / 2 {
            last = Some(measures);
            first = first.or(last);
        }
    }
    let (first, last) = (first.expect("a second half"), last.expect("the same"));
    note(&format!("{count} harms in {:?}", start.elapsed()));
    assert_eq!(first.pid, last.pid, "the daemon ended by itself: {}", host.report());
    assert!(last.descriptors <= first.descriptors + 4, "descriptors: {first}; {last}");
    assert!(last.threads <= first.threads + 2, "threads: {first}; {last}");
    assert!(last.watches <= first.watches + 8, "watches: {first}; {last}");
    // The records of the harms are in the state directory, not in memory.
    assert!(last.anonymous_kib <= first.anonymous_kib + 2048, "memory: {first}; {last}");
    assert_eq!(host.shell("dpkg --audit"), "");
}

#[test]
#[ignore = "takes twenty minutes: tests/run --slow soak"]
fn a_web_server_outlasts_all_adversaries() {
    soak(&Campaign {
        graph: "/etc/steadfast/examples/servers/web.yaml",
        packages: super::web::PACKAGES,
        rewrites: &[
            "rm -rf /srv/www/*",
            "echo broken >/etc/nginx/sites-enabled/shop.example.org.conf",
            "nft flush ruleset; rm -f /etc/nftables.d/web.nft",
            "userdel ada; rm -f /home/grace/.ssh/authorized_keys",
            "chmod 0777 /usr/local/sbin/renew-certificate; chown nobody /etc/nginx/tls",
            "rm -f /etc/systemd/system/renew-certificate.* /etc/logrotate.d/sites",
        ],
        services: &["nginx", "renew-certificate.timer"],
        edits: &[
            "grep -q news.example /etc/steadfast/examples/servers/web.yaml ||
               sed -i 's/^  sites:/&\\n    news.example.org: { heading: The news }/' /etc/steadfast/examples/servers/web.yaml",
            "echo 'resources: [' >/etc/steadfast/examples/servers/web.yaml",
            "cp /opt/examples/servers/web.yaml /etc/steadfast/examples/servers/web.yaml",
        ],
        runs: &[
            "DEBIAN_FRONTEND=noninteractive apt-get purge -y -q logrotate",
            "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --reinstall nginx-light",
            "apt-get update -q; apt-get check -q",
        ],
        disks: &["/var/lib/steadfast", "/srv"],
    });
}

#[test]
#[ignore = "takes twenty minutes: tests/run --slow soak"]
fn a_hardened_base_outlasts_all_adversaries() {
    soak(&Campaign {
        graph: "/etc/steadfast/examples/servers/hardened.yaml",
        packages: super::hardened::PACKAGES,
        rewrites: &[
            "sed -i '/^[A-Z]/d' /etc/ssh/sshd_config",
            "sed -i '/^[A-Z]/d' /etc/login.defs",
            "chmod 0777 /etc/crontab /etc/shadow /etc/cron.daily; chown nobody /etc/login.defs",
            "rm -f /etc/profile.d/umask.sh; echo hello >/etc/issue.net",
            "touch /etc/hosts.equiv /root/.rhosts",
            "cp /usr/share/openssh/sshd_config /etc/ssh/sshd_config",
        ],
        services: &["ssh", "cron"],
        edits: &[
            "sed -i 's/MaxSessions: \"10\"/MaxSessions: \"9\"/' /etc/steadfast/examples/modules/hardening/module.yaml",
            "echo 'params: [' >/etc/steadfast/examples/modules/hardening/module.yaml",
            "cp /opt/examples/modules/hardening/module.yaml /etc/steadfast/examples/modules/hardening/module.yaml",
        ],
        runs: &[
            "DEBIAN_FRONTEND=noninteractive apt-get purge -y -q cron",
            "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --reinstall openssh-server",
            "apt-get update -q; apt-get check -q",
        ],
        disks: &["/var/lib/steadfast"],
    });
}
