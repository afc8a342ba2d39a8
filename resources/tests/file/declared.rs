//! Tests of the declaration of a file: valid fields, and all problems at once.

use crate::support::build;
use steadfast_resources::{Claim, KindSet, WatchSource};

fn wrong(name: &str, given: &[(&str, &str)]) -> Vec<(Option<&'static str>, String)> {
    let problems = build("file", name, given).expect_err("must be refused");
    for problem in &problems {
        assert!(problem.what.chars().count() <= 100, "{problem:?}");
    }
    problems.into_iter().map(|problem| (problem.field, problem.what)).collect()
}

fn fields(name: &str, given: &[(&str, &str)]) -> Vec<Option<&'static str>> {
    wrong(name, given).into_iter().map(|(field, _)| field).collect()
}

fn path_of(name: &str, given: &[(&str, &str)]) -> String {
    match build("file", name, given).expect("accepted").footprint().claims.as_slice() {
        [claim, ..] => claim.as_path().unwrap().to_str().unwrap().to_owned(),
        other => panic!("one claim, found {other:?}"),
    }
}

#[test]
fn the_path_is_the_name_or_a_field_or_composed() {
    assert_eq!(path_of("/etc/motd", &[]), "/etc/motd");
    assert_eq!(path_of("greeting", &[("path", "/etc/motd")]), "/etc/motd");
    assert_eq!(path_of("//etc/./x//y/", &[]), "/etc/x/y");
    assert_eq!(path_of("a", &[("dirname", "/etc/"), ("basename", "motd")]), "/etc/motd");
    assert_eq!(path_of("a", &[("path", "/srv/motd"), ("dirname", "/etc/")]), "/etc/motd");
    assert_eq!(path_of("a", &[("path", "/srv/motd"), ("basename", "issue")]), "/srv/issue");
    assert_eq!(path_of("motd", &[("dirname", "/etc/")]), "/etc/motd");
    assert_eq!(path_of("a", &[("path", "/srv/x/"), ("dirname", "/etc/")]), "/etc/x");
}

#[test]
fn paths_that_are_refused() {
    assert_eq!(fields("motd", &[]), [Some("path")]);
    assert_eq!(fields("x", &[("path", "etc/motd")]), [Some("path")]);
    assert_eq!(fields("/etc/../motd", &[]), [Some("path")]);
    assert_eq!(fields("/etc/mo\0td", &[]), [Some("path")]);
    assert_eq!(fields("x", &[("path", "/a"), ("dirname", "/etc")]), [Some("dirname")]);
    assert_eq!(fields("x", &[("path", "/a"), ("dirname", "etc/")]), [Some("dirname")]);
    assert_eq!(fields("x", &[("path", "/a"), ("basename", "/motd")]), [Some("basename")]);
    assert_eq!(fields("x", &[("dirname", "/a/"), ("basename", "../b")]), [Some("basename")]);
    assert_eq!(fields(&format!("/{}", "x".repeat(256)), &[]), [Some("path")]);
}

#[test]
fn all_problems_come_at_once() {
    let given = [
        ("content", "x"),
        ("symlink", "y"),
        ("mode", "644"),
        ("owner", "no:body"),
        ("group", ""),
        ("state", "present"),
    ];
    let mut found = fields("motd", &given);
    found.sort_unstable();
    assert_eq!(found, ["content", "group", "mode", "owner", "path", "state"].map(Some));
}

#[test]
fn contradictory_fields_are_rejected() {
    assert_eq!(fields("/etc/x", &[("content", "a"), ("symlink", "b")]), [Some("content")]);
    assert_eq!(fields("/etc/x/", &[("content", "a")]), [Some("content")]);
    assert_eq!(fields("/etc/x/", &[("symlink", "a")]), [Some("symlink")]);
    assert_eq!(fields("/etc/x", &[("state", "undefined"), ("content", "a")]), [Some("content")]);
    assert_eq!(fields("/etc/x", &[("symlink", "/y"), ("mode", "0644")]), [Some("mode")]);
    assert_eq!(fields("/etc/x", &[("symlink", "/etc/x")]), [Some("symlink")]);
    assert_eq!(fields("/etc/x", &[("symlink", "x")]), [Some("symlink")]);
    assert_eq!(fields("/etc/x", &[("symlink", "")]), [Some("symlink")]);
}

