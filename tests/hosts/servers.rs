//! The servers of `examples/servers`, each applied from nothing on a fresh host, judged by the programs themselves
//! (`tests/run --slow servers`; `STEADFAST_TEST_SUITE=trixie` takes Debian 13).

use crate::host::{Host, within};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The wait for a whole server; packages take most of it.
const WHOLE: Duration = Duration::from_mins(5);

/// The settings of the unit: the graph is a copy of the examples.
const SETTINGS: &str = "/etc/steadfast/steadfast.yaml";

/// Makes the repository with these packages; returns its folder.
fn make_repository(name: &str, packages: &[&str]) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/make-repository");
    let mut command = Command::new(script);
    let made = command.arg(name).args(packages).stderr(Stdio::inherit()).output().expect("runs");
    assert!(made.status.success(), "make-repository said why above");
    PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim())
}

/// Boots a host with a repository of these packages and the examples in `/etc/steadfast/examples`; the service is not
/// started.
fn boot(name: &str, packages: &[&str], tools: &str) -> Host {
    let repository = make_repository(name, packages);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let host = Host::boot_with(&[(repository, "/opt/repository"), (examples, "/opt/examples")]);
    host.write(SETTINGS, &format!("graph: /etc/steadfast/examples/servers/{name}.yaml\n"));
    host.shell(&format!(
        "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
         echo 'deb [trusted=yes] copy:/opt/repository ./' >/etc/apt/sources.list
         apt-get -q update >/dev/null
         DEBIAN_FRONTEND=noninteractive apt-get install -y -q {tools} >/dev/null
         cp -r /opt/examples /etc/steadfast/examples
         chmod -R go-w /etc/steadfast"
    ));
    host
}

impl Host {
    /// Starts the service and waits until the whole graph is converged.
    fn start_whole(&self) {
        self.start();
        self.wait_whole();
    }

