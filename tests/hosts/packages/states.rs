//! The declared states of a package.

use crate::host::Host;

#[test]
fn versions_absence_purge_and_hold() {
    let host = Host::with_packages("make app 1.0; make app 2.0; make lib 1; make tool 1");
    let turns_into = |packages: &[(&str, &str)], name: &str, is: &str| {
        host.declare(packages);
        let (code, said) = host.apply();
        assert_eq!((code, host.package(name).as_str()), (0, is), "{packages:?}: {said}");
        let (code, said) = host.apply();
        assert!(code == 0 && said.contains(" 0 changed"), "F-17: {packages:?}: {said}");
    };
    turns_into(&[("app", "state: \"1.0\"")], "app", "ii  1.0");
    turns_into(&[("app", "state: installed")], "app", "ii  1.0");
    turns_into(&[("app", "state: newest"), ("lib", "")], "app", "ii  2.0");
    turns_into(&[("app", "state: \"1.0\", hold: true"), ("lib", "")], "app", "hi  1.0");
    turns_into(&[("app", "state: \"2.0\", hold: true")], "app", "hi  2.0");
    turns_into(&[("app", "hold: false")], "app", "ii  2.0");
    turns_into(&[("app", "state: absent")], "app", "rc  2.0");
    turns_into(
        &[("app", "state: absent, purge: true"), ("lib", "state: absent, purge: true")],
        "app",
        "",
    );
    assert_eq!(host.package("lib"), "");
    // A newer version in the repository.
    host.repository("make tool 2; publish");
    turns_into(&[("tool", "state: newest")], "tool", "ii  2");

    // A hold by somebody else, with `hold` undeclared: the hold is respected.
    host.repository("make tool 3; publish");
    host.shell("apt-mark hold tool");
    host.declare(&[("tool", "state: \"3\"")]);
    let (code, said) = host.apply();
    assert!(
        code == 1 && said.contains("the package is held: its version must not change"),
        "{said}"
    );
    assert_eq!(host.package("tool"), "hi  2");
}

/// A transaction that would remove an undeclared package is rejected; declared removals and installations run
/// together.
#[test]
fn nothing_goes_that_was_not_asked_for() {
    let host = Host::with_packages(
        "make old 1; make new 1 'Conflicts: old'; make other 1; make needs 1 'Depends: old'",
    );
    host.declare(&[("old", ""), ("needs", "")]);
    assert_eq!(host.apply().0, 0);
    host.declare(&[("new", ""), ("other", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("failed pkg[new]: the transaction would remove undeclared packages: "),
        "{said}"
    );
    assert!(said.contains("changed pkg[other]"), "{said}");
    assert_eq!((host.package("old"), host.package("new")), ("ii  1".into(), String::new()));
    host.declare(&[("old", "state: absent")]);
    let (code, said) = host.apply();
    assert!(code == 1 && said.contains("would remove undeclared packages: needs"), "{said}");
    // Declared together, two packages that conflict can be exchanged.
    host.declare(&[("new", ""), ("old", "state: absent"), ("needs", "state: absent")]);
    let (code, said) = host.apply();
    assert_eq!((code, host.package("new").as_str()), (0, "ii  1"), "{said}");
    assert_eq!(host.package("old"), "rc  1");
}

/// S-8: a name that apt could read as a pattern, another package or a removal is never used as one.
#[test]
fn a_name_is_a_name_and_nothing_else() {
    let host = Host::with_packages("make lib-x 1; make lib 1; make real 1 'Provides: virtual'");
    for name in ["lib.x", "lib+", "virtual", "li.+"] {
        host.declare(&[(name, "")]);
        let (code, said) = host.apply();
        assert!(code == 1 && said.contains("failed pkg["), "{name}: {said}");
    }
    assert_eq!(host.transactions(), 0);
}

/// `cache_age`: package lists that are too old are updated before a package counts as missing.
#[test]
fn old_lists_are_read_anew_first() {
    let host = Host::with_packages("make first 1");
    host.repository("make late 1; make first 2; index");
    host.declare(&[("late", "")]);
    let (code, said) = host.apply();
    assert!(code == 1 && said.contains("Unable to locate package late"), "{said}");
    host.shell("touch -d '3 days ago' /var/lib/apt/lists /var/lib/apt/lists/partial");
    host.declare(&[("late", "cache_age: 1d"), ("first", "cache_age: 1d")]);
    // Before the update the version is not certain; the log contains the installed one.
    let plan = host.run(&["steadfast", "plan", crate::service::GRAPH]).stdout;
    assert!(plan.contains("version: 1, or newer after the package lists are updated"), "{plan}");
    let (code, said) = host.apply();
    assert_eq!((code, host.package("late").as_str()), (0, "ii  1"), "{said}");
    assert!(said.contains("changed pkg[first]: state absent -> installed, version 2"), "{said}");
    assert_eq!(host.package("first"), "ii  2");
}

#[test]
fn the_example_works() {
    let host = Host::with_packages(
        "make nginx 1.22.1-9; make postfix 3.7.11-0; make exim4 4.96-15; make tzdata 2024a",
    );
    host.shell("apt-get -qq -y install exim4 2>&1; touch -d '3 days ago' /var/lib/apt/lists");
    host.write(crate::service::GRAPH, include_str!("../../../examples/packages.yaml"));
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert!(host.package("nginx").starts_with("ii"), "{said}");
    assert_eq!(host.package("exim4"), "");
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains(" 0 changed"), "{said}");
}

/// `state: newest` with old lists: the plan says that a newer version can come.
#[test]
fn a_plan_with_old_lists_leaves_the_version_open() {
    let host = Host::with_packages("make first 1");
    host.declare(&[("first", "")]);
    assert_eq!(host.apply().0, 0);
    host.repository("make first 2; index");
    host.shell("touch -d '3 days ago' /var/lib/apt/lists /var/lib/apt/lists/partial");
    host.declare(&[("first", "state: newest, cache_age: 1d")]);
    let plan = host.run(&["steadfast", "plan", crate::service::GRAPH]).stdout;
    assert!(plan.contains("or newer after the package lists are updated"), "{plan}");
    let (code, said) = host.apply();
    assert_eq!((code, host.package("first").as_str()), (0, "ii  2"), "{said}");
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains(" 0 changed"), "{said}");
}

/// A package that needs an absent one fails, and so does one package under two names.
#[test]
fn contradictions_among_packages_fail() {
    let host = Host::with_packages("make one 1; make two 1 'Depends: one'; make three 1");
    host.declare(&[("one", "state: absent"), ("two", ""), ("three", "")]);
    let (code, said) = host.apply();
    assert_eq!(
        (code, host.package("one").as_str(), host.package("two").as_str()),
        (1, "", ""),
        "{said}"
    );
    assert!(said.contains("would install one, which is declared absent"), "{said}");
    assert_eq!(host.package("three"), "ii  1", "the others go on");
    host.shell("apt-get -qq -y install two 2>&1");
    let (code, said) = host.apply();
    assert_eq!((code, host.package("two").as_str()), (1, "ii  1"), "{said}");
    assert!(said.contains("would remove two, which is declared installed"), "{said}");
    let native = host.shell("dpkg --print-architecture");
    host.declare(&[("three", "hold: true"), (&format!("three:{}", native.trim()), "hold: false")]);
    let (code, said) = host.apply();
    assert!(code == 1 && said.contains("are one package, which is declared twice"), "{said}");
}
