//! Drift on a host is repaired and logged in the journal.

use crate::host::Host;
use crate::service::{DECLARED, ONE_FILE};

const LOOK: &str = "stat --format '%F %a %U %G' /etc/held; cat /etc/held";

#[test]
fn drift_is_repaired_whatever_it_is() {
    let host = Host::holding(ONE_FILE);
    let daemon = host.daemon().to_string();
    let declared = host.shell(LOOK);
    assert_eq!(declared, format!("regular file 640 root root\n{DECLARED}"));
    for damage in [
        "echo more >>/etc/held",
        "echo other >/etc/held",
        "rm /etc/held",
        "chmod 0666 /etc/held",
        "chown nobody:nogroup /etc/held",
        "echo away >/etc/away; mv /etc/away /etc/held",
        "ln -sf /etc/hostname /etc/held",
        // The daemon is stopped meanwhile: it would restore the file before the folder can be created.
        "kill -STOP $DAEMON; rm /etc/held; mkdir /etc/held; kill -CONT $DAEMON",
    ] {
        let damage = &damage.replace("$DAEMON", &daemon);
        host.shell(damage);
        host.until(damage, || host.run(&["sh", "-c", LOOK]).stdout == declared);
    }
    assert_ne!(host.read("/etc/hostname").as_deref(), Some(DECLARED), "written through a link");
}

#[test]
fn the_journal_has_a_line_for_each_change_of_state_and_no_more() {
    let host = Host::holding(ONE_FILE);
    let at_rest = || host.log().last().is_some_and(|line| line.contains("converged"));
    host.until("convergence to be told", at_rest);
    let before = host.log().len();

    host.write("/etc/held", "drift");
    host.until("the repair to be told", || {
        let log = host.log();
        let since = log.get(before..).unwrap_or_default();
        since.iter().any(|line| line.contains("file[/etc/held]"))
            && since.last().is_some_and(|line| line.contains("converged"))
    });
    let log = host.log();
    // At most four lines: diverged, started, changed, converged.
    assert!(log.len() - before <= 4, "{log:#?}");
    for line in &log {
        assert!(!line.contains('\u{1b}'), "colours have no place in a journal: {line:?}");
        assert!(!line.trim().is_empty() && line.chars().count() <= 200, "{line:?}");
    }
}

/// F1: a hung journal delays no repair, no request, no reload and no stop.
#[test]
fn a_journal_that_hangs_delays_nothing() {
    let host = Host::holding(ONE_FILE);
    let declared = host.shell(LOOK);
    let journal = host.shell("systemctl show --value -p MainPID systemd-journald");
    host.shell(&format!("kill -STOP {journal}"));
    let daemon = host.daemon().to_string();
    // Each command is logged, until the log thread hangs in `write` or `ppoll`. systemd's journal socket has eight
    // megabytes of buffer.
    let fill = format!(
        "reason=$(head -c 60000 /dev/zero | tr '\\0' x); \
         log=$(grep -lx log /proc/{daemon}/task/*/comm | head -n 1); log=${{log%/comm}}; \
         until grep -qE '^(1|7|271) ' $log/syscall; do \
            steadfast pause --for 1h --reason $reason >/dev/null; steadfast resume >/dev/null; done"
    );
    host.write("/root/fill", &fill);
    host.shell("timeout 120 bash /root/fill");
    host.shell("echo drift >/etc/held");
    host.until("the repair", || host.run(&["sh", "-c", LOOK]).stdout == declared);
    host.shell("timeout 5 steadfast status >/dev/null");
    host.shell("timeout 5 steadfast reload >/dev/null");
    host.shell(&format!(
        "kill -TERM {daemon}; timeout 10 sh -c 'while [ -d /proc/{daemon} ]; do sleep 0.05; done'"
    ));
    host.shell(&format!("kill -CONT {journal}"));
}
