//! Tests of the fields of an exec: every problem is reported at once, with its field.

use crate::support::{build, exec, text, texts, yes};
use steadfast_resources::{KindSet, Value};

fn wrong(given: Vec<(&'static str, Value)>) -> Vec<&'static str> {
    let problems = build("exec", given).unwrap_err();
    for problem in &problems {
        assert!(problem.what.chars().count() <= 100 && problem.hint.is_some(), "{problem:?}");
    }
    problems.iter().map(|problem| problem.field.unwrap()).collect()
}

#[test]
fn everything_wrong_is_said_at_once() {
    let found = wrong(vec![
        text("cmd", "ls -l"),
        texts("args", &["x"]),
        text("cwd", "relative"),
        text("creates", "relative"),
        texts("mtimes", &["/a"]),
        text("ifequals", "x"),
        text("umask", "999"),
        ("timeout", Value::Float(-1.0)),
        ("env", Value::TextMap(vec![("1A".into(), String::new()), ("B=C".into(), String::new())])),
        texts("returns", &["0", "x", "256"]),
        text("on_interrupt", "panic"),
        texts("watchfiles", &["relative"]),
        text("watchshell", "sh -e"),
    ]);
    let expected = [
        "cwd",
        "env",
        "env",
        "umask",
        "timeout",
        "cmd",
        "creates",
        "ifequals",
        "mtimes",
        "watchshell",
        "watchfiles",
        "returns",
        "returns",
        "on_interrupt",
    ];
    assert_eq!(found, expected);
}

#[test]
fn single_mistakes() {
    assert_eq!(wrong(vec![text("ifcmd", "a\0b")]), ["ifcmd"]);
    assert_eq!(wrong(vec![texts("args", &["", "x"])]), ["cmd"]);
    assert_eq!(wrong(vec![yes("always"), text("creates", "/x")]), ["always"]);
    assert_eq!(wrong(vec![yes("always"), yes("refresh_only")]), ["always"]);
    assert_eq!(wrong(vec![texts("returns", &[])]), ["returns"]);
    assert_eq!(wrong(vec![("timeout", Value::Float(f64::NAN))]), ["timeout"]);
    assert_eq!(wrong(vec![("timeout", Value::Float(1e30))]), ["timeout"]);
    assert_eq!(wrong(vec![("max_tasks", Value::Int(9))]), ["max_tasks"], "without a user");
    for tasks in [0, -1, i64::MAX] {
        assert_eq!(wrong(vec![text("user", "x"), ("max_tasks", Value::Int(tasks))]), ["max_tasks"]);
    }
}

/// B4: users of Ansible write `shell: true`, which would run the program `true`.
#[test]
fn a_shell_is_an_absolute_path() {
    for found in ["true", "yes", "on", "sh", "bin/sh"] {
        for field in ["shell", "ifshell", "nifshell", "doneshell", "watchshell"] {
            let problems = build("exec", vec![text(field, found)]).unwrap_err();
            assert_eq!(problems[0].field, Some(field));
            assert_eq!(problems[0].hint.as_deref(), Some(&*format!("write {field}: /bin/sh")));
        }
    }
}

/// Graphs of mgmt write `''` and 0 for absent values.
#[test]
fn an_empty_text_is_as_good_as_none() {
    let names =
        ["shell", "cwd", "user", "group", "creates", "ifcmd", "ifshell", "watchcmd", "watchshell"];
    let given = names.map(|name| text(name, ""));
    let resource = exec(given.into_iter().chain([("timeout", Value::Float(0.0))]));
    assert!(resource.footprint().watch.is_empty());
}

#[test]
fn obsolete_fields_are_accepted_with_a_warning() {
    let fields = KindSet::of_this_build().find("exec").unwrap().fields;
    for name in ["state", "pollint"] {
        let field = fields.iter().find(|field| field.name == name).unwrap();
        assert!(field.ignored.is_some());
    }
}

/// Every field in the list of kinds exists once and is documented.
#[test]
fn every_field_is_documented() {
    let fields = KindSet::of_this_build().find("exec").unwrap().fields;
    let wanted = "cmd args shell cwd env user group timeout creates ifcmd ifshell ifcwd nifcmd nifshell nifcwd \
        ifequals donecmd doneshell donecwd watchcmd watchshell watchcwd watchfiles mtimes refresh_only returns \
        changed_when stdin umask no_new_privs max_tasks always on_interrupt state pollint";
    let mut names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let mut wanted: Vec<&str> = wanted.split_whitespace().collect();
    names.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    assert!(fields.iter().all(|field| field.doc.len() > 10));
}
