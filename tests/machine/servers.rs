//! Two servers of `examples/servers` with a kernel of their own: the hardened base with all of its settings, judged by
//! the controls of dev-sec, and the web server over a restart while a server block is rejected.

use crate::machine::Machine;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The longest wait for a whole server; an emulated processor installs its packages slowly.
const WHOLE: Duration = Duration::from_mins(15);

/// The longest time of the adversary with all settings.
const ADVERSARY: Duration = Duration::from_mins(20);

/// The longest repair by event. The emulated processor takes a second to start sshd, which judges its settings.
const EVENT: &str = "10";

/// The longest repair by poll: the check every 30 s, and time for an emulated machine.
const POLL: &str = "45";

const WAIT: &str = "steadfast wait --timeout 20 >/dev/null && echo converged";

/// Runs a program of `tests/hosts` that prints a folder.
fn folder_of(program: &str, arguments: &[&str]) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(program);
    let mut command = Command::new(script);
    let made = command.args(arguments).stderr(Stdio::inherit()).output().expect("runs");
    assert!(made.status.success(), "{program} said why above");
    PathBuf::from(String::from_utf8(made.stdout).expect("a path").trim())
}

/// Boots a machine that can install these packages, with the examples and the judges of the servers.
fn boot(server: &str, packages: &[&str]) -> Machine {
    let name = format!("{server}-machine");
    let all: Vec<&str> = [name.as_str()].iter().chain(packages).copied().collect();
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut machine = Machine::boot_with(vec![
        ("repository", folder_of("make-repository", &all)),
        ("judges", folder_of("make-judges", &[])),
        ("examples", top.join("examples")),
        ("servers", top.join("tests/servers")),
    ]);
    machine.mount_shares();
    machine.shell(&format!(
        "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
         echo 'deb [trusted=yes] copy:/opt/repository ./' >/etc/apt/sources.list
         apt-get -q update >/dev/null
         mkdir -p /etc/steadfast
         cp -r /opt/examples /etc/steadfast
         chmod -R go-w /etc/steadfast
         echo 'graph: /etc/steadfast/examples/servers/{server}.yaml' >/etc/steadfast/steadfast.yaml"
    ));
    machine
}

/// Installs Python and copies what pytest-testinfra needs: the shared folder is slow.
fn install_judges(machine: &mut Machine) {
    machine.shell(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 >/dev/null
         mkdir -p /srv/judges
         cd /opt/judges
         cp -r py.py pytest* _pytest testinfra* pluggy* iniconfig* packaging* pygments* yaml _yaml* /srv/judges
         cp -r /opt/servers /srv/servers",
    );
}

/// Judges by the controls and returns the last line of the report and the names of the failed ones.
fn judge(machine: &mut Machine) -> (String, Vec<String>) {
    let report = machine.run(
        "cd /tmp
         export PYTHONPATH=/srv/judges PYTHONDONTWRITEBYTECODE=1
         python3 -m pytest -q -rfE --tb=line -p no:cacheprovider -k 'not test_service' \
           /srv/servers/test_hardened.py /srv/servers/test_hardened_kernel.py",
    );
    let words = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let is_bad = |line: &&str| line.starts_with("FAILED ") || line.starts_with("ERROR ");
    let failed = report.stdout.lines().filter(is_bad).filter_map(words).collect();
    let last = report.stdout.lines().last().unwrap_or_default().to_owned();
    assert!(last.contains(" passed") || last.contains(" failed"), "{report:?}");
    (last, failed)
}

/// Prints a line that the runner shows.
fn note(text: &str) {
    let _unread = writeln!(std::io::stderr(), "{text}");
}

#[test]
#[ignore = "boots a virtual machine: tests/run --slow kernel"]
fn the_controls_of_a_hardened_machine_go_from_failing_to_none() {
    let mut machine = boot("hardened", &["openssh-server", "cron", "auditd", "python3"]);
    install_judges(&mut machine);
    let (before, failing) = judge(&mut machine);
    note(&format!("before: {before}"));
    assert!(failing.len() >= 60, "{before}: {failing:?}");
    for control in
        ["sysctl-07", "sysctl-17", "os_10", "os-14", "sshd-19", "ssh-16", "os_05", "package_08"]
    {
        assert!(failing.iter().any(|name| name.contains(control)), "{control}: {failing:?}");
    }

    machine.shell("systemctl enable --now steadfast");
    machine.until_within(WHOLE, WAIT, "converged\n");
    let (after, failing) = judge(&mut machine);
    note(&format!("after: {after}"));
    assert_eq!(failing, Vec::<String>::new(), "{after}");
    machine.shell("sshd -t; systemctl is-active ssh cron auditd");
    assert_eq!(machine.run("steadfast plan --detailed-exitcode").code, 0);

    undo_each(&mut machine);
    kill_at_random(&mut machine);

    // All of it lasts over a restart, without a repair.
    machine.reboot();
    machine.until_within(WHOLE, WAIT, "converged\n");
    machine.mount_shares();
    let (restarted, failing) = judge(&mut machine);
    assert_eq!(failing, Vec::<String>::new(), "{restarted}");
}

