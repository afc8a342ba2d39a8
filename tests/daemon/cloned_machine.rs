//! A state from another machine, as in a clone of an image.

use crate::host::Host;
use crate::state_checksums::Sum;

const MADE: &str = r#"
graph: g
resources:
  noop: [{name: stays}]
  file:
  - {name: made, path: $DIR/made, content: "made\n", meta: {on_remove: delete}}
  exec: [{name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}]
"#;

const EMPTIER: &str = "graph: g\nresources: {noop: [{name: stays}]}\n";

/// Writes this machine name to the manifest of the state.
fn made_on(host: &Host, machine: &str) {
    let connection = rusqlite::Connection::open(host.path("state/state.db")).expect("opened");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?));
    let (program, before, unsound): (String, Option<String>, Option<String>) = connection
        .query_row("SELECT program, machine, unsound FROM manifest", (), read)
        .expect("a manifest");
    let own = std::fs::read_to_string("/etc/machine-id").expect("this machine has a name");
    assert_eq!(before.as_deref(), Some(own.trim()), "the program names its machine");
    let sum = Sum::new().text(Some(&program)).text(Some(machine)).text(unsound.as_deref());
    connection
        .execute(
            "UPDATE manifest SET machine = ?1, sum = ?2, written_at = NULL",
            (machine, sum.0.cast_signed()),
        )
        .expect("written");
}

/// B-17: an object created on another machine is not deleted here when it becomes undeclared, with a message.
/// Commands that ran there count as run; objects created here later are owned here.
#[test]
fn objects_of_another_machine_are_not_removed() {
    for is_elsewhere in [true, false] {
        let host = Host::with(MADE);
        host.apply().exits(0);
        if is_elsewhere {
            made_on(&host, "0123456789abcdef0123456789abcdef");
        }
        let daemon = host.run(&[]);
        daemon.wait_for("converged");
        let said = daemon.log();
        let said =
            said.iter().filter(|line| line.message.contains("the state is from another machine ("));
        assert_eq!(said.count(), usize::from(is_elsewhere), "{:?}", daemon.log());
        assert_eq!(host.lines("ran").len(), 1);
        daemon.kill();
        host.graph(EMPTIER).apply().exits(0);
        assert_eq!(host.exists("made"), is_elsewhere);
        if is_elsewhere {
            host.remove("made").graph(MADE).apply().exits(0).prints("changed file[made]");
            host.graph(EMPTIER).apply().exits(0).prints("changed file[made]");
            assert!(!host.exists("made"), "this one was made here");
        }
    }
}

/// F-16: a plan does not contain removals of objects that the following apply adopts from another machine.
#[test]
fn f16_objects_of_another_machine_are_planned_to_stay() {
    let host = Host::with(MADE);
    host.apply().exits(0);
    host.graph(EMPTIER).plan().exits(0).prints("- file[made]");
    made_on(&host, "0123456789abcdef0123456789abcdef");
    host.plan()
        .exits(0)
        .prints_nothing_of("- file[made]")
        .prints("= file[made]: the object existed");
    host.apply().exits(0).prints_nothing_of("changed file[made]");
    assert!(host.exists("made"));
}
