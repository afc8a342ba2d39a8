//! All problems of a graph in one run: one problem hides no other.

use crate::language::{Tree, accepted, with_facts};
use steadfast::config::{self, KindSet, Problem};

#[track_caller]
fn problems(files: &[(&str, &str)]) -> String {
    Tree::new(files).problems(&with_facts())
}

/// Wrong metaparameters of a use are reported once, at the use.
#[test]
fn wrong_meta_of_a_use_is_reported_once() {
    let module =
        ("m/m.yaml", "module: m\nresources: {noop: [a, b, {name: c, meta: {retry: 1}}]}\n");
    for (meta, expected) in [
        ("{retyr: 1}", "web.yaml:3:26: unknown key `retyr` in `meta` of a use of a module"),
        ("{retry: x}", "web.yaml:3:33: `retry` of `meta` of a use of a module should be a"),
        ("{retry: -2}", "web.yaml:3:33: `retry` should be -1 (unlimited) or at least 0, found -2"),
        ("{sema: [\"a:0\"]}", "web.yaml:3:32: semaphore `a:0` should have a count"),
        ("{on_conflict: no}", "web.yaml:3:39: `on_conflict` should be one of"),
        ("[retry]", "web.yaml:3:25: `meta` of a use of a module should be a map of metaparameters"),
    ] {
        let graph = format!("graph: g\nmodules:\n- {{use: m, as: x, meta: {meta}}}\n");
        let said = problems(&[("web.yaml", &graph), module]);
        assert!(said.contains(expected), "expected {expected}\nfound {said}");
        assert!(said.contains("the graph was rejected: 1 problem "), "{said}");
        let looped = graph.replace("as: x", "for_each: [x, y]");
        let said = problems(&[("web.yaml", &looped), module]);
        assert!(said.contains("the graph was rejected: 1 problem "), "{said}");
    }
    let both = "graph: g\nmodules:\n- {use: m, as: x, with: {p: 1}, meta: {retyr: 1, retry: x}}\n";
    let said = problems(&[("web.yaml", both), module]);
    assert!(said.contains("the graph was rejected: 3 problems"), "{said}");
    let right = "graph: g\nmodules:\n- {use: m, as: x, meta: {retry: 3, noop: }}\n";
    let loaded = accepted(&[("web.yaml", right), module]);
    let retries: Vec<_> = loaded.vertices.iter().map(|vertex| vertex.meta.retry).collect();
    assert_eq!(retries, [Some(3), Some(3), Some(1)]);
}

/// Each condition of a list is checked.
#[test]
fn all_conditions_of_a_list_are_checked() {
    let said = problems(&[(
        "web.yaml",
        "graph: g\nvars: {n: 1}\nresources:\n  noop:\n  - {name: a, when: [vars.n, vars.x, true, vars.n > \"a\"]}\n",
    )]);
    assert!(said.contains("the graph was rejected: 3 problems"), "{said}");
}

