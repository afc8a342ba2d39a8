//! Bounds of the graph language: a small graph that stands for an endless one is rejected with little memory and soon.

use crate::language::Tree;
use crate::processor_time::ProcessorTime;
use std::time::Duration;

/// The time limit of one graph, far above the promised second, since the program is not optimized.
const SOON: Duration = Duration::from_secs(20);
/// The limit of the memory in KiB: 100 MiB, and 16 MiB more pages of the program itself if it is not optimized.
const MOST_MEMORY: i64 = (if cfg!(debug_assertions) { 116 } else { 100 }) << 10;

/// Checks a graph in a process of its own; returns its messages.
#[track_caller]
fn check(files: &[(&str, &str)]) -> String {
    check_by(std::process::Command::new(env!("CARGO_BIN_EXE_steadfast")), files)
}

/// Checks `web.yaml`, which is rejected; returns the messages.
#[track_caller]
fn check_by(program: std::process::Command, files: &[(&str, &str)]) -> String {
    let output = bounded_output(program, files);
    assert!(matches!(output.status.code(), Some(64 | 65)), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Checks a graph with little memory and soon; returns true if it is accepted.
#[track_caller]
pub(crate) fn is_accepted_soon(files: &[(&str, &str)]) -> bool {
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_steadfast"));
    bounded_output(program, files).status.success()
}

/// Checks `web.yaml`. The files `given.yaml` and `facts.yaml` are those of `--vars` and `--facts`.
#[track_caller]
fn bounded_output(
    mut program: std::process::Command,
    files: &[(&str, &str)],
) -> std::process::Output {
    let tree = Tree::new(files);
    let start = ProcessorTime::start();
    program.arg("check").arg(tree.path("web.yaml"));
    for (name, option) in [("given.yaml", "--vars"), ("facts.yaml", "--facts")] {
        if files.iter().any(|(file, _)| *file == name) {
            program.arg(option).arg(tree.path(name));
        }
    }
    let output = program.output().unwrap();
    assert!(start.used() < SOON, "took {:?}", start.used());
    let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    let memory = used.unwrap().max_rss();
    assert!(memory < MOST_MEMORY, "{memory} KiB");
    output
}

#[track_caller]
pub(crate) fn refused(files: &[(&str, &str)], message: &str) {
    let said = check(files);
    assert!(said.contains(message), "{said}");
}

/// Checks files as [`refused`] does, with a stack as small as that of a thread of the daemon.
pub(crate) fn refused_on_small_stack(files: &[(&str, &str)], message: &str) {
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "ulimit -s 2048; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_steadfast")]);
    let said = check_by(shell, files);
    assert!(said.contains(message), "{said}");
}

/// Returns lines made of numbers.
pub(crate) fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn embedded_texts_are_bounded() {
    let big = "x".repeat(1_000_000);
    let many = "${vars.big}".repeat(1000);
    for field in [format!("mode: \"{many}\""), format!("validate: \"a {many}\"")] {
        let graph = format!(
            "graph: g\nvars: {{big: {big}}}\nresources:\n  file:\n  - {{name: /a, {field}}}\n"
        );
        refused(&[("web.yaml", &graph)], "the text would be longer than 8 MiB");
    }
}

/// Each variable is evaluated inside the evaluation of the one that uses it.
#[test]
fn a_chain_of_variables_is_bounded() {
    let chain = |count: usize| {
        let vars = lines(count, |n| format!("  a{n}: \"${{vars.a{}}}\"\n", n + 1));
        format!(
            "graph: g\nvars:\n{vars}  a{count}: end\nresources:\n  noop: [{{name: \"${{vars.a0}}\"}}]\n"
        )
    };
    let deep = "variables use each other more than 100 levels deep";
    refused(&[("web.yaml", &chain(5000))], deep);
    refused(&[("web.yaml", &chain(101))], deep);
    let undefined = lines(3000, |n| format!("  a{n}: \"${{vars.b{n}}}\"\n"));
    refused(&[("web.yaml", &format!("graph: g\nvars:\n{undefined}"))], "no variable `b0`");
}

