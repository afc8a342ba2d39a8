//! The slips of beginners: each message alone is enough to correct the graph.

use crate::language::{Tree, accepted, with_facts};

/// Checks that the answer to `web.yaml` has all texts.
#[track_caller]
fn answers(files: &[(&str, &str)], expected: &[&str]) {
    let said = Tree::new(files).problems(&with_facts());
    for text in expected {
        assert!(said.contains(text), "expected {text}\nfound {said}");
    }
    let first = said.lines().next().unwrap_or_default();
    let message = first.splitn(4, ':').nth(3).unwrap_or_default();
    assert!(message.chars().count() <= 108, "too long: {message}");
}

/// Indentation, tabs, quotes and brackets of YAML.
#[test]
fn wrong_yaml_names_the_line_to_correct() {
    let of_entry = "the keys of the entry above in column 5";
    for (body, expected) in [
        ("\tnoop: [a]\n", ["web.yaml:3:1: expected spaces, found a tab", "replace the tab"]),
        (
            "  noop:\n  - name: a\n\twhen: true\n",
            ["web.yaml:5:1: expected spaces", "replace the tab"],
        ),
        ("  noop:\n  - name: a\n   when: true\n", ["web.yaml:5:4: the indentation", of_entry]),
        ("  noop:\n  - name: a\n     when: true\n", ["web.yaml:5:10: the indentation", of_entry]),
        (
            "  noop:\n    - name: a\n   test: [b]\n",
            ["in column 7: begin there, or in column 3 for a key beside `noop`", "web.yaml:5:4: "],
        ),
        (
            "  noop:\n  - name: a\n  when: true\n",
            ["web.yaml:5:3: `when` stands where a kind is expected", "as far as its `name`"],
        ),
        (
            "  noop:\n  -name: a\n",
            [
                "web.yaml:4:3: `-name` stands where a kind",
                "write a space behind the dash: `- name:`",
            ],
        ),
        (
            "  file:\n  - name: /a\n    content: \"abc\n    mode: 0644\n",
            ["a quote is not closed", "line 5 opens a quote: close it"],
        ),
        (
            "  noop:\n  - name: \"x\"y\n",
            ["web.yaml:4:14: invalid YAML", "the text after the closing quote"],
        ),
        ("  file:\n  - {name: /a\n  noop: [a]\n", ["web.yaml:4:5: ", "close it by `}`"]),
        (
            "  noop\n  file: [a]\n",
            ["a key has no colon behind it", "write `noop:` in the line above"],
        ),
    ] {
        answers(&[("web.yaml", &format!("graph: g\nresources:\n{body}"))], &expected);
    }
}

/// A name with its key, but without the space that YAML wants, is a doubtful name.
#[test]
fn a_key_without_a_space_is_a_doubtful_name() {
    let loaded = accepted(&[("web.yaml", "graph: g\nresources:\n  noop:\n  - name:a\n")]);
    let warning = loaded.warnings[0].to_json();
    assert_eq!(warning["hint"], "write a space behind the colon: `name: a`");
}

/// `fmt` says the same as `check`.
#[test]
fn fmt_explains_broken_yaml_as_check_does() {
    for (text, expected) in [
        ("a:\n\tb: 1\n", "2:1: expected spaces, found a tab in the indentation; replace the tab"),
        ("a:\n- b: 1\n   c: 2\n", "the keys of the entry above in column 3"),
        ("a: \"b\nc: 1\n", "line 1 opens a quote: close it"),
    ] {
        let said = steadfast::config::format_graph(text).unwrap_err().to_string();
        assert!(said.contains(expected), "expected {expected}\nfound {said}");
    }
}

