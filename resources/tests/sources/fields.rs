//! Wrong fields of the kinds: each problem is one clear message.

use crate::support::build;
use std::path::PathBuf;
use steadfast_resources::{Claim, Footprint, HostObject, KindSet, Match, Value};

const SUM: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn problem(kind: &str, name: &str, given: &[(&str, &str)]) -> String {
    let problems = build(kind, name, given).expect_err(&format!("{kind} {name} {given:?}"));
    let first = &problems[0];
    assert!(problems.iter().all(|it| it.what.chars().count() <= 100), "{problems:?}");
    format!("{} {}", first.field.unwrap_or_default(), first.what)
}

#[test]
fn wrong_fields_are_rejected() {
    let table = "table inet a { }";
    for (kind, name, given, expected) in [
        ("unit", "web", &[("content", "[Service]")][..], "full name of a unit"),
        ("unit", "../x.service", &[("content", "[Service]")], "full name of a unit"),
        (
            "unit",
            "web",
            &[("content", "[Service]"), ("unit", "web")],
            "unit expected the full name",
        ),
        ("unit", "a.service", &[], "expected `content`"),
        ("unit", "a.service", &[("content", " \n")], "masks the unit"),
        ("unit", "a@.service", &[("content", "[Service]"), ("running", "true")], "template"),
        ("unit", "a.service", &[("state", "absent"), ("running", "true")], "absent unit"),
        ("unit", "a.service", &[("content", "[Service]"), ("drop_in", "a/b")], "name of a drop-in"),
        ("repo", "a b", &[("uris", "http://a/"), ("suites", "x/")], "name of a list"),
        ("repo", "a", &[("suites", "x/")], "expected `uris`"),
        ("repo", "a", &[("uris", "a"), ("suites", "x/")], "address with a scheme"),
        ("repo", "a", &[("uris", "http://a/"), ("suites", "x")], "components"),
        (
            "repo",
            "a",
            &[("uris", "http://a/"), ("suites", "x/"), ("components", "m")],
            "no components",
        ),
        ("repo", "a", &[("uris", "http://m:p@a/"), ("suites", "x/")], "contains a password"),
        (
            "repo",
            "a",
            &[("uris", "http://a/"), ("suites", "x/"), ("signed_by", "key")],
            "public key",
        ),
        ("repo", "a", &[("uris", "http://a/"), ("suites", "x y/")], "single words"),
        (
            "repo",
            "a",
            &[("uris", "http://a/"), ("suites", "x/"), ("types", "rpm")],
            "deb or deb-src",
        ),
        ("fetch", "/a", &[("checksum", SUM)], "expected `url`"),
        ("fetch", "/a", &[("url", "http://a/b")], "expected `checksum`"),
        ("fetch", "/a", &[("url", "http://a/b"), ("checksum", "md5:1")], "64 hexadecimal digits"),
        ("fetch", "/a", &[("url", "gopher://a/b"), ("checksum", SUM)], "http, https or file"),
        ("fetch", "/a", &[("url", "http://m:p@a/b"), ("checksum", SUM)], "contains an account"),
        ("fetch", "a", &[("url", "http://a/b"), ("checksum", SUM)], "absolute path"),
        ("fetch", "/a", &[("url", "http://a/b"), ("checksum", SUM), ("mode", "9")], "mode"),
        (
            "fetch",
            "/a",
            &[("url", "http://a/b"), ("checksum", SUM), ("username", "m")],
            "needs `password`",
        ),
        ("archive", "/opt/a", &[], "expected `source` or `url`"),
        ("archive", "/opt/a", &[("source", "/a.rar")], "the format of /a.rar is unknown"),
        ("archive", "/usr", &[("source", "/a.zip")], "protected"),
        ("archive", "/opt/a", &[("source", "/a.zip"), ("creates", "../x")], "below the directory"),
        ("archive", "/opt/a", &[("source", "/a.zip"), ("mode", "4755")], "without set-id"),
        ("archive", "/opt/a", &[("source", "/a.zip"), ("timeout", "5")], "belongs to a download"),
        ("git", "/srv/a", &[], "expected `repo`"),
        ("git", "/srv/a", &[("repo", "--upload-pack=x")], "address of a repository"),
        ("git", "/srv/a", &[("repo", "ext::sh -c x")], "address of a repository"),
        ("git", "/srv/a", &[("repo", "https://m:p@h/x")], "contains a password"),
        ("git", "/srv/a", &[("repo", "/r"), ("version", "a..b")], "branch, a tag or a full commit"),
        ("git", "/etc", &[("repo", "/r")], "protected"),
        ("firewall", "a/b", &[("content", table)], "letters, digits"),
        ("firewall", "a", &[], "expected `content`"),
        ("firewall", "a", &[("content", "flush ruleset")], "other programs"),
        ("probe", "a", &[], "expected `cmd` or `builtin`"),
        ("probe", "a", &[("cmd", "")], "program and its arguments"),
        ("probe", "a", &[("builtin", "file_hash")], "expected `of`"),
        ("probe", "a", &[("builtin", "os"), ("user", "me")], "belongs to `cmd`"),
        ("probe", "a", &[("cmd", "true"), ("watchfiles", "a")], "absolute path"),
    ] {
        let said = problem(kind, name, given);
        assert!(said.contains(expected), "{kind} {name} {given:?}: {said}");
    }
}

