//! Ten hosts with the graph of `examples/fleet`: every `known_hosts` is equal, one service restarts at a time, and one
//! dead host stops the roll.

use super::permits::most_inside;
use super::site::Site;

const HOSTS: [&str; 10] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"];

/// The parts of the example that name the machine, with those of a test host.
const PARTS: [(&str, &str); 5] = [
    ("/etc/ssh/ssh_known_hosts", "$DIR/known_hosts"),
    ("/etc/nginx/conf.d/site.conf", "$DIR/site.conf"),
    (
        "cmd: [sh, -c, 'echo \"$(hostname) $(cut -d\" \" -f1,2 /etc/ssh/ssh_host_ed25519_key.pub)\"']",
        "cmd: [echo, \"$HOST ssh-ed25519 KEY-$HOST\"]",
    ),
    (
        "  svc:\n    - name: nginx\n      state: running\n",
        "  exec:\n    - name: nginx\n      shell: /bin/sh\n      cmd: 'echo \"begin $HOST\" >> $SITE/trace; sleep 0.2; echo \"end $HOST\" >> $SITE/trace'\n",
    ),
    ("settle: 30s", "settle: 1s"),
];

/// Returns the graph of the example for a test host.
fn example() -> String {
    let text = std::fs::read_to_string("examples/fleet/graph.yaml").unwrap();
    PARTS.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "the example has {from:?}");
        text.replace(from, to)
    })
}

/// Returns the hosts that have ended a restart since a number of lines of the trace.
fn restarted(site: &Site, since: usize) -> usize {
    let trace = site.read("trace");
    trace.lines().skip(since).filter(|line| line.starts_with("end")).count()
}

/// Plays the fleet on a site.
pub(crate) fn play_the_fleet(site: &mut Site) {
    let graph = example();
    for host in HOSTS {
        site.graph(host, &graph);
        site.start(host);
    }
    let mut expected: Vec<String> =
        HOSTS.iter().map(|host| format!("{host} ssh-ed25519 KEY-{host}")).collect();
    expected.sort();
    let known = |site: &Site, host: &str| {
        let text = site.read(&format!("{host}/known_hosts"));
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    site.wait_until("every known_hosts is equal", || {
        HOSTS.iter().all(|host| known(site, host) == expected)
    });
    site.wait_until("each host has restarted", || restarted(site, 0) >= HOSTS.len());
    site.wait_until("all slots are free", || {
        site.ask("h0", &["world", "list", "roll/"]).1.is_empty()
    });
    assert_eq!(most_inside(&site.read("trace")), 1, "{}", site.read("trace"));
    // One dead host keeps its slot, and stops the next roll.
    let before = site.read("trace").lines().count();
    let changed = graph.replace("listen 80 default_server", "listen 8080 default_server");
    site.graph("h3", &changed.replace("settle: 1s", "settle: 10m"));
    site.wait_until("the first host restarts", || restarted(site, before) == 1);
    site.kill("h3");
    for host in HOSTS.iter().filter(|host| **host != "h3") {
        site.graph(host, &changed);
    }
    site.wait_until("all others wait", || {
        let (_, text) = site.ask("h0", &["fleet"]);
        HOSTS.iter().filter(|host| **host != "h3").all(|host| is_waiting(&text, host))
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(restarted(site, before), 1, "the dead host stops the roll");
    let (_, text) = site.ask("h0", &["fleet"]);
    assert!(text.contains("roll/nginx") && text.contains("h3"), "{text}");
    let (code, text) = site.ask("h0", &["world", "release", "roll/nginx", "h3"]);
    assert_eq!(code, 0, "{text}");
    site.wait_until("the others restart", || restarted(site, before) == HOSTS.len());
    assert_eq!(most_inside(&site.read("trace")), 1, "{}", site.read("trace"));
}

/// Returns true if the report of the fleet lists a host among those that wait for the roll.
fn is_waiting(report: &str, host: &str) -> bool {
    let rolls = report.lines().filter(|line| line.contains("roll/nginx: waited for by"));
    rolls.flat_map(|line| line.split([' ', ','])).any(|word| word == host)
}

#[test]
fn ten_hosts_share_keys_and_restart_one_by_one() {
    play_the_fleet(&mut Site::with_file());
}