/// Words and forms of other languages in expressions, and names that lack their root.
#[test]
fn slips_in_expressions_get_the_correction() {
    for (condition, expected) in [
        ("yes", ["web.yaml:4:27: `yes` is no value; write `true`", ""]),
        ("vars.s <> \"x\"", ["`<>` is no operator; write `!=`", ""]),
        ("vars.s is match(\"^x\")", ["`is match` is no test", "write `vars.s | matches(\"^x\")`"]),
        ("os == \"debian\"", ["unknown name `os`", "write `facts.os.id`"]),
        ("os.id == \"debian\"", ["unknown name `os`", "write `facts.os.id`"]),
        ("os_family == \"debian\"", ["unknown name `os_family`", "write `facts.os.family`"]),
        ("facts.os == \"debian\"", ["compares a map with string", "write `facts.os.id`"]),
    ] {
        let text = format!(
            "graph: g\nvars: {{s: x}}\nresources:\n  noop: [{{name: a, when: '{condition}'}}]\n"
        );
        answers(&[("web.yaml", &text)], &expected);
    }
    answers(
        &[
            ("web.yaml", "graph: g\nmodules: [{use: m, as: \"${}\"}]\n"),
            ("m/m.yaml", "module: m\n"),
        ],
        &["web.yaml:2:", "the expression is empty", "write a name such as `vars.x`"],
    );
}

/// Modules: a wrong folder, and parameters that the module no longer declares.
#[test]
fn wrong_uses_of_modules_get_the_correction() {
    let site = ("modules/site/m.yaml", "module: m\nresources: {noop: [\"a${params.a}\"]}\n");
    for (used, expected) in [
        ("{use: modules/stie, as: a}", ["`modules/stie` is no module", "`modules/site`"]),
        ("{use: module/site, as: a}", ["`module/site` is no module", "`modules/site`"]),
        (
            "{use: modules/site, as: a, with: {a: 1}}",
            ["has no param `a`", "the module declares none; add params: {a: {type: string}}"],
        ),
        (
            "{use: modules/site, as: a}",
            ["no parameter `a`", "declare it in the module: params: {a: {type: string}}"],
        ),
    ] {
        answers(&[("web.yaml", &format!("graph: g\nmodules: [{used}]\n")), site], &expected);
    }
}

/// A probe that nothing declares, where it is used.
#[test]
fn an_unknown_probe_is_reported_where_it_is_used() {
    let graph = "graph: g\nresources:\n  probe: [{name: x, cmd: [/bin/true], type: bool}]\n  noop:\n  - name: a\n    when: probe.x and probe.y\n  test:\n  - {name: t, text: \"${probe.xx}\"}\n";
    answers(
        &[("web.yaml", graph)],
        &[
            "web.yaml:6:23: no probe `y`; nearest: `x`",
            "web.yaml:8:24: no probe `xx`; nearest: `x`",
            "rejected: 2 problems",
        ],
    );
}

/// Secrets of templates and their sources.
#[test]
fn slips_with_secrets_are_reported() {
    let of = |value: &str| {
        format!(
            "graph: g\nsecrets: {{pw: {{file: /a}}}}\nresources:\n  file:\n  - {{name: /a, template: {{text: \"{{{{ p }}}}\"}}, values: {{p: {value}}}}}\n"
        )
    };
    answers(&[("web.yaml", &of("pw"))], &["web.yaml:5:", "of a secret: p: {secret: NAME}"]);
    answers(&[("web.yaml", &of("{secret: pww}"))], &["is not declared", "did you mean `pw`?"]);
    let argument = "graph: g\nsecrets: {pw: {file: /a}}\nresources:\n  exec:\n  - {name: a, args: [/bin/a, {secret: pw}]}\n";
    answers(&[("web.yaml", argument)], &["web.yaml:5:", "give it as `stdin: {secret: NAME}`"]);
    let path =
        "graph: g\nvars: {x: a}\nsecrets: {pw: {file: \"/a/${vars.x}\"}}\nresources: {noop: [a]}\n";
    let loaded = accepted(&[("web.yaml", path)]);
    let warning = loaded.warnings[0].to_json();
    assert!(warning["what"].as_str().unwrap().contains("in `secrets` is not evaluated"));
    assert_eq!(warning["places"][0]["line"], 3);
}

/// A label that `-l` could not select.
#[test]
fn labels_can_be_selected() {
    for label in ["\"a b\": c", "\"\": c", "\"a=b\": c", "a: \"b,c\""] {
        let text = format!("graph: g\nresources:\n  noop:\n  - {{name: a, labels: {{{label}}}}}\n");
        answers(&[("web.yaml", &text)], &["web.yaml:4:24: ", "of a label", "-l NAME=VALUE"]);
    }
    accepted(&[(
        "web.yaml",
        "graph: g\nresources: {noop: [{name: a, labels: {a.b/c: \"x y\"}}]}\n",
    )]);
}

