//! A user is made, repaired and removed, by the smallest change.

use super::tools::{self, row};
use super::{change, check, converge, failure, good, list, text};
use steadfast_resources::{CheckResult, Host, Value};

/// A password hash that must never be shown.
const HASH: &str = "$6$salt$canary";

#[test]
fn a_user_is_made_with_all_its_aspects() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let user = good(
        "user",
        "web",
        &[
            ("uid", Value::Int(2000)),
            ("group", text("adm")),
            ("groups", list(&["sudo", "eve", "sudo"])),
            ("shell", text("/bin/bash")),
            ("homedir", text("/srv/web/")),
            ("comment", text("Web")),
            ("password", text(HASH)),
            ("expiry", text("2030-01-01")),
            ("manage_home", Value::Bool(true)),
        ],
    );
    let found = change(&host, &user);
    assert!(found.creates && !found.destructive);
    assert!(!format!("{found:?} {user:?}").contains("canary"), "a hash is never shown");
    assert_eq!(calls.borrow().len(), 0, "a check runs nothing");
    let done = converge(&host, &user).join("; ");
    assert!(done.contains("uid 2000") && !done.contains("canary"), "{done}");
    let passwd = row(&machine, "/etc/passwd", "web").expect("a user").join(":");
    assert_eq!(passwd, "web:x:2000:4:Web:/srv/web:/bin/bash");
    let shadow = row(&machine, "/etc/shadow", "web").expect("a password").join(":");
    assert_eq!(shadow, format!("web:{HASH}:19000:0:99999:7::21915:"));
    let argv: Vec<String> = calls.borrow().iter().map(|(argv, _)| argv.join(" ")).collect();
    assert_eq!(argv.len(), 2, "{argv:?}");
    assert!(argv.iter().all(|line| !line.contains("canary")), "{argv:?}");
    assert_eq!(calls.borrow()[1].1.as_deref(), Some("web:$6$salt$canary\n"));
    let sent = format!("{:?}", user.sends());
    for part in ["Int(2000)", "Int(4)", "/srv/web", "/bin/bash"] {
        assert!(sent.contains(part), "{sent}");
    }
}

#[test]
fn only_what_differs_is_changed() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let user = good("user", "eve", &[("shell", text("/bin/zsh")), ("comment", text("Eve,,,"))]);
    assert_eq!(converge(&host, &user), ["shell /bin/zsh"]);
    assert_eq!(calls.borrow()[0].0, ["usermod", "--shell", "/bin/zsh", "eve"]);
    let empty = good("user", "eve", &[("comment", text("")), ("groups", list(&[]))]);
    converge(&host, &empty);
    assert_eq!(row(&machine, "/etc/group", "adm").expect("a group")[3], "");
    assert_eq!(row(&machine, "/etc/passwd", "eve").expect("a user")[4], "");
}

#[test]
fn other_groups_stay_with_append_alone() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let more = [("groups", list(&["sudo"])), ("append", Value::Bool(true))];
    converge(&host, &good("user", "eve", &more));
    assert_eq!(calls.borrow()[0].0, ["usermod", "--append", "--groups", "sudo", "eve"]);
    let members = |group| row(&machine, "/etc/group", group).expect("a group")[3].clone();
    assert_eq!((members("adm"), members("sudo")), ("eve".to_owned(), "eve".to_owned()));
    converge(&host, &good("user", "eve", &[("groups", list(&["sudo"]))]));
    assert_eq!((members("adm"), members("sudo")), (String::new(), "eve".to_owned()));
}

#[test]
fn a_lock_is_kept_and_changed_without_an_unlocked_moment() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let password = || row(&machine, "/etc/shadow", "eve").expect("a user")[1].clone();
    converge(&host, &good("user", "eve", &[("lock", Value::Bool(true))]));
    assert_eq!(password(), "!$6$old$hash");
    // A new password under a lock that this resource does not declare.
    converge(&host, &good("user", "eve", &[("password", text(HASH))]));
    assert_eq!(password(), format!("!{HASH}"));
    converge(&host, &good("user", "eve", &[("lock", Value::Bool(false))]));
    assert_eq!(password(), HASH);
    let both = [("lock", Value::Bool(true)), ("password", text("$6$x$new"))];
    let before = calls.borrow().len();
    converge(&host, &good("user", "eve", &both));
    assert_eq!((password().as_str(), calls.borrow().len() - before), ("!$6$x$new", 1));
    // Without any password there is nothing to unlock.
    let open = good("user", "root", &[("lock", Value::Bool(false))]);
    assert!(matches!(check(&host, &open), CheckResult::Same));
    converge(&host, &good("user", "eve", &[("expiry", text("2030-01-01"))]));
    converge(&host, &good("user", "eve", &[("expiry", text("never"))]));
}

#[test]
fn a_new_user_takes_the_group_of_its_name() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    converge(&host, &good("user", "sudo", &[]));
    let argv = calls.borrow()[0].0.join(" ");
    assert_eq!(argv, "useradd --gid sudo --no-create-home sudo");
    converge(&host, &good("user", "locked", &[("lock", Value::Bool(true))]));
    assert_eq!(calls.borrow().len(), 2, "a new user has a locked password");
}

