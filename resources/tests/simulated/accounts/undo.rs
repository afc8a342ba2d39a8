//! Undo gives users and groups their values from before a change.

use super::tools::{self, row};
use super::{check, converge, good, list, text};
use steadfast_resources::{After, CheckResult, FormerValue, Host, KindSet, Value};

fn value(field: &str, before: Option<&str>, after: Option<&str>) -> FormerValue {
    FormerValue {
        field: field.to_owned(),
        before: before.map(ToOwned::to_owned),
        after: After::from(after.map(ToOwned::to_owned)),
    }
}

#[test]
fn a_changed_user_gets_its_values_back() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let before = row(&machine, "/etc/passwd", "eve");
    let fields = [("shell", text("/bin/zsh")), ("comment", text("")), ("groups", list(&["sudo"]))];
    converge(&host, &good("user", "eve", &fields));
    let values = [
        value("shell", Some("/bin/sh"), Some("/bin/zsh")),
        value("comment", Some("Eve,,,"), Some("")),
        value("groups", Some("adm"), Some("sudo")),
    ];
    let undo = KindSet::of_this_build().restoring("user[eve]", &values).expect("an undo");
    assert!(
        undo.by_hand.starts_with("usermod --groups 'adm' --shell '/bin/sh'"),
        "{}",
        undo.by_hand
    );
    converge(&host, &undo.resource);
    assert_eq!(row(&machine, "/etc/passwd", "eve"), before);
    assert_eq!(row(&machine, "/etc/group", "adm").expect("a group")[3], "eve");
    assert_eq!(row(&machine, "/etc/group", "sudo").expect("a group")[3], "");
}

#[test]
fn an_added_membership_alone_is_taken_back() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let more = [("groups", list(&["adm", "sudo"])), ("append", Value::Bool(true))];
    converge(&host, &good("user", "eve", &more));
    let values = [value("memberships", Some("adm"), Some("adm,sudo"))];
    let undo = KindSet::of_this_build().restoring("user[eve]", &values).expect("an undo");
    converge(&host, &undo.resource);
    assert_eq!(calls.borrow()[1].0, ["gpasswd", "--delete", "eve", "sudo"]);
    assert_eq!(undo.by_hand, "gpasswd --delete eve sudo");
}

#[test]
fn a_made_account_is_removed_and_a_removed_user_is_refused() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    converge(&host, &good("user", "zoe", &[]));
    let made = [value("state", None, Some("exists"))];
    converge(
        &host,
        &KindSet::of_this_build().restoring("user[zoe]", &made).expect("an undo").resource,
    );
    assert!(row(&machine, "/etc/passwd", "zoe").is_none());
    let gone = [value("state", Some("exists"), None)];
    let refused = KindSet::of_this_build()
        .restoring("user[zoe]", &gone)
        .expect_err("no password is recorded");
    assert!(refused.what.chars().count() <= 100 && refused.hint.is_some());

    converge(&host, &good("group", "adm", &[("members", list(&[])), ("gid", Value::Int(44))]));
    let values = [value("members", Some("eve"), Some("")), value("gid", Some("4"), Some("44"))];
    converge(
        &host,
        &KindSet::of_this_build().restoring("group[adm]", &values).expect("an undo").resource,
    );
    assert_eq!(row(&machine, "/etc/group", "adm").expect("a group").join(":"), "adm:x:4:eve");
    assert!(KindSet::of_this_build().restoring("user[a b]", &made).is_err());
}

/// The home came with the user. A home with a file of its own stops the undo before the user is removed.
#[test]
fn a_created_home_is_removed_with_its_user() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    converge(&host, &good("user", "zoe", &[("manage_home", Value::Bool(true))]));
    machine.chown("/home/zoe", 1600, 1600).expect("given");
    let made = [value("state", None, Some("exists")), value("home", None, Some("exists"))];
    let undo = KindSet::of_this_build().restoring("user[zoe]", &made).expect("an undo");
    machine.write("/home/zoe/work", "mine").expect("written");
    let CheckResult::Unknown(failure) = check(&host, &undo.resource) else { panic!("foreign") };
    assert!(failure.what.contains("changed or added: work"), "{failure}");
    assert!(row(&machine, "/etc/passwd", "zoe").is_some());
    machine.remove("/home/zoe/work").expect("removed");
    converge(&host, &undo.resource);
    assert!(row(&machine, "/etc/passwd", "zoe").is_none());
    assert!(machine.look(|tree| tree.at("/home/zoe").is_none()));
}

/// The mode of an existing file is not declared, so it stays.
#[test]
fn the_name_of_the_host_leaves_the_mode_alone() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    machine.make_directories("/proc/sys/kernel").expect("made");
    machine.write("/proc/sys/kernel/hostname", "old\n").expect("written");
    machine.write("/etc/hostname", "old\n").expect("written");
    machine.chmod("/etc/hostname", 0o755).expect("changed");
    let mode = || machine.look(|tree| tree.at("/etc/hostname").map(|node| node.mode & 0o777));
    converge(&host, &good("hostname", "web1", &[]));
    assert_eq!(mode(), Some(0o755));
    machine.remove("/etc/hostname").expect("removed");
    converge(&host, &good("hostname", "web1", &[]));
    assert_eq!(mode(), Some(0o644));
}
