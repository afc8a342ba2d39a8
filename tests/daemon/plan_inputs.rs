//! The inputs of a planned graph: facts that a step changes.

use crate::host::Host;

/// A plan names the resources that depend on a fact that a step changes; names and paths keep the present value.
#[test]
fn users_of_a_fact_that_a_step_changes_are_unknown() {
    let host = Host::with(
        r#"graph: g
vars: {zone: "${facts.time_zone}"}
resources:
  file:
  - {name: zone, path: /etc/timezone, content: "Mars/Olympus\n"}
  - {name: user, path: $DIR/user, template: {text: "{{ zone }}\n"}, with: {zone: "${vars.zone}"}}
  - {name: done, path: $DIR/done, content: "done\n", when: 'facts.time_zone != "Mars"'}
  - {name: other, path: $DIR/other, content: "other\n"}
  - {name: later, path: $DIR/later, content: "later\n", when: 'facts.time_zone == "Mars/Olympus"'}
  noop:
  - {name: "of ${facts.time_zone}"}
"#,
    );
    host.write("done", "done\n");
    // The graph is only planned: the host keeps its time zone.
    let planned = host.plan();
    planned.exits(0);
    let until = "unknown until file[zone] is changed";
    planned.prints(&format!("! file[user]: {until}; now:"));
    planned.prints(&format!("! file[done]: {until}"));
    planned.prints("+ file[other]").prints("file[later]: unknown until file[zone]");
    planned.prints("! facts.time_zone: unknown until file[zone]; names and paths that use it");
    planned.prints_nothing_of("noop[");
    let json = host.ask(&["plan", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["unknown"], 2, "{json}");
    assert!(!host.exists("user"));
}
