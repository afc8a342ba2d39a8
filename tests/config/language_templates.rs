//! Templates that read or make long texts: each graph ends with little memory and soon.

use crate::language_bounds::{is_accepted_soon, lines, refused, refused_on_small_stack};

const NO_FUEL: &str = "out of fuel: template:1:";
const TOO_LONG: &str = "the text would be longer than 8 MiB";

/// Returns a graph with a text in a variable, and a template.
fn with_template(letter: &str, bytes: usize, template: &str) -> String {
    let text = letter.repeat(bytes / letter.len());
    format!(
        "graph: g\nvars: {{s: \"{text}\", t: \"{text}\"}}\nresources:\n  file:\n  - {{name: /a, template: {{text: \"{template}\"}}}}\n"
    )
}

/// A small graph whose variables double, with a template that joins the longest of them many times.
#[test]
fn a_small_graph_with_a_long_join_is_bounded() {
    let doubled = lines(16, |n| format!("  v{}: \"${{vars.v{n}}}${{vars.v{n}}}\"\n", n + 1));
    let text = "x".repeat(64);
    let all = vec!["vars.v16"; 300].join(",");
    for (template, message) in [
        (format!("{{{{ [{all}]|join|length }}}}"), NO_FUEL),
        (format!("{{{{ '{}'|format({all})|length }}}}", "%s".repeat(300)), NO_FUEL),
        (
            "{% for i in range(9000) %}{{ vars.v16 == vars.v15 ~ vars.v15 }}{% endfor %}"
                .to_owned(),
            NO_FUEL,
        ),
        ("{{ vars.v16|join(vars.v16)|length }}".to_owned(), TOO_LONG),
    ] {
        let graph = format!(
            "graph: g\nvars:\n  v0: {text}\n{doubled}resources:\n  file:\n  - {{name: /a, template: {{text: \"{template}\"}}}}\n"
        );
        refused(&[("web.yaml", &graph)], message);
    }
}

/// Texts of many megabytes that live at once.
#[test]
fn long_texts_of_one_template_take_little_memory() {
    let captures = lines(10, |n| format!("{{% set a{n} %}}{{{{ vars.s }}}}{{% endset %}}"));
    let slices = lines(20, |n| format!("vars.s[{n}:],"));
    let calls = "m(),".repeat(20);
    for (template, message) in [
        (captures, NO_FUEL),
        (format!("{{{{ [{slices}]|length }}}}"), NO_FUEL),
        (
            format!("{{% macro m() %}}{{{{ vars.s }}}}{{% endmacro %}}{{{{ [{calls}]|length }}}}"),
            NO_FUEL,
        ),
        (format!("{{{{ {} }}}}", vec!["vars.s"; 20].join(" ~ ")), NO_FUEL),
        (
            "{% macro f(n) %}{{ (vars.s * n)|length }}{% endmacro %}{{ f(9) }}".to_owned(),
            "`*` multiplies",
        ),
    ] {
        refused(&[("web.yaml", &with_template("x", 5_000_000, &template))], message);
    }
    let quoted = "`sh` gives a text of more than 8 MiB";
    refused(&[("web.yaml", &with_template("'", 5_000_000, "{{ vars.s|sh|length }}"))], quoted);
    refused(&[("web.yaml", &with_template("<", 5_000_000, "{{ vars.s|e|length }}"))], TOO_LONG);
    assert!(is_accepted_soon(&[("web.yaml", &with_template("x", 4_000_000, "{{ vars.s ~ 1 }}"))]));
}

/// Loops that compare, cut or search long texts.
#[test]
fn loops_over_long_texts_end_soon() {
    for body in [
        "{{ vars.s == vars.t }}",
        "{{ vars.s < vars.t }}",
        "{{ vars.s[i] }}",
        "{{ vars.s[4999:] }}",
    ] {
        let template = format!("{{% for i in range(90000) %}}{body}{{% endfor %}}");
        refused(&[("web.yaml", &with_template("ä", 5_000_000, &template))], NO_FUEL);
    }
}

/// A name that is bound to a part of itself again and again: reading it needs little stack.
#[test]
fn parts_of_parts_need_little_stack() {
    for step in ["n.x[0:]", "n.x|zip", "n.x|chain([])", "[n.x[0][0:]]", "n.x|chain({})"] {
        let template = format!(
            "{{% set n = namespace(x=[[1]]) %}}{{% for i in range(90000) %}}{{% set n.x = {step} %}}{{% endfor %}}"
        );
        refused_on_small_stack(&[("web.yaml", &with_template("x", 9, &template))], NO_FUEL);
    }
}
