//! The first graph of a host: `steadfast init`.

use crate::host::Host;
use crate::service::GRAPH;

/// A password hash, and a password in a job, that no file of `init` may contain.
const SECRETS: [&str; 2] = ["$6$saltsalt$canary7e2a", "canary-of-a-job"];

/// A host with a person, a service of its own and jobs.
const PREPARE: &str = r#"
groupadd --gid 1500 crew
useradd --uid 1500 --gid crew --groups adm --shell /bin/bash --comment 'Ada ${x}, "L"' --create-home ada
echo 'ada:$6$saltsalt$canary7e2a' | chpasswd --encrypted
useradd --system --uid 150 robot
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/own.service
systemctl daemon-reload
systemctl enable --now own.service
mkdir -p /etc/cron.d
printf '0 1 * * * root backup --password canary-of-a-job\n' >/etc/cron.d/backup
chmod 0600 /etc/cron.d/backup
"#;

/// Law: the plan of the first graph is empty, and the files hold no secret.
#[test]
fn the_plan_of_the_first_graph_is_empty() {
    let host = Host::boot();
    host.shell(PREPARE);
    let said = host.shell("steadfast init");
    for words in [
        "wrote /etc/steadfast/graph.yaml: ",
        " packages, ",
        " services, 1 group, 1 user, 2 files of cron",
        "wrote /etc/steadfast/steadfast.yaml",
        "Next:\n  steadfast plan ",
        "systemctl enable --now steadfast",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let graph = host.read(GRAPH).expect("a graph");
    for line in [
        "- { name: own.service, state: running, startup: enabled }",
        "- { name: crew, gid: 1500 }",
        "- { name: ada, uid: 1500, group: crew, groups: [adm], shell: /bin/bash, homedir: /home/ada, \
         comment: \"Ada $${x}, \\\"L\\\"\" }",
        "- { name: /etc/cron.d/backup, state: undefined, owner: root, group: root, mode: 0600 }",
    ] {
        assert!(graph.contains(line), "{line}\n{graph}");
    }
    assert!(!graph.contains("robot") && !graph.contains("is left out"), "{graph}");
    let settings = host.read("/etc/steadfast/steadfast.yaml").expect("settings");
    for secret in SECRETS {
        assert!(!graph.contains(secret) && !settings.contains(secret), "{graph}");
    }
    let plan = host.run(&["steadfast", "plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, Some(0), "{}{}\n{graph}", plan.stdout, plan.stderr);
    assert!(plan.stderr.is_empty(), "{}", plan.stderr);

    // The next two commands of the list.
    host.shell("systemctl enable --now steadfast");
    host.until("the host to be converged", || host.run(&["steadfast", "status"]).code == Some(0));
    host.shell("systemctl stop own.service");
    host.until("the service to run again", || {
        host.run(&["systemctl", "is-active", "--quiet", "own.service"]).code == Some(0)
    });
}

/// Existing files stay as they are, byte for byte.
#[test]
fn init_never_overwrites() {
    let host = Host::boot();
    host.write("/etc/steadfast/steadfast.yaml", "# mine\n");
    let said = host.shell("steadfast init");
    assert!(said.contains("/etc/steadfast/steadfast.yaml exists and stays as it is"), "{said}");
    assert_eq!(host.read("/etc/steadfast/steadfast.yaml").as_deref(), Some("# mine\n"));
    host.write(GRAPH, "graph: mine\nresources: {}\n");
    let again = host.run(&["steadfast", "init"]);
    assert_eq!(again.code, Some(1), "{}", again.stdout);
    assert!(again.stderr.contains("/etc/steadfast/graph.yaml exists"), "{}", again.stderr);
    assert_eq!(host.read(GRAPH).as_deref(), Some("graph: mine\nresources: {}\n"));
    let elsewhere =
        host.shell("steadfast init --dir /root/graph && steadfast plan /root/graph/graph.yaml");
    assert!(elsewhere.contains("steadfast plan /root/graph/graph.yaml"), "{elsewhere}");
    assert!(!host.shell("ls -A /etc/steadfast /root/graph").contains(".yaml."), "no staged file");
}
