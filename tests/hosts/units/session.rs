//! A unit of the user that the daemon runs as.

use crate::host::Host;
use crate::service::GRAPH;

const GRAPH_OF_USER: &str = "
graph: host
resources:
  svc:
    - name: held
      session: true
      state: running
      startup: enabled
";

#[test]
fn a_unit_of_the_user_is_held() {
    let host = Host::boot();
    // The files of the package dbus-user-session.
    host.write(
        "/etc/systemd/user/dbus.socket",
        "[Socket]\nListenStream=%t/bus\n[Install]\nWantedBy=sockets.target\n",
    );
    host.write(
        "/etc/systemd/user/dbus.service",
        "[Unit]\nRequires=dbus.socket\n[Service]\nType=notify\nNotifyAccess=main\n\
         ExecStart=/usr/bin/dbus-daemon --session --address=systemd: --nofork --nopidfile --systemd-activation\n",
    );
    host.write(
        "/etc/systemd/user/held.service",
        "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=default.target\n",
    );
    host.write(GRAPH, GRAPH_OF_USER);
    host.start();
    host.until("the failure", || host.log().iter().any(|line| line.contains("failed svc[held]")));
    let told = host.log().join("\n");
    assert!(told.contains("systemd on the user's bus cannot be reached"), "{told}");

    host.shell("systemctl enable --global dbus.socket 2>&1; systemctl start user@0");
    let user = |command: &str| {
        let script =
            format!("XDG_RUNTIME_DIR=/run/user/0 systemctl --user {command} held 2>&1 || true");
        host.shell(&script).trim().to_owned()
    };
    host.until("it to run", || user("is-active") == "active");
    host.until("it to be enabled", || user("is-enabled") == "enabled");
    user("stop");
    host.until("it to run again", || user("is-active") == "active");
    user("disable");
    host.until("it to be enabled again", || user("is-enabled") == "enabled");
    assert_eq!(host.of_unit("held", "LoadState"), "not-found", "the machine has no such unit");
}
