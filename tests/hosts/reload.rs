//! The service reloads its graph while it runs, and rejects a broken one.

use crate::host::Host;
use crate::service::{DECLARED, GRAPH, ONE_FILE};

const BROKEN: &str = "graph: host\nresources:\n  file:\n    - name: /etc/held\n      contend: x\n";

#[test]
fn reload_takes_a_changed_graph_without_another_daemon() {
    let host = Host::holding(ONE_FILE);
    let daemon = host.daemon();
    let more = format!("{ONE_FILE}    - name: /etc/more\n      content: more\n");
    host.write(GRAPH, &more);
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    host.until("the new file", || host.read("/etc/more").as_deref() == Some("more"));
    host.until("the reload to be over", || host.property("ActiveState") == "active");
    assert_eq!(host.daemon(), daemon);

    // An undeclared file is forgotten, not deleted, and no longer repaired.
    host.write(GRAPH, ONE_FILE);
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    host.write("/etc/held", "drift");
    host.until("the old file to be held still", || host.is_held());
    assert_eq!(host.read("/etc/more").as_deref(), Some("more"));
}

#[test]
fn reload_of_a_broken_graph_fails_and_changes_nothing() {
    let host = Host::holding(ONE_FILE);
    let daemon = host.daemon();
    host.write(GRAPH, BROKEN);
    assert_ne!(host.systemctl("reload").code, Some(0), "systemctl said that all is well");
    assert_eq!(host.property("ActiveState"), "active");
    assert_eq!(host.daemon(), daemon);
    let told = host.log().join("\n");
    assert!(told.contains(&format!("{GRAPH}:5")), "the line that is broken is not told:\n{told}");
    host.write("/etc/held", "drift");
    host.until("the old graph to be held", || host.is_held());
}

/// HUP bypasses the check in the unit: the daemon must reject the graph itself.
#[test]
fn a_hup_with_a_broken_graph_keeps_the_old_one_and_says_why() {
    let host = Host::holding(ONE_FILE);
    let daemon = host.daemon();
    host.write(GRAPH, BROKEN);
    host.signal("HUP");
    host.until("the refusal", || host.log().iter().any(|line| line.contains("contend")));
    host.until("the reload to be over", || host.property("ActiveState") == "active");
    host.write("/etc/held", "drift");
    host.until("the old graph to be held", || host.is_held());
    assert_eq!(host.daemon(), daemon);

    host.write(GRAPH, &ONE_FILE.replace(DECLARED.trim_end(), "declared anew"));
    host.signal("HUP");
    host.until("the mended graph to be held", || {
        host.read("/etc/held").as_deref() == Some("declared anew\n")
    });
}
