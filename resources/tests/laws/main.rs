//! The laws that every kind obeys, on the simulated host: one table of test cases for each kind.
//!
//! A new kind must have cases in `cases/`, or a reason in `UNTRIED` of this file. No test here may depend on the
//! real clock or on the machine. Reading order: `cases/` (the tables), `stand_ins/` (the commands of other programs),
//! `harness.rs`, this file (the laws).

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cases;
mod harness;
#[path = "../file/support.rs"]
#[expect(dead_code, reason = "these tests need a part of the harness")]
mod support;
#[path = "../simulated/accounts/tools.rs"]
#[expect(dead_code, reason = "these tests need a part of the stand-ins")]
mod tools;

#[path = "../kernel/stand_in.rs"]
mod kernel;

#[path = "../units/fake.rs"]
#[expect(dead_code, reason = "these tests need a part of the simulated systemd")]
mod bus;

mod stand_ins;

use std::collections::BTreeSet;
use steadfast_resources::{CheckResult, KindSet, Outcome};

/// Kinds without cases here, with the reason.
const UNTRIED: &[(&str, &str)] = &[
    ("export", "changes the world; tests/world has its tests with real daemons"),
    ("file", "resources/tests/simulated has 15 cases of its own, with every failing call"),
    ("kv", "changes the world; tests/world has its tests with real daemons"),
    ("msg", "changes nothing on the host"),
    ("noop", "changes nothing on the host"),
    ("password", "changes nothing on the host"),
    ("print", "changes nothing on the host"),
    ("probe", "changes nothing on the host"),
    ("test", "a kind for tests"),
    ("timer", "changes nothing on the host"),
    ("value", "changes nothing on the host"),
];

/// Fields that no case declares, with the reason.
const UNTRIED_FIELDS: &[(&str, &str, &str)] = &[
    ("line", "validate", "resources/tests/edits runs real commands"),
    ("line", "in_place", "a private mount namespace needs a kernel"),
    ("block", "validate", "resources/tests/edits runs real commands"),
    ("block", "in_place", "a private mount namespace needs a kernel"),
    ("ini", "validate", "resources/tests/edits runs real commands"),
    ("ini", "in_place", "a private mount namespace needs a kernel"),
    ("json", "validate", "resources/tests/edits runs real commands"),
    ("json", "in_place", "a private mount namespace needs a kernel"),
    ("yaml", "validate", "resources/tests/edits runs real commands"),
    ("yaml", "in_place", "a private mount namespace needs a kernel"),
    ("toml", "validate", "resources/tests/edits runs real commands"),
    ("toml", "in_place", "a private mount namespace needs a kernel"),
    ("replace", "validate", "resources/tests/edits runs real commands"),
    ("replace", "in_place", "a private mount namespace needs a kernel"),
    ("hosts", "validate", "resources/tests/edits runs real commands"),
    ("hosts", "in_place", "a private mount namespace needs a kernel"),
];

/// Sent values that no case here sends, with the reason.
const UNSENT: &[(&str, &str, &str)] = &[
    ("exec", "output", "tests/daemon/values.rs receives it from a command that ran"),
    ("exec", "stdout", "tests/daemon/values.rs receives it from a command that ran"),
    ("exec", "stderr", "tests/daemon/values.rs receives it from a command that ran"),
    ("exec", "exit", "tests/daemon/values.rs receives it from a command that ran"),
    ("svc", "next", "resources/tests/units has a timer"),
    ("svc", "listening", "resources/tests/units has a socket"),
    ("unit", "next", "resources/tests/units has a timer"),
    ("unit", "listening", "resources/tests/units has a socket"),
];

