//! Wrong graphs of the language: the first line of each answer, and its place.

use crate::language::{Tree, example, with_facts};
use steadfast::config::Options;

const HEAD: &str = "graph: g\nvars: {workers: 4, domain: example.org, prot: 1, sites: {shop: {port: 1}, blog: {port: 2, tls: true}}, names: [a, b]}\n";

/// Checks the first line of the answer to a graph, without the end of the line: the code.
#[track_caller]
fn answers(resources: &str, expected: &str) {
    let text = format!("{HEAD}{resources}");
    let problems = Tree::new(&[("web.yaml", &text)]).problems(&with_facts());
    let first = problems.lines().next().unwrap_or_default();
    assert!(first.contains(expected), "expected {expected}\nfound {problems}");
    assert!(first.starts_with("web.yaml:"), "{problems}");
    let message = first.splitn(4, ':').nth(3).unwrap_or_default();
    assert!(message.chars().count() <= 108, "too long: {message}");
}

/// Checks the first line of the answer to one resource of the kind `test`.
#[track_caller]
fn answers_field(field: &str, expected: &str) {
    answers(&format!("resources:\n  test:\n  - name: t\n    {field}\n"), expected);
}

/// LANGUAGE.md, part 6: expressions.
#[test]
fn wrong_expressions_are_explained() {
    for (field, expected) in [
        ("int: ${facts.cpu.cuont * 2}", "no fact `cpu.cuont`; nearest: `cpu.count`"),
        ("when: facts.virtualisation = \"kvm\"", "`=` is no operator; write `==`"),
        ("when: vars.workers", "a condition must be bool, this is int; write `vars.workers > 0`"),
        ("when: facts.os.version >= 9", "compares string with int"),
        ("when: ${vars.workers}", "a condition has no `${ }`: write `when: vars.workers`"),
        ("float: ${vars.domain}", "`float` wants a number, the expression is a string"),
        ("float: \"${vars.workers}/2\"", "mixed text is a string; write `${vars.workers / 2}`"),
        ("int: ${vars.wrokers}", "no variable `wrokers`; nearest: `workers`"),
        ("text: \"${vars.workers\"", "`${` without `}`"),
        ("text: \"a ${vars.names} b\"", "`${vars.names}` is a list, within text"),
        ("bool: ${vars.workers}", "`bool` wants true or false, the expression is an integer"),
        ("text: ${item}", "`item` exists only below `for_each`"),
        ("text: ${params.x}", "`params` exist only in a module"),
        ("when: vars.workers > 0 and vars.domain", "and"),
        (
            "text: ${vars.workers + 9223372036854775807}",
            "`+` gives 9223372036854775811: overflow of an int of 64 bits",
        ),
        ("when: [true, vars.domain]", "a condition must be bool, this is string"),
        ("when: {a: b}", "a condition should be an expression"),
    ] {
        answers_field(field, expected);
    }
}

/// LANGUAGE.md, part 6: what YAML makes of expressions.
#[test]
fn yaml_mistakes_in_expressions_are_explained() {
    for (field, expected) in [
        (
            "when: \"kvm\" == facts.virtualisation",
            "an expression that begins with a quote is quoted as a whole",
        ),
        ("when: facts.virtualisation == \"x #y\"", "YAML began a comment at ` #`: quote the whole"),
        ("when: !facts.container", "`!` is a YAML tag; write `not facts.container`"),
    ] {
        answers_field(field, expected);
    }
    answers(
        "resources:\n  noop:\n  - { name: a, when: facts.os.codename in [\"a\", \"b\"] }\n",
        "YAML: quote expressions with `[ ]` inside `{ }`",
    );
    answers(
        "resources:\n  test:\n  - name: a\n    texts: [${vars.domain}]\n",
        "YAML: quote expressions inside `[ ]` and `{ }`",
    );
}

/// LANGUAGE.md, part 6: loops.
#[test]
fn wrong_loops_are_explained() {
    for (entry, expected) in [
        (
            "{for_each: vars.sites, name: \"${item.value.prot}\"}",
            "items of `vars.sites` have no `prot`; they have port, tls",
        ),
        (
            "{for_each: vars.sites, name: \"${item.key}\", when: item.value.tls}",
            "item `shop` lacks `tls`, which line 5 uses",
        ),
        ("{for_each: [8081, \"8081\"]}", "two instances would be `8081`"),
        ("{for_each: vars.workers}", "`for_each` needs a list or a map, found an int"),
        ("{for_each: \"${vars.names}\"}", "a loop has no `${ }`: write `for_each: vars.names`"),
        ("{for_each: {in: [{a: 1}]}}", "a loop over a list of maps needs `key`"),
        (
            "{for_each: {in: vars.sites, item: {port: {type: int}, tls: {type: bool}}}}",
            "item `shop` lacks `tls`",
        ),
        (
            "{for_each: {in: vars.sites, item: {port: {type: string}, tls: {type: bool, default: false}}}}",
            "wants string",
        ),
        ("{for_each: probe.list}", "`for_each` must be known at load; a probe is not"),
        ("{for_each: {list: vars.names}}", "unknown key `list` in `for_each`"),
    ] {
        answers(&format!("resources:\n  noop:\n  - {entry}\n"), expected);
    }
}

