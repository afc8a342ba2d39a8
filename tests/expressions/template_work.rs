//! The work of templates with long texts: each filter and operator knows the bytes that it reads and makes before.

use crate::processor_time::ProcessorTime;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast::expressions::{Scope, Template, TemplateError, Value};

const TOO_LONG: &str = "longer than 8 MiB";
const NO_FUEL: &str = "out of fuel";

/// Renders a template with a long text, another long text and a list of words.
fn render_text(text: &str, letter: &str, bytes: usize) -> Result<String, TemplateError> {
    let long = letter.repeat(bytes / letter.len());
    let words = (0..100).map(|n| Value::Text(format!("w{n}"))).collect::<Vec<_>>();
    let with = BTreeMap::from([
        ("other".to_owned(), Value::Text(long.clone())),
        ("long".to_owned(), Value::Text(long)),
        ("words".to_owned(), Value::List(words.into())),
    ]);
    Template::parse("t", text, None)?.render(&with, &BTreeMap::new(), &Scope::new())
}

/// A filter that makes a text longer than its input, or one text of many.
#[test]
fn filters_that_make_long_texts_are_refused() {
    let start = ProcessorTime::start();
    for (text, letter, bytes) in [
        ("{{ long|join(long)|length }}", "x", 30_000),
        ("{{ words|join(long)|length }}", "x", 1 << 20),
        ("{{ words|map('upper')|join(d=long)|length }}", "x", 1 << 20),
        ("{{ long|replace('x', long)|length }}", "x", 100_000),
        ("{{ long|replace('', long)|length }}", "x", 100_000),
        ("{{ long|replace('x', long, count=9000)|length }}", "x", 100_000),
        ("{{ long|indent(1000)|length }}", "\n", 100_000),
        ("{{ long|indent(width=1000)|length }}", "\n", 100_000),
        ("{{ '%s%s%s'|format(long, long, long)|length }}", "x", 3 << 20),
        ("{{ '%999999999s'|format('x')|length }}", "x", 1),
        ("{{ '%*d'|format(999999999, 1)|length }}", "x", 1),
        ("{{ '%(a)s%(a)s%(a)s'|format(a=long)|length }}", "x", 3 << 20),
        ("{{ long|e|length }}", "<", 6 << 20),
        ("{{ long|sh|length }}", "'", 6 << 20),
        ("{{ long|ini|length }}", "\\", 6 << 20),
        ("{{ long|json|length }}", "\u{1}", 3 << 20),
        ("{{ long|upper|length }}", "ΐ", 6 << 20),
        ("{{ [long]|string|length }}", "\u{1}", 3 << 20),
        ("{{ [long]|pprint|length }}", "\u{1}", 3 << 20),
        ("{{ [long]|upper|length }}", "\u{1}", 3 << 20),
        ("{{ [long] }}", "\u{1}", 3 << 20),
        ("{{ ([long] ~ '')|length }}", "\u{1}", 3 << 20),
        ("{% autoescape true %}{% set a %}{{ long }}{% endset %}{% endautoescape %}", "<", 6 << 20),
    ] {
        let problem = render_text(text, letter, bytes).expect_err(text);
        let (shown, short) = (problem.to_string(), "more than 8 MiB");
        assert!(shown.contains(TOO_LONG) || shown.contains(short), "{text}: {shown}");
    }
    for text in [
        "{{ [long,long,long,long,long,long,long,long,long]|join|length }}",
        "{{ ([long,long,long,long,long,long,long,long,long] ~ '')|length }}",
        "{{ long ~ long ~ long ~ long ~ long ~ long ~ long ~ long ~ long }}",
        "{{ [[1]|batch(2000000, 1), [1]|batch(2000000, 1)]|length }}",
    ] {
        let problem = render_text(text, "x", 8_000_000).expect_err(text).to_string();
        assert!(problem.contains(NO_FUEL), "{text}: {problem}");
    }
    assert!(start.used() < Duration::from_secs(30), "{:?}", start.used());
}

/// A loop whose body reads a long text by an operator, a test or a filter.
#[test]
fn operators_cost_the_bytes_that_they_read() {
    let start = ProcessorTime::start();
    let nested = "{% set a = [range(9000)|list] %}{% set b = [range(9000)|list] %}";
    for body in [
        "{{ long == other }}",
        "{{ long != other }}",
        "{{ long < other }}",
        "{{ 1 if long >= other else 2 }}",
        "{{ other in [long] }}",
        "{{ other not in long }}",
        "{{ [long, 1] == [other, 1] }}",
        "{{ {'a': long} == {'a': other} }}",
        "{{ {long: 1}[other] }}",
        "{{ long[i] }}",
        "{{ long[-1] }}",
        "{{ long[3999999:] }}",
        "{{ (long)[1] }}",
        "{% set c = long %}{{ c[1] }}",
        "{{ a == b }}",
        "{{ long is eq other }}",
        "{{ long is lower }}",
        "{{ other is in [long] }}",
        "{{ long is startingwith(other) }}",
        "{{ [long, other]|sort|length }}",
        "{{ [long, long, other]|unique|length }}",
        "{{ [long, other]|max|length }}",
        "{{ [long]|select('eq', other)|list|length }}",
        "{{ loop.changed(long) }}",
        "{{ long is iterable }}{{ long|length }}",
        "{{ words|join(long[:9])|length }}{{ long|length }}",
    ] {
        let text = format!("{nested}{{% for i in range(90000) %}}{body}{{% endfor %}}");
        let problem = render_text(&text, "ä", 4_000_000).expect_err(body).to_string();
        assert!(problem.contains(NO_FUEL), "{body}: {problem}");
    }
    let patterns = ["(x?){50}(x?){50}(x?){50}y", "((x{1,20}){1,20}){1,20}y", "[a-z]+y"];
    for pattern in patterns {
        let text = format!(
            "{{% for i in range(90000) %}}{{{{ long|matches('{pattern}') }}}}{{% endfor %}}"
        );
        let problem = render_text(&text, "x", 16_000).expect_err(pattern).to_string();
        assert!(problem.contains(NO_FUEL), "{pattern}: {problem}");
    }
    assert!(start.used() < Duration::from_secs(30), "{:?}", start.used());
}

