//! A live account is read back as a declaration without secrets.

use super::tools;
use futures_util::FutureExt as _;
use steadfast_resources::inspect::{Field, inspectors};
use steadfast_resources::{Host, Value};

#[test]
fn a_live_user_is_read_back_without_its_password() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let of = |kind: &str| inspectors().iter().find(|it| it.kind == kind).expect("an inspector");
    let user = (of("user").one)(&host, "eve").now_or_never().expect("nothing waits");
    let user = user.expect("tables").expect("a user");
    let names: Vec<&str> = user.fields.iter().map(|(name, _)| *name).collect();
    // The group has the name of the user, which is the default.
    assert_eq!(names[..5], ["uid", "groups", "shell", "homedir", "comment"]);
    assert!(!format!("{user:?}").contains("old$hash"), "{user:?}");
    if host.files().is_root() {
        let secret = Field::Secret("user_eve_password".to_owned());
        assert!(user.fields.contains(&("password", secret)), "{user:?}");
    }
    let all = (of("group").all.expect("a list"))(&host).now_or_never().expect("nothing waits");
    assert_eq!(all.expect("tables"), ["root", "adm", "sudo", "eve"]);
    let root = (of("user").one)(&host, "root").now_or_never().expect("nothing waits");
    let root = root.expect("tables").expect("a user");
    let no_password = ("password", Field::Shown(Value::Text("*".to_owned())));
    assert_eq!(root.fields.contains(&no_password), host.files().is_root(), "{root:?}");
    machine.write("/etc/shadow", "eve::19000:0:99999:7:::\n").expect("written");
    let open = (of("user").one)(&host, "eve").now_or_never().expect("nothing waits");
    let open = open.expect("tables").expect("a user");
    assert_eq!(open.note.is_some(), host.files().is_root(), "an empty password: {open:?}");
    let none = (of("group").one)(&host, "nosuch").now_or_never().expect("nothing waits");
    assert_eq!(none.expect("tables"), None);
}

/// The declaration of a number that two users share can be applied where the users do not exist.
#[test]
fn a_shared_number_is_read_back_as_one() {
    let (machine, _calls) = tools::machine();
    let passwd = tools::text(&machine, "/etc/passwd");
    machine.write("/etc/passwd", passwd + "toor:x:0:0::/root:/bin/sh\n").expect("written");
    let _entered = machine.enter();
    let host = Host::default();
    let of = inspectors().iter().find(|it| it.kind == "user").expect("an inspector");
    for (name, is_shared) in [("toor", true), ("root", true), ("eve", false)] {
        let user = (of.one)(&host, name).now_or_never().expect("nothing waits");
        let user = user.expect("tables").expect("a user");
        let shared = ("allowduplicateuid", Field::Shown(Value::Bool(true)));
        assert_eq!(user.fields.get(1) == Some(&shared), is_shared, "{user:?}");
    }
}

/// A number that two groups share is declared for the first of them alone: `group` refuses a shared number.
#[test]
fn a_shared_number_of_groups_is_declared_once() {
    let (machine, _calls) = tools::machine();
    let group = tools::text(&machine, "/etc/group");
    machine.write("/etc/group", group + "wheel:x:0:eve\n").expect("written");
    let _entered = machine.enter();
    let host = Host::default();
    let of = inspectors().iter().find(|it| it.kind == "group").expect("an inspector");
    for (name, has_number) in [("root", true), ("wheel", false), ("adm", true)] {
        let found = (of.one)(&host, name).now_or_never().expect("nothing waits");
        let found = found.expect("tables").expect("a group");
        assert_eq!(found.fields.iter().any(|(field, _)| *field == "gid"), has_number, "{found:?}");
        assert_eq!(found.note.is_none(), has_number, "{found:?}");
    }
}

#[test]
fn the_default_locale_is_read_back_with_its_variables() {
    let (machine, _calls) = tools::machine();
    machine.make_directories("/etc/default").expect("made");
    machine.make_directories("/usr/lib/locale").expect("made");
    machine.write("/etc/locale.gen", "# fr_FR.UTF-8 UTF-8\nde_DE.UTF-8 UTF-8\n").expect("written");
    machine.write("/usr/lib/locale/made", "de_DE.utf8\n").expect("written");
    let defaults = "LANG=de_DE.UTF-8\nLC_TIME=en_GB.UTF-8\n";
    machine.write("/etc/default/locale", defaults).expect("written");
    let _entered = machine.enter();
    let host = Host::default();
    let of = inspectors().iter().find(|it| it.kind == "locale").expect("an inspector");
    let one = |name| (of.one)(&host, name).now_or_never().expect("nothing waits").expect("read");
    let found = one("de_DE.UTF-8").expect("a locale");
    let variables = vec![("LC_TIME".to_owned(), "en_GB.UTF-8".to_owned())];
    let expected = [
        ("default", Field::Shown(Value::Bool(true))),
        ("variables", Field::Shown(Value::TextMap(variables))),
    ];
    assert_eq!(found.fields, expected);
    assert_eq!(one("fr_FR.UTF-8"), None, "a comment");
    let all = (of.all.expect("a list"))(&host).now_or_never().expect("nothing waits");
    assert_eq!(all.expect("read"), ["de_DE.UTF-8"]);
}