/// LANGUAGE.md, part 6: identities, and texts that a shell reads.
#[test]
fn fields_refuse_what_they_cannot_take() {
    answers(
        "resources:\n  noop:\n  - name: ${probe.old_tls}\n",
        "an identity must be known at load; a probe is not",
    );
    answers(
        "resources:\n  exec:\n  - {name: e, shell: /bin/sh, cmd: \"echo ${vars.domain}\"}\n",
        "a shell would read `${vars.domain}`; pass it as `env: {DOMAIN: \"${vars.domain}\"}`",
    );
    answers(
        "resources:\n  file:\n  - {name: f, path: \"/tmp/${probe.a}\", content: a}\n",
        "`path` must be known at load; a probe is not",
    );
}

/// LANGUAGE.md, part 6: modules and includes.
#[test]
fn wrong_modules_are_explained() {
    let mut files = example();
    let text = files[0].1.replace("shop/file[vhost]", "shop/file[key]");
    files[0].1 = &text;
    let problems = Tree::new(&files).problems(&with_facts());
    assert!(
        problems.contains("`key` is not exported by module `site`; exports: conf"),
        "{problems}"
    );
    assert!(problems.contains("exports: {NAME: \"file[key]\"}"), "{problems}");

    let cycle = [
        ("web.yaml", "graph: g\nmodules: [{use: m, as: a}]\n"),
        ("m/m.yaml", "module: m\nmodules: [{use: ../m, as: b}]\n"),
    ];
    let problems = Tree::new(&cycle).problems(&with_facts());
    assert!(problems.contains("include cycle: m → m"), "{problems}");
    assert!(problems.contains("in module m (a), used at web.yaml:2:"), "{problems}");

    let cycle = [("web.yaml", "graph: g\ninclude: a.yaml\n"), ("a.yaml", "include: web.yaml\n")];
    let problems = Tree::new(&cycle).problems(&with_facts());
    assert!(problems.contains("include cycle: web.yaml → a.yaml → web.yaml"), "{problems}");

    let module = "module: m\nparams: {port: {type: int, min: 1}}\nresources: {noop: [a]}\n";
    for (with, expected) in [
        ("", "module `m` (a) lacks `port`"),
        (", with: {port: x}", "`port` of module `m` (a) wants int, got a string"),
        (", with: {port: 0}", "wants at least 1, got 0"),
        (", with: {prot: 1}", "the module has no param `prot`"),
        (", with: {port: 1}, wehn: true", "unknown key `wehn`"),
    ] {
        let text = format!("graph: g\nmodules: [{{use: m, as: a{with}}}]\n");
        let problems =
            Tree::new(&[("web.yaml", &text), ("m/m.yaml", module)]).problems(&with_facts());
        let first = problems.lines().next().unwrap_or_default();
        assert!(first.contains(expected), "expected {expected}\nfound {problems}");
    }
    for (text, expected) in [
        ("graph: g\nmodules: [{use: none, as: a}]\n", "`none` is no module"),
        ("graph: g\nmodules: [{as: a}]\n", "a use of a module needs `use`"),
        ("graph: g\nmodules: [{use: m}]\n", "a use of a module needs `as`"),
        (
            "graph: g\nmodules: [{use: m, as: a/b, with: {port: 1}}]\n",
            "cannot be the name of an instance",
        ),
        (
            "graph: g\nmodules: [{use: m, as: a, with: {port: 1}}, {use: m, as: a, with: {port: 1}}]\n",
            "two uses of modules are named `a`",
        ),
        ("graph: g\ninclude: none.yaml\n", "no such file: `none.yaml`"),
        ("graph: g\nvars_files: [none.yaml]\n", "no such file: `none.yaml`"),
        (
            "graph: g\nvars: {a: \"${vars.b}\", b: \"${vars.a}\"}\n",
            "variables use each other: a → b → a",
        ),
        (
            "graph: g\nvars: {a: 1}\nassert: [{that: vars.a > 1, message: a is too small}]\n",
            "a is too small",
        ),
        ("graph: g\nwhen: true\n", "unknown key `when`"),
    ] {
        let problems =
            Tree::new(&[("web.yaml", text), ("m/m.yaml", module)]).problems(&with_facts());
        let first = problems.lines().next().unwrap_or_default();
        assert!(first.contains(expected), "expected {expected}\nfound {problems}");
    }
}