/// `state: absent` removes a file for a while: the other fields may stay in the graph and have no effect.
#[test]
fn absent_stands_beside_the_other_fields() {
    let absent = build("file", "/etc/x", &[("state", "absent")]).unwrap();
    for other in [
        &[("content", "a")][..],
        &[("symlink", "/y")],
        &[("source", "/b")],
        &[("fragments", "/b")],
        &[("mode", "0644"), ("owner", "root"), ("group", "root")],
        &[("content", "x"), ("validate", "true\n%s"), ("replace", "false")],
    ] {
        let given = [&[("state", "absent")][..], other].concat();
        let file = build("file", "/etc/x", &given).expect("valid");
        assert_eq!(format!("{file:?}"), format!("{absent:?}"), "{given:?}");
    }
    let tree = [("state", "absent"), ("recurse", "true"), ("purge", "true"), ("excludes", "x")];
    build("file", "/srv/x/", &tree).expect("valid");
    let contradiction = [("state", "absent"), ("mode", "999")];
    assert_eq!(fields("/etc/x", &contradiction), [Some("mode")], "a wrong value is still wrong");
}

/// `recurse: true` alone is valid and causes a warning.
#[test]
fn recurse_alone_is_a_warning() {
    let tree = build("file", "/srv/x/", &[("recurse", "true")]).expect("valid");
    let warnings: Vec<_> = tree.footprint().warnings.iter().map(|doubt| doubt.field).collect();
    assert_eq!(warnings, [Some("recurse")]);
}

/// S-10: modes are octal with a leading zero or symbolic; a bare number is rejected.
#[test]
fn modes() {
    for mode in ["0644", "0741", "04755", "0o755", "u=rw,g=r", "a+X"] {
        build("file", "/etc/x", &[("mode", mode)]).expect(mode);
    }
    for mode in ["644", "0o", "0o999", "rw-r--r--", "0999", "1e3"] {
        assert_eq!(fields("/etc/x", &[("mode", mode)]), [Some("mode")], "{mode}");
    }
    let hint = build("file", "/x", &[("mode", "644")]).unwrap_err().remove(0).hint.unwrap();
    assert!(hint.contains("0644"), "{hint}");
}

#[test]
fn owners_by_name_or_number() {
    for owner in ["root", "0", "65534", "www-data", "no-such-user-yet"] {
        build("file", "/etc/x", &[("owner", owner), ("group", owner)]).expect(owner);
    }
    for owner in ["4294967295", "99999999999", "a b", "a:b", "-1", "+1", "a\n"] {
        assert_eq!(fields("/etc/x", &[("owner", owner)]), [Some("owner")], "{owner:?}");
    }
}

/// S-15: a declaration that would remove a protected path is rejected on load, in every spelling.
#[test]
fn protected_paths_are_refused_at_load() {
    for path in ["/", "//", "/.", "/./", "/etc", "/etc/", "//etc", "/home", "/usr", "/var/lib"] {
        let given = [("state", "absent"), ("force", "true")];
        assert_eq!(fields(path, &given), [Some("path")], "{path}");
    }
    assert_eq!(fields("/etc", &[("content", "x"), ("force", "true")]), [Some("path")]);
    build("file", "/etc/", &[("mode", "0755")]).expect("its attributes may be held");
    build("file", "/", &[("state", "undefined"), ("mode", "0755")]).expect("of the root too");
}

#[test]
fn it_watches_and_claims_its_path() {
    let file = build("file", "x", &[("path", "/srv//a/")]).unwrap();
    assert_eq!(file.footprint().watch, [WatchSource::Path { path: "/srv/a".into(), below: false }]);
    assert_eq!(file.footprint().claims, [Claim::path("/srv/a")]);
}