/// The charges change neither results nor places.
#[test]
fn charged_operators_give_the_same_results() {
    for (text, wanted) in [
        ("{{ long == other }} {{ long ~ '-' ~ other ~ [1, 'a'] ~ 2.5 }}", "true ab-ab[1, 'a']2.5"),
        ("{{ long[0] }}{{ long[-1:] }}{{ words[2:4]|join }}{{ words[1][1] }}", "abw2w31"),
        ("{{ {'a': {'b': [3]}}['a'].b[0] }} {{ {'x': 1}[long[0]|replace('a', 'x')] }}", "3 1"),
        ("{{ 'w5' in words and 'v' not in words or long > other }}", "true"),
        ("{{ 1 < 2 < 3 }} {{ -3 + 2 ** 2 == 1 }} {{ not long == 'x' }}", "true true true"),
        ("{% if long is eq other %}a{% elif long < 'b' %}b{% endif %}", "a"),
        ("{%- if long == other -%}\n a\n{%- endif %}", "a"),
        (
            "{% for w in words if w < 'w10' %}{{ w }}{{ loop.cycle('+', '-') }}{% endfor %}",
            "w0+w1-",
        ),
        ("{% for a in [1, 1, 2] %}{{ 1 if loop.changed(a) else 0 }}{% endfor %}", "101"),
        ("{% macro f(a, b=1 == 1) %}{{ a ~ b }}{% endmacro %}{{ f('x')[0] }}", "x"),
        (
            "{% set a = long == other %}{{ a }}{% raw %}{{ a == b[0] }}{% endraw %}",
            "true{{ a == b[0] }}",
        ),
        (
            "{{ 'a-b'|replace('-', '+') }}{{ 'aaa'|replace('a', 'b', 2) }}{{ 'aa'|replace('a', 'b', count=1) }}",
            "a+bbbaba",
        ),
        (
            "{{ 'a\nb'|indent(2) }}{{ '%s %03d %(x)s'|replace('%(x)s', '')|format('a', 7) }}",
            "a\n  ba 007 ",
        ),
        (
            "{{ [1, 2]|sum(start=3) }} {{ [3, 1, 2]|sort(reverse=true) }} {{ 1.26|round(1) }}",
            "6 [3, 2, 1] 1.3",
        ),
        (
            "{{ [1, 2, 3]|batch(2, 0)|list }} {{ [1, 2, 3]|slice(2)|list }}",
            "[[1, 2], [3, 0]] [[1, 2], [3]]",
        ),
        (
            "{{ {'b': 1, 'a': 2}|dictsort }} {{ words|min }} {{ [{'k': 1}]|groupby('k')|length }}",
            "[('a', 2), ('b', 1)] w0 1",
        ),
        (
            "{{ long|upper|lower|title|capitalize|trim }} {{ '<'|e }} {{ '<'|safe }} {{ [1]|upper }}",
            "Ab &lt; < [1]",
        ),
        (
            "{{ long|matches('^a[b-z]{1,3}$') }}{{ ['a', 'b']|join(d='+') }}{{ ['a', 'b']|join(', ') }}",
            "truea+ba, b",
        ),
    ] {
        assert_eq!(render_text(text, "ab", 2).as_deref(), Ok(wanted), "{text}");
    }
    for (text, wanted) in [
        ("{{ long == missing }}", "t:1:"),
        ("{{ words[0] ~ words[1].x.y }}", "t:1:23"),
        ("a\n{{ long[0] == 'a' }} {{ missing }}", "t:2:25"),
        ("{{ loop.cycle() }}", "`cycle` wants its values one by one: t:1:14"),
        ("{{ loop.cycle(*words) }}", "`cycle` wants its values one by one: t:1:14"),
        ("{% set n = 3 %}{{ words * n }}", "`*` multiplies numbers"),
        ("{% macro f(a) %}{{ 2 * a }}{% endmacro %}{{ f(long) }}", "`*` multiplies numbers"),
        ("{{ [long]|sum(start='') }}", "`sum` adds numbers"),
        ("{{ words|map(attribute=words|join)|list }}", "the name of an attribute has at most"),
        ("{{ words|sort(attribute=words|join)|list }}", "the name of an attribute has at most"),
        ("{{ words|selectattr(words|join)|list }}", "the name of an attribute has at most"),
    ] {
        let problem = render_text(text, "ab", 2).expect_err(text).to_string();
        assert!(problem.contains(wanted), "{text}: {problem}");
    }
    let many = format!("{{{{ words{} }}}}", "[0]".repeat(17));
    let problem = render_text(&many, "ab", 2).expect_err("many indexes").to_string();
    assert!(problem.contains("a value has at most 16 indexes"), "{problem}");
}

/// A usual template of many lines is far below the limits.
#[test]
fn usual_templates_have_enough_work() {
    let text = "{% for i in range(30) %}{% for w in words %}{% if w in words and w != 'x' %}{{ w ~ '=' ~ words[i] }}\n{% endif %}{% endfor %}{% endfor %}";
    assert!(render_text(text, "ab", 2).is_ok_and(|text| text.lines().count() == 3000));
}
