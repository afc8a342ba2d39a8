//! D-Bus, or systemd itself, disappears and returns.

use super::{RUNNING, UNIT};
use crate::host::{Host, within};
use std::time::Duration;

fn repairs(host: &Host, what: &str) {
    host.shell("systemctl stop held");
    host.until(what, || host.is_active("held"));
}

#[test]
fn repairs_go_on_after_dbus_was_restarted() {
    let host = Host::with_unit(UNIT, RUNNING);
    host.shell("systemctl restart dbus");
    // No pause: the daemon may be reconnecting at this moment.
    repairs(&host, "a repair after a restart of D-Bus");
    host.shell("kill -9 $(systemctl show --value --property MainPID dbus)");
    repairs(&host, "a repair after D-Bus was killed");
    host.converged();
    host.shell("systemctl daemon-reexec");
    repairs(&host, "a repair after systemd was executed anew");
    host.shell("systemctl daemon-reload");
    repairs(&host, "a repair after all was read anew");
    host.converged();
}

#[test]
fn drift_without_dbus_is_found_once_it_is_back() {
    let host = Host::with_unit(UNIT, RUNNING);
    host.shell("systemctl stop dbus.socket dbus.service 2>&1");
    host.until("the loss to be told", || {
        host.log().iter().any(|line| line.contains("unwatched svc[held]"))
    });
    host.shell("systemctl stop held");
    assert!(!within(Duration::from_secs(1), || host.is_active("held")), "by whom?");
    host.shell("systemctl start dbus.socket");
    host.until("the repair", || host.is_active("held"));
    host.converged();
    repairs(&host, "events to be heard again");
}

/// F-12: a hung bus delays no other resource, and not the stop.
#[test]
fn a_hung_bus_holds_up_nobody_else() {
    let graph = format!("{RUNNING}  file:\n    - name: /etc/other\n      content: here\n");
    let host = Host::with_unit(UNIT, &graph);
    let dbus = host.of_unit("dbus", "MainPID");
    host.shell(&format!("systemctl stop held; kill -STOP {dbus}"));
    host.write("/etc/other", "drift");
    host.until("the other repair", || host.read("/etc/other").as_deref() == Some("here"));
    host.shell("systemctl restart steadfast");
    assert_eq!(host.property("ActiveState"), "active", "ready without D-Bus");
    host.write("/etc/other", "drift");
    host.until("the other repair", || host.read("/etc/other").as_deref() == Some("here"));
    host.shell(&format!("kill -CONT {dbus}"));
    host.until("the repair of the unit", || host.is_active("held"));
    host.converged();
}
