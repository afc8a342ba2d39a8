//! F-22: faults of package transactions: a held lock, an interrupted dpkg, a changed configuration file, a stop
//! during a transaction.

use crate::host::Host;
use crate::service::GRAPH;

/// Holds the lock of dpkg as another package manager does, for this many seconds.
pub(crate) const HOLD: &str = "perl -e 'use Fcntl; open F, q(>), q(/var/lib/dpkg/lock-frontend) or die; \
    my $lock = pack(q(s s x4 q q i x4), F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $lock) or die; \
    open G, q(>), q(/run/locked); close G; sleep $ARGV[0]'";

/// F-12, F-22: a transaction waits for the lock, names the holder, and continues; after its time limit it fails and
/// names the holder.
#[test]
fn a_lock_is_waited_for_and_its_holder_named() {
    let host = Host::with_packages("make app 1; make other 1");
    host.shell(&format!(
        "{HOLD} 2 >/dev/null 2>&1 & while [ ! -e /run/locked ]; do sleep 0.05; done"
    ));
    host.declare(&[("app", "")]);
    let (code, said) = host.apply();
    assert_eq!((code, host.package("app").as_str()), (0, "ii  1"), "{said}");
    assert!(said.contains(" s for process "), "{said}");

    host.shell("rm /run/locked");
    host.shell(&format!(
        "{HOLD} 60 >/dev/null 2>&1 & while [ ! -e /run/locked ]; do sleep 0.05; done"
    ));
    host.declare(&[("other", "lock_wait: 1s")]);
    let (code, said) = host.apply();
    assert_eq!((code, host.package("other").as_str()), (1, ""), "{said}");
    assert!(said.contains("packages are locked by process ") && said.contains("(perl)"), "{said}");
}

/// F-22: an interrupted dpkg is recovered first, without a question.
#[test]
fn an_interrupted_dpkg_is_recovered_and_nothing_is_asked() {
    let host = Host::with_packages("make app 1; make other 1");
    host.shell("dpkg --unpack /repo/app_1_all.deb 2>&1; touch /var/lib/dpkg/updates/0001");
    assert_eq!(host.package("app"), "iU  1");
    host.declare(&[("app", ""), ("other", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("an earlier dpkg run was interrupted and has been completed"), "{said}");
    assert_eq!((host.package("app"), host.package("other")), ("ii  1".into(), "ii  1".into()));

    // A configuration file changed locally that the next version changes too.
    host.write("/etc/app/app.conf", "mine\n");
    host.repository("make app 2; publish");
    host.declare(&[("app", "state: newest")]);
    let (code, said) = host.apply();
    assert_eq!((code, host.package("app").as_str()), (0, "ii  2"), "{said}");
    assert_eq!(host.read("/etc/app/app.conf").as_deref(), Some("mine\n"));
    host.repository("make app 3; publish");
    host.declare(&[("app", "state: newest, conffiles: replace")]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert_eq!(host.read("/etc/app/app.conf").as_deref(), Some("of the package, 3\n"));
}

/// E-16: a stop of the daemon does not interrupt a running installation.
#[test]
fn a_transaction_is_never_killed() {
    let slow = "make slow 1 '' 'touch /run/configuring; sleep 3'";
    let host = Host::with_packages(slow);
    host.declare(&[("slow", "")]);
    let script = format!(
        "steadfast apply {GRAPH} & \
         while [ ! -e /run/configuring ]; do sleep 0.05; done; kill -TERM $!; kill -TERM $!; wait $! || true"
    );
    host.shell(&script);
    host.until("dpkg to end", || host.package("slow") == "ii  1");
}
