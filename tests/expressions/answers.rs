//! The first line of the answer to each wrong expression.

use crate::world;
use steadfast::expressions::{Cause, Expression, ExpressionError, check_text, split_text};

/// Returns the problem of a value's expression.
fn problem_of(text: &str) -> ExpressionError {
    let world = world();
    let found = Expression::parse(text).and_then(|expression| {
        expression.check(&world.environment())?;
        expression.evaluate(&world.scope())
    });
    found.expect_err(text)
}

#[test]
fn wrong_expressions_get_answers_that_show_the_correction() {
    for (text, wanted) in [
        ("facts.cpu.cuont * 2", "no fact `cpu.cuont`; nearest: `cpu.count`"),
        ("vars.wrokers", "no variable `wrokers`; nearest: `workers`"),
        ("vars.sites.shop.prt", "no variable `sites.shop.prt`; nearest: `sites.shop.port`"),
        ("params.prt", "no parameter `prt`; nearest: `port`"),
        ("facts.virtualisation = \"kvm\"", "`=` is no operator; write `==`"),
        ("facts.os.version === \"9\"", "`===` is no operator; write `==`"),
        ("vars.on && vars.on", "`&&` is no operator; write `and`"),
        ("vars.on || vars.on", "`||` is no operator; write `or`"),
        ("!vars.on", "`!` is no operator; write `not`"),
        ("vars.on ? 1", "`?` is no operator; write `a if condition else b`"),
        ("vars.x is defined", "only templates have `is defined`"),
        ("vars.x is 1", "`is` is no operator; write `==`"),
        ("True", "`True` is no value; write `true`"),
        ("none", "the language has no `none`"),
        ("facts.os.version >= 9", "compares string with int"),
        ("vars.x == \"3\"", "compares int with string"),
        ("vars.on and 'x'", "`and` wants bool, found string"),
        ("1 if vars.x else 2", "`if` wants bool, found int"),
        ("1 if vars.on else 'a'", "`if` gives int, `else` gives string; both must be equal"),
        ("1 if vars.on", "expected `else`, found the end of the expression"),
        ("item.value.prot", "items of `vars.sites` have no `prot`; they have port, tls"),
        ("item.value.tls", "`item.value.tls` may be absent"),
        ("vars.x | default(1)", "`vars.x` is never absent"),
        ("params.tls | default(1)", "the value is bool, the default int"),
        ("probe.old_tls", "an identity must be known at load; a probe is not"),
        ("facts.memory.free", "`facts.memory` changes all the time; use a probe"),
        ("workers * 2", "unknown name `workers`"),
        ("vars.x.y", "`vars.x` is int; it has no `y`"),
        ("vars.x + 'a'", "`+` wants numbers, found string"),
        ("'a' * 1000", "`*` wants numbers, found string"),
        ("vars.names ~ 'a'", "`~` wants string, int or bool, found list of string"),
        ("vars.x[0]", "`[ ]` wants a list, found int"),
        ("vars.names['a']", "`vars.names` is list of string; it has no `a`"),
        ("[1, 'a']", "a list has items of one type, found int and string"),
        ("1 < vars.x < 5", "comparisons cannot be chained; write `a < b and b < c`"),
        ("vars.x | frist", "no function `frist`"),
        ("vars.x | first", "`first` wants a list, found int"),
        (
            "vars.name | matches(vars.name)",
            "`matches` wants a pattern in quotes, not a computed one",
        ),
        (
            "facts.address | ip_in('10.0.0/8')",
            "`ip_in` wants a network such as `10.0.0.0/8`, found \"10.0.0/8\"",
        ),
        ("env('HOME')", "no function `env`"),
        ("facts.virtualisation == \"x", "the expression ends inside a text"),
        ("{{ vars.x }}", "an expression has no `{{`"),
        ("{'a': 1}", "`{` is no part of an expression; maps stand in `vars:`"),
        ("", "the expression is empty"),
        ("1 +", "expected a value, found the end of the expression"),
        ("(1", "expected `)`, found the end of the expression"),
        ("99999999999999999999", "`99999999999999999999` is too large an integer (64 bits)"),
        ("vars.big + 1", "`+` gives 9223372036854775808: overflow of an int of 64 bits"),
        ("vars.x // 0", "cannot calculate `3 // 0`: division by zero"),
        ("vars.none | length / 0", "cannot calculate `0 / 0`: division by zero"),
        ("vars.numbers[9]", "the list has 3 items, no item 9"),
        ("vars.names[0] | int", "`int` finds no integer in \"b\""),
    ] {
        let found = problem_of(text);
        assert_eq!(found.message, wanted, "{text}");
        assert!(found.offset + found.length <= text.len(), "{text}: {found:?}");
        assert!(found.message.chars().count() <= 100, "{text}");
    }
}

