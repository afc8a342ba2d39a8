//! The law of the gate: an accepted expression evaluates to its predicted type. Only a value may stop it.

use crate::world;
use proptest::prelude::*;
use std::time::Duration;
use steadfast::expressions::{Cause, Expression, split_text};

/// The problems of values, which no type excludes.
const OF_VALUES: &[&str] = &[
    "division by zero",
    "too large",
    "exceeds",
    "overflow",
    "no finite number",
    "list is empty",
    "no item",
    "no integer",
    "`true` or `false`",
    "an IP address",
    "wants a network",
    "more than 1048576 bytes",
    "a text to replace",
    "separator that is not empty",
    "0 to 15 digits",
    "computes too much",
    "is absent",
];

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("vars.x"),
        Just("vars.y"),
        Just("vars.big"),
        Just("vars.half"),
        Just("vars.name"),
        Just("vars.empty"),
        Just("vars.on"),
        Just("vars.names"),
        Just("vars.numbers"),
        Just("vars.none"),
        Just("vars.mixed"),
        Just("vars.sites"),
        Just("vars.users"),
        Just("facts.os.version"),
        Just("facts.address"),
        Just("params.tls"),
        Just("item.key"),
        Just("item.value.tls | default(true)"),
        Just("item.value"),
        Just("vars.sites.shop"),
        Just("1"),
        Just("0"),
        Just("2.5"),
        Just("true"),
        Just("false"),
        Just("'a'"),
        Just("''"),
        Just("'12'"),
        Just("[]"),
        Just("[1, 2]"),
        Just("['10.0.0.0/8', 'b']"),
        Just("9223372036854775807"),
    ]
    .prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    leaf().prop_recursive(5, 24, 3, |inner| {
        let operator = prop_oneof![
            Just("or"),
            Just("and"),
            Just("=="),
            Just("!="),
            Just("<"),
            Just("<="),
            Just(">"),
            Just(">="),
            Just("in"),
            Just("not in"),
            Just("+"),
            Just("-"),
            Just("*"),
            Just("/"),
            Just("//"),
            Just("%"),
            Just("~"),
        ];
        let one = prop_oneof![
            Just("lower"),
            Just("trim"),
            Just("basename"),
            Just("dirname"),
            Just("length"),
            Just("first"),
            Just("last"),
            Just("sort"),
            Just("unique"),
            Just("keys"),
            Just("abs"),
            Just("round"),
            Just("int"),
            Just("string"),
            Just("bool"),
            Just("to_json"),
            Just("min"),
            Just("max"),
            Just("map('name')"),
            Just("select('admin')"),
            Just("matches('^[a-z]+$')"),
        ];
        let two = prop_oneof![
            Just("split"),
            Just("join"),
            Just("startswith"),
            Just("endswith"),
            Just("version_ge"),
            Just("version_lt"),
            Just("ip_in"),
            Just("min"),
            Just("max"),
            Just("round"),
        ];
        prop_oneof![
            3 => (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
            1 => (inner.clone(), Just("~"), inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            3 => (inner.clone(), one).prop_map(|(value, name)| format!("({value}) | {name}")),
            2 => (inner.clone(), two, inner.clone())
                .prop_map(|(value, name, other)| format!("({value}) | {name}({other})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(one, when, two)| format!("({one}) if ({when}) else ({two})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(list, at)| format!("({list})[{at}]")),
            1 => inner.clone().prop_map(|value| format!("not ({value})")),
            1 => inner.clone().prop_map(|value| format!("-({value})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(text, old, new)| format!("replace({text}, {old}, {new})")),
        ]
    })
}

/// Checks the law for one text; returns true if the gate accepts.
fn obeys_the_law(text: &str) -> Result<bool, TestCaseError> {
    let world = world();
    let Ok(expression) = Expression::parse(text) else { return Ok(false) };
    let Ok(predicted) = expression.check(&world.environment()) else { return Ok(false) };
    match expression.evaluate(&world.scope()) {
        Ok(value) => {
            prop_assert!(predicted.accepts(&value), "{text}: {predicted} predicted, {value:?}");
        }
        Err(error) => {
            let of_value = OF_VALUES.iter().any(|known| error.message.contains(known));
            prop_assert!(error.cause == Cause::Value && of_value, "{text}: {error}");
        }
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accepted_expressions_have_their_predicted_type(text in expression()) {
        obeys_the_law(&text)?;
    }

    #[test]
    fn any_characters_are_read_in_bounded_time(text in "[ -~\\n]{0,300}|\\PC{0,80}|[(\\[-]{0,3000}|(\\$\\{|\\}|'|\\\\| |a|\\.){0,60}") {
        let start = crate::processor_time::ProcessorTime::start();
        obeys_the_law(&text)?;
        let _parts = split_text(&text);
        prop_assert!(start.used() < Duration::from_secs(5));
    }
}

#[test]
fn the_generator_makes_enough_accepted_expressions() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let accepted = (0..2000)
        .filter(|_| {
            let text = expression().new_tree(&mut runner).expect("a text").current();
            obeys_the_law(&text).expect("the law")
        })
        .count();
    assert!(accepted > 100, "{accepted} of 2000");
}

/// A list with items of several types stays one, whatever it is joined with; an empty list has the type of the other.
#[test]
fn lists_of_several_types_obey_the_law() {
    for text in [
        "vars.mixed + vars.users",
        "vars.users + vars.mixed",
        "vars.mixed if vars.on else vars.users",
        "[vars.mixed, vars.users][0]",
        "vars.none + vars.numbers",
        "([] if vars.on else vars.names) + vars.names",
    ] {
        assert!(obeys_the_law(text).expect("the law"), "{text}");
    }
}

#[test]
fn growth_is_bounded() {
    let start = crate::processor_time::ProcessorTime::start();
    let mut text = "'aaaaaaaaaaaaaaaa'".to_owned();
    for _ in 0..40 {
        text = format!("({text}) | replace('a', 'aaaaaaaaaaaaaaaa')");
    }
    assert!(
        !Expression::parse(&text)
            .is_ok_and(|expression| { expression.evaluate(&world().scope()).is_ok() })
    );
    for text in ["+1".repeat(4000), "(".repeat(8000), "not ".repeat(2000), "-".repeat(8000) + "1"] {
        let _result = Expression::parse(&text);
    }
    let chain = "1".to_owned() + &"+1".repeat(59);
    let expression = Expression::parse(&chain).expect("a chain");
    assert!(expression.evaluate(&world().scope()).is_ok());
    assert!(start.used() < Duration::from_secs(5));
}
