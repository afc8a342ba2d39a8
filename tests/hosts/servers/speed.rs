//! Figures of the servers, as whole processes: the web server from nothing, and the hardened base with nothing to do
//! beside Ansible, Puppet and `CFEngine` in one run. The limits hold for a release program, which
//! `STEADFAST_TEST_PROGRAM` names; the order of the tools holds for any.

use super::{boot, note};
use crate::host::Host;
use std::time::{Duration, Instant};

const GRAPH: &str = "/root/baseline/steadfast.yaml";

/// Returns true if the limits apply.
fn is_release() -> bool {
    std::env::var_os("STEADFAST_TEST_PROGRAM").is_some()
}

/// Returns the process time of the daemon without that of its children.
fn processor_time(host: &Host) -> Duration {
    // Fields 14 and 15 of proc(5), after the name in parentheses; a tick is 10 ms.
    let ticks = host.shell(
        "sed 's/.*) //' /proc/$(systemctl show --property MainPID --value steadfast)/stat | cut -d' ' -f12,13",
    );
    let numbers = ticks.split_whitespace().map(|it| it.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * numbers.sum::<u64>())
}

/// Returns `VmRSS` and `RssAnon` of the daemon in KiB.
fn memory(host: &Host) -> (u64, u64) {
    let text = host.shell(
        "awk '/^(VmRSS|RssAnon)/ { print $2 }' \
           /proc/$(systemctl show --property MainPID --value steadfast)/status",
    );
    let numbers: Vec<u64> =
        text.split_whitespace().map(|it| it.parse().expect("a number")).collect();
    (numbers[0], numbers[1])
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_web_server_from_nothing_costs_less_than_a_second() {
    let host = boot("/etc/steadfast/examples/servers/web.yaml", super::web::PACKAGES);
    host.start_whole();
    let time = processor_time(&host);
    note(&format!("the daemon of the web server used {time:?}"));
    assert!(time > Duration::ZERO, "a daemon uses the processor");
    assert!(!is_release() || time < Duration::from_secs(1), "{time:?}");
}

/// Runs a tool several times; each run succeeds and changes nothing. Returns the shortest and the middle time.
fn times(
    host: &Host,
    (tool, runs): (&str, usize),
    command: &str,
    is_unchanged: impl Fn(&str) -> bool,
) -> Duration {
    let mut all: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            let answer = host.judging(command);
            let time = start.elapsed();
            let said = format!("{}{}", answer.stdout, answer.stderr);
            assert_eq!(answer.code, Some(0), "{tool}: {said}");
            assert!(is_unchanged(&said), "{tool} changed something: {said}");
            time
        })
        .collect();
    all.sort();
    note(&format!("{tool}: shortest {:?}, middle {:?} of {runs} runs", all[0], all[runs / 2]));
    all[0]
}

#[test]
#[ignore = "installs whole servers: tests/run --slow servers"]
fn a_hardened_base_with_nothing_to_do_is_checked_faster_than_by_other_tools() {
    let packages = ["openssh-server", "cron", "cfengine3", "puppet-module-puppetlabs-stdlib"];
    let host = boot("/root/baseline/steadfast.yaml", &packages);
    host.install_judges();
    host.shell(
        "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
           cfengine3 puppet-module-puppetlabs-stdlib >/dev/null
         mkdir -p /etc/modprobe.d
         systemctl disable --now cfengine3 puppet 2>/dev/null || true",
    );
    let write = |option: &str| {
        let answer =
            host.judging(&format!("python3 /opt/servers/baselines.py /root/baseline {option}"));
        assert_eq!(answer.code, Some(0), "{answer:?}");
    };
    write("--graph");
    host.shell(&format!("steadfast apply --yes {GRAPH}"));
    write("");
    let tools = [
        ("Puppet", "puppet apply --modulepath /usr/share/puppet/modules /root/baseline/puppet.pp"),
        ("CFEngine", "cf-agent -KI --file /root/baseline/cfengine.cf"),
        (
            "Ansible",
            "python3 /opt/judges/bin/ansible-playbook -i localhost, -c local \
               -e ansible_python_interpreter=/usr/bin/python3 /root/baseline/ansible.yaml",
        ),
    ];
    // Each tool may bring what it needs for itself; afterwards none has anything to do.
    for (tool, command) in tools {
        let answer = host.judging(command);
        assert_eq!(answer.code, Some(0), "{tool}: {}{}", answer.stdout, answer.stderr);
        note(&format!(
            "{tool}, the first run: {}",
            answer.stdout.lines().last().unwrap_or_default()
        ));
    }
    let count = host.shell(&format!("steadfast check {GRAPH}"));
    note(&count);
    let apply = format!("steadfast apply --yes --detailed-exitcode {GRAPH}");
    let own = times(&host, ("steadfast apply", 9), &apply, |_| true);
    let plan = format!("steadfast plan --detailed-exitcode {GRAPH}");
    times(&host, ("steadfast plan", 9), &plan, |_| true);
    let others = tools.map(|(tool, command)| {
        times(&host, (tool, 3), command, |said| match tool {
            "Ansible" => said.contains("changed=0 "),
            "Puppet" => !said.contains("/Stage[main]/"),
            _ => !said.contains("info:"),
        })
    });
    assert!(others.iter().all(|time| own < *time), "steadfast: {own:?}, the others: {others:?}");
    assert!(!is_release() || own < Duration::from_millis(100), "{own:?}");

    host.start_whole();
    let (resident, anonymous) = memory(&host);
    note(&format!("the daemon: VmRSS {resident} KiB, RssAnon {anonymous} KiB"));
    assert!(!is_release() || anonymous <= 9 * 1024, "{anonymous} KiB");
}
