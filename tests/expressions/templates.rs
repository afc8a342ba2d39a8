//! Templates: results, limits and messages.

use crate::world;
use proptest::prelude::ProptestConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast::expressions::{Template, TemplateError, TemplateLoader, Value};

fn render_text(text: &str) -> Result<String, TemplateError> {
    let world = world();
    let with = BTreeMap::from([
        ("port".to_owned(), Value::Int(8081)),
        ("phrase".to_owned(), Value::Text("it's; a = \"b\"".to_owned())),
        (
            "hosts".to_owned(),
            Value::List(vec![Value::Text("a b".to_owned()), Value::Text("c".to_owned())]),
        ),
    ]);
    let values = BTreeMap::from([("password".to_owned(), "hunter2".to_owned())]);
    let loader: TemplateLoader = Arc::new(|name| match name {
        "part.j2" => Ok(Some("part {{ port }}\n".to_owned())),
        "macros.j2" => Ok(Some("{% macro line(x) %}<{{ x }}>{% endmacro %}".to_owned())),
        "wrong.j2" => Ok(Some("\n  {{ missing }}".to_owned())),
        "self.j2" => Ok(Some("{% include 'self.j2' %}".to_owned())),
        _ => Ok(None),
    });
    Template::parse("vhost.conf.j2", text, Some(loader))?.render(&with, &values, &world.scope())
}

#[test]
fn templates_print_with_values_and_roots() {
    for (text, wanted) in [
        ("listen {{ port }};\n", "listen 8081;\n"),
        ("{{ vars.domain }} {{ facts.cpu.count }}", "example.org 2"),
        ("{% for name in vars.names %}\n- {{ name }}\n{% endfor %}\n", "- b\n- a\n- b\n"),
        ("  {% if vars.on %}\nyes\n  {% endif %}\n", "yes\n"),
        ("{{ password }}", "hunter2"),
        (
            "echo {{ phrase | sh }} {{ hosts | sh }} {{ port | sh }}",
            r#"echo 'it'\''s; a = "b"' 'a b' c 8081"#,
        ),
        ("{{ hosts | json }}", r#"["a b","c"]"#),
        ("{{ phrase | ini }} {{ 'x' | ini }}", r#""it's; a = \"b\"" x"#),
        ("<a> {{ '<&>' }}", "<a> <&>"),
        ("{% include 'part.j2' %}end", "part 8081\nend"),
        ("{% from 'macros.j2' import line %}{{ line(1) }}", "<1>"),
        ("{{ vars.name | startswith('web') }}", "true"),
        ("{{ facts.os.version | version_ge('9') }}", "true"),
        ("{{ vars.on }} {{ false }}", "true false"),
        ("", ""),
    ] {
        assert_eq!(render_text(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn wrong_templates_name_their_place() {
    for (text, wanted) in [
        ("a\n {{ missing }}", "vhost.conf.j2:2:5"),
        ("a\n {{ vars.prot }}", "vhost.conf.j2:2:5"),
        ("{% if vars.prot %}{% endif %}", "vhost.conf.j2:1:7"),
        ("{% include 'wrong.j2' %}", "wrong.j2:2:6"),
        ("{% include '../x' %}", "outside of the folder"),
        ("{% include '/etc/passwd' %}", "outside of the folder"),
        ("{% include 'none.j2' %}", "vhost.conf.j2:1:"),
        ("{% include 'self.j2' %}", "self.j2:1:"),
        (
            "x {% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
            "out of fuel",
        ),
        ("{{ 'a' * 1000000000 }}", "vhost.conf.j2:1:"),
        (
            "{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}",
            "out of fuel",
        ),
        ("{{ hosts | ini }}", "`ini` wants a string"),
        ("{{ debug() }}", "vhost.conf.j2:1:"),
        ("{% if %}", "vhost.conf.j2:1:"),
        ("{{ port", "vhost.conf.j2:1:"),
    ] {
        let problem = render_text(text).expect_err(text);
        let shown = problem.to_string();
        assert!(shown.contains(wanted), "{text}: {shown}");
        assert!(problem.message.chars().count() <= 100, "{text}: {shown}");
    }
}

#[test]
fn messages_contain_no_secret() {
    for text in [
        "{{ password // 2 }}",
        "{{ password | ip_in('10.0.0.0/8') }}",
        "{{ password.x }}",
        "{{ [] [password] }}",
    ] {
        let problem = render_text(text).expect_err(text);
        assert!(!format!("{problem:?}").contains("hunter2"), "{problem:?}");
    }
}

#[test]
fn output_is_bounded() {
    let block = "x".repeat(4000);
    let text = format!("{{% for a in range(3000) %}}{block}{{% endfor %}}");
    let problem = render_text(&text).expect_err("a limit");
    assert!(problem.message.contains("the output exceeds 8388608 bytes"), "{problem}");
}

#[test]
fn names_are_checked_before_a_value_is_known() {
    let text =
        "{{ port }} {{ prot }}\n{{ vars.domian }} {% set x = vars.name %}{{ x }} {{ range(3) }}\n";
    let template = Template::parse("a.j2", text, None).expect("a template");
    let problems = template.check(&world().environment(), &["port"]);
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["unknown name `prot`: a.j2:1:15", "no variable `domian`; nearest: `domain`: a.j2:2:4",]
    );
    assert_eq!(problems[0].hint.as_deref(), Some("nearest: `port`"));
}

#[test]
fn printed_values_without_sh_are_listed() {
    let text = "a {{ port | sh }} {# {{ x }} #}\n{{ vars.name }}{% raw %}{{ y }}{% endraw %} {{ hosts|sh -}}";
    let template = Template::parse("a.sh", text, None).expect("a template");
    let printed = template.printed_without_sh();
    assert_eq!(printed.len(), 1, "{printed:?}");
    assert_eq!((printed[0].text.as_str(), printed[0].line, printed[0].column), ("vars.name", 2, 3));
}

proptest::proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_template_ends_in_bounded_time(text in "(\\{\\{|\\}\\}|\\{%|%\\}| for | in | if |endfor|endif|else|set|=|range\\(99999\\)|vars\\.names|port|~|\\*|\\||join|list|sort|x|9|'|\\(|\\)|\\[|\\]|include|macro| |\\n){0,40}") {
        let start = std::time::Instant::now();
        let _result = render_text(&text);
        proptest::prop_assert!(start.elapsed() < std::time::Duration::from_secs(5));
    }
}