/// A tag behind very long text is refused: minijinja counts columns in 16 bits.
#[test]
fn a_tag_beyond_the_last_column_is_refused() {
    let graph = "graph: g\nresources: {file: [{name: /a, template: a.j2}]}\n";
    let long = "x".repeat(66_000);
    let message = "a tag stands beyond column 65000: break the line: a.j2:1:65001";
    for tag in ["{{ § }}", "{{ 'a }}", "{{ 1 + }}", "{% if %}", "{{"] {
        answers(&[("web.yaml", graph), ("a.j2", &format!("{long}{tag}"))], &[message]);
    }
    let included = format!("{long}{{{{ § }}}}");
    answers(
        &[("web.yaml", graph), ("a.j2", "{% include 'b.j2' %}"), ("b.j2", &included)],
        &["a tag stands beyond column 65000"],
    );
    accepted(&[("web.yaml", graph), ("a.j2", &format!("{{{{ 1 }}}}{long}\n{{{{ 2 }}}}"))]);
}

/// A quote that ends a value too early, an open bracket beside a quoted expression, and modules in the wrong place.
#[test]
fn quotes_and_modules_name_the_line_to_write() {
    let with = |body: &str| format!("graph: g\nvars: {{x: a}}\n{body}");
    let quote = with("resources:\n  noop:\n  - {name: a, when: 'vars.x == 'a''}\n");
    answers(&[("web.yaml", &quote)], &["write `when: 'vars.x == \"a\"'"]);
    let bracket = with("resources:\n  noop: [{name: \"a${vars.x}\"}\n");
    let said = Tree::new(&[("web.yaml", &bracket)]).problems(&with_facts());
    assert!(!said.contains("quote expressions"), "{said}");
    let module = ("m/module.yaml", "module: m\nresources: {noop: [a]}\n");
    let include = with("include: m/module.yaml\nresources: {noop: [b]}\n");
    answers(&[("web.yaml", &include), module], &["modules: [{use: FOLDER, as: NAME}]"]);
    let file = with("modules: [{use: m/module.yaml, as: a}]\n");
    answers(&[("web.yaml", &file), module], &["did you mean `m`?"]);
}

/// Checks the answer to a graph with some variables.
#[track_caller]
fn answers_body(body: &str, expected: &[&str]) {
    let head =
        "graph: g\nvars: {n: 4, s: a.b, m: {a: {p: 1}}, l: [a, b], on: true, pw: {secret: x}}\n";
    answers(&[("web.yaml", &format!("{head}{body}"))], expected);
}

/// An unknown key is reported although another problem of the resource hides its fields.
#[test]
fn unknown_keys_of_wrong_resources_are_reported() {
    for (entry, expected) in [
        (
            "{name: \"${item}\", foreach: vars.l}",
            ["`item` exists only below", "write: for_each: vars.l"],
        ),
        (
            "{name: \"${item}\", loop: vars.l}",
            ["`item` exists only below", "write: for_each: vars.l"],
        ),
        ("{for_each: vars.x, nmae: a}", ["no variable `x`", "did you mean `name`?"]),
        (
            "{name: a, when: vars.x, ensure: x, metta: {}}",
            ["unknown key `metta` in noop[a]", "`meta`?"],
        ),
    ] {
        answers_body(&format!("resources:\n  noop:\n  - {entry}\n"), &expected);
    }
}

