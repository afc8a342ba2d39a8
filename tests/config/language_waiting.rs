//! Resources whose condition waits for a probe: they are checked like active ones, so that no answer rejects the graph.

use crate::language::{Tree, accepted, with_facts};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast::config::Options;
use steadfast::expressions::Value;

const PROBE: &str = "  probe:\n  - {name: load, args: [/bin/true], value: {type: int}}\n  - {name: word, args: [/bin/true], type: text}\n";

fn options(answer: Option<i64>) -> Options {
    let answer = answer.map(|load| {
        let load = ("load".to_owned(), Value::Int(load));
        Arc::new(BTreeMap::from([load, ("word".to_owned(), Value::Text("x".to_owned()))]))
    });
    let kinds = steadfast::config::KindSet::of_this_build();
    Options { probes: answer, kinds, ..with_facts() }
}

/// Returns a graph with one resource of a kind.
fn graph(kind: &str, resource: &str) -> String {
    format!(
        "graph: g\nvars: {{n: \"${{probe.load}}\", port: 80, on: false}}\nresources:\n{PROBE}  {kind}: [{{{resource}}}]\n"
    )
}

/// Each problem is reported before the answer, as after it.
#[test]
fn a_condition_that_waits_hides_no_problem() {
    for (kind, fields, message) in [
        ("file", "content: x, mdoe: \"0644\"", "unknown key `mdoe`"),
        ("file", "content: x, mode: \"9999\"", "mode"),
        ("file", "content: x, owner: \"${vars.nope}\"", "no variable `nope`"),
        ("file", "content: x, path: rel", "path"),
        ("file", "content: {secret: nope}", "the secret that `content` names is not declared"),
        ("file", "recv: {content: \"value[nope].text\"}", "value[nope]"),
        ("file", "template: nope.j2", "nope.j2"),
        ("file", "template: {text: \"{% if %}\"}", "template:1"),
        ("file", "template: {text: \"{{ vars.nope }}\"}", "no variable `nope`"),
        ("file", "template: {text: \"{{ vars.n }}\"}", "the template uses `vars.n`"),
        ("file", "template: {text: \"{{ b }}\"}, with: {a: \"${vars.n}\"}", "unknown name `b`"),
        ("file", "content: x, meta: {retry: abc}", "`retry`"),
        ("file", "content: x, meta: {sema: [\"a:x\"]}", "semaphore"),
        ("exec", "args: [a], meta: {on_remove: delete}", "no object to delete"),
        ("fetch", "mode: \"0644\"", "fetch[/srv/a]: "),
        ("fetch", "mode: \"${probe.word}\"", "fetch[/srv/a]: "),
        ("exec", "args: [\"${probe.word + 1}\"]", "string"),
        ("exec", "cmd: \"echo ${probe.word} ${vars.nope}\"", "no variable `nope`"),
    ] {
        for when in ["probe.load > 1", "not (probe.load > 1)", "vars.n > 1"] {
            let text = graph(kind, &format!("name: /srv/a, {fields}, when: {when}"));
            let tree = Tree::new(&[("web.yaml", &text)]);
            assert!(tree.load(&options(None)).is_err(), "accepted: {text}");
            let problems = tree.problems(&options(None));
            assert!(problems.contains(message), "{fields}: {problems}");
            assert!(problems.contains("rejected: "), "{fields}: {problems}");
        }
        // The same problem is that of the active resource.
        let text = graph(kind, &format!("name: /srv/a, {fields}, when: probe.load > 1"));
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&options(Some(5)));
        assert!(problems.contains(message), "{fields}: {problems}");
    }
}