/// The fields of `file`, each with the test that tries it: its cases are those of resources/tests/file.
const FILE_FIELDS: &[(&str, &str)] = &[
    ("path", "the_path_is_the_name_or_a_field_or_composed"),
    ("dirname", "the_path_is_the_name_or_a_field_or_composed"),
    ("basename", "the_path_is_the_name_or_a_field_or_composed"),
    ("state", "undefined_holds_attributes_only_if_it_is_there"),
    ("content", "an_edit_is_put_back_and_the_attributes_stay"),
    ("source", "a_source_is_copied_and_followed_when_it_changes"),
    ("fragments", "fragments_are_joined_in_order_and_those_of_a_directory_by_name"),
    ("symlink", "links"),
    ("hardlink", "a_hard_link_names_the_same_file"),
    ("owner", "owners_by_name_or_number"),
    ("group", "drift_of_attributes_leaves_the_content_alone"),
    ("mode", "a_symbolic_mode_is_about_its_bits_only"),
    ("force", "directories_with_content_are_removed_only_with_force"),
    ("sensitive", "secrets_only_differ"),
    ("recurse", "without_a_source_all_that_is_there_gets_the_attributes"),
    ("purge", "purge_removes_what_nobody_declares_and_nothing_else"),
    ("excludes", "purge_removes_what_nobody_declares_and_nothing_else"),
    ("replace", "with_replace_false_a_content_is_written_once"),
    ("backup", "replaced_and_removed_files_are_backed_up_within_a_limit"),
    ("validate", "content_rejected_by_validate_is_never_installed"),
    ("in_place", "validate_in_place_sees_the_final_path"),
    ("acl", "an_access_list_is_held_and_removed"),
    ("xattrs", "former_values_of_an_absent_object_are_restored"),
    ("capabilities", "capabilities_and_attributes_are_held"),
];

/// Paths that the removal of a created object leaves otherwise than before: kind, a field of the case, path, reason. A
/// file that `create: true` has made stays, without the part.
const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    ("mount", "", "/etc/fstab", "the last line of the host has got its end"),
    ("swap", "", "/etc/fstab", "the last line of the host has got its end"),
    ("json", "key", "/etc/f", "the added maps above the key stay"),
    ("yaml", "key", "/etc/f", "the added maps above the key stay"),
    ("ssh:authorized_key", "", "/home/eve/.ssh", "the folder may hold other files"),
    ("ssh:authorized_key", "", "/home/eve/.ssh/authorized_keys", "the file may get other keys"),
    (
        "locale",
        "",
        "/etc/default/locale",
        "the language of the host stays until another one is set",
    ),
    ("locale", "", "/usr/lib/locale/made", "the stand-in of locale-gen records its runs"),
    ("sysctl", "", "/etc/sysctl.d/60-steadfast.conf", "the file may get other lines"),
    (
        "sysctl",
        "",
        "/proc/sys/net/ipv4/ip_forward",
        "the value of the kernel stays until the next boot",
    ),
    ("firewall", "", "/etc/nftables.d", "the folder may hold other files"),
    ("pkg", "", "/var/lib/dpkg/status", "the settings of a removed package stay"),
    ("pkg", "cache_age", "/var/lib/apt/lists/all", "the lists are those of all packages"),
    ("pkg", "debconf", "/var/cache/debconf/config.dat", "debconf keeps its answers"),
    (
        "repo",
        "",
        "/var/lib/apt/lists/example.org_debian_dists_stable_InRelease",
        "apt ignores the lists until its next update",
    ),
    ("unit", "drop_in", "/etc/systemd/system/web.service.d", "the folder may hold other files"),
    ("unit", "running", "unit:web.service", "the simulated systemd does not see a removed file"),
    ("user", "homedir", "/home/web", "a home directory goes with `remove_home` only"),
];

/// Removals that are refused, because the object has work of others: kind, path of that work, reason.
const REFUSED_REMOVALS: &[(&str, &str, &str)] =
    &[("archive", "/srv/app/own", "no archive brought the file")];

#[test]
fn each_kind_has_cases_or_a_reason() {
    let tried: BTreeSet<&str> = cases::all().map(|case| case.kind).collect();
    for spec in KindSet::of_this_build().specs() {
        let has_reason = UNTRIED.iter().any(|(kind, _)| *kind == spec.kind);
        assert!(
            tried.contains(spec.kind) != has_reason,
            "{}: expected cases in resources/tests/laws/cases, or a reason in UNTRIED",
            spec.kind
        );
    }
}