/// Expressions: each hint has the text to write.
#[test]
fn hints_of_expressions_have_the_text_to_write() {
    for (entry, expected) in [
        ("{name: a, when: facts.os.id == debian}", "a text stands in quotes: \"debian\""),
        ("{name: \"a-${env.HOME}\"}", "there is no environment: pass a value by --var NAME=VALUE"),
        ("{name: \"a-${lookup('env', 'X')}\"}", "use vars_files, --var NAME=VALUE, or a probe"),
        ("{name: \"a-${now()}\"}", "an expression has no time and no chance: use a probe"),
        ("{name: \"${each}\", for_each: vars.l}", "the item of a loop is `item`"),
        ("{name: \"${item.name}\", for_each: vars.l}", "hint: write `item`"),
        ("{name: \"${vars.l}\"}", "for_each: vars.l, name: \"${item}\""),
        ("{for_each: range(3)}", "write `[\"1\", \"2\", \"3\"]`"),
        ("{for_each: \"a, b\"}", "a list of items stands in brackets: write `[a, b]`"),
        ("{name: x, for_each: vars.l}", "give each item a name of its own: name: \"NAME-${item}\""),
        (
            "{name: \"a-${vars.pw}\"}",
            "no expression has a secret: a field takes it as {secret: NAME}",
        ),
        ("{name: a, after: noop.b}", "write noop[b]"),
        ("{name: a, notify: restart b}\n  - {name: b}", "did you mean `noop[b]`?"),
    ] {
        answers_body(&format!("resources:\n  noop:\n  - {entry}\n"), &[expected]);
    }
}

/// Templates: the engine's messages get advice.
#[test]
fn slips_in_templates_get_the_correction() {
    for (template, expected) in [
        ("{% if vars.on %}x", "add {% endif %} or {% endfor %}"),
        ("{{ vars.l | joined(',') }}", "hint: nearest: `join`"),
        ("{{ vars.s }", "close the value by }}"),
        ("{% if vars.on }x{% endif %}", "close the tag by %}"),
        (
            "{% for x in vars.l %}{% end %}",
            "a block ends with its own word: {% endif %}, {% endfor %}",
        ),
        ("{% elsif vars.on %}", "write {% elif … %}"),
    ] {
        let entry = format!("{{name: /a, template: {{text: \"{template}\"}}}}");
        answers_body(&format!("resources:\n  file:\n  - {entry}\n"), &[expected]);
    }
    let file = "resources:\n  file:\n  - {name: /a, template: \"{{ vars.s }}\"}\n";
    answers_body(file, &["this is the text of a template", "write template: {text: \"…\"}"]);
}

/// The forms of other parts of a graph.
#[test]
fn wrong_forms_get_the_correction() {
    for (body, expected) in [
        ("resources:\n  noop: a\n", "write noop: [a]"),
        ("resources:\n  file:\n  - {path: /a, content: x}\n", "write name: /a"),
        (
            "resources:\n  file:\n  - {name: /a, source: \"https://example.org/a\"}\n",
            "download it with the kind `fetch`",
        ),
        (
            "edges: [\"noop[a] -> noop[b]\"]\nresources: {noop: [a]}\n",
            "write {from: \"noop[a]\", to: \"noop[b]\"}",
        ),
        (
            "assert: [vars.n > 5]\nresources: {noop: [a]}\n",
            "write {that: vars.n > 5, message: \"…\"}",
        ),
        ("variables: {a: 1}\nresources: {noop: [a]}\n", "did you mean `vars`?"),
        ("modules: [m]\n", "write {use: m, as: NAME}"),
        ("modules: [{use: m, name: a}]\n", "did you mean `as`?"),
        ("modules: [{use: m, as: a, params: {}}]\n", "did you mean `with`?"),
        ("modules: [{module: m, as: a}]\n", "did you mean `use`?"),
    ] {
        answers_body(body, &[expected]);
    }
    answers(
        &[("web.yaml", "graph: g\nvariables: {a: 1}\nresources: {noop: [a]}\n")],
        &["did you mean `vars`?"],
    );
    answers_body("resources:\n  noop: [{name: a, meta: {timeout: 5 min}}]\n", &["hint: write 5m"]);
    let list = "graph: g\nvars:\n- a: 1\nresources: {noop: [a]}\n";
    answers(&[("web.yaml", list)], &["remove the dashes: each line is NAME: VALUE"]);
    for (params, expected) in [
        ("{p: {type: integer}}", "did you mean `int`?"),
        ("{p: {type: boolean}}", "did you mean `bool`?"),
        ("{p: {type: int, default: \"1\"}}", "remove the quotes: 1"),
        ("{p: {type: int}}", "remove the quotes: 80"),
    ] {
        let module = format!("module: m\nparams: {params}\nresources: {{noop: [a]}}\n");
        let graph = "graph: g\nmodules: [{use: m, as: a, with: {p: \"80\"}}]\n";
        answers(&[("web.yaml", graph), ("m/m.yaml", &module)], &[expected]);
    }
}
