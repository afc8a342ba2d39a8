//! Tests of the kind `hosts`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, remove};
use proptest::prelude::*;

const DB: [(&str, &str); 3] =
    [("host", "db.example.org"), ("ip", "192.0.2.7"), ("names", "db\nsql")];

#[test]
fn the_line_of_a_name_is_kept() {
    let text = "127.0.0.1\tlocalhost # do not touch\n# end";
    assert_eq!(
        edit(&SPEC, &DB, text),
        "127.0.0.1\tlocalhost # do not touch\n# end\n192.0.2.7\tdb.example.org db sql"
    );
    assert_eq!(
        edit(&SPEC, &DB, "192.0.2.1   DB.example.org old # c\n"),
        "192.0.2.7   db.example.org db sql # c\n"
    );
    let same = "  192.0.2.7  db.example.org\tdb sql\r\n";
    assert_eq!(edit(&SPEC, &DB, same), same);
    assert_eq!(
        edit(
            &SPEC,
            &DB,
            "192.0.2.7 db.example.org db sql\n2001:db8::1 db.example.org\n192.0.2.9 db.example.org\n"
        ),
        "192.0.2.7 db.example.org db sql\n2001:db8::1 db.example.org\n",
        "another address of the family is removed, another family stays"
    );
    // The first line with a name wins.
    let alias = "# top\n192.0.2.9 other db.example.org\n";
    let first = "# top\n192.0.2.7\tdb.example.org db sql\n192.0.2.9 other db.example.org\n";
    assert_eq!(edit(&SPEC, &DB, alias), first);
    assert_eq!(edit(&SPEC, &DB, first), first);
    let late = format!("{alias}192.0.2.7\tdb.example.org db sql # c\n");
    assert_eq!(edit(&SPEC, &DB, &late), first.replace("sql", "sql # c"));
    assert_eq!(
        edit(&SPEC, &DB, "192.0.2.7 other db.example.org\n"),
        "192.0.2.7 other db.example.org\n192.0.2.7\tdb.example.org db sql\n"
    );
}

#[test]
fn a_removal_takes_one_family() {
    let text = "::1 localhost\n192.0.2.7 db.example.org # c\n2001:db8::1 db.example.org\n";
    assert_eq!(remove(&SPEC, &DB, text), "::1 localhost\n2001:db8::1 db.example.org\n");
    let six = [("host", "db.example.org"), ("ip", "2001:db8::1")];
    assert_eq!(remove(&SPEC, &six, text), "::1 localhost\n192.0.2.7 db.example.org # c\n");
}

#[test]
fn equal_addresses_are_equal_in_any_notation() {
    let given = [("host", "a"), ("ip", "2001:db8::1")];
    let text = "2001:0DB8:0::1 a\n";
    assert_eq!(edit(&SPEC, &given, text), text);
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("host", "a")]), "expected an IPv4 or IPv6 address");
    assert_eq!(problem(&SPEC, &[("host", "a b"), ("ip", "::1")]), "expected a host name");
    assert_eq!(
        problem(&SPEC, &[("host", "a"), ("ip", "::1"), ("names", "#x")]),
        "expected host names"
    );
    assert_eq!(
        problem(&SPEC, &[("host", "a"), ("ip", "300.1.1.1")]),
        "expected an IPv4 or IPv6 address"
    );
    assert_eq!(
        problem(&SPEC, &[("host", "a"), ("ip", "::1"), ("family", "ipv4")]),
        "the family is not that of `ip`"
    );
    let resource = build(&SPEC, &[("host", "a"), ("ip", "::1")]).expect("valid");
    assert!(format!("{:?}", resource.footprint()).contains("the ipv6 address of a"));
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_lines_stay(lines in prop::collection::vec("(10\\.0\\.0\\.[1-3] [abd]|#x|::1 db|\u{fff82})( #c)?", 1..8)) {
        let text = lines.iter().flat_map(|line| [line.as_str(), "\r\n"]).collect::<String>();
        let given = [("host", "d"), ("ip", "10.0.0.9")];
        let edited = edit(&SPEC, &given, &text);
        let keeps = |text: &str| text.split("\r\n").filter(|line| !line.starts_with("10.0.0.") || !line.ends_with('d') && !line.contains(" d")).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(keeps(&edited), keeps(&text));
        if !text.contains(" d") {
            prop_assert_eq!(remove(&SPEC, &given, &edited), text);
        }
    }
}
