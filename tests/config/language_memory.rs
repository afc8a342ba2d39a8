//! Nested maps, and values that are read again and again: each graph ends with little memory and soon.

use crate::language_bounds::{lines, refused};

const GROWS: &str = "the values of the graph grow above 32 MiB here";

/// A variable that holds the one before it twice stands for an endless map.
#[test]
fn maps_that_double_are_bounded() {
    let doubled =
        lines(60, |n| format!("  a{}: {{x: \"${{vars.a{n}}}\", y: \"${{vars.a{n}}}\"}}\n", n + 1));
    let graph = format!("graph: g\nvars:\n  a0: {{x: 1, y: 2}}\n{doubled}resources: {{}}\n");
    refused(&[("web.yaml", &graph)], GROWS);
}

/// Maps that functions and operators make again and again.
#[test]
fn computed_maps_are_bounded() {
    let maps = vec!["{a: true}"; 5000].join(",");
    for (rows, message) in [
        (lines(40, |n| format!("  b{n}: ${{vars.a | select(\"a\")}}\n")), GROWS),
        (
            lines(40, |n| format!("  b{}: ${{vars.b{n} + vars.b{n}}}\n", n + 1))
                + "  b0: ${vars.a}\n",
            "the result exceeds 8 MiB",
        ),
    ] {
        let graph = format!("graph: g\nvars:\n  a: [{maps}]\n{rows}resources: {{}}\n");
        refused(&[("web.yaml", &graph)], message);
    }
}

/// Maps as they stand in a file of variables.
#[test]
fn written_maps_are_bounded() {
    let graph = "graph: g\nvars_files: v.yaml\nresources: {}\n";
    let maps = format!("a: [{}]\n", vec!["{a: 1}"; 60_000].join(","));
    refused(&[("web.yaml", graph), ("v.yaml", &maps)], GROWS);
}

/// Long lists in each place that takes values: in one file, and in several files together.
#[test]
fn written_lists_are_bounded() {
    let list = vec!["1"; 2_000_000].join(",");
    let half = vec!["1"; 150_000].join(",");
    let plain = "graph: g\nvars: {x: 1}\nresources: {noop: [a]}\n";
    let with = |field: &str| format!("graph: g\nresources:\n  exec:\n  - {{name: e, {field}}}\n");
    let many = "the graph has more than 200000 values: this list or map has ";
    for (field, place) in [
        (format!("args: [{list}]"), "web.yaml:4:21: "),
        (format!("args: [a], labels: {{a: [{list}]}}"), "web.yaml:4:38: "),
        (format!("args: [\"${{vars.x}}\", {list}]"), "web.yaml:4:21: "),
    ] {
        let text = with(&field);
        refused(&[("web.yaml", &text)], many);
        refused(&[("web.yaml", &text)], place);
    }
    for text in [
        format!("graph: g\nvars: {{a: [{list}]}}\nresources: {{}}\n"),
        format!("graph: g\nassert: [{list}]\nresources: {{}}\n"),
        format!("graph: g\nmodules: [{{use: m, as: a, with: {{b: [{list}]}}}}]\n"),
    ] {
        refused(&[("web.yaml", &text)], many);
    }
    let given = format!("resources: [{list}]\n");
    refused(&[("web.yaml", plain), ("given.yaml", &given)], "given.yaml:1:12: ");
    let files = "graph: g\nvars_files: [a.yaml, b.yaml]\nresources: {}\n";
    let (a, b) = (format!("a: [{half}]\n"), format!("b: [{half}]\n"));
    refused(&[("web.yaml", files), ("a.yaml", &a), ("b.yaml", &b)], "b.yaml:1:4: ");
    let facts = format!("local: {{a: [{list}]}}\n");
    let message = "more than 100000 values up to line 1, column 200";
    refused(&[("web.yaml", plain), ("facts.yaml", &facts)], message);
    let tenfold = ["*x"; 10].join(",");
    let aliases = format!("local: {{a: &x [{}], b: [{tenfold}]}}\n", vec!["1"; 10_000].join(","));
    refused(
        &[("web.yaml", plain), ("facts.yaml", &aliases)],
        "more than 100000 values up to line 1",
    );
}

/// The longest lists that are accepted take little memory, too.
#[test]
fn accepted_lists_take_little_memory() {
    let list = vec!["abcdefgh"; 190_000].join(",");
    let wrong = "assert: [{that: vars.a | length > 190000, message: all}]\nresources: {}\n";
    refused(&[("web.yaml", &format!("graph: g\nvars: {{a: [{list}]}}\n{wrong}"))], "all");
    let graph = format!(
        "graph: g\nresources:\n  exec:\n  - {{name: e, args: [{list}]}}\n  - {{name: e, args: [a]}}\n"
    );
    refused(&[("web.yaml", &graph)], "exec[e]");
    let list = vec!["abcdefgh"; 99_000].join(",");
    let facts = format!("local: {{a: [{list}]}}\n");
    let wrong = "assert: [{that: facts.local.a | length > 99000, message: all}]\nresources: {}\n";
    refused(&[("web.yaml", &format!("graph: g\n{wrong}")), ("facts.yaml", &facts)], "all");
}

