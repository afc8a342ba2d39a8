//! Tests of the kind `ssh:authorized_key`: fields and the editor.

use super::SPEC;
use super::key_line::{KeyLine, Keys};
use crate::parts::Editor as _;
use crate::parts::edit_support::{build, problem};
use proptest::prelude::*;

const ONE: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC";
const TWO: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIFzUsFzUsFzUsFzUsFzUsFzUsFzUsFzUsFzUsFzUsFzU";

fn keys(lines: &[&str], is_exclusive: bool, is_present: bool) -> Keys {
    let keys = lines.iter().map(|line| KeyLine::declared(line, None).expect("a key")).collect();
    Keys { wanted: keys, is_exclusive, is_present }
}

fn edit(keys: &Keys, text: &str) -> String {
    let edited = keys.edit(text).expect("edited").text;
    assert_eq!(keys.edit(&edited).expect("edited").text, edited, "idempotent");
    edited
}

#[test]
fn keys_are_added_changed_and_removed() {
    let one = format!("ssh-ed25519 {ONE} eve");
    let with = keys(&[&one], false, true);
    assert_eq!(edit(&with, ""), format!("{one}\n"));
    assert_eq!(edit(&with, "# c\nbroken\n"), format!("# c\nbroken\n{one}\n"));
    let old = format!(
        "# c\nfrom=\"a b\",no-pty ssh-ed25519 {ONE} old\r\nssh-ed25519 {TWO} two\r\nssh-ed25519 {ONE} again\r\n"
    );
    assert_eq!(edit(&with, &old), format!("# c\n{one}\r\nssh-ed25519 {TWO} two\r\n"));
    let bare = keys(&[&format!("ssh-ed25519 {ONE}")], false, true);
    assert_eq!(edit(&bare, &format!("{one}\n")), format!("{one}\n"), "the comment stays");
    let without = keys(&[&one], false, false);
    assert_eq!(edit(&without, &old), format!("# c\nssh-ed25519 {TWO} two\r\n"));
    let alone = keys(&[&one], true, true);
    assert_eq!(
        edit(&alone, &format!("# c\nssh-ed25519 {TWO} two\nbroken\n{one}")),
        format!("# c\nbroken\n{one}")
    );
}

#[test]
fn fields_make_lines() {
    let given = [
        ("user", "eve"),
        ("key", ONE),
        ("type", "ssh-ed25519"),
        ("options", "no-pty"),
        ("comment", "c"),
    ];
    let resource = build(&SPEC, &given).expect("valid");
    let shown = format!("{resource:?}");
    assert!(shown.contains("no-pty") && shown.contains(ONE), "{shown}");
    let footprint = resource.footprint();
    assert_eq!(footprint.claims.len(), 3);
    let removal = footprint.removal.expect("a removal");
    let absent = SPEC.build_removal(&removal, "x").expect("valid");
    assert!(absent.footprint().removal.is_none());
}

/// Keys belong to a file: two users of one file share its claims, and one user of two files does not.
#[test]
fn keys_of_one_file_are_claimed_together() {
    let key = format!("ssh-ed25519 {ONE}");
    let claims = |user: &str, path: Option<&str>| {
        let given = [("user", user), ("key", key.as_str())];
        let given: Vec<_> = given.into_iter().chain(path.map(|path| ("path", path))).collect();
        let objects = build(&SPEC, &given).expect("valid").footprint().claims.into_iter();
        objects.map(|claim| claim.object).collect::<Vec<_>>()
    };
    let shared = Some("/etc/ssh/keys");
    assert_eq!(claims("eve", shared), claims("bob", shared));
    assert_ne!(claims("eve", shared)[0], claims("eve", None)[0]);
    assert_ne!(claims("eve", None)[0], claims("bob", None)[0]);
    assert_eq!(claims("eve", None), claims("bob", Some("/home/eve/.ssh/authorized_keys")));
    assert_eq!(claims("root", None), claims("bob", Some("/root/.ssh/authorized_keys")));
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("key", ONE)]), "expected `user`, found none");
    assert_eq!(problem(&SPEC, &[("user", "eve")]), "expected a public key, found none");
    assert_eq!(
        problem(&SPEC, &[("user", "a/b"), ("key", &format!("ssh-ed25519 {ONE}"))]),
        "expected the name of a user"
    );
    for wrong in [ONE, "ssh-ed25519", "ssh-ed25519 xyz", "PRIVATE KEY", &format!("ssh-new {ONE}")] {
        assert_eq!(
            problem(&SPEC, &[("user", "eve"), ("key", wrong)]),
            "expected a public key with its type"
        );
    }
    let key = format!("ssh-ed25519 {ONE}");
    for wrong in ["no pty", "from=\"a", "", "a\tb"] {
        assert!(
            problem(&SPEC, &[("user", "eve"), ("key", &key), ("options", wrong)])
                .contains("options"),
            "{wrong}"
        );
    }
    assert!(
        problem(&SPEC, &[("user", "eve"), ("key", &key), ("comment", "a\nb")]).contains("one line")
    );
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_lines_stay(lines in prop::collection::vec(prop_oneof![
        Just("# c".to_owned()), Just(String::new()), Just("x \u{fff80}".to_owned()),
        Just(format!("ssh-ed25519 {TWO} two words")), Just(format!("command=\"a \\\" b\" ssh-ed25519 {TWO}")),
    ], 0..6), is_windows: bool, is_closed: bool) {
        let end = if is_windows { "\r\n" } else { "\n" };
        let text = lines.join(end) + if is_closed && !lines.is_empty() { end } else { "" };
        let one = format!("ssh-ed25519 {ONE} eve");
        let with = edit(&keys(&[&one], false, true), &text);
        prop_assert!(with.contains(&one));
        let without = edit(&keys(&[&one], false, false), &with);
        prop_assert!(without == text || text.is_empty());
    }
}
