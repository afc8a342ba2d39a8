//! A transaction is simulated right before each call of apt: after each wait for a lock, and before each retry.

use super::faults::HOLD;
use crate::host::Host;

/// F-22: the holder of the lock changes the removals of a transaction between its simulation and its start.
#[test]
fn changes_by_the_lock_holder_are_simulated_again() {
    let host = Host::with_packages(
        "make old 1; make new 1 'Conflicts: old'; make other 1; make gone 1; make lone 1 'Conflicts: old'",
    );
    host.shell("apt-get -q -y install gone 2>&1");
    for (name, packages) in [
        // With a declared removal apt may remove packages, so only the simulation protects `old`.
        ("new", &[("new", ""), ("other", ""), ("gone", "state: absent")][..]),
        ("lone", &[("lone", "")]),
    ] {
        host.shell("dpkg --purge old 2>&1");
        host.declare(packages);
        while_somebody_works(&host, "DPKG_FRONTEND_LOCKED=1 dpkg -i /repo/old_1_all.deb");
        let (code, said) = host.apply();
        assert_eq!(code, 1, "{said}");
        let refused =
            format!("failed pkg[{name}]: the transaction would remove undeclared packages: old");
        assert!(said.contains(&refused), "{said}");
        assert_eq!((host.package("old"), host.package(name)), ("ii  1".into(), String::new()));
    }
    assert_eq!((host.package("other"), host.package("gone")), ("ii  1".into(), "rc  1".into()));
}

/// F-22: a change between the last simulation and apt's own lock causes no undeclared removal either.
#[test]
fn the_simulation_holds_under_the_lock_of_apt() {
    let host = Host::with_packages(
        "make old 1; make new 1 'Conflicts: old'; make other 1; make gone 1; make lib 1; make needs 1 'Depends: lib'",
    );
    host.shell("apt-get -q -y install gone lib 2>&1");
    let quick = |deb: &str| {
        host.write(
            "/usr/local/sbin/apt-get",
            &format!(
                "#!/bin/sh\ncase \"$*\" in *' -s '*) ;; *)\n[ -e /run/done ] || dpkg -i /repo/{deb} >/run/done 2>&1\n\
                 esac\nexec /usr/bin/apt-get \"$@\"\n"
            ),
        );
        host.shell("chmod 755 /usr/local/sbin/apt-get; rm -f /run/done");
    };
    quick("old_1_all.deb");
    host.declare(&[("new", ""), ("other", ""), ("gone", "state: absent")]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("failed pkg[new]: the transaction would remove undeclared packages: old"),
        "{said}"
    );
    assert_eq!((host.package("old"), host.package("new")), ("ii  1".into(), String::new()));
    assert_eq!((host.package("other"), host.package("gone")), ("ii  1".into(), "rc  1".into()));

    quick("needs_1_all.deb");
    host.declare(&[("lib", "state: absent")]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("by now the transaction would remove undeclared packages: needs"),
        "{said}"
    );
    assert_eq!((host.package("lib"), host.package("needs")), ("ii  1".into(), "ii  1".into()));
}

/// A package that somebody else installed during the wait is not installed again and counts as no change.
#[test]
fn work_done_by_the_lock_holder_is_left_alone() {
    let host = Host::with_packages("make app 1; make other 1");
    host.declare(&[("app", "")]);
    while_somebody_works(&host, "DPKG_FRONTEND_LOCKED=1 dpkg -i /repo/app_1_all.deb");
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains(" 0 changed"), "{said}");
    assert_eq!((host.package("app").as_str(), host.transactions()), ("ii  1", 0));

    // A killed dpkg blocks everything until its transaction is completed.
    host.declare(&[("other", "")]);
    while_somebody_works(&host, "DPKG_FRONTEND_LOCKED=1 dpkg --unpack /repo/other_1_all.deb");
    let (code, said) = host.apply();
    assert_eq!((code, host.package("other").as_str()), (0, "ii  1"), "{said}");
    assert!(said.contains("an earlier dpkg run was interrupted and has been completed"), "{said}");
}

/// F-22: a failed transaction is retried one package at a time, each simulated anew, since the failed one has changed
/// apt's plan.
#[test]
fn each_retry_is_judged_again() {
    let host = Host::with_packages(
        "make keep 1; make gone 1; make late 1; make late 2 'Conflicts: keep'
         make bad 1 '' '' '
           printf \"#!/bin/sh\nrm -f /etc/apt/preferences; exit 1\n\" >DEBIAN/preinst
           chmod 755 DEBIAN/preinst'",
    );
    host.shell("apt-get -q -y install keep gone 2>&1");
    host.write("/etc/apt/preferences", "Package: late\nPin: version 1\nPin-Priority: 1001\n");
    host.declare(&[("bad", ""), ("gone", "state: absent"), ("late", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    for words in [
        "failed pkg[bad]",
        "failed pkg[late]: the transaction would remove undeclared packages: keep",
        "changed pkg[gone]",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    assert_eq!(host.package("keep"), "ii  1");
}

/// Holds the lock until apt was called once and some time has passed, runs this command, and releases the lock.
fn while_somebody_works(host: &Host, work: &str) {
    let spy = "#!/bin/sh\n/usr/bin/apt-get \"$@\"; code=$?; touch /run/asked; exit $code\n";
    host.write("/usr/local/sbin/apt-get", spy);
    host.shell(&format!(
        "chmod 755 /usr/local/sbin/apt-get; rm -f /run/locked /run/asked
         {HOLD} 600 >/dev/null 2>&1 & holder=$!
         while [ ! -e /run/locked ]; do sleep 0.05; done
         {{
           while [ ! -e /run/asked ]; do sleep 0.05; done
           sleep 2; {work}; kill $holder
         }} >/run/holder.log 2>&1 &"
    ));
}
