//! Tests of generated and mutated files of the graph language.

use super::generators::{edited, entry, scalar};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast::config::{Options, load};
use steadfast::expressions::Value;
use steadfast_resources::KindSet;

/// Definitions that the other generated parts use.
const RIGHT_VARS: &str = "  a: true\n  b: 1\n  c: t\n  list: [a, b]\n  map: {k: {k: 1}}\n  m1: {a: \"${vars.map}\", b: \"${vars.map}\"}\n  m2: {a: \"${vars.m1}\", b: \"${vars.m1}\"}\n";

/// Returns an expression, right or wrong.
fn expression() -> impl Strategy<Value = String> {
    let name = "(vars\\.(a|b|c|list|map|map\\.k|m1|m2|m2\\.a\\.b|x)|facts\\.(hostname|cpu\\.count|x)|params\\.(p|q)|item|item\\.(key|value)|probe\\.(p|q)|1|2\\.5|'t'|true|\\[1, 2\\])";
    let operator = "( (==|!=|<|>|in|and|or|\\+|-|\\*|/|//|%|~) | ?\\| ?(upper|length|join|default|int|first|sort)|\\[0\\])";
    prop_oneof![
        3 => name,
        3 => (name, operator, name).prop_map(|(a, operator, b)| {
            if operator.contains('|') { format!("{a}{operator}") } else { format!("{a}{operator}{b}") }
        }),
        1 => (name, name, name).prop_map(|(a, b, c)| format!("{a} if {b} else not {c}")),
        1 => "[a-z.'\"(){}|~$ 0-9]{0,12}",
    ]
}

/// Returns an entry of a resource, a use or an include that belongs to the language.
fn language_entry() -> impl Strategy<Value = String> {
    let quoted = expression().prop_map(|text| text.replace('\'', "\"").replace('\n', " "));
    let quoted = quoted.boxed();
    let field = "(path|content|mode|cmd|env|recv|template|with|values|labels|secret|state)";
    let right = "(when: vars\\.a|when: \\[vars\\.b > 0, true\\]|for_each: vars\\.(list|map)|labels: \\{l: '\\$\\{vars\\.c\\}'\\}|after: \\[\"noop\\[\\*\\]\"\\])";
    prop_oneof![
        20 => right,
        3 => (field, quoted.clone()).prop_map(|(field, text)| format!("{field}: '${{{text}}}'")),
        1 => (field, quoted.clone()).prop_map(|(field, text)| format!("{field}: 'a ${{{text}}} $${{b}}'")),
        1 => (field, quoted.clone()).prop_map(|(field, text)| format!("{field}: {{text: '${{{text}}}', secret: s}}")),
        2 => quoted.clone().prop_map(|text| format!("when: '{text}'")),
        1 => quoted.clone().prop_map(|text| format!("when: ['{text}', true]")),
        1 => quoted.prop_map(|text| format!("for_each: '{text}'")),
        1 => Just("for_each: {in: vars.map, item: {k: {type: int, default: 1}}}".to_owned()),
        1 => "template: \\{text: '(\\{\\{ (vars\\.a|x|vars\\.list \\* 2) \\}\\}|\\{% (for i in vars\\.list|if x|set a = \\[a, a\\]|set a = \\{\"a\": a, \"b\": a\\}|set a = dict\\(vars\\.m2, b=a\\)|for k, a in a\\|items|endfor|macro m\\(a\\)) %\\}|[a-z{}%]){0,6}'\\}",
    ]
}

fn language_resource() -> impl Strategy<Value = String> {
    let name = prop_oneof![6 => "[a-f]{2,3}", 1 => Just("'/b-${item}'".to_owned()), 1 => scalar()];
    let entries = prop::collection::vec(prop_oneof![3 => language_entry(), 1 => entry()], 0..5);
    (name, entries).prop_map(|(name, entries)| {
        entries.iter().fold(format!("  - name: {name}\n"), |text, one| format!("{text}    {one}\n"))
    })
}

fn language_resources() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(language_resource(), 1..4);
    prop::collection::vec(("(file|exec|noop|noop|noop|probe)", list), 0..3).prop_map(|kinds| {
        let mut text = "resources:\n".to_owned();
        for (kind, resources) in kinds {
            text.extend(["  ", &kind, ":\n", &resources.concat()]);
        }
        text
    })
}

