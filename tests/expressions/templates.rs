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
            Value::List(vec![Value::Text("a b".to_owned()), Value::Text("c".to_owned())].into()),
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

/// A list that contains another one twice, sixty levels deep, is small in memory and endless as text.
#[test]
fn a_nested_value_is_not_turned_into_an_endless_text() {
    let nest = "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}";
    for use_of in [
        "{{ n.a }}",
        "{{ n.a | string | length }}",
        "{{ n.a | pprint }}",
        "{% set t %}{{ n.a }}{% endset %}",
    ] {
        let problem = render_text(&format!("{nest}{use_of}")).expect_err(use_of);
        assert!(problem.message.contains("out of fuel"), "{use_of}: {problem}");
    }
    let map = "{% set n = namespace(a={'k': [1, 2]}) %}{{ n.a | string }}";
    assert_eq!(render_text(map).as_deref(), Ok("{'k': [1, 2]}"));
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
        let start = crate::processor_time::ProcessorTime::start();
        let _result = render_text(&text);
        proptest::prop_assert!(start.used() < std::time::Duration::from_secs(5));
    }
}

/// A value that is bound to a list of itself again and again stands for an endless text: the work is bounded wherever
/// the text is read.
#[test]
fn nested_values_are_bounded_wherever_they_are_read() {
    let start = crate::processor_time::ProcessorTime::start();
    let double = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}";
    let readers = [
        "{{ (n.x ~ '')|length }}",
        "{{ n.x == [1] }}",
        "{{ n.x|upper }}",
        "{{ n.x|replace('1', '2') }}",
        "{{ 'a' in n.x }}",
    ];
    let mut texts: Vec<String> = readers.iter().map(|reader| format!("{double}{reader}")).collect();
    let many = |begin: &str, step: &dyn Fn(usize) -> String| {
        let steps: String = (0..40).map(step).collect();
        format!("{begin}{steps}")
    };
    texts.push(
        many("{% set a0 = [1] %}", &|n| format!("{{% set a{} = [a{n}, a{n}] %}}", n + 1))
            + "{{ a40 ~ '' }}",
    );
    texts.push(
        many("{% for a0 in [1] %}", &|n| format!("{{% for a{} in [[a{n}, a{n}]] -%}}", n + 1))
            + "{{ a40 ~ '' }}"
            + &"{% endfor %}".repeat(41),
    );
    texts.push(
        many("{% with a0 = 1 %}", &|n| {
            format!("{{% with a{} = {{'k': a{n}, 'l': a{n}}} %}}", n + 1)
        }) + "{{ a40 ~ '' }}"
            + &"{% endwith %}".repeat(41),
    );
    texts.push("{% macro f(x, d) %}{% if d > 0 %}{{ f([x, x], d - 1) }}{% else %}{{ x ~ '' }}{% endif %}{% endmacro %}{{ f([1], 40) }}".to_owned());
    texts.push("{% for a in [[[1]]] recursive %}{% if loop.depth < 40 %}{{ loop([[a, a]]) }}{% else %}{{ a ~ '' }}{% endif %}{% endfor %}".to_owned());
    for step in [
        "namespace(a=n.x, b=n.x)",
        "dict(a=n.x, b=n.x)",
        "[n.x]|batch(1, n.x)|list + [n.x]",
        "(n.x, n.x)",
    ] {
        texts.push(format!("{{% set n = namespace(x=1) %}}{{% for i in range(60) %}}{{% set n.x = {step} %}}{{% endfor %}}{{{{ (n.x ~ '')|length }}}}"));
    }
    let long = "{% set t = 'x' %}{% set n = namespace(t='xxxxxxxxxxxxxxxx') %}{% for i in range(16) %}{% set n.t = n.t ~ n.t %}{% endfor %}{% set n.l = [n.t, n.t, n.t, n.t, n.t, n.t, n.t, n.t] %}{% for i in range(6) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l ~ '' }}";
    texts.push(long.to_owned());
    for text in texts {
        let problem = render_text(&text).unwrap_err();
        assert!(problem.message.contains("out of fuel"), "{text}: {problem}");
    }
    assert!(start.used() < std::time::Duration::from_secs(20), "{:?}", start.used());
    // The checks change neither white space nor places.
    for (text, wanted) in [
        ("{% for a in [1, 2] -%}\n  {{ a }}\n{% endfor %}\n.", "1\n2\n."),
        ("{% for a in [1, 2] %}\n  {{ a }}\n{% endfor %}\n.", "  1\n  2\n."),
        (
            "{% set a = 1 %}\n{% with b = a + 1, c = [a] %}\n{{ b }}{{ c }}\n{% endwith %}\n",
            "2[1]\n",
        ),
        ("{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}", "1213"),
        ("{% for k, v in {'x': [1]}|items %}{{ k }}{{ v }}{% endfor %}", "x[1]"),
        ("{% set a %}x{% endset %}{{ a }}", "x"),
        ("{% for a in [1] recursive %}{{ a }}{% endfor %}", "1"),
    ] {
        assert_eq!(render_text(text).as_deref(), Ok(wanted), "{text}");
    }
    // The place of used-up fuel is the tag whose work was too much.
    let endless =
        "ab\n {% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
    let problem = render_text(endless).unwrap_err();
    assert_eq!((problem.line, problem.column), (2, 32), "{problem}");
    let problem = render_text("{% for a in [1] %}{{ missing }}{% endfor %}").unwrap_err();
    assert_eq!((problem.line, problem.column), (1, 22), "{problem}");
}

/// Rule 4: `*` on strings and lists is refused.
#[test]
fn products_of_texts_are_refused() {
    let world = world();
    let check = |text: &str| {
        let template = Template::parse("t", text, None).unwrap();
        template.check(&world.environment(), &["port"])
    };
    for text in [
        "{{ 'a' * 3 }}",
        "{{ 3 * 'a' }}",
        "{{ [1] * 3 }}",
        "{{ 3 * [1] }}",
        "{% set x = vars.domain * 9 %}",
        "{{ 2 * vars.names }}",
        "{{ (vars.names | join) * 3 }}",
        "{{ (vars.names | sort | join(', ')) * 3 }}",
        "{{ 3 * vars.names|join('x') }}",
        "{{ (vars.domain ~ 'x') * 3 }}",
    ] {
        let problems = check(text);
        assert!(problems.len() == 1 && problems[0].message.starts_with("`*` multiplies"), "{text}");
    }
    for text in [
        "{{ 2 * 3 }}",
        "{{ vars.names | length * 2 }}",
        "{{ 2 * vars.domain | length }}",
        "{{ '*' }} * {{ 2 ** 3 }}",
        "{{ port * 2 }}",
    ] {
        assert!(check(text).is_empty(), "{text}: {:?}", check(text));
    }
}