/// A long text that one expression names again and again, or cuts into many parts; many tags in one line.
#[test]
fn repeated_names_and_parts_are_bounded() {
    let text = "x".repeat(1 << 20);
    let all = |name: &str| vec![name; 1000].join(",");
    let with = |text: &str, when: &str| {
        format!(
            "graph: g\nvars: {{s: \"{text}\"}}\nresources:\n  noop:\n  - {{name: a, when: '{when}'}}\n"
        )
    };
    let much = "the expression reads more than 32 MiB of values";
    refused(&[("web.yaml", &with(&text, &format!("[{}] | length > 1", all("vars.s"))))], much);
    let one = with(&text, &format!("vars.s in [{}]", all("vars.s")));
    refused(&[("web.yaml", &one)], much);
    let commas = ",".repeat(1_000_000);
    let split = with(&commas, "vars.s | split(\",\") | length > 1");
    refused(&[("web.yaml", &split)], "`split` gives more than 200000 parts");
    let template = |of: &str| {
        format!(
            "graph: g\nvars: {{s: \"{commas}\"}}\nresources:\n  file:\n  - {{name: /a, template: {{text: \"{{{{ {of} }}}}\"}}}}\n"
        )
    };
    for of in ["vars.s|list|length", "vars.s|split(',')|length"] {
        refused(&[("web.yaml", &template(of))], "out of fuel");
    }
    let tags = vec!["!x y"; 100_000].join(",");
    let tags = format!("graph: g\nvars: {{a: [{tags}]}}\nresources: {{}}\n");
    refused(&[("web.yaml", &tags)], "YAML tags are not supported");
}

/// A file that is too large is not read to its end.
#[test]
fn large_files_are_not_read_whole() {
    // A file without an end, which every user may change.
    let graph = "graph: g\nvars_files: /dev/zero\nresources: {}\n";
    refused(&[("web.yaml", graph)], "/dev/zero");
}

/// A large list of maps that each condition copies, and one that each template reads.
#[test]
fn repeated_reads_are_bounded() {
    let maps = vec!["{a: true}"; 2000].join(",");
    let head = format!("graph: g\nvars: {{a: [{maps}]}}\nresources:\n");
    let rows = lines(2000, |n| {
        format!("  - {{name: n{n}, when: '(vars.a | select(\"a\") | length) > {n}'}}\n")
    });
    let message = "read more than 256 MiB of values";
    refused(&[("web.yaml", &format!("{head}  noop:\n{rows}"))], message);
    let rows = lines(11_000, |n| {
        format!("  - {{name: /a{n}, template: {{text: \"{{{{ vars.a|length }}}}\"}}}}\n")
    });
    refused(&[("web.yaml", &format!("{head}  file:\n{rows}"))], message);
}

/// A loop and many uses that each take a large map.
#[test]
fn copies_of_maps_are_bounded() {
    let map = lines(2000, |n| format!("K{n}: v,"));
    let rows = lines(1000, |n| format!("  - {{name: e{n}, args: [a], env: \"${{vars.m}}\"}}\n"));
    let graph = format!("graph: g\nvars: {{m: {{{map}}}}}\nresources:\n  exec:\n{rows}");
    refused(&[("web.yaml", &graph)], GROWS);
    let words = vec!["a"; 10_000].join(",");
    let items: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let graph = format!(
        "graph: g\nvars: {{n: [{}]}}\nresources:\n  exec:\n  - {{for_each: vars.n, args: [{words}]}}\n",
        items.join(",")
    );
    refused(&[("web.yaml", &graph)], "the copies of this text grow above 32 MiB");
    let maps = vec!["{a: 1}"; 1000].join(",");
    let uses = lines(2000, |n| format!("- {{use: m, as: i{n}, with: {{m: \"${{vars.m}}\"}}}}\n"));
    let graph = format!("graph: g\nvars: {{m: [{maps}]}}\nmodules:\n{uses}");
    let module = "module: m\nparams: {m: {type: list}}\nresources: {noop: [a]}\n";
    refused(&[("web.yaml", &graph), ("m/m.yaml", module)], GROWS);
}