/// A template whose `with` waits: what no value makes right is reported before the answer, as after it.
#[test]
fn a_template_that_waits_hides_no_problem() {
    let with = "template: {text: \"{{ a }} {{ k }}\"}, with: {a: \"${probe.load}\"}, values";
    for (fields, message) in [
        (
            "template: {text: \"{{ a }}\"}, with: {a: \"${probe.load}\"}, source: y".to_owned(),
            "source",
        ),
        (
            "path: /srv/d/, template: {text: \"{{ a }}\"}, with: {a: \"${probe.load}\"}".to_owned(),
            "directory",
        ),
        (
            "template: {text: \"{{ a }}\"}, with: {a: \"${probe.load}\"}, fragments: /srv/f"
                .to_owned(),
            "fragments",
        ),
        (
            "template: {text: \"{{ a | nofilter }}\"}, with: {a: \"${probe.load}\"}".to_owned(),
            "nofilter",
        ),
        (
            "template: {text: \"{% if a is notest %}x{% endif %}\"}, with: {a: \"${probe.word}\"}"
                .to_owned(),
            "notest",
        ),
        (format!("{with}: {{k: {{from: \"exec[nope]\", key: stdout}}}}"), "exec[nope]"),
        (format!("{with}: {{k: {{from: \"probe[word]\", key: nokey}}}}"), "sends no `nokey`"),
        (
            format!("{with}: {{k: {{secret: nope}}}}"),
            "the secret that `content` names is not declared",
        ),
    ] {
        for when in ["", ", when: probe.load > 1"] {
            let text = graph("file", &format!("name: /srv/a, {fields}{when}"));
            let tree = Tree::new(&[("web.yaml", &text)]);
            assert!(tree.load(&options(None)).is_err(), "accepted: {text}");
            let (before, after) = (tree.problems(&options(None)), tree.problems(&options(Some(5))));
            assert!(before.contains(message), "{fields}: {before}");
            assert!(after.contains(message), "{fields}: {after}");
        }
    }
    // The value may be right where a stand-in is not.
    for text in
        ["{{ [7][a - 1] }}", "{{ [7][a + 9] }}", "{% if a > 5 %}{{ a | nofilter }}{% endif %}"]
    {
        let fields = format!("template: {{text: \"{text}\"}}, with: {{a: \"${{probe.load}}\"}}");
        assert_eq!(
            tree_of(&graph("file", &format!("name: /srv/a, {fields}")), None).inactive.len(),
            1
        );
    }
    let right = "template: {text: \"{{ a }} {{ k }}\"}, with: {a: \"${probe.load}\"}, values: {k: \"probe[word].output\"}";
    let text = graph("file", &format!("name: /srv/a, {right}, when: probe.load > 1"));
    assert_eq!(tree_of(&text, None).inactive.len(), 1);
    assert_eq!(tree_of(&text, Some(5)).inactive.len(), 0);
    let tree = Tree::new(&[("web.yaml", &text)]);
    let printed = steadfast::config::expanded_text(&[tree.path("web.yaml")], &options(None));
    let printed = printed.unwrap_or_else(|it| panic!("{}", it.with_source()));
    assert_eq!(tree_of(&printed, None).inactive.len(), 1, "{printed}");
}

/// A value of `with` may wait as a part of a map or list.
#[test]
fn a_part_of_a_template_value_waits() {
    let wait = "template: {text: \"{{ m.a }} {{ l[1] }}\"}, with: {m: {a: \"${probe.load}\"}, l: [1, \"${probe.load}\"]}";
    let text = graph("file", &format!("name: /srv/a, {wait}"));
    assert_eq!(tree_of(&text, None).inactive.len(), 1);
    let answered = tree_of(&text, Some(5)).vertices.last().unwrap().definition;
    let written = graph("file", "name: /srv/a, content: \"5 5\"");
    assert_eq!(answered, tree_of(&written, Some(5)).vertices.last().unwrap().definition);
}