/// A wrong case of a module fails with its problems, and the other cases run.
#[test]
fn wrong_cases_do_not_hide_others() {
    let tree = Tree::new(&[
        (
            "m/m.yaml",
            "module: m\nparams: {n: {type: int}}\nresources: {noop: [\"a${params.n}\"]}\n",
        ),
        ("m/cases/1.yaml", "params: {n: 2}\nresuorces: {}\nfact: {}\n"),
        (
            "m/cases/2.yaml",
            "params: [n]\nfacts: x\nresources: [\"noop[a]\"]\ninactive: {}\nerror: 5\n",
        ),
        ("m/cases/3.yaml", "params: {n: 3}\nresources: {\"noop[a3]\": {}}\n"),
        ("m/cases/4.yaml", "params: {n: 3\n"),
        ("m/cases/5.yaml", ""),
        ("m/cases/6.yaml", "params: {n: 3}\nresources: {\"noop[a3]\": x}\n"),
        (
            "m/cases/7.yaml",
            "params: {n: 3}\nfacts: {os: {id: [{}]}, \"\": 1}\nresources:\n  noop[a3]:\n",
        ),
        ("m/cases/8.yaml", "params: !x {n: 3}\n"),
    ]);
    let results = config::test_module(&tree.path("m"), &KindSet::of_this_build()).unwrap();
    let said = |number: usize| {
        let folder = format!("{}/", tree.path("").display().to_string().trim_end_matches('/'));
        results[number].differences.join("\n").replace(&folder, "")
    };
    for (number, expected) in [
        (
            0,
            &[
                "m/cases/1.yaml:2:1: unknown key `resuorces` in a case",
                "did you mean `resources`?",
                "m/cases/1.yaml:3:1: unknown key `fact`",
            ][..],
        ),
        (
            1,
            &[
                "2.yaml:1:9: `params` of a case",
                "2.yaml:2:8: `facts`",
                "2.yaml:3:12: `resources`",
                "2.yaml:4:11: `inactive`",
                "2.yaml:5:8: `error`",
            ],
        ),
        (3, &["m/cases/4.yaml:"]),
        (4, &["m/cases/5.yaml: the case is empty"]),
        (5, &["m/cases/6.yaml:2:25: the fields of `noop[a3]` should be a map"]),
        (7, &["m/cases/8.yaml:1:9: YAML tags are not supported"]),
    ] {
        for text in expected {
            assert!(said(number).contains(text), "expected {text}\nfound {}", said(number));
        }
    }
    assert_eq!(said(2), "");
}

/// A comparison that never holds is a warning with the nearest value, at each of its places.
#[test]
fn comparisons_that_never_hold_are_warnings() {
    let graph = "graph: g\nvars: {f: \"${facts.os.id == 'Ubuntu'}\"}\nresources:\n  noop:\n  - {name: a, when: facts.os.family == \"Debian\"}\n  - {name: b, when: 'facts.os.family in [\"RedHat\", \"debian\"]'}\n  - {name: c, when: facts.os.family == \"Debian\"}\n  - {name: d, when: (facts.os.codename | lower) == \"Trixie\"}\n  - {name: e, when: facts.package_manager != \"apt-get\"}\n  - {name: \"f-${item}\", for_each: [x, y], when: facts.kernel.name == \"linux\"}\n  - {name: g, when: facts.os.id == \"void\" or facts.os.codename == \"Core\"}\n  - {name: h, when: vars.f}\n";
    let tree = Tree::new(&[("web.yaml", graph)]);
    let facts = serde_json::json!({
        "os": {"id": "debian", "family": "debian", "codename": "trixie"},
        "package_manager": "apt", "kernel": {"name": "Linux"},
    });
    let facts = std::sync::Arc::new(steadfast::expressions::Value::from_json(facts).unwrap());
    let options = config::Options { facts: Some(facts), ..crate::options() };
    let loaded = tree.load(&options).unwrap();
    let folder = format!("{}/", tree.path("").display().to_string().trim_end_matches('/'));
    let said: Vec<String> =
        loaded.warnings.iter().map(|it| it.to_string().replace(&folder, "")).collect();
    for (warning, expected) in said.iter().zip([
        "web.yaml:2:29: warning: `facts.os.id` is never \"Ubuntu\"",
        "web.yaml:5:40: warning: `facts.os.family` is never \"Debian\"",
        "web.yaml:6:42: warning: `facts.os.family` is never \"RedHat\"",
        "web.yaml:7:40: warning: `facts.os.family` is never \"Debian\"",
        "web.yaml:8:52: warning: `facts.os.codename | lower` is never \"Trixie\"",
        "web.yaml:9:46: warning: `facts.package_manager` is never \"apt-get\"",
        "web.yaml:10:70: warning: `facts.kernel.name` is never \"linux\"",
    ]) {
        assert!(warning.starts_with(expected), "expected {expected}\nfound {warning}");
    }
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(said[1].contains("hint: write \"debian\"; values: debian, redhat"), "{}", said[1]);
}

