//! Wrong fields of users and groups are reported at load, in one short line each.

use super::{build, list, text};
use steadfast_resources::Value;

/// A kind, a name, fields, and the field at fault.
type Wrong = (&'static str, &'static str, Vec<(&'static str, Value)>, Option<&'static str>);

#[test]
fn wrong_fields_are_reported_with_their_names() {
    let flag = Value::Bool(true);
    let cases: Vec<Wrong> = vec![
        ("user", "a b", vec![], None),
        ("user", "-r", vec![], None),
        ("user", "1000", vec![], None),
        ("user", "eve", vec![("uid", Value::Int(-1))], Some("uid")),
        ("user", "eve", vec![("uid", Value::Int(4_294_967_295))], Some("uid")),
        ("user", "eve", vec![("state", text("gone"))], Some("state")),
        ("user", "eve", vec![("shell", text("bash"))], Some("shell")),
        ("user", "eve", vec![("homedir", text("/home/a:b"))], Some("homedir")),
        ("user", "eve", vec![("homedir", text("/home/../etc"))], Some("homedir")),
        ("user", "eve", vec![("comment", text("a:b"))], Some("comment")),
        ("user", "eve", vec![("comment", text("a\nroot::0:0::/:/bin/sh"))], Some("comment")),
        ("user", "eve", vec![("group", text("a,b"))], Some("group")),
        ("user", "eve", vec![("groups", list(&["adm", "a:b"]))], Some("groups")),
        ("user", "eve", vec![("groups", list(&["27"]))], Some("groups")),
        ("user", "eve", vec![("append", flag.clone())], Some("append")),
        ("user", "eve", vec![("allowduplicateuid", flag.clone())], Some("allowduplicateuid")),
        ("user", "eve", vec![("remove_home", flag.clone())], Some("remove_home")),
        ("user", "eve", vec![("expiry", text("2030-02-30"))], Some("expiry")),
        ("user", "eve", vec![("password", text("canary"))], Some("password")),
        ("user", "eve", vec![("password", text("$6$canary$\nx:y"))], Some("password")),
        ("user", "root", vec![("uid", Value::Int(5))], Some("uid")),
        ("user", "eve", vec![("gid", Value::Int(4)), ("group", text("adm"))], Some("gid")),
        ("group", "a:b", vec![], None),
        ("group", "adm", vec![("gid", Value::Int(-1))], Some("gid")),
        ("group", "adm", vec![("members", list(&["a b"]))], Some("members")),
        ("group", "root", vec![("gid", Value::Int(5))], Some("gid")),
    ];
    for (kind, name, given, field) in cases {
        let problems = build(kind, name, &given).expect_err(&format!("{kind}[{name}] {given:?}"));
        let shown = format!("{problems:?}");
        assert!(problems.iter().any(|problem| problem.field == field), "{shown}");
        for problem in &problems {
            assert!(problem.what.chars().count() <= 100, "{}", problem.what);
        }
        assert!(!shown.contains("canary"), "a rejected password is not shown: {shown}");
    }
    let protected =
        [("homedir", text("/srv")), ("manage_home", flag.clone()), ("remove_home", flag)];
    assert!(build("user", "eve", &protected).is_err());
}