/// A default does not stand for a sender that waits for a probe: the next answer would change the host again.
#[test]
fn a_receiver_with_a_default_waits_for_the_answer() {
    for (sender, waits) in [
        ("args: [/bin/true], when: probe.load > 1", true),
        ("args: [\"/bin/${probe.word}\"]", true),
        ("args: [/bin/true], when: false", false),
        ("args: [/bin/true], when: probe.load > 1 and 1 > 2", false),
    ] {
        let received = "recv: {content: {from: \"exec[v]\", key: output, default: d}}";
        let files = graph("file", &format!("name: /srv/a, {received}"));
        let text = format!("{files}  exec: [{{name: v, {sender}}}]\n");
        let inactive: Vec<String> =
            tree_of(&text, None).inactive.iter().map(ToString::to_string).collect();
        assert_eq!(inactive.len(), if waits { 2 } else { 1 }, "{sender}: {inactive:?}");
    }
    // A probe that is inactive never answers.
    let silent = graph(
        "file",
        "name: /srv/a, recv: {content: {from: \"exec[v]\", key: output, default: d}}",
    )
    .replace("{name: load,", "{name: load, when: false,")
        + "  exec: [{name: v, args: [/bin/true], when: probe.load > 1}]\n";
    let loaded = tree_of(&silent, None);
    assert!(
        loaded.inactive.iter().all(|it| &*it.identity != "file[/srv/a]"),
        "{:?}",
        loaded.inactive
    );
}

/// A right resource is accepted, and stays inactive until the answer.
#[test]
fn a_right_resource_waits_for_its_condition() {
    for (kind, fields) in [
        ("file", "content: x, mode: \"0644\""),
        ("file", "template: {text: \"{{ a }} {{ vars.port }}\"}, with: {a: \"${vars.n}\"}"),
        (
            "file",
            "template: {text: \"{{ a }}\"}, with: {a: \"${probe.word}\"}, mode: \"${probe.word}\"",
        ),
        ("svc", "state: \"${probe.word}\""),
        ("exec", "args: [echo, \"${probe.word}\"]"),
        ("line", "path: /srv/a, line: \"${probe.word}\""),
    ] {
        let text = graph(kind, &format!("name: /srv/a, {fields}, when: probe.load > 1"));
        let text = text.replace("/srv/a, state", "a.service, state");
        let tree = Tree::new(&[("web.yaml", &text)]);
        let loaded = tree.load(&options(None)).unwrap_or_else(|it| panic!("{}", it.with_source()));
        let shown: Vec<String> = loaded.inactive.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["unknown until probe[load]"], "{fields}");
    }
    let loaded = tree_of(&graph("file", "name: /srv/a, content: x, when: probe.load > 1"), Some(5));
    assert_eq!(loaded.inactive.len(), 0);
}

#[track_caller]
fn tree_of(text: &str, answer: Option<i64>) -> steadfast::config::LoadedGraph {
    let tree = Tree::new(&[("web.yaml", text)]);
    tree.load(&options(answer)).unwrap_or_else(|it| panic!("{}", it.with_source()))
}

/// A fact or variable that is false keeps the resource inactive whatever the probe answers: its fields are not read.
#[test]
fn a_false_part_of_a_condition_wins() {
    for when in [
        "[probe.load > 1, vars.on]",
        "[vars.on, probe.load > 1]",
        "probe.load > 1 and vars.on",
        "vars.on and (probe.load > 1 or vars.n > 2)",
    ] {
        let text = graph("file", &format!("name: /srv/a, mode: \"9999\", when: {when}"));
        let loaded = tree_of(&text, None);
        assert!(loaded.inactive[0].unknown_until.is_none(), "{when}: {}", loaded.inactive[0]);
    }
    let text = graph("file", "name: /srv/a, mode: \"9999\", when: probe.load > 1 or vars.on");
    assert!(Tree::new(&[("web.yaml", &text)]).problems(&options(None)).contains("mode"));
}

