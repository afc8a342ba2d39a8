//! The inputs of a planned graph: facts that a step changes, and the texts and facts that a saved plan is bound to.

use crate::host::Host;
use crate::output::Output;

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
  - {name: inner, path: $DIR/inner, template: {text: "{{ facts.time_zone }}\n"}}
  - {name: through, path: $DIR/through, template: {text: "{{ vars.zone }}\n"}}
  - {name: included, path: $DIR/included, template: {text: "{% include 'part.j2' %}"}}
  - {name: value, path: $DIR/value, owner: "${'root' if facts.time_zone != 'x' else 'daemon'}"}
  - {name: later, path: $DIR/later, content: "later\n", when: 'facts.time_zone == "Mars/Olympus"'}
  noop:
  - {name: "of ${facts.time_zone}"}
"#,
    );
    host.write("done", "done\n").write("part.j2", "{{ facts.time_zone }}\n");
    // The graph is only planned: the host keeps its time zone.
    let planned = host.plan();
    planned.exits(0);
    let until = "unknown until file[zone] is changed";
    planned.prints(&format!("! file[user]: {until}; now:"));
    planned.prints(&format!("! file[done]: {until}"));
    for name in ["inner", "through", "included", "value"] {
        planned.prints(&format!("! file[{name}]: {until}"));
    }
    planned.prints("+ file[other]").prints("file[later]: unknown until file[zone]");
    planned.prints("! facts.time_zone: unknown until file[zone]; names and paths that use it");
    planned.prints_nothing_of("noop[");
    let json = host.ask(&["plan", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["unknown"], 6, "{json}");
    assert!(!host.exists("user"));
}

const ROLE: &str = "root/etc/steadfast/facts.d/role.yaml";

/// A graph of several files that uses a local fact.
fn bound() -> Host {
    let host = Host::with(
        r#"graph: g
include: more.yaml
vars_files: [vars.yaml]
modules:
- {use: m, as: one, with: {path: $DIR/module}}
resources:
  file:
  - {name: $DIR/a, template: a.j2, with: {text: "${vars.text}"}}
  - {name: $DIR/b, content: "b\n", when: 'facts.local.role != "none"'}
"#,
    );
    host.make_directory("m");
    std::fs::create_dir_all(host.path("root/etc/steadfast/facts.d")).expect("created");
    host.write("more.yaml", "graph: g\nvars: {text: low}\n").write("vars.yaml", "text: high\n");
    host.write("a.j2", "{{ text }}\n").write(ROLE, "web");
    host.write(
        "m/module.yaml",
        "module: m\nparams: {path: {type: string}}\nresources:\n  file:\n  - {name: \"${params.path}\", content: \"m\\n\"}\n",
    );
    host
}

fn finish(host: &Host, words: &[&str]) -> Output {
    let is_apply = words.contains(&"--plan");
    let mut command = if is_apply { host.bare(words) } else { host.command(words) };
    if is_apply {
        command.arg("--state-dir").arg(host.path("state"));
    }
    command.env("STEADFAST_TEST_ROOT", host.path("root"));
    host.finish(command)
}

/// A saved plan is refused if a text or a fact that it was made of has changed, although no declaration differs.
#[test]
fn a_saved_plan_is_bound_to_its_texts_and_facts() {
    let host = bound();
    let plan = host.path("plan.json").display().to_string();
    finish(&host, &["plan", "--out", &plan]).exits(0);
    let apply = ["apply", "--plan", &plan];
    for name in ["graph.yaml", "more.yaml", "vars.yaml", "a.j2", "m/module.yaml"] {
        let before = host.read(name);
        let comment = if name == "a.j2" { "{# a comment #}" } else { "# a comment\n" };
        host.write(name, format!("{before}{comment}"));
        let refused = finish(&host, &apply);
        refused.exits(1).says("not as planned: ").says("nothing was changed");
        refused.says(&format!("{name}: the file has changed"));
        host.write(name, before);
    }
    host.write(ROLE, "db");
    let refused = finish(&host, &apply);
    refused.exits(1).says("not as planned: facts.local.role: was \"web\", is now \"db\"");
    assert!(!host.exists("a") && !host.exists("b"), "nothing was begun");
    host.write(ROLE, "web");
    finish(&host, &apply).exits(0);
    assert_eq!((host.read("a"), host.read("b")), ("high\n".to_owned(), "b\n".to_owned()));
}

/// A file that the graph reads only now is named too.
#[test]
fn a_saved_plan_is_refused_if_the_graph_reads_another_file() {
    let host = bound();
    let graph = host.read("graph.yaml").replace("more.yaml", "\"more*.yaml\"");
    host.graph(&graph);
    let plan = host.path("plan.json").display().to_string();
    finish(&host, &["plan", "--out", &plan]).exits(0);
    host.write("more2.yaml", "graph: g\n");
    let refused = finish(&host, &["apply", "--plan", &plan]);
    refused.exits(1).says("more2.yaml: the planned graph did not read the file");
}

/// A FIFO in place of a saved plan is refused at once.
#[test]
fn a_fifo_is_no_plan() {
    let host = bound();
    let fifo = host.path("plan");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let refused = finish(&host, &["apply", "--plan", &fifo.display().to_string()]);
    refused.says("expected a regular file");
    assert!(!host.exists("a"), "nothing was begun");
}