#[test]
fn all_values_together_are_bounded() {
    let big = "x".repeat(1_000_000);
    let grows = "the values of the graph grow above 32 MiB here";
    let entries = lines(1000, |n| format!("      A{n}: \"${{vars.big}}${{vars.big}}\"\n"));
    let graph = format!(
        "graph: g\nvars: {{big: {big}}}\nresources:\n  exec:\n  - name: a\n    args: [a]\n    env:\n{entries}"
    );
    refused(&[("web.yaml", &graph)], grows);
    let doubled = lines(400, |n| format!("  a{n}: \"${{vars.big}}${{vars.big}}\"\n"));
    let graph = format!("graph: g\nvars:\n  big: {big}\n{doubled}resources: {{}}\n");
    refused(&[("web.yaml", &graph)], grows);
    let lists = lines(40, |n| format!("  a{}: [\"${{vars.a{n}}}\", \"${{vars.a{n}}}\"]\n", n + 1));
    let graph = format!("graph: g\nvars:\n  a0: [x, x]\n{lists}resources: {{}}\n");
    refused(&[("web.yaml", &graph)], grows);
    let items: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    let graph = format!(
        "graph: g\nvars: {{n: [{}]}}\nresources:\n  file:\n  - {{for_each: vars.n, name: \"/a/${{item}}\", content: {big}}}\n",
        items.join(",")
    );
    refused(&[("web.yaml", &graph)], "the copies of this text grow above 32 MiB");
    let conditions = lines(20_000, |n| format!("  - {{name: n{n}, when: vars.big != \"a\"}}\n"));
    let graph = format!("graph: g\nvars: {{big: {big}}}\nresources:\n  noop:\n{conditions}");
    refused(
        &[("web.yaml", &graph)],
        "the expressions of the graph read more than 256 MiB of values",
    );
}

#[test]
fn includes_and_instances_are_bounded() {
    let name = |n: usize| format!("f{n}.yaml");
    let includes: Vec<(String, String)> = (0..15)
        .map(|n| {
            (
                name(n),
                if n < 14 {
                    format!("include: [{}]\n", vec![name(n + 1); 4].join(", "))
                } else {
                    "resources: {}\n".to_owned()
                },
            )
        })
        .collect();
    let mut files = vec![("web.yaml", "graph: g\ninclude: [f0.yaml, f0.yaml, f0.yaml, f0.yaml]\n")];
    files.extend(includes.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    refused(&files, "files are included more than 10000 times");
    let items: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    let items = items.join(", ");
    let modules: Vec<(String, String)> = (0..8)
        .map(|n| {
            let uses = if n < 7 {
                format!("modules: [{{use: ../m{}, for_each: [{items}]}}]\n", n + 1)
            } else {
                String::new()
            };
            (format!("m{n}/m.yaml"), format!("module: m{n}\n{uses}"))
        })
        .collect();
    let web = format!("graph: g\nmodules: [{{use: m0, for_each: [{items}]}}]\n");
    let mut files = vec![("web.yaml", web.as_str())];
    files.extend(modules.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    refused(&files, "the graph grows above 10000 instances of modules here");
}

/// K6 of an attack: a template that binds a list of itself again and again.
#[test]
fn templates_that_double_a_list_are_bounded() {
    let template = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ (n.x ~ '')|length }}";
    let graph = "graph: g\nresources:\n  file:\n  - {name: /a, template: a.j2}\n";
    refused(&[("web.yaml", graph), ("a.j2", template)], "out of fuel: a.j2:1:");
}

/// Rule 7: includes are at most 16 deep.
#[test]
fn the_depth_of_includes_is_bounded() {
    let load = |depth: usize| {
        let text = |n: usize| match n {
            0 => "resources: {noop: [a]}\n".to_owned(),
            _ => format!("include: f{}.yaml\n", n - 1),
        };
        let mut files: Vec<(String, String)> =
            (0..depth).map(|n| (format!("f{n}.yaml"), text(n))).collect();
        files.push(("web.yaml".to_owned(), format!("graph: g\n{}", text(depth))));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Tree::new(&files).load(&crate::language::with_facts()).map_err(|why| why.to_string())
    };
    assert_eq!(load(16).expect("16 includes").vertices.len(), 1);
    let why = load(17).expect_err("17 includes");
    assert!(why.contains("files include each other more than 16 levels deep"), "{why}");
}

/// Rule 9: one notification makes at most 10 000 edges.
#[test]
fn the_edges_of_a_notification_are_bounded() {
    let graph = |count: usize| {
        let items: Vec<String> = (0..count).map(|n| format!("n{n}")).collect();
        format!(
            "graph: g\nvars: {{all: [{}]}}\nresources:\n  noop:\n  - {{for_each: vars.all}}\n  test:\n  - {{name: t, notify: [\"noop[*]\"]}}\n",
            items.join(", ")
        )
    };
    let text = graph(10_001);
    refused(&[("web.yaml", &text)], "one notification would make 10001 edges");
    let loaded = crate::language::accepted(&[("web.yaml", &graph(10_000))]);
    assert_eq!(loaded.edges.len(), 10_000);
}