#[test]
fn words_of_other_languages_are_explained() {
    for (text, wanted) in [
        ("vars.name is match('a')", "`is match` is no test"),
        ("vars.name is not startswith('a')", "`is startswith` is no test"),
        ("vars.x <> 1", "`<>` is no operator; write `!=`"),
        ("yes", "`yes` is no value; write `true`"),
        ("off", "`off` is no value; write `false`"),
        ("facts.os == 'debian'", "compares map {codename: string, version: string} with string"),
    ] {
        assert_eq!(problem_of(text).message, wanted, "{text}");
    }
}

#[test]
fn hints_show_the_whole_correction() {
    for (text, hint) in [
        (
            "vars.name is match('^a')",
            "write `vars.name | matches(\"^a\")`; `not` stands before the value",
        ),
        ("os == 'debian'", "write `facts.os.codename`"),
        ("os.version == '12'", "write `facts.os.version`"),
        ("os_codename == 'trixie'", "write `facts.os.codename`"),
        ("codename == 'trixie'", "write `facts.os.codename`"),
        ("virtualisation == 'kvm'", "write `facts.virtualisation`"),
        ("facts.os == 'debian'", "a map has keys: write `facts.os.codename`"),
        ("", "write a name such as `vars.x`; the text `${` is written as `$${`"),
    ] {
        assert_eq!(problem_of(text).hint.as_deref(), Some(hint), "{text}");
    }
}

/// A long chain of one operator works, and a longer one names the limit.
#[test]
fn chains_of_operators_have_a_clear_limit() {
    let world = world();
    for (sign, value) in [("~", "vars.name"), ("+", "vars.x"), ("and", "vars.on"), ("-", "-1")] {
        let chain = |count: usize| vec![value; count].join(&format!(" {sign} "));
        let expression = Expression::parse(&chain(59)).expect("a chain");
        assert!(expression.evaluate(&world.scope()).is_ok(), "{sign}");
        let found = problem_of(&chain(80));
        assert_eq!(found.message, "the expression is nested deeper than 60 levels");
        let hint = found.hint.unwrap_or_default();
        let expected = if sign == "~" { "| join(\"\")" } else { "a chain of" };
        assert!(hint.contains(expected), "{sign}: {hint}");
    }
}

#[test]
fn the_wrong_part_is_marked() {
    let text = "vars.x + facts.cpu.cuont * 2";
    let found = problem_of(text);
    assert_eq!(text.get(found.offset..found.offset + found.length), Some("facts.cpu.cuont"));
    let text = "1 + (vars.x // (vars.x - 3))";
    let found = problem_of(text);
    assert_eq!(found.cause, Cause::Value);
    assert_eq!(
        text.get(found.offset..found.offset + found.length),
        Some("(vars.x // (vars.x - 3))")
    );
    let text = "a ${vars.x} b ${vars.z}";
    let parts = split_text(text).expect("parts");
    let found = check_text(&parts, &world().environment()).expect_err("an unknown name");
    assert_eq!(text.get(found.offset..found.offset + found.length), Some("vars.z"));
}

#[test]
fn conditions_are_bool() {
    let world = world();
    for (text, wanted) in [
        ("vars.workers", "a condition must be bool, this is int; write `vars.workers > 0`"),
        ("vars.name", "a condition must be bool, this is string; write `vars.name != \"\"`"),
        (
            "vars.names",
            "a condition must be bool, this is list of string; write `vars.names | length > 0`",
        ),
        ("${vars.x}", "a condition has no `${ }`: write `when: vars.x`"),
        ("1 + 1", "a condition must be bool, this is int"),
    ] {
        let found = Expression::parse_condition(text)
            .and_then(|expression| expression.check_condition(&world.environment()))
            .expect_err(text);
        assert_eq!(found.message, wanted);
    }
}

#[test]
fn texts_with_wrong_expressions_are_refused() {
    for (text, wanted) in [
        ("${vars.x", "`${` without `}`"),
        ("a ${}", "the expression is empty"),
        ("a ${vars.half}", "only string, int and bool stand within text, this is float"),
        ("a ${vars.names}", "only string, int and bool stand within text, this is list of string"),
        ("${'a}", "the expression ends inside a text"),
    ] {
        let found = split_text(text)
            .and_then(|parts| check_text(&parts, &world().environment()))
            .expect_err(text);
        assert_eq!(found.message, wanted, "{text}");
    }
}

#[test]
fn an_overflow_names_its_operation() {
    for (text, wanted) in [
        (
            "vars.big * vars.big > 0",
            "`*` gives 85070591730234615847396907784232501249: overflow of an int of 64 bits",
        ),
        ("vars.big + 1 - 1", "`+` gives 9223372036854775808: overflow of an int of 64 bits"),
        ("0 - vars.big - 2 < 0", "`-` gives -9223372036854775809: overflow of an int of 64 bits"),
        (
            "-(0 - vars.big - 1) == 0",
            "`-` gives 9223372036854775808: overflow of an int of 64 bits",
        ),
        (
            "(0 - vars.big - 1) // -1 == 0",
            "`//` gives 9223372036854775808: overflow of an int of 64 bits",
        ),
    ] {
        assert_eq!(problem_of(text).message, wanted, "{text}");
    }
}