/// A name in a list of texts is no value; a text in quotes stays a text.
#[test]
fn names_in_lists_of_texts_are_reported() {
    let with = |body: &str| {
        format!("graph: g\nvars: {{a: x, b: y, l: [p], m: [q]}}\nresources:\n  noop:\n  - {body}\n")
    };
    for (body, expected) in [
        (
            "{for_each: [vars.a, vars.b]}",
            &[
                "web.yaml:5:17: the item `vars.a` is a text, no expression",
                "web.yaml:5:25: the item `vars.b`",
                "hint: write \"${vars.a}\"",
            ][..],
        ),
        ("{for_each: [vars.l, vars.m]}", &["hint: write for_each: vars.l + vars.m"]),
        ("{for_each: {in: [facts.os.id]}}", &["the item `facts.os.id` is a text"]),
        ("{for_each: [vars.l.x, a]}", &["the item `vars.l.x` is a text"]),
    ] {
        let said = problems(&[("web.yaml", &with(body))]);
        for text in expected {
            assert!(said.contains(text), "expected {text}\nfound {said}");
        }
    }
    let loaded = accepted(&[("web.yaml", &with("{for_each: [\"vars.a\", vars.none, other.a]}"))]);
    assert_eq!(loaded.vertices.len(), 3);
    let text = with("a\n  test: [{name: t, text: vars.a, texts: [facts.os.id, \"vars.b\"]}]");
    let loaded = accepted(&[("web.yaml", &text)]);
    let said: Vec<String> = loaded.warnings.iter().map(Problem::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains(":6:26: warning: `vars.a` in `text` is a text, no expression"),
        "{said:?}"
    );
    assert!(said[1].contains("`facts.os.id` in `texts` is a text"), "{said:?}");
    let said = problems(&[
        ("web.yaml", "graph: g\nvars: {n: 1}\nmodules: [{use: m, as: a, with: {p: vars.n}}]\n"),
        ("m/m.yaml", "module: m\nparams: {p: {type: int}}\nresources: {noop: [a]}\n"),
    ]);
    assert!(said.contains("warning: `vars.n` is a text, no expression"), "{said}");
}

/// A condition of the wrong type names the value to write.
#[test]
fn wrong_types_of_conditions_name_the_correction() {
    for (when, expected) in [
        ("[]", "web.yaml:4:21: a list of conditions needs at least one condition"),
        ("1", "a condition must be bool, `1` is not; write `true`"),
        ("0", "a condition must be bool, `0` is not; write `false`"),
        ("'\"yes\"'", "a condition must be bool, `\"yes\"` is not; write `true`"),
        ("[[true]]", "hint: a list of conditions has no list in it"),
        ("", "write true, or an expression such as `vars.tls`, behind the colon"),
        ("[true, ~]", "write true, or an expression such as `vars.tls`, behind the colon"),
    ] {
        let graph = format!("graph: g\nresources:\n  noop:\n  - {{name: a, when: {when}}}\n");
        let said = problems(&[("web.yaml", &graph)]);
        assert!(said.contains(expected), "expected {expected}\nfound {said}");
    }
}

/// A broken file of variables, or a broken included file, gives its own problem, and none for the variables that it
/// may define.
#[test]
fn users_of_unread_variables_are_silent() {
    let with = |head: &str| {
        format!("graph: g\n{head}\nresources:\n  noop: [\"a${{vars.x}}\", \"b${{vars.y}}\"]\n")
    };
    for (head, broken) in
        [("vars_files: [v.yaml]", "x: 1\n y: 2\n"), ("include: [v.yaml]", "vars: {x: [}\n")]
    {
        let said = problems(&[("web.yaml", &with(head)), ("v.yaml", broken)]);
        assert!(said.contains("v.yaml:"), "{said}");
        assert!(!said.contains("no such file") && !said.contains("no variable"), "{said}");
        assert!(said.contains("the graph was rejected: 1 problem "), "{said}");
    }
    let graph = "graph: g\nvars_files: [v.yaml]\nresources: {noop: [a]}\n";
    let loaded = accepted(&[("web.yaml", graph), ("v.yaml", "vars: {x: 1}\n")]);
    let said = loaded.warnings[0].to_string();
    assert!(said.contains("without `vars:`"), "{said}");
}

