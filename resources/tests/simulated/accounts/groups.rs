//! A group and its members are made, repaired and removed.

use super::tools::{self, row};
use super::{build, change, check, converge, failure, good, list, text};
use steadfast_resources::{CheckResult, Host, HostObject, Value};

#[test]
fn a_group_is_made_with_its_members() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let fields = [("gid", Value::Int(2000)), ("members", list(&["root", "eve"]))];
    let group = good("group", "dev", &fields);
    assert!(change(&host, &group).creates);
    converge(&host, &group);
    let argv: Vec<String> = calls.borrow().iter().map(|(argv, _)| argv.join(" ")).collect();
    assert_eq!(argv, ["groupadd --gid 2000 dev", "gpasswd --members eve,root dev"]);
    assert!(format!("{:?}", group.sends()).contains("Int(2000)"));
    converge(&host, &good("group", "dev", &[("gid", Value::Int(2001))]));
    converge(&host, &good("group", "dev", &[("members", list(&[]))]));
    let found = row(&machine, "/etc/group", "dev").expect("a group").join(":");
    assert_eq!(found, "dev:x:2001:");
    converge(
        &host,
        &good("group", "own", &[("system", Value::Bool(true)), ("members", list(&[]))]),
    );
    assert_eq!(calls.borrow().last().expect("a call").0, ["groupadd", "--system", "own"]);
}

#[test]
fn undeclared_members_stay() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let group = good("group", "adm", &[("gid", Value::Int(4))]);
    assert!(matches!(check(&Host::default(), &group), CheckResult::Same));
}

#[test]
fn a_group_in_use_is_not_removed() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let absent = |name| good("group", name, &[("state", text("absent"))]);
    let said = failure(&host, &absent("eve"));
    assert!(said.starts_with("untouched: the group eve is the primary group of eve"), "{said}");
    converge(&host, &absent("sudo"));
    assert!(row(&machine, "/etc/group", "sudo").is_none());
    assert!(good("group", "root", &[]).footprint().removal.is_none());
    assert!(build("group", "root", &[("state", text("absent"))]).is_err());
    machine.replace("/etc/group", "zero:x:0:\n").expect("written");
    let said = failure(&host, &absent("zero"));
    assert!(said.starts_with("untouched: the group zero must not be removed"), "{said}");
}

#[test]
fn unknown_members_and_used_numbers_are_refused() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let said = failure(&host, &good("group", "dev", &[("gid", Value::Int(27))]));
    assert!(said.starts_with("untouched: the gid 27 belongs to the group sudo"), "{said}");
    assert_eq!(calls.borrow().len(), 0);
    let said = failure(&host, &good("group", "adm", &[("members", list(&["nosuch"]))]));
    assert!(said.starts_with("untouched: the user nosuch of `members` does not exist"), "{said}");
    let said = failure(&host, &good("group", "dev", &[("members", list(&["nosuch"]))]));
    assert!(said.starts_with("touched: the user nosuch of `members` does not exist"), "{said}");
}

#[test]
fn claims_tell_memberships_that_contradict_each_other() {
    let includes = |one: &steadfast_resources::Footprint,
                    other: &steadfast_resources::Footprint| {
        let of_other = other.claims.iter().flat_map(|claim| claim.object.includers());
        let of_other: Vec<_> = of_other.collect();
        one.claims.iter().any(|claim| of_other.contains(&claim.object))
    };
    let conflict = |one: &_, other: &_| includes(one, other) || includes(other, one);
    let all = good("group", "adm", &[("members", list(&["bob"]))]).footprint();
    let append = [("groups", list(&["adm"])), ("append", Value::Bool(true))];
    let one = good("user", "eve", &append).footprint();
    let exact = good("user", "zoe", &[("groups", list(&["adm"]))]).footprint();
    let plain = good("group", "adm", &[]).footprint();
    assert!(conflict(&all, &one) && !conflict(&plain, &one) && !conflict(&exact, &one));
    assert!(plain.provides.contains(&HostObject::Group("adm".to_owned())));
    let needs = |footprint: &steadfast_resources::Footprint, object: HostObject| {
        footprint.requires.iter().any(|need| need.token == object)
    };
    assert!(needs(&all, HostObject::User("bob".to_owned())));
    assert!(needs(&one, HostObject::Group("adm".to_owned())));
    assert!(needs(&one, HostObject::Group("eve".to_owned())), "the usual primary group");
    assert!(one.provides.contains(&HostObject::User("eve".to_owned())));
}