/// S-6: debug output contains no content.
#[test]
fn a_content_is_not_printed() {
    let file = build("file", "/srv/a", &[("content", "canary-7b1")]).unwrap();
    assert!(!format!("{file:?}").contains("canary"));
}

/// Each problem of the rare fields is reported at its field.
#[test]
fn conflicting_fields_are_rejected_at_their_place() {
    for (name, given, field) in [
        ("/a", &[("recurse", "true"), ("mode", "0644")][..], "recurse"),
        ("/a", &[("purge", "true")], "purge"),
        ("/a/", &[("source", "/b")], "source"),
        ("/a", &[("source", "/b/")], "source"),
        ("/a", &[("source", "/a")], "source"),
        ("/a/", &[("source", "/a/b/"), ("recurse", "true")], "source"),
        ("/a/b/", &[("source", "/a/"), ("recurse", "true")], "source"),
        ("/a", &[("source", "")], "source"),
        ("/a/", &[("fragments", "/b")], "fragments"),
        ("/a", &[("fragments", "")], "fragments"),
        ("/a", &[("source", "/b"), ("fragments", "/c")], "source"),
        ("/a", &[("content", "x"), ("source", "/b")], "content"),
        ("/a", &[("source", "/b"), ("state", "undefined")], "source"),
        ("/a", &[("replace", "false")], "replace"),
        ("/a", &[("excludes", "x")], "excludes"),
        ("/a/", &[("purge", "true"), ("excludes", "../x")], "excludes"),
        ("/a", &[("validate", "true %s")], "validate"),
        ("/a", &[("content", "x"), ("validate", "true")], "validate"),
        ("/a", &[("content", "x"), ("validate", "true %s %s")], "validate"),
        ("/a", &[("content", "x"), ("validate", "%s")], "validate"),
        ("/a", &[("content", "x"), ("validate", "sh\n-c\nvisudo -cf %s")], "validate"),
        ("/a", &[("content", "x"), ("validate", "sh\n-c%s")], "validate"),
        ("/a/", &[("purge", "true"), ("validate", "true %s")], "validate"),
        ("/a", &[("content", "x"), ("backup", "beside")], "backup"),
        ("/a", &[("content", "x"), ("backup", "/a/../b")], "backup"),
        ("/a/", &[("purge", "true"), ("backup", "/a/old")], "backup"),
        ("/a", &[("mode", "0644"), ("backup", "/b")], "backup"),
    ] {
        let wrong = build("file", name, given).expect_err(&format!("{name} {given:?}"));
        let fields: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        assert!(fields.contains(&Some(field)), "{name} {given:?}: {wrong:?}");
        assert!(wrong.iter().all(|wrong| wrong.what.chars().count() <= 100), "{wrong:?}");
    }
}

#[test]
fn a_mode_that_makes_a_whole_tree_executable_is_doubted() {
    let tree = build("file", "/a/", &[("recurse", "true"), ("mode", "0755")]).unwrap();
    assert_eq!(tree.footprint().warnings.len(), 1);
    for mode in ["0644", "u=rwX,go=rX"] {
        let tree = build("file", "/a/", &[("recurse", "true"), ("mode", mode)]).unwrap();
        assert!(tree.footprint().warnings.is_empty(), "{mode}");
    }
}

#[test]
fn only_who_holds_what_is_below_minds_what_others_declare_there() {
    let purge_root = |given: &[(&str, &str)]| {
        let file = build("file", "/a/", given).unwrap();
        file.footprint().purge_root
    };
    assert_eq!(purge_root(&[]), None);
    assert_eq!(purge_root(&[("mode", "0755")]), None);
    assert_eq!(purge_root(&[("purge", "true")]), Some("/a".into()));
    assert_eq!(purge_root(&[("recurse", "true"), ("owner", "12")]), Some("/a".into()));
}

#[test]
fn fields_of_a_later_build_are_known() {
    let spec = KindSet::of_this_build().find("msg").unwrap();
    let later: Vec<_> = spec.fields.iter().filter(|field| field.later).collect();
    assert_eq!(later.iter().map(|field| field.name).collect::<Vec<_>>(), ["syslog"]);
}