#[test]
fn a_missing_home_is_made_and_a_former_one_moved() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let home = |path: &str| {
        good("user", "eve", &[("homedir", text(path)), ("manage_home", Value::Bool(true))])
    };
    assert!(matches!(check(&host, &home("/home/eve")), CheckResult::Same));
    converge(&host, &home("/srv/eve"));
    let argv = calls.borrow()[0].0.join(" ");
    assert_eq!(argv, "usermod --home /srv/eve --move-home eve");
    machine.remove("/srv/eve").expect("removed");
    converge(&host, &home("/srv/eve"));
    assert_eq!(calls.borrow()[1].0, ["mkhomedir_helper", "eve", "0077"]);
}

#[test]
fn a_user_is_removed_and_root_never() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let spec = steadfast_resources::KindSet::of_this_build().find("user").expect("a kind");
    let plain = good("user", "eve", &[("manage_home", Value::Bool(true))]);
    let removal = plain.footprint().removal.expect("a removal");
    let removed = spec.build_removal(&removal, "eve").expect("a resource");
    assert!(removed.footprint().removal.is_none() && change(&host, &removed).destructive);
    converge(&host, &removed);
    assert_eq!(calls.borrow()[0].0, ["userdel", "eve"]);
    assert!(matches!(check(&host, &removed), CheckResult::Same));

    let flags = [("manage_home", Value::Bool(true)), ("remove_home", Value::Bool(true))];
    let whole = good("user", "zoe", &flags);
    converge(&host, &whole);
    let removal = whole.footprint().removal.expect("a removal");
    converge(&host, &spec.build_removal(&removal, "zoe").expect("a resource"));
    assert_eq!(calls.borrow()[2].0, ["userdel", "--remove", "zoe"]);

    assert!(good("user", "root", &[]).footprint().removal.is_none());
    assert!(super::build("user", "root", &[("state", text("absent"))]).is_err());
    machine
        .replace("/etc/passwd", "toor:x:0:0::/root:/bin/sh\nbig:x:7777:7::/home:/bin/sh\n")
        .unwrap();
    let absent = |name, home| {
        let mut fields = vec![("state", text("absent"))];
        fields.extend(if home { flags.to_vec() } else { Vec::new() });
        good("user", name, &fields)
    };
    let refused = failure(&host, &absent("toor", false));
    assert!(
        refused.starts_with("untouched: the user toor (uid 0) must not be removed"),
        "{refused}"
    );
    let refused = failure(&host, &absent("big", true));
    assert!(
        refused.starts_with("untouched: the home directory /home is never removed"),
        "{refused}"
    );
}

#[test]
fn bad_references_are_refused_before_anything_is_changed() {
    let (machine, calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let of = |given: &[(&str, Value)]| failure(&host, &good("user", "new", given));
    let said = of(&[("groups", list(&["nosuch"]))]);
    assert!(said.starts_with("untouched: the group nosuch does not exist"), "{said}");
    let said = of(&[("uid", Value::Int(1000))]);
    assert!(said.starts_with("untouched: the uid 1000 belongs to the user eve"), "{said}");
    assert_eq!(calls.borrow().len(), 0);
    machine.write("/etc/.locked", "").expect("written");
    let said = of(&[]);
    assert!(said.starts_with("untouched passing: useradd waited for the lock"), "{said}");
    machine.remove("/etc/.locked").expect("removed");
    machine.replace("/etc/group", "root:x:0:\nsudo;x:27\n").expect("written");
    let said = of(&[("group", text("sudo"))]);
    assert!(said.contains("line 2 of /etc/group is broken"), "{said}");
    let twice = [("uid", Value::Int(1000)), ("allowduplicateuid", Value::Bool(true))];
    converge(&host, &good("user", "new", &twice));
}

#[test]
fn a_missing_table_is_a_failure_with_its_path() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    machine.remove("/etc/passwd").expect("removed");
    match check(&Host::default(), &good("user", "eve", &[])) {
        CheckResult::Unknown(failure) => assert!(failure.what.contains("/etc/passwd"), "{failure}"),
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// The tools work by the path of a home directory: a user who can write a directory above would lead them elsewhere.
#[test]
fn a_home_is_made_and_moved_only_below_directories_of_root() {
    for owner in [0, 65534] {
        let (machine, calls) = tools::machine();
        machine
            .make_directories(if owner == 0 { "/srv/shared" } else { "/srv/shared/web" })
            .expect("made");
        machine.chown("/srv/shared", owner, owner).expect("given");
        let _entered = machine.enter();
        let host = Host::default();
        let home = ("homedir", text("/srv/shared/web"));
        let manages = ("manage_home", Value::Bool(true));
        let [made, moved] =
            ["web", "eve"].map(|name| good("user", name, &[home.clone(), manages.clone()]));
        if owner == 0 {
            converge(&host, &made);
            continue;
        }
        for user in [&made, &moved] {
            let said = failure(&host, user);
            assert!(said.contains("another user could change /srv/shared"), "{said}");
        }
        assert_eq!(calls.borrow().len(), 0, "no tool runs");
    }
}