/// Returns the texts of a graph, an included file, a file of variables and a module that refer to each other.
fn language_files() -> impl Strategy<Value = [String; 4]> {
    let value = prop_oneof![
        3 => scalar(),
        2 => expression().prop_map(|text| format!("'${{{}}}'", text.replace('\'', "\""))),
        1 => Just("[a, b]".to_owned()),
        1 => Just("{k: 1, l: {m: [x]}}".to_owned()),
        1 => Just("{k: '${vars.m2}', l: '${vars.m2}', m: ['${vars.m2}', '${vars.m1}']}".to_owned()),
    ];
    let value = value.boxed();
    let vars = |names: &'static str| {
        prop::collection::vec((names, value.clone()), 0..2).prop_map(|all| {
            all.iter()
                .fold(String::new(), |text, (name, value)| format!("{text}  {name}: {value}\n"))
        })
    };
    let include =
        "(include: \\[more.yaml, '\\*.yaml'\\]\n|include: \\{file: more.yaml, when: vars.a\\}\n|)";
    let modules = "(modules: \\[\\{use: m, as: '(x|\\$\\{vars.a\\})', with: \\{p: '(1|\\$\\{vars.b\\}|\\$\\{probe.p\\})'\\}(, for_each: vars.list|, when: vars.a|, meta: \\{retry: 2\\})?\\}\\]\n|)";
    let params = "(params: \\{p: \\{type: (int|string|bool|map|secret|list of int)(, min: (1|x))?(, default: 2)?\\}\\}\n|)";
    let web = (vars("(y|z)"), include, modules, language_resources()).prop_map(|(vars, include, modules, resources)| {
        format!("graph: g\nvars:\n  x: 1\n{RIGHT_VARS}{vars}vars_files: vars.yaml\nsecrets: {{s: {{file: /s}}}}\n{include}{modules}{resources}")
    });
    let more = (include, modules, language_resources())
        .prop_map(|(include, modules, resources)| format!("{include}{modules}{resources}"));
    let module =
        (params, modules, language_resources()).prop_map(|(params, modules, resources)| {
            format!("module: m\n{params}{modules}{resources}")
        });
    let vars = vars("(a|b|c|list|map|y)")
        .prop_map(|text| text.replace("\n  ", "\n").trim_start().to_owned());
    (web, more, vars, module).prop_map(|(web, more, vars, module)| [web, more, vars, module])
}

/// Returns such files with a few characters of the graph replaced.
fn mutated_language_files() -> impl Strategy<Value = [String; 4]> {
    let change = (any::<prop::sample::Index>(), "[\\[\\]{}:,#&*|'\"$?\\- \n.a0]{0,2}", 0..3_usize);
    (language_files(), prop::collection::vec(change, 0..3)).prop_map(
        |([web, more, vars, module], changes)| [edited(&web, changes), more, vars, module],
    )
}

/// Returns the greatest memory of this process so far, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the configuration; `PROPTEST_CASES` raises the number of cases.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Issue 17: any files of the language are loaded or rejected, soon and with little memory, with any answers of
    /// probes; a message is one line of at most 100 characters with a place.
    #[test]
    fn no_file_of_the_language_panics(files in mutated_language_files(), answer in 0..3_usize) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("m")).unwrap();
        for (name, text) in ["graph.yaml", "more.yaml", "vars.yaml", "m/m.yaml"].iter().zip(&files) {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let facts = serde_json::json!({"hostname": "h1", "cpu": {"count": 4}});
        let facts = Value::from_json(facts).unwrap();
        let answers = [None, Some(Value::Bool(true)), Some(Value::Int(1))];
        let probes = answers.get(answer).cloned().flatten().map(|value| {
            Arc::new(BTreeMap::from([("p".to_owned(), value)]))
        });
        let options = Options { facts: Some(Arc::new(facts)), probes, ..Options::new(KindSet::of_this_build()) };
        let (start, before) = (crate::processor_time::ProcessorTime::start(), peak_memory());
        let loaded = load(&[folder.path().join("graph.yaml")], &options);
        prop_assert!(start.used() < Duration::from_secs(5), "{:?}", start.used());
        prop_assert!(peak_memory() < before + 100 * 1024, "{} KiB", peak_memory());
        match loaded {
            Ok(loaded) => prop_assert!(loaded.edges.iter().all(|edge| edge.from != edge.to)),
            Err(rejected) => {
                prop_assert!(!rejected.problems.is_empty());
                let said = rejected.to_string();
                prop_assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{:?}", said);
            }
        }
    }
}

/// The generated files reach the language: some are accepted, with inactive resources and instances.
#[test]
fn generated_files_of_the_language_are_often_right() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut accepted = 0;
    for _ in 0..400 {
        let files = language_files().new_tree(&mut runner).unwrap().current();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("m")).unwrap();
        for (name, text) in ["graph.yaml", "more.yaml", "vars.yaml", "m/m.yaml"].iter().zip(&files)
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let loaded =
            load(&[folder.path().join("graph.yaml")], &Options::new(KindSet::of_this_build()));
        accepted += usize::from(loaded.is_ok());
    }
    assert!(accepted > 5, "{accepted} of 400");
}
