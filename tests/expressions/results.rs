//! The results of right expressions.

use crate::world;
use steadfast::expressions::{Expression, Value, check_text, evaluate_text, split_text};

/// Checks and evaluates an expression; the value must have the predicted type.
fn value_of(text: &str) -> Value {
    let world = world();
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let predicted =
        expression.check(&world.environment()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let value =
        expression.evaluate(&world.scope()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(predicted.accepts(&value), "{text}: {predicted} predicted, found {value:?}");
    value
}

#[test]
fn operators_have_the_results_of_jinja() {
    for (text, wanted) in [
        ("vars.x * 2 + 1", Value::Int(7)),
        ("vars.y // 2", Value::Int(-4)),
        ("vars.y % 3", Value::Int(2)),
        ("vars.x / 2", Value::Float(1.5)),
        ("4 / 2", Value::Float(2.0)),
        ("-vars.x | abs", Value::Int(3)),
        ("vars.x - -1", Value::Int(4)),
        ("vars.name ~ '-' ~ vars.x", Value::Text("web1-3".to_owned())),
        ("'yes' if vars.on else 'no'", Value::Text("yes".to_owned())),
        ("not vars.on or vars.x > 2", Value::Bool(true)),
        ("not vars.x in vars.numbers", Value::Bool(false)),
        ("'c' not in vars.names", Value::Bool(true)),
        ("'shop' in vars.sites", Value::Bool(true)),
        ("'eb' in vars.name", Value::Bool(true)),
        ("vars.x == 3.0", Value::Bool(true)),
        ("vars.numbers[0]", Value::Int(3)),
        ("vars.numbers[-1] + vars['my-key']", Value::Int(3)),
        ("vars.sites['shop'].port", Value::Int(8081)),
        ("item.value.tls | default(false)", Value::Bool(false)),
        ("params.port | default(1)", Value::Int(80)),
        ("(vars.none + vars.numbers) | length", Value::Int(3)),
        ("vars.users[1].name", Value::Text("bob".to_owned())),
        ("vars.half * 2", Value::Float(1.0)),
        ("'tls ' ~ vars.on", Value::Text("tls true".to_owned())),
    ] {
        assert_eq!(value_of(text), wanted, "{text}");
    }
}

#[test]
fn functions_have_the_described_results() {
    let text = |text: &str| Value::Text(text.to_owned());
    let texts = |items: &[&str]| Value::List(items.iter().map(|item| text(item)).collect());
    for (written, wanted) in [
        ("' Ab ' | trim | lower", text("ab")),
        ("upper('a')", text("A")),
        ("'a-b-c' | replace('-', '.')", text("a.b.c")),
        ("'a,b' | split(',')", texts(&["a", "b"])),
        ("vars.names | unique | sort | join(' ')", text("a b")),
        ("vars.numbers | join(',')", text("3,1,2")),
        ("vars.numbers | sort | first", Value::Int(1)),
        ("vars.numbers | max", Value::Int(3)),
        ("min(vars.x, 2)", Value::Int(2)),
        ("2.5 | round", Value::Int(3)),
        ("2.345 | round(2)", Value::Float(2.35)),
        ("'42' | int", Value::Int(42)),
        ("2.9 | int", Value::Int(2)),
        ("true | string", text("true")),
        ("0.5 | string", text("0.5")),
        ("'false' | bool", Value::Bool(false)),
        ("vars.name | startswith('web')", Value::Bool(true)),
        ("vars.name | endswith('2')", Value::Bool(false)),
        ("vars.name | matches('^web[0-9]+$')", Value::Bool(true)),
        ("'OpenSSL 1.1' | matches('OpenSSL 1\\.')", Value::Bool(true)),
        ("facts.os.version | version_ge('9')", Value::Bool(true)),
        ("'/etc/a/b.conf' | basename", text("b.conf")),
        ("'/etc/a/b.conf' | dirname", text("/etc/a")),
        ("vars.users | map('name')", texts(&["ada", "bob"])),
        ("vars.users | select('admin') | map('name')", texts(&["ada"])),
        ("vars.users | select('name', 'bob') | length", Value::Int(1)),
        ("vars.sites | keys", texts(&["blog", "shop"])),
        ("vars.users[0] | to_json", text(r#"{"admin":true,"name":"ada"}"#)),
        ("facts.address | ip_in('10.0.0.0/8')", Value::Bool(true)),
        ("'fd00::1' | ip_in('10.0.0.0/8')", Value::Bool(false)),
    ] {
        assert_eq!(value_of(written), wanted, "{written}");
    }
}

#[test]
fn dependencies_are_dotted_names() {
    let text = "facts.cpu.count * 2 if vars.on and 'a' in vars.names[0] else item.value.port";
    let names = Expression::parse(text).expect("an expression").dependencies();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["facts.cpu.count", "item.value.port", "vars.names", "vars.on"]);
}

#[test]
fn one_expression_keeps_its_type_and_text_makes_a_string() {
    let world = world();
    for (text, wanted) in [
        ("${vars.x}", Value::Int(3)),
        ("${vars.numbers}", Value::List(vec![Value::Int(3), Value::Int(1), Value::Int(2)].into())),
        ("a${vars.x}b", Value::Text("a3b".to_owned())),
        ("${vars.x}${vars.on}", Value::Text("3true".to_owned())),
        ("$${x} $", Value::Text("${x} $".to_owned())),
        ("${'}'}", Value::Text("}".to_owned())),
        ("", Value::Text(String::new())),
    ] {
        let parts = split_text(text).expect("parts");
        let predicted = check_text(&parts, &world.environment()).expect("a type");
        let value = evaluate_text(&parts, &world.scope()).expect("a value");
        assert!(predicted.accepts(&value), "{text}");
        assert_eq!(value, wanted, "{text}");
    }
}