    fn wait_whole(&self) {
        let is_whole =
            within(WHOLE, || self.run(&["steadfast", "wait", "--timeout", "10"]).code == Some(0));
        let status = self.run(&["steadfast", "status"]);
        assert!(is_whole, "{}{}\n{}", status.stdout, status.stderr, self.tell());
        let plan = self.run(&["steadfast", "plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{}{}", plan.stdout, plan.stderr);
    }

    /// Returns how often nginx was reloaded.
    fn reloads(&self) -> usize {
        self.shell("journalctl -u nginx --no-pager | grep -c 'Reloaded nginx' || true")
            .trim()
            .parse()
            .expect("a number")
    }

    /// Returns the page of a site.
    fn page(&self, site: &str) -> String {
        self.run(&[
            "curl",
            "-sk",
            "--max-time",
            "5",
            "--resolve",
            &format!("{site}:443:127.0.0.1"),
            &format!("https://{site}/"),
        ])
        .stdout
    }
}

const WEB: &[&str] = &["nginx-light", "openssl", "logrotate", "sudo", "curl", "ca-certificates"];

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_web_server_serves_its_sites() {
    let host = boot("web", WEB, "curl");
    host.start_whole();
    host.shell("nginx -t 2>&1; systemctl is-active nginx renew-certificate.timer; logrotate --debug /etc/logrotate.d/sites 2>&1");
    assert_eq!(host.page("shop.example.org"), "<h1>The shop</h1>\n");
    assert_eq!(host.page("blog.example.org"), "<h1>The blog</h1>\n");
    assert!(host.shell("id -Gn ada").contains("sudo"));
    assert!(host.shell("cat /home/grace/.ssh/authorized_keys").contains("grace@laptop"));

    // A reload of an equal graph reloads nothing; a new site and a removed site reload nginx once each.
    let graph = "/etc/steadfast/examples/servers/web.yaml";
    let before = host.reloads();
    host.shell("steadfast reload");
    host.wait_whole();
    assert_eq!(host.reloads(), before);
    host.shell(&format!("sed -i 's/^  sites:/&\\n    news.example.org: {{ heading: The news }}/' {graph}; steadfast reload"));
    host.wait_whole();
    assert_eq!(host.page("news.example.org"), "<h1>The news</h1>\n");
    assert_eq!(host.reloads(), before + 1);
    host.shell(&format!("sed -i /news.example.org/d {graph}; steadfast reload"));
    host.wait_whole();
    assert_eq!(host.reloads(), before + 2);
    host.shell("! test -e /etc/nginx/sites-enabled/news.example.org.conf; ! test -e /srv/www/news.example.org");

    // Drift by hand returns.
    let vhost = host.shell("cat /etc/nginx/sites-enabled/shop.example.org.conf");
    host.shell("rm /etc/nginx/sites-enabled/shop.example.org.conf; systemctl stop nginx");
    host.until("the site to be back", || {
        host.read("/etc/nginx/sites-enabled/shop.example.org.conf").as_deref() == Some(&*vhost)
            && host.page("shop.example.org") == "<h1>The shop</h1>\n"
    });
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_killed_daemon_ends_with_the_same_web_server() {
    let host = boot("web", WEB, "curl");
    // systemd starts the daemon again after each kill.
    host.shell(
        "mkdir -p /etc/systemd/system/steadfast.service.d
         printf '[Service]\\nRestartSec=100ms\\n[Unit]\\nStartLimitIntervalSec=0\\n' \
           >/etc/systemd/system/steadfast.service.d/again.conf
         systemctl daemon-reload",
    );
    host.start();
    // A fixed sequence of pauses between 50 and 950 ms.
    for round in 0_u64..20 {
        std::thread::sleep(Duration::from_millis(50 + (round * 7919) % 900));
        host.shell("systemctl kill --signal=KILL --kill-whom=main steadfast || true");
        host.until("the daemon to be back", || {
            host.run(&["systemctl", "is-active", "steadfast"]).code == Some(0)
        });
    }
    host.wait_whole();
    assert_eq!(host.page("shop.example.org"), "<h1>The shop</h1>\n");
    assert_eq!(host.shell("dpkg --audit"), "");
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_database_server_answers_queries() {
    let packages = ["postgresql", "sudo"];
    let host = boot("database", &packages, "");
    host.start_whole();
    let query = "SELECT d.datname || ' ' || r.rolname FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba ORDER BY 1";
    let owners =
        host.shell(&format!("setpriv --reuid postgres --clear-groups psql -XtAc \"{query}\""));
    assert!(owners.contains("blog blog\n") && owners.contains("shop shop\n"), "{owners}");
    let limit =
        host.shell("setpriv --reuid postgres --clear-groups psql -XtAc 'SHOW max_connections'");
    assert_eq!(limit, "50\n");
    host.shell("visudo -c; systemctl start backup-databases; zgrep -q 'CREATE DATABASE' /var/backups/postgresql/all-*.gz");
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_hardened_base_is_held() {
    let packages = ["openssh-server", "cron"];
    let host = boot("hardened", &packages, "");
    host.start_whole();
    host.shell("sshd -t; visudo -V >/dev/null 2>&1 || true");
    let settings = host.shell("sshd -T");
    for setting in ["permitrootlogin no", "maxauthtries 2", "x11forwarding no", "loglevel VERBOSE"]
    {
        assert!(settings.lines().any(|line| line == setting), "{setting} in {settings}");
    }
    // The adversary undoes one setting after the other.
    let declared = host.shell(
        "cat /etc/ssh/sshd_config /etc/login.defs; stat -c '%a %U %G' /etc/shadow /etc/crontab",
    );
    for damage in [
        "sed -i '/^PermitRootLogin/d' /etc/ssh/sshd_config",
        "sed -i 's/^MaxAuthTries .*/MaxAuthTries 9/' /etc/ssh/sshd_config",
        "sed -i 's/^UMASK.*/UMASK 022/' /etc/login.defs",
        "chmod 0666 /etc/shadow",
        "chmod 0644 /etc/crontab",
    ] {
        host.shell(damage);
        host.until(damage, || {
            let now = host.shell("cat /etc/ssh/sshd_config /etc/login.defs; stat -c '%a %U %G' /etc/shadow /etc/crontab");
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            sorted(&now) == sorted(&declared)
        });
    }
}
