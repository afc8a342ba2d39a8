//! What apt is told to do was always judged right before: after each wait for somebody else, and before each retry.

use super::faults::HOLD;
use crate::host::Host;

/// F-22: the holder of the lock changes what our transaction would remove, after it was judged and before it is done.
#[test]
fn what_the_holder_of_the_lock_has_changed_is_judged_again() {
    let host = Host::with_packages(
        "make old 1; make new 1 'Conflicts: old'; make other 1; make gone 1; make lone 1 'Conflicts: old'",
    );
    host.shell("apt-get -q -y install gone 2>&1");
    for (name, packages) in [
        // With something that is to go apt may remove things, so that nothing but our judgement keeps `old`.
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

/// F-22: not even who is quicker than the eye, between our last look and apt's own lock, makes apt remove anything
/// else.
#[test]
fn what_was_judged_holds_under_the_lock_of_apt() {
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

/// What somebody else has done while we waited is not done again, and no change of ours.
#[test]
fn what_the_holder_of_the_lock_has_done_is_left_alone() {
    let host = Host::with_packages("make app 1; make other 1");
    host.declare(&[("app", "")]);
    while_somebody_works(&host, "DPKG_FRONTEND_LOCKED=1 dpkg -i /repo/app_1_all.deb");
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains(" 0 changed"), "{said}");
    assert_eq!((host.package("app").as_str(), host.transactions()), ("ii  1", 0));

    // It was killed in the midst of it: dpkg does nothing more until that is ended.
    host.declare(&[("other", "")]);
    while_somebody_works(&host, "DPKG_FRONTEND_LOCKED=1 dpkg --unpack /repo/other_1_all.deb");
    let (code, said) = host.apply();
    assert_eq!((code, host.package("other").as_str()), (0, "ii  1"), "{said}");
    assert!(said.contains("an earlier dpkg run was interrupted and has been completed"), "{said}");
}

/// F-22: a transaction that has failed is tried one by one, and each is judged anew: the failing one has changed what
/// apt would do.
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

/// Takes the lock, waits until apt was first asked and some time to wait has passed, does this, and releases it.
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
