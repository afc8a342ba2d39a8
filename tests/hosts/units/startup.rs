//! Units at boot: enabled, disabled, masked, and with several names.

use super::{RUNNING, UNIT};
use crate::host::Host;

#[test]
fn enabling_and_disabling_from_outside_is_put_back() {
    let host = Host::with_unit(UNIT, RUNNING);
    host.shell("systemctl disable held 2>&1");
    host.until("it to be enabled again", || host.file_state("held") == "enabled");
    host.shell(
        "rm /etc/systemd/system/multi-user.target.wants/held.service; systemctl daemon-reload",
    );
    host.until("it to be enabled again", || host.file_state("held") == "enabled");
    host.converged();
    assert!(host.is_active("held"));
    assert_eq!(host.said(), ["start"], "its startup is no reason to start it");
}

#[test]
fn disabled_is_held_too() {
    let host = Host::with_unit(UNIT, &RUNNING.replace("enabled", "disabled"));
    for way in ["enable", "enable --runtime"] {
        host.shell(&format!("systemctl {way} held 2>&1"));
        host.until(way, || host.file_state("held") == "disabled");
    }
    assert!(host.is_active("held"));
}

#[test]
fn a_mask_from_outside_is_taken_away() {
    // A unit file in /etc cannot be masked, since the mask would take its place.
    let host = Host::boot();
    host.write("/usr/lib/systemd/system/held.service", UNIT);
    host.write(crate::service::GRAPH, RUNNING);
    host.start();
    host.converged();
    for way in ["mask --now", "mask --runtime"] {
        host.shell(&format!("systemctl {way} held 2>&1"));
        host.until(way, || host.file_state("held") == "enabled" && host.is_active("held"));
    }
    host.converged();
}

#[test]
fn masked_is_held_whether_or_not_there_is_such_a_unit() {
    let graph = "
graph: host
resources:
  svc:
    - name: held
      state: stopped
      startup: masked
    - name: nowhere
      startup: masked
";
    let host = Host::boot();
    host.write("/usr/lib/systemd/system/held.service", UNIT);
    host.shell("systemctl start held");
    host.write(crate::service::GRAPH, graph);
    host.start();
    host.converged();
    for unit in ["held", "nowhere"] {
        assert_eq!(host.file_state(unit), "masked");
        host.shell(&format!("systemctl unmask {unit} 2>&1"));
        host.until(unit, || host.file_state(unit) == "masked");
    }
    assert_eq!(host.of_unit("held", "ActiveState"), "inactive");
    assert_ne!(host.run(&["systemctl", "start", "held"]).code, Some(0));
}

/// A unit file linked under another name is one unit.
#[test]
fn a_unit_may_be_named_by_its_alias() {
    let host = Host::boot();
    host.write("/usr/lib/systemd/system/real.service", UNIT);
    host.shell("ln -s real.service /usr/lib/systemd/system/held.service");
    host.write(crate::service::GRAPH, RUNNING);
    host.start();
    host.converged();
    assert_eq!(host.file_state("real"), "enabled");
    for name in ["real", "held"] {
        host.shell(&format!("systemctl stop {name}"));
        host.until("it to run again", || host.is_active("real"));
        host.shell("systemctl disable real 2>&1");
        host.until("it to be enabled again", || host.file_state("real") == "enabled");
    }
    host.converged();
    // Once stopped, the unit is unloaded and then loaded by its other name.
    host.write(
        crate::service::GRAPH,
        &RUNNING.replace("running", "stopped").replace("enabled", "disabled"),
    );
    host.shell("systemctl reload steadfast");
    host.until("it to be stopped", || host.of_unit("real", "ActiveState") == "inactive");
    host.converged();
    host.shell("systemctl start real");
    host.until("it to be stopped", || host.of_unit("real", "ActiveState") == "inactive");
}