#[test]
fn removals_name_the_effects() {
    let unit = [("content", "[Service]\nExecStart=/bin/true\n"), ("running", "true")];
    let unit = build("unit", "a.service", &unit).unwrap();
    let removal = unit.footprint().removal.unwrap();
    let names =
        |fields: &[(&'static str, Value)]| fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!((names(removal.fields()), names(removal.data())), (vec!["state"], vec!["running"]));
    let table = [("content", "table inet a { }")];
    for (kind, name, given) in [
        ("unit", "a.service", &[("content", "[Service]\n")][..]),
        ("repo", "a", &[("uris", "http://a/"), ("suites", "x/")]),
        ("firewall", "a", &table),
    ] {
        let resource = build(kind, name, given).unwrap();
        let removal = resource.footprint().removal.expect(kind);
        let absent =
            KindSet::of_this_build().find(kind).unwrap().build_removal(&removal, name).unwrap();
        assert!(absent.footprint().removal.is_none() && !absent.footprint().creates(), "{kind}");
    }
}

#[test]
fn footprints_name_units_repositories_and_tables() {
    let unit = build("unit", "a.timer", &[("content", "[Timer]\n")]).unwrap().footprint();
    let object = |name: &str| HostObject::Unit { session: false, name: name.to_owned() };
    assert!(unit.provides.contains(&object("a.timer")));
    assert!(unit.requires.iter().any(|need| need.token == object("a.service")));
    let drop_in = [("content", "[Service]\n"), ("drop_in", "b")];
    let drop_in = build("unit", "a.service", &drop_in).unwrap().footprint();
    let path = PathBuf::from("/etc/systemd/system/a.service.d/b.conf");
    assert!(drop_in.claimed_paths().any(|claimed| claimed == path));
    // A drop-in with a name of its own comes after the file of its unit, and not after other drop-ins.
    let given = [("content", "[Service]\n"), ("drop_in", "c"), ("unit", "a.service")];
    let named = build("unit", "limits", &given).unwrap().footprint();
    let path = PathBuf::from("/etc/systemd/system/a.service.d/c.conf");
    assert!(named.claimed_paths().any(|claimed| claimed == path));
    let own = build("unit", "a.service", &[("content", "[Service]\n")]).unwrap().footprint();
    let serves =
        |other: &Footprint| named.requires.iter().any(|need| other.provides.contains(&need.token));
    assert!(serves(&own) && !serves(&drop_in) && named.provides.contains(&object("a.service")));
    let removal = named.removal.unwrap();
    let fields: Vec<_> = removal.fields().iter().map(|(name, _)| *name).collect();
    assert_eq!(fields, ["unit", "drop_in", "state"]);
    let tinyweb = build("pkg", "tinyweb", &[]).unwrap().footprint();
    let folder = HostObject::Brought("/etc/systemd/system/tinyweb.service.d".into());
    assert!(tinyweb.provides.contains(&folder), "a drop-in comes after the package of its unit");
    let repo = build("repo", "a", &[("uris", "http://a/"), ("suites", "x/")]).unwrap().footprint();
    assert!(repo.provides.contains(&HostObject::Repository("a".to_owned())));
    let package = build("pkg", "nginx", &[]).unwrap().footprint();
    assert!(package.requires.iter().any(|need| need.scope == Match::EveryRepository));
    let absent = build("pkg", "nginx", &[("state", "absent")]).unwrap().footprint();
    assert_eq!(absent.requires, []);
    let firewall = build("firewall", "a", &[("content", "table inet x { }")]).unwrap().footprint();
    let table = HostObject::Other("nftables table", "inet x".to_owned());
    assert!(firewall.claims.iter().any(|claim| claim.object == table && claim.is_exclusive()));
    // A whole ruleset beside it would delete its tables.
    let given = [("content", "table inet y { }"), ("whole", "true")];
    let whole = build("firewall", "b", &given).unwrap().footprint();
    let object = HostObject::Other("nftables ruleset", "the whole ruleset".to_owned());
    let (shared, exclusive) = (Claim::shared(object.clone()), Claim::exclusive(object));
    assert!(firewall.claims.contains(&shared));
    assert!(whole.claims.contains(&exclusive.creating(true)));
}

/// A unit starts after its drop-ins, and needs no verification of the drop-in against a unit that is not written yet.
#[test]
fn a_unit_that_is_started_comes_after_its_drop_ins() {
    let serves = |one: &Footprint, other: &Footprint| {
        other.requires.iter().any(|need| one.provides.contains(&need.token))
    };
    let unit = |name: &str, given: &[(&str, &str)]| {
        let given: Vec<_> = [("content", "[Service]\n")].iter().chain(given).copied().collect();
        build("unit", name, &given).unwrap()
    };
    let drop_in = unit("limits", &[("unit", "a.service"), ("drop_in", "b")]);
    for given in [&[("running", "true")][..], &[("enabled", "true")], &[]] {
        let main = unit("a.service", given).footprint();
        assert_eq!(serves(&drop_in.footprint(), &main), !given.is_empty(), "{given:?}");
        assert_eq!(serves(&main, &drop_in.footprint()), given.is_empty(), "{given:?}: no cycle");
    }
    let starting = [("unit", "a.service"), ("drop_in", "c"), ("running", "true")];
    let starting = unit("start", &starting).footprint();
    assert!(serves(&drop_in.footprint(), &starting) && !serves(&starting, &drop_in.footprint()));
    assert!(serves(&unit("a.service", &[]).footprint(), &starting));
    // The drop-in knows whether another resource defines its unit.
    let folder = PathBuf::from("/etc/systemd/system");
    assert_eq!(drop_in.footprint().spares_below, Some(folder.clone()));
    assert!(drop_in.with_claims(vec![folder.join("b.service")]).is_none());
    let aware = drop_in.with_claims(vec![folder.join("a.service")]).expect("a known unit");
    assert_eq!(aware.footprint().claims, drop_in.footprint().claims);
    assert!(unit("a.service", &[]).with_claims(vec![folder.join("b.service")]).is_none());
}