/// An adversary undoes each setting of the kernel alone; each returns by event or by its documented poll. The other
/// settings are undone in `tests/hosts/servers/hardened.rs`, where time is not emulated.
fn undo_each(machine: &mut Machine) {
    // In the background: it takes longer than one command may.
    machine.shell(&format!(
        "export PYTHONPATH=/srv/judges
         (python3 /srv/servers/adversary.py /opt/examples/modules/hardening/module.yaml {EVENT} {POLL} --kernel \
            >/run/adversary 2>&1; echo $? >/run/adversary.code) >/dev/null 2>&1 &"
    ));
    machine.until_within(ADVERSARY, "test -e /run/adversary.code && echo ended", "ended\n");
    let report = machine.shell("cat /run/adversary");
    assert_eq!(machine.shell("cat /run/adversary.code"), "0\n", "{report}");
    let permanent: Vec<&str> =
        report.lines().filter(|line| line.contains("\"permanent\"")).collect();
    note(&format!("{} settings\n{report}", report.lines().count()));
    assert!(report.lines().count() >= 120, "{report}");
    // The kernel takes back no other value of this parameter before its next start.
    let is_expected = |line: &&str| line.contains("kernel.unprivileged_bpf_disabled");
    assert!(permanent.iter().all(is_expected), "{permanent:?}");
    machine.until_within(WHOLE, WAIT, "converged\n");
}

/// Kills the daemon ten times while it repairs; systemd starts it again.
fn kill_at_random(machine: &mut Machine) {
    machine.shell(
        "mkdir -p /etc/systemd/system/steadfast.service.d
         printf '[Service]\\nRestartSec=100ms\\n' >/etc/systemd/system/steadfast.service.d/again.conf
         systemctl daemon-reload",
    );
    let killed = machine.shell(
        "for number in 1 2 3 4 5 6 7 8 9 10; do
           echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/tcp_timestamps
           sed -i '/^[A-Z]/d' /etc/ssh/sshd_config; chmod 0777 /etc/crontab; rm -f /etc/modprobe.d/dev-sec.conf
           sleep 0.$((RANDOM % 900 + 100))
           systemctl kill --signal=KILL --kill-whom=main steadfast && echo killed
           until systemctl --quiet is-active steadfast; do sleep 0.1; done
         done",
    );
    assert_eq!(killed, "killed\n".repeat(10));
    machine.until_within(WHOLE, WAIT, "converged\n");
    let (last, failing) = judge(machine);
    assert_eq!(failing, Vec::<String>::new(), "{last}");
    assert_eq!(machine.shell("dpkg --audit"), "");
}

const PAGE: &str =
    "curl -sk --max-time 10 --resolve shop.example.org:443:127.0.0.1 https://shop.example.org/";

#[test]
#[ignore = "boots a virtual machine: tests/run --slow kernel"]
fn a_restart_during_a_rejected_server_block_starts_the_old_site() {
    const TEMPLATE: &str = "/etc/steadfast/examples/modules/site/vhost.conf.j2";
    const SHOP: &str = "/etc/nginx/sites-enabled/shop.example.org.conf";
    let mut machine = boot(
        "web",
        &["nginx-light", "openssl", "logrotate", "sudo", "nftables", "ca-certificates", "curl"],
    );
    machine.shell("systemctl enable --now steadfast");
    machine.until_within(WHOLE, WAIT, "converged\n");
    machine.shell(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends curl >/dev/null",
    );
    machine.until(PAGE, "<h1>The shop</h1>\n");
    let vhost = machine.shell(&format!("cat {SHOP}"));

    let reject = |machine: &mut Machine| {
        machine.shell("steadfast reload || true");
        machine.until_within(
            Duration::from_mins(3),
            "steadfast status | grep -c 'unknown directive' | grep -q '^[1-9]' && echo rejected",
            "rejected\n",
        );
        assert_eq!(machine.shell(&format!("cat {SHOP}")), vhost);
        assert_eq!(machine.run(PAGE).stdout, "<h1>The shop</h1>\n");
    };
    machine.shell(&format!("cp {TEMPLATE} /root/right; sed -i 's/    root /    rot /' {TEMPLATE}"));
    reject(&mut machine);
    machine.reboot();
    machine.until(PAGE, "<h1>The shop</h1>\n");
    reject(&mut machine);
    machine.cut_power();
    machine.until(PAGE, "<h1>The shop</h1>\n");
    assert_eq!(machine.shell(&format!("cat {SHOP}")), vhost);

    // The corrected template is loaded, and the host converges.
    machine.mount_shares();
    machine.shell(&format!("cat /root/right >{TEMPLATE}; steadfast reload || true"));
    machine.until_within(WHOLE, WAIT, "converged\n");
    machine.until(PAGE, "<h1>The shop</h1>\n");
}