/// A part that is known decides alone, wherever it stands: the fields that it guards are not read.
#[test]
fn a_part_that_decides_guards_the_fields() {
    let load = |vars: &str, when: &str, answer: Option<i64>| {
        let text = format!(
            "graph: g\nvars: {{off: false, on: true, {vars}}}\nresources:\n{PROBE}  file: [{{name: /srv/a, content: x, owner: \"${{facts.local.role.name}}\", when: {when}}}]\n"
        );
        let mut facts = (*crate::language::facts()).clone();
        if let Value::Map(all) = &mut facts {
            all.insert("local".to_owned(), Value::Map(BTreeMap::new().into()));
        }
        let options = Options { facts: Some(Arc::new(facts)), ..options(answer) };
        Tree::new(&[("web.yaml", &text)]).load(&options)
    };
    let role = "probe.load > 1 and 'role' in facts.local";
    for (vars, when) in [
        (format!("w: \"${{{role}}}\""), "vars.w".to_owned()),
        (format!("w: {{tls: \"${{{role}}}\"}}"), "vars.w.tls".to_owned()),
        ("w: \"${vars.off and probe.load > 1}\"".to_owned(), "vars.w".to_owned()),
        (String::new(), format!("({role}) or false")),
        (String::new(), "probe.load > 1 if 'role' in facts.local else false".to_owned()),
        (String::new(), "('role' in facts.local) if probe.load > 1 else vars.off".to_owned()),
        (String::new(), "not (probe.load > 1 or 'role' not in facts.local)".to_owned()),
        (String::new(), "not ('role' not in facts.local or probe.load > 1)".to_owned()),
    ] {
        for answer in [None, Some(5)] {
            let loaded = load(&vars, &when, answer);
            let loaded = loaded.unwrap_or_else(|it| panic!("{when}: {}", it.with_source()));
            assert!(loaded.inactive[0].unknown_until.is_none(), "{when}: {}", loaded.inactive[0]);
        }
    }
    for when in ["(probe.load > 1 and vars.on) or false", "not (probe.load > 1 or vars.off)"] {
        let rejected = load("", when, None).unwrap_err().with_source();
        assert!(rejected.contains("local"), "{when}: {rejected}");
    }
}

/// A choice whose condition is known needs the chosen value alone, of any type and within a comparison.
#[test]
fn a_known_choice_does_not_wait() {
    for (fields, when) in [
        ("owner: \"${probe.word if vars.on else 'root'}\"", "true"),
        ("content: x", "(probe.word if vars.on else 'a') == 'a'"),
        ("content: x", "('a' if not vars.on else (probe.word if vars.on else 'b')) == 'a'"),
        ("owner: \"${'roo' ~ (probe.word if vars.on else 't')}\"", "true"),
    ] {
        let text = graph("file", &format!("name: /srv/a, {fields}, when: \"{when}\""));
        let text = text.replace(&format!("when: \"{when}\""), &format!("when: {when:?}"));
        let loaded = tree_of(&text, None);
        assert_eq!(loaded.inactive.len(), 0, "{fields} {when}: {:?}", loaded.inactive.first());
    }
    let waits = graph(
        "file",
        "name: /srv/a, content: x, when: (probe.word if vars.port == 80 else 'a') == 'a'",
    );
    assert_eq!(tree_of(&waits, None).inactive.len(), 1);
}

/// A part that fails with the answer does not undo what the other parts decide: before the answer they decided, too.
#[test]
fn a_part_that_fails_does_not_decide() {
    for when in [
        "10 // (probe.load - 5) == 1 and vars.on",
        "not (10 // (probe.load - 5) == 1 or not vars.on)",
    ] {
        let text = graph("file", &format!("name: /srv/a, content: x, when: {when}"));
        for answer in [None, Some(5)] {
            let loaded = tree_of(&text, answer);
            assert!(loaded.inactive[0].unknown_until.is_none(), "{when}: {}", loaded.inactive[0]);
        }
    }
    let wrong =
        graph("file", "name: /srv/a, content: x, when: 10 // (probe.load - 5) == 1 or vars.on");
    assert!(Tree::new(&[("web.yaml", &wrong)]).problems(&options(Some(5))).contains("zero"));
}

