//! The work of a load: many small pieces of work together end soon, with a clear message.

use crate::language::accepted;
use crate::language_bounds::{is_accepted_soon, lines, refused, refused_on_small_stack};

const TOO_MUCH: &str = "the expressions and templates of the graph compute too much";

/// A template that uses nearly all of its own steps.
const COSTLY: &str = "{% for i in range(38000) %}{{ i }}{% endfor %}\n";

/// A template has a bound of its own; many uses of it have one together.
#[test]
fn the_work_of_all_templates_is_bounded() {
    let items: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let graph = format!(
        "graph: g\nvars: {{n: [{}]}}\nresources:\n  file:\n  - for_each: vars.n\n    name: /a/${{item}}\n    template: a.j2\n",
        items.join(",")
    );
    refused(&[("web.yaml", &graph), ("a.j2", COSTLY)], TOO_MUCH);
    let many =
        lines(500, |n| format!("  - name: /a{n}\n    template: {{text: \"{}\"}}\n", COSTLY.trim()));
    let graph = format!("graph: g\nresources:\n  file:\n{many}");
    refused(&[("web.yaml", &graph)], TOO_MUCH);
    refused(&[("web.yaml", &graph)], "web.yaml:");
}

/// A template that fails at its end counts too, and the first failures are reported.
#[test]
fn the_work_of_failing_templates_is_bounded() {
    let failing = format!("{}{{{{ nothing[1] }}}}", COSTLY.trim());
    let many =
        lines(500, |n| format!("  - {{name: /a{n}, template: a.j2, with: {{nothing: [0]}}}}\n"));
    let graph = format!("graph: g\nresources:\n  file:\n{many}");
    refused(&[("web.yaml", &graph), ("a.j2", &failing)], TOO_MUCH);
}

/// Long templates that each resource parses anew, and expressions that each copy a long list.
#[test]
fn the_work_of_parsing_and_of_expressions_is_bounded() {
    let long = |n: usize| format!("{n}{}", "{{ 1 }}".repeat(45_000));
    let rows = lines(600, |n| format!("  - {{name: /a{n}, template: t{}.j2}}\n", n % 3));
    let graph = format!("graph: g\nresources:\n  file:\n{rows}");
    let (a, b, c) = (long(0), long(1), long(2));
    refused(&[("web.yaml", &graph), ("t0.j2", &a), ("t1.j2", &b), ("t2.j2", &c)], TOO_MUCH);
    let word = "x".repeat(20_000);
    let sum = vec!["vars.s"; 20].join("~");
    let rows = lines(1000, |n| format!("  - {{name: n{n}, when: '({sum}) != \"{n}\"'}}\n"));
    let graph = format!("graph: g\nvars: {{s: {word}}}\nresources:\n  noop:\n{rows}");
    refused(&[("web.yaml", &graph)], "of the graph");
}

/// Unknown names beside many variables: the search for the nearest name is bounded.
#[test]
fn many_unknown_names_beside_many_variables_end_soon() {
    let vars = lines(20_000, |n| format!("  variable_{n}: {n}\n"));
    let rows = lines(20_000, |n| format!("  - {{name: n{n}, when: vars.varaible_{n} > 1}}\n"));
    let graph = format!("graph: g\nvars:\n{vars}resources:\n  noop:\n{rows}");
    refused(&[("web.yaml", &graph)], "no variable `varaible_0`; nearest: `variable_0`");
    let rows = lines(20_000, |n| format!("  - {{name: n{n}, when: variable_{n} > 1}}\n"));
    let graph = format!("graph: g\nvars:\n{vars}resources:\n  noop:\n{rows}");
    refused(&[("web.yaml", &graph)], "write `vars.variable_0`");
}

/// One variable that uses all others, in each resource.
#[test]
fn a_variable_that_uses_many_ends_soon() {
    let start = crate::processor_time::ProcessorTime::start();
    let vars = lines(5000, |n| format!("  v{n}: {n}\n"));
    let all: Vec<String> = (0..5000).map(|n| format!("\"${{vars.v{n}}}\"")).collect();
    let rows = lines(2000, |n| format!("  - {{name: n{n}, when: 'vars.all[1] == 1'}}\n"));
    let graph =
        format!("graph: g\nvars:\n{vars}  all: [{}]\nresources:\n  noop:\n{rows}", all.join(", "));
    let loaded = accepted(&[("web.yaml", &graph)]);
    assert_eq!(loaded.vertices.len(), 2000);
    assert!(start.used() < std::time::Duration::from_secs(20), "{:?}", start.used());
}

/// Many variables, and long texts: the message comes before the memory is used.
#[test]
fn files_and_variables_are_bounded() {
    let vars = lines(40_001, |n| format!("  v{n}: {n}\n"));
    let graph = format!("graph: g\nvars:\n{vars}resources: {{}}\n");
    refused(&[("web.yaml", &graph)], "the graph has more than 40000 variables");
    let text = "x".repeat(13 << 20);
    let large = "the files of a graph with expressions exceed 12 MiB";
    let graph = format!("graph: g\nvars: {{a: {text}}}\nresources: {{}}\n");
    refused(&[("web.yaml", &graph)], large);
    let graph = "graph: g\nvars_files: [v.yaml]\nresources: {}\n";
    refused(&[("web.yaml", graph), ("v.yaml", &format!("a: {text}\n"))], large);
}