/// Maps of a template that hold themselves, in each way that binds or makes one.
#[test]
fn templates_with_nested_maps_are_bounded() {
    let graph = "graph: g\nresources:\n  file:\n  - {name: /a, template: a.j2}\n";
    let doubled = "{% set m = {\"a\": m, \"b\": m} %}".repeat(40);
    let looped = |made: &str| {
        format!(
            "{{% set n = namespace(m={{\"a\": 1}}) %}}{{% for i in range(10000) %}}{{% set n.m = {made} %}}{{% endfor %}}{{{{ n.m }}}}"
        )
    };
    for template in [
        format!("{{% set m = {{\"a\": 1}} %}}{doubled}{{{{ m }}}}"),
        looped("{\"a\": n.m, \"b\": n.m}"),
        looped("dict(a=n.m, b=n.m)"),
        looped("dict(n.m, a=n.m)"),
        looped("{\"a\": n.m|items|list, \"b\": n.m|items|list}"),
        looped("[n.m, {\"a\": n.m}]|list"),
        looped("[n.m, n.m]|zip([n.m, n.m])|list"),
        "{% macro f(x, n) %}{% if n > 0 %}{{ f({\"a\": x, \"b\": x}, n - 1) }}{% else %}{{ x }}{% endif %}{% endmacro %}{{ f(1, 60) }}".to_owned(),
        "{% for i in range(90000) %}{% with x = {\"a\": {\"b\": range(100)|list}} %}{% endwith %}{% endfor %}".to_owned(),
    ] {
        refused(&[("web.yaml", graph), ("a.j2", &template)], "out of fuel: a.j2:1:");
    }
    let long = format!("{{{{ [{}]|length }}}}", vec!["{\"a\":1}"; 100_000].join(","));
    refused(&[("web.yaml", graph), ("a.j2", &long)], "a template has at most 524288 bytes");
}

/// Many resources with three problems each, every one in another expression: the first problems are listed, and the
/// others counted.
#[test]
fn many_problems_are_counted() {
    let rows = lines(30_000, |n| {
        format!(
            "  - {{name: n{n}, int: \"${{vars.x{n}}}\", text: \"${{vars.y{n}}}\", bool: \"${{vars.z{n}}}\"}}\n"
        )
    });
    let graph = format!("graph: g\nvars: {{a: 1}}\nresources:\n  test:\n{rows}");
    refused(
        &[("web.yaml", &graph)],
        "the graph was rejected: 90000 problems, 89000 of them not shown",
    );
}

/// Eight patterns that each match all files, in each of these files.
#[test]
fn patterns_that_match_all_files_end_soon() {
    let patterns = |folder: &str| {
        let all = ["*", "?*", "*l", "**", "*a*", "*.*", "*.yaml", "*y*"];
        all.map(|pattern| format!("\"{folder}{pattern}\"")).join(", ")
    };
    let graph = format!("graph: g\ninclude: [{}]\nresources: {{noop: [a]}}\n", patterns("s/"));
    let part = format!("include: [{}]\n", patterns(""));
    let names: Vec<String> = (0..300).map(|n| format!("s/a{n}.yaml")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &*part)).collect();
    files.push(("web.yaml", &graph));
    refused(&files, "include cycle: a0.yaml → a1.yaml → a0.yaml");
    let many = format!("graph: g\ninclude:\n{}", lines(20_000, |n| format!("- s/*{n}\n")));
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("web.yaml", &many));
    let long =
        format!("graph: g\ninclude: [{}]\nmodules: x\n", "s/*a".repeat(2) + &"*a".repeat(4000));
    refused(&[("web.yaml", &long)], "`modules` should be a list");
    refused(&files, "compute too much");
}

/// A loop over very many names that are texts, and a condition with many texts that its fact never has.
#[test]
fn many_names_in_lists_of_texts_end_soon() {
    let names = vec!["vars.a"; 50_000].join(",");
    let texts = vec!["\"Debian\""; 700].join(",");
    let graph = format!(
        "graph: g\nvars: {{a: x}}\nresources:\n  noop:\n  - {{name: a, when: 'facts.os.id in [{texts}]'}}\n  - {{for_each: [{names}]}}\n"
    );
    refused(&[("web.yaml", &graph)], "the item `vars.a` is a text, no expression");
}

/// Many conditions that wait for a probe, on one resource, and on a use with many resources.
#[test]
fn many_conditions_that_wait_take_little_memory() {
    let probe = "  probe: [{name: q, args: [/bin/true], type: bool}]\n";
    let many = vec!["probe.q"; 50_000].join(", ");
    let graph = format!(
        "graph: g\nresources:\n{probe}  noop: [{{name: a, when: [{many}]}}, {{name: b, mode: x}}]\n"
    );
    refused(&[("web.yaml", &graph)], "unknown key `mode`");
    let many = vec!["probe.q"; 10_000].join(", ");
    let graph = format!(
        "graph: g\nmodules: [{{use: m, as: x, when: [{many}]}}]\nresources:\n{probe}  noop: [{{name: b, mode: x}}]\n"
    );
    let items = lines(10_000, |n| format!("i{n}, "));
    let module = format!(
        "module: m\nresources:\n  probe: [{{name: z, args: [/bin/true], type: bool}}]\n  noop: [{{for_each: [{items}], name: \"${{item}}\", when: probe.z}}]\n"
    );
    refused(&[("web.yaml", &graph), ("m/m.yaml", &module)], "unknown key `mode`");
}