/// Wrong resources, variables, templates, uses and edges are all named in one run.
#[test]
fn problems_of_all_parts_are_reported_in_one_run() {
    let said = problems(&[
        (
            "web.yaml",
            "graph: g\nvars: {a: \"${facts.oss}\", b: 1}\nassert: [{that: vars.b > 5, message: too small}]\nresources:\n  noop:\n  - {name: x, when: [], after: [\"noop[none]\"]}\n  - {name: y, after: [\"noop[none]\"], metta: 1}\n  file:\n  - {name: /a, template: {text: \"{{ vars.c }}\"}}\n  - {name: /b, mode: 644, content: x}\n  nothing: [a]\nmodules:\n- {use: m, wehn: true, as: \"a b\", meta: {retyr: 1}, with: {q: 1}}\n- {use: m, as: c, with: {}}\n",
        ),
        (
            "m/m.yaml",
            "module: m\nparams: {p: {type: secret}, s: {type: secret}}\nresources: {noop: [a]}\n",
        ),
    ]);
    for message in [
        "no fact `oss`",
        "too small",
        "a list of conditions needs at least one condition",
        "unknown key `metta` in noop[y]",
        "no variable `c`",
        "644 is not a mode",
        "unknown kind `nothing`",
        "unknown key `wehn`",
        "`a b` cannot be the name of an instance",
        "unknown key `retyr`",
        "has no param `q`",
        "module `m` (c) lacks `p`",
        "module `m` (c) lacks `s`",
    ] {
        assert!(said.contains(message), "{message}: {said}");
    }
    let said = problems(&[
        ("web.yaml", "graph: g\nmodules: [{use: m, as: a}]\n"),
        ("m/a.yaml", "module: m\nparams: {p: {type: x}}\n"),
        ("m/b.yaml", "resources: {noop: [a]\n"),
        ("m/c.yaml", "params: {q: {type: y}}\n"),
    ]);
    for place in ["m/a.yaml:2:", "m/b.yaml:", "m/c.yaml:1:"] {
        assert!(said.contains(place), "{place}: {said}");
    }
}

/// Texts that look like expressions, and commands that look like those of a shell, are warnings.
#[test]
fn texts_that_look_like_expressions_are_warnings() {
    let graph = "graph: g\nvars: {s: x}\nresources:\n  file:\n  - {name: /a, content: \"{{ vars.s }}\"}\n  - {name: /b, content: \"{{ other }} {{ .Values.a }}\"}\n  - {name: /c, template: {text: \"${vars.s} ${HOME}\"}}\n  exec:\n  - {name: e, cmd: \"echo ${vars.s} | tee /x\"}\n";
    let loaded = accepted(&[("web.yaml", graph)]);
    let said: Vec<String> = loaded.warnings.iter().map(Problem::to_string).collect();
    for (warning, expected) in said.iter().zip([
        ":5:25: warning: `{{ vars.s }}` in `content` is copied as it is",
        ":7:26: warning: `${vars.s}` in a template is copied as it is",
        ":9:20: warning: `cmd` is not run by a shell: `|` is passed literally",
    ]) {
        assert!(warning.contains(expected), "expected {expected}\nfound {warning}");
    }
    assert_eq!(said.len(), 3, "{said:?}");
}

/// The column of a problem counts characters, in a long line too.
#[test]
fn columns_in_long_lines_count_characters() {
    let names: Vec<String> = (0..3000).map(|n| format!("ä€{n}")).collect();
    let graph = format!(
        "{{graph: g, resources: {{noop: [{}, {{name: x, metta: 1}}]}}}}\n",
        names.join(", ")
    );
    let before = graph.split("metta").next().unwrap_or_default();
    let said = problems(&[("web.yaml", &graph)]);
    let expected = format!("web.yaml:1:{}: unknown key `metta`", before.chars().count() + 1);
    assert!(said.contains(&expected), "expected {expected}\nfound {said}");
}
