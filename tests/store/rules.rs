//! What must hold of all that is kept, broken one by one.

use std::sync::Arc;
use steadfast::store::{Origin, Owned, Readers, Recalled, Remembered, violations};

fn found(change: impl FnOnce(&mut Recalled)) -> Vec<String> {
    let owned = Owned {
        origin: Some(Origin::Created),
        graph: "g".into(),
        delete: true,
        removal: Some("{}".into()),
        after: vec!["file[gone]".into()],
        ..Owned::default()
    };
    let record = Remembered {
        done: Some(1),
        owed: Some((3, "file[b]".to_owned())),
        owned: Some(Arc::new(owned)),
        ..Remembered::default()
    };
    let resources = [("file[a]".to_owned(), record)].into();
    let mut recalled = Recalled { resources, stamp: 3, ..Recalled::default() };
    change(&mut recalled);
    let identity = |name: &str| (!name.starts_with("file[")).then(|| "no identity".to_owned());
    let values = |kept: &Remembered| (kept.done == Some(99)).then(|| "no values".to_owned());
    violations(&recalled, &Readers { identity: &identity, values: &values })
}

fn record(recalled: &mut Recalled) -> &mut Remembered {
    recalled.resources.get_mut("file[a]").expect("there")
}

fn owned(recalled: &mut Recalled) -> &mut Owned {
    Arc::make_mut(record(recalled).owned.as_mut().expect("there"))
}

/// B-19: each rule is broken alone, and named; what is valid is not, and what came after something that is gone is valid.
#[test]
fn each_rule_names_what_breaks_it() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    let renamed = found(|it| {
        let record = it.resources.remove("file[a]").expect("there");
        it.resources.insert("nothing".to_owned(), record);
    });
    assert_eq!(renamed, ["nothing: no identity"]);
    assert_eq!(found(|it| record(it).done = Some(99)), ["file[a]: no values"]);
    let cause = found(|it| record(it).owed = Some((3, "x".to_owned())));
    assert_eq!(cause, ["file[a]: owed by x: no identity"]);
    let after = found(|it| owned(it).after.push("y".into()));
    assert_eq!(after, ["file[a]: comes after y: no identity"]);
    let late = found(|it| it.stamp = 2);
    assert_eq!(late, ["file[a]: owed at 3, and the newest stamp is 2"]);
    let removal = found(|it| owned(it).delete = false);
    assert_eq!(removal, ["file[a]: how it is removed is kept, and it is not to be removed"]);
    let nothing = found(|it| *owned(it) = Owned::default());
    assert_eq!(nothing, ["file[a]: whose it is says nothing"]);
}