/// The known keys of a map do not wait for the other keys.
#[test]
fn a_known_key_of_a_map_does_not_wait() {
    let vars = "w: {off: false, port: 80, deep: {on: true, word: \"${probe.word}\"}, tls: \"${probe.load > 1}\"}, v: {of: \"${vars.w.port}\", tls: \"${vars.w.tls}\"}";
    let load = |fields: &str, when: &str, answer: Option<i64>| {
        let text = graph("file", &format!("name: /srv/a, {fields}, when: {when}"));
        tree_of(&text.replacen("on: false", &format!("on: false, {vars}"), 1), answer)
    };
    for answer in [None, Some(5)] {
        let off = load("content: x, mode: \"9999\"", "vars.w.off", answer);
        assert!(off.inactive[0].unknown_until.is_none(), "{}", off.inactive[0]);
        for when in [
            "vars.w.port == 80",
            "vars.w.deep.on",
            "vars.v.of == 80",
            "vars.w.deep.on or vars.w.tls",
        ] {
            let on = load("content: x", when, answer);
            assert_eq!(on.inactive.len(), 0, "{when}");
        }
        for (fields, when) in [
            ("content: x", "vars.w.tls"),
            ("content: x", "vars.v.tls"),
            ("owner: \"${vars.w.deep.word}\"", "true"),
            ("content: x", "vars.w.port == 80 and vars.w.tls"),
        ] {
            let waits = load(fields, when, answer).inactive.len();
            assert_eq!(waits, usize::from(answer.is_none()), "{fields} {when}");
        }
    }
}

/// The parts of a map or list beside one that waits have their problems before the answer.
#[test]
fn a_part_that_waits_hides_no_other_part() {
    for (vars, with, message) in [
        ("m: {a: \"${probe.load}\", b: \"${1 + true}\"}", "{a: 1}", "bool"),
        ("m: [\"${probe.load}\", \"${vars.nope}\"]", "{a: 1}", "no variable `nope`"),
        ("m: 1", "{a: {b: \"${probe.load}\", c: \"${vars.nope}\"}}", "no variable `nope`"),
    ] {
        let text = graph(
            "file",
            &format!("name: /srv/a, template: {{text: \"{{{{ a }}}}\"}}, with: {with}"),
        );
        let text = text.replacen("on: false", &format!("on: false, {vars}"), 1);
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&options(None));
        assert!(problems.contains(message), "{vars}: {problems}");
    }
    let module = "module: m\nparams: {n: {type: int}}\nresources: {noop: [{name: a}]}\n";
    let web = format!(
        "graph: g\nmodules: [{{use: m, as: shop, with: {{n: \"${{probe.word}}\"}}}}]\nresources:\n{PROBE}"
    );
    let tree = Tree::new(&[("web.yaml", &web), ("m/m.yaml", module)]);
    let problems = tree.problems(&options(None));
    assert!(problems.contains("`n` wants int, got string"), "{problems}");
}

/// A condition that is true whatever the probe answers makes the resource active.
#[test]
fn a_true_part_decides_or() {
    for when in ["probe.load > 1 or vars.port == 80", "vars.port == 80 or probe.load > 1"] {
        let text = graph("file", &format!("name: /srv/a, content: x, when: {when}"));
        assert_eq!(tree_of(&text, None).inactive.len(), 0, "{when}");
    }
}

