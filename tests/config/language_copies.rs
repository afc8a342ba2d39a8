//! Copies that no expression makes: defaults, exports, metaparameters and conditions, each of them for many items or
//! uses. Each graph ends with little memory and soon.

use crate::language_bounds::{is_accepted_soon, lines, refused};

const GROWS: &str = "the values of the graph grow above 32 MiB here";
const COPIES: &str = "the copies of this text grow above 32 MiB";

/// Returns a graph with a list of names, and a text behind it.
fn listed(count: usize, rest: &str) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
    format!("graph: g\nvars: {{l: [{}]}}\n{rest}", names.join(","))
}

/// The defaults that a loop declares for its items: a long one, and many short ones.
#[test]
fn defaults_of_items_are_bounded() {
    let maps = lines(300, |n| format!("x{n}: {{}},"));
    let head = format!("graph: g\nvars: {{l: {{{maps}}}}}\n");
    let long = format!("{{a: {{type: string, default: \"{}\"}}}}", "x".repeat(3_000_000));
    let many = lines(20_000, |n| format!("a{n}: {{type: int, default: 1}},"));
    for declared in [long, format!("{{{many}}}")] {
        let each = format!("for_each: {{in: vars.l, item: {declared}}}");
        let graph = format!("{head}resources:\n  noop:\n  - {{{each}, when: false}}\n");
        refused(&[("web.yaml", &graph)], GROWS);
        let graph = format!("{head}modules:\n- {{use: m, as: \"${{item.key}}\", {each}}}\n");
        let module = ("m/m.yaml", "module: m\nresources: {noop: [a]}\n");
        refused(&[("web.yaml", &graph), module], GROWS);
    }
}

/// A module with many exports, in many uses.
#[test]
fn exports_of_uses_are_bounded() {
    let uses = "modules: [{use: m, for_each: vars.l, as: \"${item}\"}]\n";
    let exports = lines(90_000, |n| format!("e{n}: \"noop[a]\","));
    let module = format!("module: m\nexports: {{{exports}}}\nresources: {{noop: [a]}}\n");
    let files = |graph: &str| is_accepted_soon(&[("web.yaml", graph), ("m/m.yaml", &module)]);
    assert!(files(&listed(1, uses)));
    assert!(files(&listed(15, uses)));
    let much = "the expressions and templates of the graph compute too much";
    refused(&[("web.yaml", &listed(100, uses)), ("m/m.yaml", &module)], much);
}

/// The metaparameters of a use with many semaphores, for many uses; and one resource with many semaphores.
#[test]
fn metaparameters_of_uses_are_bounded() {
    for (uses, semaphores) in [(100, 50_000), (9000, 500)] {
        let sema = lines(semaphores, |n| format!("\"s{n}:1\","));
        let uses = listed(
            uses,
            &format!(
                "modules: [{{use: m, for_each: vars.l, as: \"${{item}}\", meta: {{sema: [{sema}]}}}}]\n"
            ),
        );
        let module = ("m/m.yaml", "module: m\nresources: {noop: [a]}\n");
        refused(&[("web.yaml", &uses), module], COPIES);
    }
    let sema = lines(90_000, |n| format!("\"s{n}:1\","));
    let graph = format!(
        "graph: g\nresources:\n  noop:\n  - {{name: a, meta: {{sema: [{sema} \"s0:1\"]}}}}\n"
    );
    refused(&[("web.yaml", &graph)], "semaphore `s0` is listed twice on one resource");
}

/// A long condition, and one with many names, for each item of a loop and for each resource of a module.
#[test]
fn conditions_of_items_are_bounded() {
    let text = "z".repeat(8000);
    for when in ["==", "!="] {
        let when = format!("when: \"item {when} '{text}'\"");
        let each = format!("resources:\n  noop:\n  - {{for_each: vars.l, {when}}}\n");
        assert!(is_accepted_soon(&[("web.yaml", &listed(8000, &each))]));
        let uses = format!("modules:\n- {{use: m, for_each: vars.l, as: \"${{item}}\", {when}}}\n");
        let module =
            format!("module: m\nresources: {{noop: [{}]}}\n", lines(10, |n| format!("a{n},")));
        assert!(is_accepted_soon(&[("web.yaml", &listed(900, &uses)), ("m/m.yaml", &module)]));
    }
    let vars = lines(400, |n| format!("  v{n}: {n}\n"));
    let all: Vec<String> = (0..400).map(|n| format!("vars.v{n}")).collect();
    let items: Vec<String> = (0..8000).map(|n| n.to_string()).collect();
    let graph = format!(
        "graph: g\nvars:\n{vars}resources:\n  noop:\n  - for_each: [{}]\n    when: '999 in [{}]'\n",
        items.join(","),
        all.join(", ")
    );
    refused(&[("web.yaml", &graph)], COPIES);
}
