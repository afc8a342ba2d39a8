//! Templates of values: `${name}` stands for a value, and `$${` for the text `${`.

use super::problem::code::Code;
use super::problem::{Problem, quoted};
use steadfast_resources::TemplatePiece;

/// Splits a template into pieces. `values` are the names and numbers of its values, each of which must be used.
pub(super) fn pieces(text: &str, values: &[(&str, usize)]) -> Result<Vec<TemplatePiece>, Problem> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            put(&mut pieces, before);
            put(&mut pieces, "${");
            rest = after;
            continue;
        }
        put(&mut pieces, before);
        let Some((name, after)) = after.split_once('}') else {
            let what = "the template has `${` without `}`".to_owned();
            return Err(wrong(what).hint("write ${name}; for a literal ${ write $${"));
        };
        let Some((_, number)) = values.iter().find(|(value, _)| *value == name) else {
            let names: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
            let names = names.join(", ");
            let hint = format!("declared values: {names}; for a literal ${{ write $${{");
            return Err(
                wrong(format!("`${{{}}}` is not one of the values", quoted(name))).hint(hint)
            );
        };
        pieces.push(TemplatePiece::Value(*number));
        rest = after;
    }
    put(&mut pieces, rest);
    let is_used = |number: usize| pieces.contains(&TemplatePiece::Value(number));
    if let Some((name, _)) = values.iter().find(|(_, number)| !is_used(*number)) {
        let what = format!("the template does not use the value `{}`", quoted(name));
        return Err(wrong(what).hint("use the value as ${name}, or omit it"));
    }
    Ok(pieces)
}

fn wrong(what: String) -> Problem {
    Problem::new(Code::Receive, what)
}

fn put(pieces: &mut Vec<TemplatePiece>, words: &str) {
    match pieces.last_mut() {
        _ if words.is_empty() => {}
        Some(TemplatePiece::Text(before)) => before.push_str(words),
        Some(TemplatePiece::Value(_)) | None => pieces.push(TemplatePiece::Text(words.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;
    use steadfast_resources::TemplatePiece::{self, Text, Value};

    fn text(words: &str) -> TemplatePiece {
        Text(words.to_owned())
    }

    #[test]
    fn values_stand_where_they_are_named() {
        let values = [("a", 3), ("b", 4)];
        let found = pieces("u=${a} p=${b}${a}\n", &values).unwrap();
        assert_eq!(found, [text("u="), Value(3), text(" p="), Value(4), Value(3), text("\n")]);
        let found = pieces("${a}$5 $${a} ${b}", &values).unwrap();
        assert_eq!(found, [Value(3), text("$5 ${a} "), Value(4)]);
        // The dollar before the escape stays unchanged.
        assert_eq!(pieces("$$${b}", &[]).unwrap(), [text("$${b}")]);
    }

    #[test]
    fn malformed_templates_are_rejected() {
        for (wrong, values) in [
            ("${", vec![]),
            ("${a", vec![("a", 0)]),
            ("${x}", vec![("a", 0)]),
            ("", vec![("a", 0)]),
        ] {
            assert!(pieces(wrong, &values).is_err(), "{wrong}");
        }
    }
}
