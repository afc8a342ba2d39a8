//! The hardened base, as far as a container permits: all but the parameters and modules of the kernel.

use super::{boot, note};
use crate::host::Host;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PACKAGES: &[&str] = &["openssh-server", "cron"];
const MODULE: &str = include_str!("../../../examples/modules/hardening/module.yaml");

/// Returns the default of a parameter of the module.
fn settings(name: &str) -> BTreeMap<String, serde_yaml::Value> {
    let module: serde_yaml::Value = serde_yaml::from_str(MODULE).expect("YAML");
    let default = module["params"][name]["default"].clone();
    serde_yaml::from_value(default).expect("a map")
}

/// One setting that an adversary undoes: the command, and a command that succeeds while the setting is as declared.
struct Damage {
    undo: String,
    intact: String,
}

fn all_damages() -> Vec<Damage> {
    let lines = |name: &str, file: &str| {
        let damage = |(key, value): (String, serde_yaml::Value)| Damage {
            undo: format!("sed -i '/^{key} /d' {file}"),
            intact: format!("grep -qxF '{key} {}' {file}", value.as_str().expect("a string")),
        };
        settings(name).into_iter().map(damage).collect::<Vec<_>>()
    };
    let mut all = lines("sshd", "/etc/ssh/sshd_config");
    all.extend(lines("login", "/etc/login.defs"));
    all.extend(settings("files").into_iter().map(|(path, it)| {
        let text = |key: &str| it[key].as_str().expect("a string").to_owned();
        let (owner, group, mode) = (text("owner"), text("group"), text("mode"));
        let expected = format!("{owner} {group} {}", mode.trim_start_matches('0'));
        Damage {
            undo: format!("chmod 0777 {path}; chown nobody:nogroup {path}"),
            intact: format!("test \"$(stat -c '%U %G %a' {path})\" = '{expected}'"),
        }
    }));
    let plain = |undo: &str, intact: &str| Damage { undo: undo.into(), intact: intact.into() };
    all.push(plain("touch /etc/hosts.equiv", "! test -e /etc/hosts.equiv"));
    all.push(plain("touch /root/.rhosts", "! test -e /root/.rhosts"));
    all.push(plain("rm /etc/profile.d/umask.sh", "test -e /etc/profile.d/umask.sh"));
    all.push(plain("echo hello >/etc/issue.net", "grep -q Authorised /etc/issue.net"));
    all.push(plain("systemctl stop cron", "systemctl is-active cron"));
    all.push(plain("systemctl stop ssh", "systemctl is-active ssh"));
    all
}

/// Undoes each setting alone, and returns the longest time until one was back.
fn undo_each(host: &Host) -> Duration {
    let mut longest = Duration::ZERO;
    for Damage { undo, intact } in all_damages() {
        let intact = ["sh", "-c", &intact];
        assert_eq!(host.run(&intact).code, Some(0), "declared: {intact:?}");
        host.shell(&undo);
        let start = Instant::now();
        host.until(&undo, || host.run(&intact).code == Some(0));
        longest = longest.max(start.elapsed());
    }
    longest
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_hardened_base_is_held() {
    let host = boot("/etc/steadfast/examples/servers/hardened.yaml", PACKAGES);
    host.start_whole();
    host.judge("hardened");
    host.shell("sshd -t");
    host.wait_whole();
    let longest = undo_each(&host);
    note(&format!("the slowest repair took {longest:?}"));
    host.wait_whole();
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_killed_daemon_ends_with_the_same_hardened_base() {
    let host = boot("/etc/steadfast/examples/servers/hardened.yaml", PACKAGES);
    host.restart_at_once();
    host.start();
    host.kill_at_random(
        10,
        "sed -i '/^[A-Z]/d' /etc/ssh/sshd_config /etc/login.defs; chmod 0777 /etc/crontab /etc/shadow
         rm /etc/profile.d/umask.sh; touch /etc/hosts.equiv; systemctl stop ssh cron",
    );
    host.wait_whole();
    host.judge("hardened");
    assert_eq!(host.shell("dpkg --audit"), "");
}
