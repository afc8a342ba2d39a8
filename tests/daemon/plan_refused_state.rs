//! `plan` on a state that `apply` rejects is rejected too, since the plan could not equal the apply.

use crate::host::{Host, is_root};
use std::os::unix::fs::chown;

const GRAPH: &str = r#"
graph: foreseen
resources:
  file: [{name: made, path: $DIR/made, content: "made\n"}]
  exec: [{name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}]
"#;

/// A change to a state directory.
type Loss = fn(&Host);

fn with_database(host: &Host, sql: &str) {
    let database = rusqlite::Connection::open(host.path("state/state.db")).expect("opened");
    database.execute_batch(sql).expect("done");
    database.close().expect("closed");
}

/// F-16: for each unusable state of `docs/state.md`, `plan` ends with the message and code of `apply`; `drift`, which
/// needs no state, works as usual. No file is changed.
#[test]
fn f16_a_plan_is_refused_where_apply_is() {
    let losses: [(&str, Loss); 8] = [
        ("is damaged", |host| {
            let bytes = std::fs::read(host.path("state/state.db")).expect("read");
            host.write("state/state.db", &bytes[..bytes.len() / 2]);
        }),
        ("the checksum of the global record", |host| {
            with_database(host, "UPDATE whole SET sum = sum + 1");
        }),
        ("the stored sent values cannot be read", |host| {
            let mut store = steadfast::store::SqliteStore::open(&host.path("state")).expect("held");
            let values = steadfast::store::OpaqueText("x".into());
            let sent = steadfast::store::Entry::Sent { identity: "password[p]".into(), values };
            steadfast::store::Store::commit(&mut store, &[sent]).expect("kept");
        }),
        ("the file is missing, but values.key exists", |host| _ = host.remove("state/state.db")),
        ("values.key is damaged: the file is missing", |host| _ = host.remove("state/values.key")),
        ("found 3", |host| _ = host.write("state/values.key", "cut")),
        ("newer steadfast", |host| with_database(host, "PRAGMA user_version=1000")),
        ("made by another program", |host| {
            with_database(host, "DROP TABLE lease; DROP TABLE whole; DROP TABLE resource");
        }),
    ];
    for (why, loss) in losses {
        let host = Host::with(GRAPH);
        host.apply().exits(0);
        host.plan().exits(0).prints("0 resources to change, 2 unchanged");
        loss(&host);
        let before = std::fs::read(host.path("state/state.db")).unwrap_or_default();
        host.plan().exits(73).says(why).prints_nothing_of("once");
        host.ask(&["plan", "--json"]).exits(73).says(why);
        let after = std::fs::read(host.path("state/state.db")).unwrap_or_default();
        assert!(after == before, "{why}");
        host.apply().exits(73).says(why);
        host.ask(&["drift"]).exits(0).prints("1 unchanged");
        assert_eq!(host.lines("ran").len(), 1);
    }
}

/// A user without access to the state gets a message, and the part of the plan that needs no state.
#[test]
fn missing_access_to_the_state_is_reported() {
    assert!(is_root(), "this test must run as root");
    let host = Host::of_nobody(GRAPH);
    host.apply().exits(0);
    chown(host.path("state"), Some(0), Some(0)).expect("taken away");
    host.plan().exits(0).says("planning without stored state").prints("~ exec[once]");
    host.write("state/state.db", "no database, but long enough to be one".repeat(99));
    host.plan().exits(0).says("planning without stored state");
}
