//! A live account is read back as a declaration without secrets.

use super::tools;
use futures_util::FutureExt as _;
use steadfast_resources::Host;
use steadfast_resources::inspect::{Field, inspectors};

#[test]
fn a_live_user_is_read_back_without_its_password() {
    let (machine, _calls) = tools::machine();
    let _entered = machine.enter();
    let host = Host::default();
    let of = |kind: &str| inspectors().iter().find(|it| it.kind == kind).expect("an inspector");
    let user = (of("user").one)(&host, "eve").now_or_never().expect("nothing waits");
    let user = user.expect("tables").expect("a user");
    let names: Vec<&str> = user.fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(names[..6], ["uid", "group", "groups", "shell", "homedir", "comment"]);
    assert!(!format!("{user:?}").contains("old$hash"), "{user:?}");
    if host.files().is_root() {
        let secret = Field::Secret("user_eve_password".to_owned());
        assert!(user.fields.contains(&("password", secret)), "{user:?}");
    }
    let all = (of("group").all.expect("a list"))(&host).now_or_never().expect("nothing waits");
    assert_eq!(all.expect("tables"), ["root", "adm", "sudo", "eve"]);
    let none = (of("group").one)(&host, "nosuch").now_or_never().expect("nothing waits");
    assert_eq!(none.expect("tables"), None);
}