/// L5: each field of a tried kind stands in some case.
#[test]
fn each_field_stands_in_a_case() {
    let mut missing = Vec::new();
    for spec in KindSet::of_this_build().specs() {
        let cases: Vec<_> = cases::all().filter(|case| case.kind == spec.kind).collect();
        if cases.is_empty() {
            continue;
        }
        for field in spec.fields.iter().filter(|it| !it.later && it.ignored.is_none()) {
            let is_tried =
                cases.iter().any(|case| case.given.iter().any(|(name, _)| *name == field.name));
            let has_reason = UNTRIED_FIELDS
                .iter()
                .any(|(kind, name, _)| *kind == spec.kind && *name == field.name);
            if !is_tried && !has_reason {
                missing.push(format!("{}.{}", spec.kind, field.name));
            }
        }
    }
    assert!(missing.is_empty(), "expected a case or a reason for: {}", missing.join(", "));
}

/// L5: each field of `file` has a test in resources/tests/file, which names the field or its value.
#[test]
fn each_field_of_file_has_a_test() {
    let mut sources = String::new();
    let mut left = vec![std::path::PathBuf::from("tests/file")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            sources.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    let spec = KindSet::of_this_build().find("file").unwrap();
    let fields = spec.fields.iter().filter(|it| !it.later && it.ignored.is_none());
    for field in fields {
        let row = FILE_FIELDS.iter().find(|(name, _)| *name == field.name);
        let (_, test) = row.unwrap_or_else(|| panic!("file.{}: expected a row", field.name));
        let (_, rest) = sources.split_once(&format!("fn {test}()")).expect(test);
        let body = rest.split("\n}\n").next().unwrap();
        assert!(body.contains(field.name), "{test} does not name `{}`", field.name);
    }
}

/// L1: a check changes nothing.
#[test]
fn a_check_changes_nothing() {
    for case in cases::all() {
        let machine = case.machine();
        let before = harness::visible(&machine);
        let result = case.check(&machine);
        assert!(
            matches!(result, CheckResult::Differs(_)),
            "{}: expected a difference, found {result:?}",
            case.title()
        );
        assert_eq!(harness::visible(&machine), before, "{}", case.title());
    }
}

/// L2: an apply does what the check has found, and the next check finds nothing.
#[test]
fn an_apply_converges() {
    for case in cases::all() {
        let machine = case.machine();
        let done = case.hold(&machine);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", case.title());
        let again = case.check(&machine);
        assert!(matches!(again, CheckResult::Same), "{}: {again:?}", case.title());
        for (path, expected) in case.after {
            let content = machine.content(path);
            let content = content.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(content.as_deref(), *expected, "{}: {path}", case.title());
        }
    }
}

/// A check shows the content of a new file also while its directory is missing.
#[test]
fn a_file_of_a_missing_directory_is_shown() {
    let mut shown = 0;
    for case in cases::all().filter(|it| ["cron", "firewall", "unit"].contains(&it.kind)) {
        let machine = case.machine();
        let CheckResult::Differs(change) = case.check(&machine) else { continue };
        let makes_directory = change.differences.iter().any(|it| it.aspect == "directory");
        if !makes_directory {
            continue;
        }
        let content = change.differences.iter().find(|it| it.aspect == "content");
        let diff = content.and_then(|it| it.diff.as_deref());
        assert!(diff.is_some_and(|diff| diff.contains("\n+")), "{}: {change:?}", case.title());
        shown += 1;
    }
    assert!(shown >= 2, "expected cases without the directory, found {shown}");
}

/// Each sent value is declared by its kind, and an edit of a text file sends the path of the file.
#[test]
fn sent_values_are_declared() {
    let mut sent = BTreeSet::new();
    for case in cases::all() {
        let spec = KindSet::of_this_build().find(case.kind).unwrap();
        let (machine, resource) = (case.machine(), case.resource());
        let done = harness::hold(&machine, &resource);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", case.title());
        let keys: Vec<&str> = resource.sends().iter().map(|(key, _)| *key).collect();
        let known: Vec<&str> = spec.sends.iter().map(|sent| sent.key).collect();
        let all = harness::sent_keys(&machine, &resource);
        assert!(all.iter().all(|key| known.contains(key)), "{}: {all:?}", case.title());
        sent.extend(all.iter().map(|key| (case.kind, *key)));
        if ["line", "block", "replace", "ini", "json", "yaml", "toml", "hosts"].contains(&case.kind)
        {
            assert_eq!(keys, ["path"], "{}", case.title());
        }
    }
    let mut unsent = Vec::new();
    for spec in KindSet::of_this_build().specs() {
        let is_tried = cases::all().any(|case| case.kind == spec.kind);
        for value in spec.sends.iter().filter(|_| is_tried) {
            let pair = (spec.kind, value.key);
            if !sent.contains(&pair) && !UNSENT.iter().any(|(kind, key, _)| (*kind, *key) == pair) {
                unsent.push(format!("{}.{}", spec.kind, value.key));
            }
        }
    }
    assert!(unsent.is_empty(), "expected a case or a reason for: {}", unsent.join(", "));
}

/// Returns true if a removal may leave a path otherwise than before the creation.
fn may_remain(case: &harness::Case, path: &str) -> bool {
    let is_new_file = case.given.contains(&("create", "true"));
    let is_left = |(kind, field, left, _): &&(&str, &str, &str, &str)| {
        let has_field = field.is_empty() || case.given.iter().any(|(name, _)| name == field);
        case.kind == *kind && has_field && path == *left
    };
    is_new_file || LEFT_BEHIND.iter().any(|left| is_left(&left))
}

/// L3: a created object can be removed and created again, the removal leaves the state before the creation, and a
/// removal has no removal.
#[test]
fn a_removal_undoes_the_creation() {
    for case in cases::all() {
        let Some(removal) = case.removal() else { continue };
        assert!(removal.footprint().removal.is_none(), "{}: a removal of a removal", case.title());
        let machine = case.machine();
        let before = harness::visible(&machine);
        // A change of an existing object has no former state in its declaration: undo has it.
        let creates = matches!(case.check(&machine), CheckResult::Differs(it) if it.creates);
        let done = case.hold(&machine);
        assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", case.title());
        let gone = harness::hold(&machine, &removal);
        let has_work =
            |path: &str| case.after.iter().any(|(it, text)| *it == path && text.is_some());
        let mut refused = REFUSED_REMOVALS.iter().filter(|(kind, ..)| case.kind == *kind);
        if refused.any(|(_, path, _)| has_work(path)) {
            let is_untouched = matches!(gone, Outcome::Failed { touched: false, .. });
            assert!(is_untouched, "{}: the removal: {gone:?}", case.title());
            continue;
        }
        assert!(matches!(gone, Outcome::Changed(_)), "{}: the removal: {gone:?}", case.title());
        let again = harness::check(&machine, &removal);
        assert!(matches!(again, CheckResult::Same), "{}: {again:?}", case.title());
        if creates {
            let left = harness::visible(&machine);
            let differs = before.iter().filter(|it| !left.contains(it));
            let differs = differs.chain(left.iter().filter(|it| !before.contains(it)));
            let paths = differs.map(|line| line.split(' ').next().unwrap_or_default());
            let unexpected: Vec<&str> = paths.filter(|path| !may_remain(case, path)).collect();
            assert!(unexpected.is_empty(), "{}: left behind: {unexpected:?}", case.title());
        }
        let back = case.hold(&machine);
        assert!(matches!(back, Outcome::Changed(_)), "{}: again: {back:?}", case.title());
    }
}

/// L4: each system call, each command and each request to systemd fails in turn; `touched: false` is true, and the
/// next run without faults converges.
#[test]
fn each_step_fails_in_turn() {
    for case in cases::all() {
        for fault in case.faults() {
            let machine = case.machine();
            let before = harness::visible(&machine);
            machine.inject(Some(fault));
            let done = case.hold(&machine);
            machine.inject(None);
            let how = format!("{}: {fault:?}: {done:?}", case.title());
            if let Outcome::Failed { failure, touched } = &done {
                let first = failure.what.lines().next().unwrap_or_default();
                assert!(!first.is_empty() && first.chars().count() <= 100, "{how}");
                let is_equal = harness::visible(&machine) == before;
                assert!(*touched || is_equal, "{how}: something was changed");
            }
            machine.restart();
            let healed = case.hold(&machine);
            assert!(
                matches!(healed, Outcome::Changed(_) | Outcome::Unchanged),
                "{how}; then {healed:?}"
            );
            let again = case.check(&machine);
            assert!(matches!(again, CheckResult::Same), "{how}; then {again:?}");
        }
    }
}
