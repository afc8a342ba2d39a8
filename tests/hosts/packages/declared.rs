//! The fields of a package resource (questions, recommendations, architecture), and one transaction at a time.

use crate::host::Host;

/// A package with one question, whose answer it writes to `/etc/NAME/answer`.
const ASKING: &str = "
asking() {
  make $1 1 'Depends: debconf' '
    . /usr/share/debconf/confmodule
    db_get NAME/port; echo \"$RET\" >/etc/NAME/answer' '
    printf \"Template: NAME/port\\nType: string\\nDefault: 80\\nDescription: Port?\\n\" >DEBIAN/templates
    printf \"#!/bin/sh -e\\n. /usr/share/debconf/confmodule\\ndb_input critical NAME/port || true\\ndb_go\\n\" >DEBIAN/config
    sed -i s/NAME/'$1'/g DEBIAN/templates DEBIAN/config DEBIAN/postinst
    chmod 755 DEBIAN/config'
}
";

/// F-22: a package that asks a question never hangs: the answer is the declared one or the default, also for a script
/// that reads a terminal.
#[test]
fn a_package_that_asks_does_not_hang() {
    let host = Host::with_packages(&format!(
        "{ASKING}\nasking quiet; asking told
         make rude 1 '' 'echo Password?; if read answer; then exit 4; fi; echo none >/etc/rude/answer'"
    ));
    host.declare(&[("quiet", ""), ("told", "debconf: {told/port: string 8080}"), ("rude", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert_eq!(host.transactions(), 1);
    for (name, answer) in [("quiet", "80\n"), ("told", "8080\n"), ("rude", "none\n")] {
        assert_eq!(host.read(&format!("/etc/{name}/answer")).as_deref(), Some(answer), "{name}");
    }
}

/// Package transactions run one at a time, even outside a group: the second waits for the first and does not fail.
#[test]
fn one_transaction_at_a_time() {
    let script = "ls /run/at-work* >>/run/seen 2>/dev/null; touch /run/at-work-$$; sleep 1; rm /run/at-work-$$";
    let host = Host::with_packages(&format!(
        "for name in one two three; do make $name 1 '' '{script}'; done"
    ));
    let alone = "meta: { autogroup: false }";
    host.declare(&[("one", alone), ("two", alone), ("three", alone)]);
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains("3 resources, 3 changed"), "{said}");
    assert_eq!(host.transactions(), 3);
    assert!(!said.contains("waited"), "{said}");
    assert_eq!(host.read("/run/seen").unwrap_or_default(), "", "at work beside another");

    // A transaction of another process: dpkg's lock separates them, and the wait is reported with its holder.
    host.repository(&format!(
        "for name in four five; do make $name 1 '' '{script}'; done; publish"
    ));
    host.shell("apt-get -q -y install four >/run/four.log 2>&1 & while [ ! -e /run/at-work-* ]; do sleep 0.05; done");
    host.declare(&[("five", "")]);
    let (code, said) = host.apply();
    assert_eq!((code, host.package("five").as_str()), (0, "ii  1"), "{said}");
    assert!(said.contains(" s for process ") && said.contains("(apt-get)"), "{said}");
    assert_eq!(host.read("/run/seen").unwrap_or_default(), "", "at work beside another");
}

/// A locally changed configuration file stays, and a removed one stays away; no question is asked.
#[test]
fn configuration_changed_by_hand_is_kept() {
    let host = Host::with_packages("make mine 1; make away 1; make new 1");
    host.shell("apt-get -q -y install mine away new 2>&1");
    host.write("/etc/mine/mine.conf", "mine\n");
    host.shell("rm /etc/away/away.conf");
    host.repository("make mine 2; make away 2; make new 2; publish");
    host.declare(&[("mine", "state: newest"), ("away", "state: newest"), ("new", "state: newest")]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    for (name, content) in
        [("mine", Some("mine\n")), ("away", None), ("new", Some("of the package, 2\n"))]
    {
        assert_eq!(host.package(name), "ii  2");
        assert_eq!(host.read(&format!("/etc/{name}/{name}.conf")).as_deref(), content, "{name}");
    }
}

/// Recommended packages are installed as declared, or as apt is configured.
#[test]
fn recommended_packages_come_as_declared() {
    let host = Host::with_packages(
        "for each in a b c; do make extra-$each 1; make with-$each 1 \"Recommends: extra-$each\"; done",
    );
    host.declare(&[
        ("with-a", "recommends: false"),
        ("with-b", "recommends: true"),
        ("with-c", ""),
    ]);
    for (configured, brings) in [("false", ""), ("true", "ii  1")] {
        host.write("/etc/apt/apt.conf.d/zz", &format!("APT::Install-Recommends {configured};\n"));
        let (code, said) = host.apply();
        assert_eq!(code, 0, "{said}");
        assert_eq!(host.package("extra-a"), "", "{said}");
        assert_eq!(host.package("extra-b"), "ii  1", "{said}");
        assert_eq!(host.package("extra-c"), brings, "{said}");
        host.shell("apt-get -q -y purge 'with-*' 'extra-*' 2>&1");
    }
}

/// A package name can have an architecture: the host's own, a foreign one, or an unknown one.
#[test]
fn a_name_may_have_an_architecture() {
    let host = Host::with_packages(
        "own=$(dpkg --print-architecture); other=i386; [ $own != i386 ] || other=amd64
         dpkg --add-architecture $other
         arch=$own make native 1; arch=$own make native 2; make any 1
         for arch in $own $other; do make both 1 'Multi-Arch: same' '' 'rm -r etc usr DEBIAN/conffiles'; done
         echo $own >/run/own; echo $other >/run/other",
    );
    let read = |path| host.read(path).expect("written").trim().to_owned();
    let (own, other) = (read("/run/own"), read("/run/other"));
    let native = format!("native:{own}");
    let any = format!("any:{own}");
    let (here, there) = (format!("both:{own}"), format!("both:{other}"));
    let converges_to = |packages: &[(&str, &str)]| {
        host.declare(packages);
        let (code, said) = host.apply();
        assert_eq!(code, 0, "{said}");
        let (code, again) = host.apply();
        assert!(code == 0 && again.contains(" 0 changed"), "F-17: {again}");
        said
    };
    converges_to(&[(&native, "state: \"1\""), (&any, ""), (&here, ""), (&there, "")]);
    assert_eq!((host.package("native"), host.package("any")), ("ii  1".into(), "ii  1".into()));
    assert_eq!((host.package(&here), host.package(&there)), ("ii  1".into(), "ii  1".into()));
    converges_to(&[
        (&native, "state: newest"),
        (&there, "state: absent, purge: true"),
        (&here, ""),
    ]);
    assert_eq!((host.package("native"), host.package(&here)), ("ii  2".into(), "ii  1".into()));
    assert_eq!(host.package(&there), "");
    converges_to(&[(&native, "hold: true"), (&any, "hold: true")]);
    assert_eq!((host.package("native"), host.package("any")), ("hi  2".into(), "hi  1".into()));
    converges_to(&[(&native, "hold: false"), (&any, "hold: false")]);
    converges_to(&[(&native, "state: absent, purge: true"), (&any, "state: absent, purge: true")]);
    assert_eq!((host.package("native"), host.package("any")), (String::new(), String::new()));

    host.declare(&[("any:riscv64", ""), ("native:riscv64", "")]);
    let before = host.transactions();
    let (code, said) = host.apply();
    assert!(code == 1 && said.contains("failed pkg[any:riscv64]"), "{said}");
    assert!(said.contains("failed pkg[native:riscv64]"), "{said}");
    assert_eq!(host.transactions(), before);
}