/// A text of many expressions is read once, not once for each of them.
#[test]
fn a_text_of_many_expressions_ends_soon() {
    let start = crate::processor_time::ProcessorTime::start();
    let vars = lines(20_000, |n| format!("  v{n}: {n}\n"));
    let text: Vec<String> = (0..20_000).map(|n| format!("${{vars.v{n}}}")).collect();
    let graph = format!(
        "graph: g\nvars:\n{vars}  all: \"{}\"\nresources:\n  noop: [{{name: a, when: vars.all != \"\"}}]\n",
        text.join(" ")
    );
    accepted(&[("web.yaml", &graph)]);
    assert!(start.used() < std::time::Duration::from_secs(20), "{:?}", start.used());
}

/// A large graph of modules, loops and templates is within the bounds.
#[test]
fn a_large_graph_of_modules_and_templates_loads() {
    let names: Vec<String> = (0..300).map(|n| format!("m{n}")).collect();
    let web = format!(
        "graph: g\nvars: {{port: 80}}\nmodules:\n- {{use: m, for_each: [{}], with: {{port: \"${{vars.port + 1}}\", name: \"${{item}}\"}}}}\n",
        names.join(", ")
    );
    let items: Vec<String> = (0..100).map(|n| format!("f{n}")).collect();
    let module = format!(
        "module: m\nparams: {{port: {{type: int}}, name: {{type: string}}}}\nresources:\n  file:\n  - for_each: [{}]\n    path: /srv/${{params.name}}/${{item}}\n    template: a.j2\n    with: {{item_name: \"${{item}}\"}}\n",
        items.join(", ")
    );
    let template = "# {{ item_name }}\n{% for n in [1, 2, 3] %}\nlisten {{ params.port }}:{{ n }}\n{% endfor %}\n";
    let loaded = accepted(&[("web.yaml", &web), ("m/m.yaml", &module), ("m/a.j2", template)]);
    assert_eq!(loaded.vertices.len(), 30_000);
}

/// The engine of templates needs stack for each operator and branch: long ones are refused before it reads them, also
/// without an end.
#[test]
fn code_that_needs_too_much_stack_is_refused() {
    let refuses = |template: &str, expected: &str| {
        let graph = "graph: g\nresources:\n  file: [{name: /a, template: a.j2}]\n";
        refused_on_small_stack(&[("web.yaml", graph), ("a.j2", template)], expected);
    };
    for operator in ["- ", "not ", "1 + ", "1 ~ ", "2 ** ", "true and "] {
        for count in [4096 / operator.len() - 2, 50_000] {
            let expected = if count > 4096 { "a tag has at most 4096 bytes" } else { "a.j2:1" };
            refuses(&format!("{{{{ {}x }}}}", operator.repeat(count)), expected);
            refuses(&format!("{{{{ {}", operator.repeat(count)), expected);
        }
    }
    for suffix in ["|abs", ".a", "[0]", "()"] {
        refuses(&format!("{{{{ x{} }}}}", suffix.repeat(50_000)), "a tag has at most 4096 bytes");
        refuses(&format!("{{{{ x{} }}}}", suffix.repeat(1000)), "a.j2:1");
    }
    let branches = format!("{{% if x %}}{}{{% endif %}}", "{% elif false %}".repeat(20_000));
    refuses(&branches, "a template has at most 500 `elif`");
    let branches = format!("{{% if x %}}{}{{% endif %}}", "{% elif false %}".repeat(499));
    refuses(&branches, "a.j2:1");
}

/// Generated files can have all of their text in one line.
#[test]
fn many_problems_of_one_line_are_found_soon() {
    let keys: Vec<String> = (0..5000).map(|n| format!("k{n}: 1")).collect();
    refused(
        &[("web.yaml", &format!("{{graph: g, {}}}", keys.join(", ")))],
        "5000 problems, 4000 of them",
    );
    let files = vec!["x"; 5000].join(",");
    refused(&[("web.yaml", &format!("graph: g\ninclude: [{files}]\n"))], "web.yaml:2:");
}

/// The texts that written templates make count together, as those of loops do.
#[test]
fn the_texts_of_written_templates_are_bounded() {
    let many = lines(20, |n| format!("  - {{name: /a{n}, template: a.j2}}\n"));
    let graph = format!("graph: g\nresources:\n  file:\n{many}");
    let large = format!("{{% for i in range(7000) %}}{}{{% endfor %}}", "x".repeat(1000));
    refused(&[("web.yaml", &graph), ("a.j2", &large)], "grow above 32 MiB");
}

/// Templates that each get very many names.
#[test]
fn many_names_of_templates_end_soon() {
    let names = lines(50_000, |n| format!("n{n}: 1,"));
    let items = lines(100, |n| format!("x{n},"));
    let graph = |items: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - for_each: [{items}]\n    name: \"/a/${{item}}\"\n    template: {{text: a}}\n    with: {{{names}}}\n"
        )
    };
    refused(&[("web.yaml", &graph(&items))], TOO_MUCH);
    assert!(is_accepted_soon(&[("web.yaml", &graph("x1,x2,x3"))]));
}

/// Items with different keys, of which none is the one that an expression names.
#[test]
fn many_different_keys_of_items_end_soon() {
    let start = crate::processor_time::ProcessorTime::start();
    let map = |n: usize| format!("i{n}: {{{}}},", lines(10, |key| format!("k{n}_{key}: 1,")));
    let maps = lines(2000, map);
    let graph = format!(
        "graph: g\nvars: {{l: {{{maps}}}}}\nresources:\n  noop:\n  - {{for_each: vars.l, name: \"${{item.value.zz}}\"}}\n"
    );
    refused(&[("web.yaml", &graph)], "items of `vars.l` have no `zz`; they have k0_0");
    assert!(start.used() < std::time::Duration::from_secs(8), "{:?}", start.used());
}