/// A module sees its parameters and facts only; a problem in it names the use.
#[test]
fn problems_in_modules_name_the_use() {
    let web = "graph: g\nvars: {x: 1}\nmodules:\n- {use: m, for_each: [shop], with: {n: 1}}\n";
    for (module, expected) in [
        (
            "resources: {noop: [{name: \"a${vars.x}\"}]}\n",
            "a module sees its params and facts only",
        ),
        ("resources: {noop: [{name: \"a${params.m}\"}]}\n", "no parameter `m`; nearest: `n`"),
        ("vars: {a: 1}\n", "unknown key `vars`"),
        (
            "resources: {file: [{name: /a, content: {secret: x}}]}\n",
            "a module gets a secret as a parameter",
        ),
        ("resources: {fiel: [{name: /a}]}\n", "unknown kind `fiel`"),
        (
            "resources: {noop: [{name: a, after: [\"noop[b]\"]}]}\n",
            "the graph has no resource `shop/noop[b]`",
        ),
    ] {
        let module = format!("module: m\nparams: {{n: {{type: int}}}}\n{module}");
        let problems =
            Tree::new(&[("web.yaml", web), ("m/m.yaml", &module)]).problems(&with_facts());
        let first = problems.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("m/m.yaml:3:") && first.contains(expected),
            "expected {expected}\nfound {problems}"
        );
        let used = problems.contains("in module m (shop), used at web.yaml:4:3")
            || expected.starts_with("unknown key");
        assert!(used, "{problems}");
    }
}

/// LANGUAGE.md, part 6: variables of the command line.
#[test]
fn wrong_variables_are_explained() {
    let tree =
        Tree::new(&[("web.yaml", "graph: g\n\n\n\nvars: {workers: 4}\nresources: {noop: [a]}\n")]);
    let with = |name: &str, value: &str| Options {
        vars: vec![(name.to_owned(), value.to_owned())],
        ..with_facts()
    };
    let problems = tree.problems(&with("workers", "abc"));
    assert!(problems.contains("`workers` is an int (web.yaml:5), got \"abc\""), "{problems}");
    let problems = tree.problems(&with("wokers", "1"));
    assert!(problems.contains("--var wokers: the graph has no such variable"), "{problems}");
    assert!(problems.contains("did you mean `workers`?"), "{problems}");
}

/// LANGUAGE.md, part 6: a template without an end.
#[test]
fn a_template_runs_out_of_fuel() {
    let mut files = example();
    files[3].1 = "{% for a in range(9000) %}{% for b in range(9000) %}x{% endfor %}{% endfor %}\n";
    let problems = Tree::new(&files).problems(&with_facts());
    assert!(problems.contains("out of fuel: vhost.conf.j2:1:"), "{problems}");
    assert!(problems.contains("in module site (blog), used at web.yaml:29:5"), "{problems}");
}

/// The words of other tools: each hint shows the line as it is written here.
#[test]
fn words_of_other_tools_get_hints() {
    for (text, hint) in [
        ("file:\n  - {name: /a, src: x}", "source: x"),
        ("file:\n  - {name: /a, dest: x}", "path: /absolute/path"),
        ("file:\n  - {name: /a, ensure: present}", "state: exists"),
        ("svc:\n  - {name: a, enabled: true}", "startup: enabled"),
        ("svc:\n  - {name: a, running: true}", "state: running"),
        ("exec:\n  - {name: a, command: x}", "cmd: x"),
        ("exec:\n  - {name: a, unless: x}", "nifcmd: x"),
        ("exec:\n  - {name: a, onlyif: x}", "ifcmd: x"),
        ("exec:\n  - {name: a, become: true}", "user: root"),
        ("noop:\n  - {name: a, depends_on: x}", "after: [\"kind[name]\"]"),
        ("noop:\n  - {name: a, require: x}", "after: [\"kind[name]\"]"),
        ("noop:\n  - {name: a, with_items: x}", "for_each: vars.x"),
        ("package:\n  - {name: a}", "pkg:"),
        ("service:\n  - {name: a}", "svc:"),
    ] {
        let text = format!("graph: g\nresources:\n  {text}\n");
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&crate::options());
        assert!(problems.contains(&format!("hint: write: {hint}")), "{text}: {problems}");
    }
}
