//! The unit file as systemd reads it.

use crate::host::Host;
use crate::service::{GRAPH, ONE_FILE};

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let host = Host::boot();
    let verify = ["systemd-analyze", "verify", "/usr/lib/systemd/system/steadfast.service"];
    let answer = host.run(&verify);
    assert_eq!((answer.code, answer.stdout + &answer.stderr), (Some(0), String::new()));
}

/// S-14: sandbox options stay off, since package scripts would inherit them.
#[test]
fn options_that_package_scripts_inherit_stay_off() {
    let host = Host::boot();
    for option in [
        "PrivateTmp",
        "PrivateDevices",
        "PrivateNetwork",
        "ProtectSystem",
        "ProtectHome",
        "ProtectKernelTunables",
        "ProtectKernelModules",
        "ProtectControlGroups",
        "NoNewPrivileges",
        "RestrictSUIDSGID",
        "RestrictNamespaces",
        "MemoryDenyWriteExecute",
        "ProtectKernelLogs",
    ] {
        assert_eq!(host.property(option), "no", "{option}");
    }
    for option in ["RestrictRealtime", "LockPersonality"] {
        assert_eq!(host.property(option), "yes", "{option}: package scripts do without it");
    }
    assert_eq!(host.property("SystemCallArchitectures"), "", "i386 packages run i386 programs");
    assert_eq!(host.property("SystemCallFilter"), "~", "no call is refused");
}

/// S-9: commands inherit nothing of the service: no notification socket, directories or umask.
#[test]
fn commands_inherit_nothing_of_the_service() {
    let host = Host::boot();
    let graph = r#"
graph: host
resources:
  exec:
    - name: surroundings
      shell: /bin/sh
      cmd: "umask >/run/umask; pwd >/run/pwd; ls /proc/self/fd >/run/fd; env >/run/env; touch /run/told"
"#;
    host.write(GRAPH, graph);
    host.start();
    host.until("the command to have run", || host.read("/run/told").is_some());
    assert_eq!(host.read("/run/umask").as_deref(), Some("0022\n"));
    assert_eq!(host.read("/run/pwd").as_deref(), Some("/\n"));
    // The last one is the descriptor with which ls reads the folder.
    assert_eq!(host.read("/run/fd").as_deref(), Some("0\n1\n2\n3\n"));
    let environment = host.read("/run/env").expect("written before /run/told");
    for private in ["NOTIFY_SOCKET", "WATCHDOG_", "INVOCATION_ID", "STATE_DIRECTORY", "LISTEN_"] {
        assert!(!environment.contains(private), "{private} in\n{environment}");
    }
}

#[test]
fn the_directories_of_the_service_are_its_own() {
    let host = Host::holding(ONE_FILE);
    let mode = "stat --format '%a %U' /var/lib/steadfast";
    assert_eq!(host.shell(mode), "700 root\n");
    let others = "find /var/lib/steadfast -perm /077";
    assert_eq!(host.shell(others), "", "files that others may touch");
}