/// A parameter that is false whatever the probe answers guards a secret that is not given.
#[test]
fn a_parameter_that_is_false_guards_a_secret() {
    let module = "module: m\nparams: {tls: {type: bool}, key: {type: secret, required: false}}\nresources:\n  file: [{name: /srv/k, content: {from: params.key}, when: params.tls}]\n";
    for (tls, is_accepted) in [("vars.off and probe.on", true), ("vars.on and probe.on", false)] {
        let web = format!(
            "graph: g\nvars: {{off: false, on: true}}\nmodules: [{{use: m, as: shop, with: {{tls: \"${{{tls}}}\"}}}}]\nresources:\n  probe: [{{name: on, args: [/bin/true], type: bool}}]\n"
        );
        let loaded = Tree::new(&[("web.yaml", &web), ("m/m.yaml", module)]).load(&with_facts());
        match loaded {
            Ok(loaded) => assert!(is_accepted && loaded.inactive[0].unknown_until.is_none()),
            Err(it) => assert!(!is_accepted, "{}", it.with_source()),
        }
    }
}

/// The condition of a use or an include waits as that of a resource does.
#[test]
fn uses_and_includes_that_wait_are_checked() {
    let probe = "resources:\n  probe: [{name: load, args: [/bin/true], value: {type: int}}]\n";
    let module = "module: m\nparams: {n: {type: int}, on: {type: bool, default: false}}\nresources:\n  noop: [{name: a}]\n  test: [{name: t, when: params.on, int: x}]\n  file: [{name: f, path: /srv/f, template: {text: \"{{ params.n }}\"}, when: params.n > 1}]\n";
    let use_of = |more: &str| format!("graph: g\nmodules: [{{use: m, as: shop{more}}}]\n{probe}");
    let files = |web: &str| [("web.yaml", web.to_owned()), ("m/m.yaml", module.to_owned())];
    let load = |web: &str| {
        let files = files(web);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        Tree::new(&files).load(&with_facts())
    };
    let rejected = load(&use_of(", with: {n: \"${probe.load}\"}")).unwrap_err().with_source();
    assert!(rejected.contains("the template uses `params.n`: pass it by `with:`"), "{rejected}");
    let loaded = load(&use_of(", with: {n: 2}, when: probe.load > 1")).unwrap();
    assert_eq!(loaded.inactive.len(), 3);
    let rejected = load(&use_of(", with: {n: 2, on: true}, when: probe.load > 1")).unwrap_err();
    assert!(rejected.with_source().contains("`int`"), "{}", rejected.with_source());
    let include =
        format!("graph: g\ninclude: [{{file: more.yaml, when: probe.load > 1}}]\n{probe}");
    for (more, message) in [
        ("resources: {test: [{name: t, int: x}]}\n", Some("`int`")),
        ("resources: {test: [{name: t, int: x, when: false}]}\n", None),
        ("assert: [{that: 1, message: x}]\n", Some("a condition must be bool")),
        ("assert: [{that: false, message: x}]\n", None),
    ] {
        let tree = Tree::new(&[("web.yaml", &include), ("more.yaml", more)]);
        match message {
            Some(message) => {
                let problems = tree.problems(&with_facts());
                assert!(problems.contains(message), "{more}: {problems}");
            }
            None => drop(accepted(&[("web.yaml", &include), ("more.yaml", more)])),
        }
    }
}

/// The printed expansion of a waiting resource can be read.
#[test]
fn the_expansion_of_a_waiting_resource_is_accepted() {
    let text = graph(
        "file",
        "name: /srv/a, template: {text: \"{{ x }}\"}, with: {x: \"${vars.n}\"}, mode: \"0644\", when: probe.load > 1",
    );
    let tree = Tree::new(&[("web.yaml", &text)]);
    let printed = steadfast::config::expanded_text(&[tree.path("web.yaml")], &options(None));
    let printed = printed.unwrap_or_else(|it| panic!("{}", it.with_source()));
    assert!(printed.contains("unknown_fields: [\"content\"]"), "{printed}");
    let again = Tree::new(&[("web.yaml", &printed)]);
    let loaded = again.load(&options(None)).unwrap_or_else(|it| panic!("{}", it.with_source()));
    assert_eq!(loaded.inactive.len(), 1);
}
